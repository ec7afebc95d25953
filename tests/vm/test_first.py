"""From a machine on which nothing of gpufab is to one that is as declared, by the commands an operator gives."""

import json
import re

import pytest

from tests.vm.ports_of import PCI, state
from tests.vm.site import HUGEPAGES, RAILS, VFS

pytestmark = pytest.mark.vm


def test_discover_finds_the_ports(fresh):
    site = fresh.site
    config = str(site.folder / "ssh_config")
    site.cli("discover", "gpu01", "--ssh-config", config, "--user", "ops", "--timeout", "300", "--dir", "draft")
    lock = (site.folder / "draft/fabric.lock.yml").read_text()
    assert re.findall(r"0000:[48]1:00\.0", lock) == list(PCI)
    assert f"rail: 0-{RAILS - 1}" in (site.folder / "draft/fabric.yml").read_text()


def test_first_apply_ends_well(first_apply):
    assert first_apply.returncode == 0, first_apply.stdout + first_apply.stderr


def test_audit_is_clean_and_a_second_apply_changes_nothing(applied, sh):
    applied.site.audit()
    steps = json.loads(applied.site.apply("--format", "json").stdout)
    assert steps["rounds"] == 0 or not [step for host in steps["hosts"].values() for step in host["steps"]]
    for rail in range(RAILS):
        lossless, vfs = state(sh, f"rail{rail}")
        assert lossless
        assert len({vf["mac"] for vf in vfs}) == VFS
        assert all((vf["trust"], vf["spoofchk"]) == (True, False) for vf in vfs)


def test_verify_passes(applied):
    applied.site.cli("verify")


def test_verify_compares_what_a_real_kernel_says(applied, sh):
    """One page too few on one of two NUMA nodes: what compares nothing passes here."""
    sh(f"echo {HUGEPAGES - 1} >/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages")
    done = applied.site.cli("verify", "-k", "hugepages or nodes", "--format", "json", rc=1)
    checks = {row["check"]: row for row in _rows(json.loads(done.stdout))}
    assert [name for name in checks if "hugepages" in name]
    assert all((row["outcome"] == "failed") == ("hugepages" in name) for name, row in checks.items()), checks


def _rows(report):
    return [row for host in report["hosts"].values() for row in host["checks"]]
