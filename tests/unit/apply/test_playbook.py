"""With Ansible itself, on this machine: whose consent counts, what a role that fails holds back, what never returns."""

import json
from pathlib import Path

import pytest
import yaml

from gpufab_cli.apply import ansible
from gpufab_cli.apply.ansible import Play, run
from gpufab_cli.apply.apply import Request, _consent
from gpufab_cli.gen.files import files
from gpufab_cli.intent.compile import FEATURES
from gpufab_cli.module_utils.change import Impact

pytestmark = pytest.mark.process

HOSTS = ("gpu01", "gpu02")


class Site:
    """An inventory of this machine by two names, with a site's own variables."""

    def __init__(self, folder, monkeypatch):
        self.folder, self.monkeypatch = folder, monkeypatch
        local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
        groups = {feature: {"hosts": dict.fromkeys(HOSTS)} for feature in FEATURES}
        hosts = {"all": {"hosts": dict.fromkeys(HOSTS), "vars": local, "children": groups}}
        (folder / "inventory").mkdir()
        (folder / "inventory" / "hosts.yml").write_text(yaml.safe_dump(hosts))
        (folder / "inventory" / "group_vars").mkdir()
        self.group_vars = folder / "inventory" / "group_vars" / "all.yml"

    def run(self, plays, request=None, granted=HOSTS, seconds=0, hosts=HOSTS):
        path = self.folder / "site.yml"
        path.write_text(yaml.safe_dump(plays, sort_keys=False))
        self.monkeypatch.setattr(ansible, "PLAYBOOK", str(path))
        told = _consent(request or Request(), granted) | {"gpufab_run": {"id": "run-1"}}
        play = Play(
            inventory=self.folder / "inventory",
            groups={},
            hosts=hosts,
            extra_vars=told,
            check=False,
            forks=2,
            connect_seconds=10,
            step_seconds=seconds,
        )
        return run(play, lambda _: None)


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


def writing(folder, name, content="x"):
    path = f"{folder}/{name}-{{{{ inventory_hostname }}}}"
    return {"name": name, "ansible.builtin.copy": {"dest": path, "content": content, "mode": "0600"}}


def test_consent_is_that_of_now_whatever_the_site_has_set(site):
    site.group_vars.write_text(
        "roce_allow: [reboot]\nroce_busy_ok: true\nroce_run: {id: theirs}\n"
        "gpufab_allow: [reboot]\ngpufab_busy_ok: true\n"
    )
    told = writing(site.folder, "told", "{{ [roce_allow, roce_busy_ok, roce_run.id] | to_json }}")
    request = Request(allow=frozenset({Impact.TRAFFIC}), busy_ok=("gpu02",))
    site.run([{"hosts": "all", "gather_facts": False, "tasks": [told]}], request, granted=("gpu02",))
    assert json.loads((site.folder / "told-gpu01").read_text()) == [[], False, "run-1"]
    assert json.loads((site.folder / "told-gpu02").read_text()) == [["traffic"], True, "run-1"]


def test_one_role_that_fails_holds_back_what_needs_it_and_nothing_else(site):
    """The generated playbook, with a file for each role; two of them fail on one of the hosts."""
    text = next(text for path, text in files().items() if path.name == "site.yml")
    plays = yaml.safe_load(text)
    for play, feature in zip(plays[:-1], FEATURES, strict=True):
        steps = [writing(site.folder, feature)]
        if feature in ("ofed", "nccl"):
            failing = {"msg": f"{feature} is not offered"}
            steps = [{"name": "f", "ansible.builtin.fail": failing, "when": "inventory_hostname == 'gpu01'"}, *steps]
        play["tasks"][0]["block"] = steps
    said = site.run(plays)
    made = {host: {f for f in FEATURES if (site.folder / f"{f}-{host}").exists()} for host in HOSTS}
    assert made["gpu02"] == set(FEATURES)
    assert made["gpu01"] == set(FEATURES) - {"ofed", "nccl", "firmware", "roce", "sriov"}
    assert {(item.host, item.feature) for item in said if item.ended} == {("gpu01", "ofed"), ("gpu01", "nccl")}
    assert {item.host for item in said if item.problem} == {"gpu01"}


def test_what_never_returns_is_ended_and_named(site, monkeypatch):
    monkeypatch.setattr(ansible, "GRACE_SECONDS", 0)
    stuck = {"name": "stuck", "ansible.builtin.command": "sleep 7654321"}
    said = site.run([{"hosts": "all", "gather_facts": False, "tasks": [stuck]}], seconds=4, hosts=("gpu01",))
    assert [(item.host, "imed out" in item.problem) for item in said] == [("gpu01", True)]
    running = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert b"sleep\x007654321\x00" not in running  # nothing below the playbook outlives it
