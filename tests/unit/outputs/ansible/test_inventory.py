"""The inventory as Ansible reads it."""

from dataclasses import dataclass

import pytest
import yaml

from gpufab_cli.fabric.resolve import resolve
from gpufab_cli.intent.compile import FEATURES
from gpufab_cli.module_utils.schema import encode
from gpufab_cli.outputs.ansible.inventory import inventory
from gpufab_cli.spec.lock import LockedHost
from tests.fabrics import compiled, lock, locked_port, spec

CONNECTION = "{user: ops}"
HOSTS = '{name: "gpu[01-03]", profile: box, address: "10.0.0.[11-13]"}'


def texts(fabric, pinned):
    return inventory(resolve(fabric, pinned), compiled(fabric, pinned))


def files(*replacements):
    fabric = spec(*replacements)
    return texts(fabric, lock())


def read(*replacements):
    return {path: yaml.safe_load(text) for path, text in files(*replacements).items()}


def connection(text):
    return read((CONNECTION, text))["group_vars/gpufab/gpufab.yml"]


def test_what_a_role_reads_is_what_was_compiled():
    wants = compiled(spec(), lock())["gpu02"]
    found = read()
    variables = found["group_vars/profile_box/gpufab.yml"] | found["host_vars/gpu02/gpufab.yml"]
    assert variables["roce_qos"] == encode(wants["roce"])["qos"]
    assert variables["roce_ports"] == encode(wants["roce"])["ports"]
    assert variables["node_features"] == ["roce"]


def test_what_hosts_share_is_written_once():
    texts = files()
    assert sum("dscp_priority" in text for text in texts.values()) == 1
    assert all(len(text.splitlines()) < 10 for path, text in texts.items() if path.startswith("host_vars"))


def test_groups():
    groups = read()["hosts.yml"]
    empty = [f"{kind}_{feature}" for kind in ("insync", "failed") for feature in FEATURES]
    assert list(groups) == ["gpufab", "profile_box", *FEATURES, *empty]
    for name in ("gpufab", "profile_box", "node", "roce"):
        assert list(groups[name]["hosts"]) == ["gpu01", "gpu02", "gpu03"]
    assert all(groups[name] == {} for name in groups if name not in ("gpufab", "profile_box", "node", "roce"))


def test_a_dash_is_no_part_of_a_group_name():
    found = read(("profiles:\n  box:", "profiles:\n  hgx-h100:"), ("profile: box", "profile: hgx-h100"))
    assert "profile_hgx_h100" in found["hosts.yml"]
    assert "group_vars/profile_hgx_h100/gpufab.yml" in found


def test_a_host_in_maintenance_is_reached_and_not_managed_an_absent_one_is_gone():
    text = (
        f"{HOSTS}\n  - {{name: sick, profile: box, state: maintenance}}\n  - {{name: old, profile: box, state: absent}}"
    )
    found = read((HOSTS, text))
    groups = found["hosts.yml"]
    assert "sick" in groups["gpufab"]["hosts"]
    assert "sick" in groups["profile_box"]["hosts"]
    assert "sick" not in groups["roce"]["hosts"]
    assert "sick" not in groups["node"]["hosts"]
    assert "host_vars/sick/gpufab.yml" not in found
    assert "old" not in str(found)


def test_nothing_ever_asks():
    found = connection("{user: ops, port: 2222}")
    assert found["ansible_become_flags"] == "-H -n"
    assert "StrictHostKeyChecking=yes" in found["ansible_ssh_common_args"]
    assert found["ansible_port"] == 2222
    assert found["ansible_user"] == "ops"


def test_what_is_not_said_is_not_rendered():
    found = connection("{become: none}")
    assert found["ansible_become"] is False
    assert not {"ansible_user", "ansible_port", "ansible_become_flags"} & set(found)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("ssh/config", "{{ inventory_dir }}/../ssh/config"),
        ("../x", "{{ inventory_dir }}/../../x"),
        ("/etc/ssh/f", "/etc/ssh/f"),
    ],
)
def test_the_ssh_config_is_found_from_the_inventory(path, shown):
    found = connection(f"{{ssh_config: {path}}}")
    assert found["ansible_ssh_common_args"].startswith(f'-F "{shown}" ')


def test_an_address_is_rendered_only_where_it_is_not_the_name():
    assert read()["host_vars/gpu03/gpufab.yml"]["ansible_host"] == "10.0.0.13"
    assert "ansible_host" not in read((', address: "10.0.0.[11-13]"', ""))["host_vars/gpu03/gpufab.yml"]


def test_names_that_yaml_1_1_takes_for_something_else_stay_names():
    odd = '{name: "no", profile: box, state: maintenance}\n  - {name: 1e5x, profile: box, state: maintenance}'
    text = f"{HOSTS}\n  - {odd}\n  - {{name: '012', profile: box, state: maintenance}}"
    assert list(read((HOSTS, text))["hosts.yml"]["gpufab"]["hosts"])[3:] == ["no", "1e5x", "012"]


def test_the_same_fabric_gives_the_same_bytes():
    assert files() == files()
    assert list(files()) == sorted(files())


def overridden(override):
    return (HOSTS, f"{HOSTS}\n  - {{name: odd, profile: box, override: {override}}}")


def odd_lock(rails=(1,)):
    found = lock()
    return found.model_copy(
        update={"hosts": found.hosts | {"odd": LockedHost(ports={f"compute/{n}": locked_port(9, n) for n in rails})}}
    )


def test_an_override_is_the_hosts_own_and_leaves_the_profile_alone():
    fabric = spec(overridden("{ports: [{network: compute, rail: 1}]}"))
    found = {p: yaml.safe_load(text) for p, text in texts(fabric, odd_lock()).items()}
    assert [port["rail"] for port in found["host_vars/odd/gpufab.yml"]["roce_ports"]] == ["compute/1"]
    assert "roce_qos" not in found["host_vars/odd/gpufab.yml"]
    assert found["group_vars/profile_box/gpufab.yml"] == read()["group_vars/profile_box/gpufab.yml"]


def test_a_host_that_overrides_is_not_the_model_of_its_profile():
    first = (HOSTS, f"{{name: odd, profile: box, override: {{ports: null}}}}\n  - {HOSTS}")
    fabric = spec(first)
    found = {p: yaml.safe_load(text) for p, text in texts(fabric, odd_lock()).items()}
    assert found["group_vars/profile_box/gpufab.yml"]["node_features"] == ["roce"]
    assert found["host_vars/odd/gpufab.yml"] == {"node_features": []}
    assert "odd" not in found["hosts.yml"]["roce"]["hosts"]


def test_what_an_override_takes_away_is_null_for_its_host():
    fabric = spec(overridden("{ports: [{network: compute, rail: 1}]}"))
    wants = compiled(fabric, odd_lock())
    wants["gpu01"]["roce"] = SimpleWant(qos={}, extra=1)
    wants["odd"]["roce"] = SimpleWant(qos={})
    found = inventory(resolve(fabric, odd_lock()), wants)
    assert yaml.safe_load(found["group_vars/profile_box/gpufab.yml"])["roce_extra"] == 1
    assert yaml.safe_load(found["host_vars/odd/gpufab.yml"]) == {"roce_extra": None}


@dataclass(frozen=True)
class SimpleWant:
    qos: dict[str, str]
    extra: int | None = None
