from pathlib import Path

from gpufab_cli.fabric.targets import targets
from tests.fabrics import spec

HOSTS = '{name: "gpu[01-03]", profile: box, address: "10.0.0.[11-13]"}'


def test_the_way_to_a_host(tmp_path):
    text = "{user: ops, port: 2222, become: none, python: /opt/py/bin/python3, ssh_config: ../ssh/config}"
    first, *_ = targets(spec(("{user: ops}", text)), tmp_path / "fabric")
    assert (first.host, first.address, first.port, first.user) == ("gpu01", "10.0.0.11", 2222, "ops")
    assert (first.become, first.python) == ("none", "/opt/py/bin/python3")
    assert first.ssh_config == tmp_path / "ssh" / "config"


def test_what_is_not_said_is_left_to_ssh():
    first, *_ = targets(spec(("connection: {user: ops}\n", "")), Path("/fabric"))
    assert (first.user, first.port, first.ssh_config) == (None, None, None)
    assert (first.become, first.python) == ("sudo", "/usr/bin/python3")


def test_absent_hosts_are_never_reached():
    text = (
        f"{HOSTS}\n  - {{name: old, profile: box, state: absent}}\n  - {{name: sick, profile: box, state: maintenance}}"
    )
    found = targets(spec((HOSTS, text)), Path("/fabric"))
    assert [(target.host, target.state) for target in found][-2:] == [("gpu03", "active"), ("sick", "maintenance")]
