"""The GPU software on a living node: what the hardware process shows below /proc, and a real Fabric Manager unit."""

import pytest

pytestmark = pytest.mark.lab


def test_the_driver_shows_below_proc_and_its_library_by_a_link(sh):
    assert "Open Kernel Module for x86_64  570.86.15" in sh("cat /proc/driver/nvidia/version")
    assert sh("grep -c ib_register_peer_memory_client /proc/kallsyms") == "1\n"
    assert sh("readlink /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1") == "libnvidia-ml.so.570.86.15\n"
    assert sh("modinfo -F version nvidia") == "570.86.15\n"


def test_fabric_manager_runs_unless_it_is_of_another_version(lab, sh):
    unit = "systemctl is-active nvidia-fabricmanager"
    assert sh(unit) == "active\n"
    lab.break_("gpu01", "fabricmanager-mismatch")
    assert sh(unit, rc=3) == "failed\n"
    lab.repair("gpu01")
    assert sh(unit) == "active\n"


def test_peermem_is_gone_and_comes_back(lab, sh):
    users = "ls /sys/module/ib_core/holders"
    assert sh(users) == "nvidia_peermem\n"
    lab.break_("gpu01", "peermem-refused")
    assert "disagrees about version of symbol" in sh("dmesg --notime")
    sh("test -e /sys/module/nvidia_peermem", rc=1)
    lab.repair("gpu01")
    assert sh(users) == "nvidia_peermem\n"
