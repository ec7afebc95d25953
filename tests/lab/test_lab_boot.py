"""What a boot, a reload, a crash and a killed run leave behind."""

import os
import shutil
import signal
from pathlib import Path

import pytest

from gpufab_cli.lab import podman
from gpufab_cli.lab.lab import Lab

pytestmark = pytest.mark.lab

PORT = "enp64s0np0"
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"


def _set_things(sh):
    sh(f"dcb pfc set dev {PORT} prio-pfc 3:on")
    sh(f"dcb app add dev {PORT} dscp-prio 26:3")
    sh(f"echo 26 >/sys/class/net/{PORT}/ecn/roce_np/cnp_dscp")


def _port(lab):
    return next(node for node in lab.status() if node["name"] == "gpu01")["ssh_port"]


def test_reboot_forgets_and_renews(lab, sh):
    _set_things(sh)
    boot_id, port = sh(BOOT_ID), _port(lab)
    assert sh(BOOT_ID) == boot_id
    lab.reboot(["gpu01"])
    assert sh(BOOT_ID) != boot_id
    assert _port(lab) == port
    assert sh(f"dcb app show dev {PORT}") == ""
    assert "3:off" in sh(f"dcb pfc show dev {PORT}")
    assert sh(f"cat /sys/class/net/{PORT}/ecn/roce_np/cnp_dscp") == "48\n"
    assert "10.10.1.1/24" in sh(f"ip -br addr show {PORT}")


def test_reboot_from_inside_is_a_reboot(lab, sh):
    boot_id = sh(BOOT_ID)
    lab.run("gpu01", "sudo -n systemctl reboot")
    node = lab.node("gpu01")
    node.wait_for(lambda: node.ask("status")["boot_id"] != boot_id.strip(), 30, "reboot")
    node.wait_up()
    assert sh(BOOT_ID) != boot_id


def test_driver_reload_keeps_the_map_alone(lab, sh):
    _set_things(sh)
    sh("mkdir -p /sys/kernel/config/rdma_cm/mlx5_1")
    lab.break_("gpu01", "driver-reload")
    assert sh(f"dcb app show dev {PORT}") == "dscp-prio AF31:3 \n"
    assert "3:off" in sh(f"dcb pfc show dev {PORT}")
    assert sh("ls /sys/kernel/config/rdma_cm") == ""


def test_dead_hardware_is_made_anew_and_the_node_keeps_its_disk(lab, sh):
    sh("echo kept >/root/mark")
    os.kill(lab.node("gpu01").ask("status")["pid"], signal.SIGKILL)
    lab.node("gpu01").wait_for(lambda: not lab.node("gpu01").hardware_lives(), 10, "death")
    lab.up(["gpu01", "gpu02"])
    assert sh("cat /root/mark; ls /sys/class/infiniband | wc -l") == "kept\n8\n"


def test_up_again_leaves_running_nodes_alone(lab, sh):
    boot_id = sh(BOOT_ID)
    lab.up(["gpu01", "gpu02"])
    assert sh(BOOT_ID) == boot_id


def test_two_labs_live_side_by_side_and_down_leaves_nothing(lab, sh, tmp_path):
    other = Lab(tmp_path / ".lab")
    try:
        other.up(["gpu01"])
        assert other.run("gpu01", "ping -c1 -W1 10.10.0.2").returncode != 0
        assert sh("ls /sys/class/infiniband | wc -l") == "8\n"
        shutil.rmtree(other.folder)
        other.up(["gpu07"])
        assert list(podman.containers(f"gpufab-{other.id}-")) == [f"gpufab-{other.id}-gpu07"]
    finally:
        other.down()
    assert not other.folder.exists()
    assert other.id not in Path("/proc/mounts").read_text()
    assert sh("hostname") == "gpu01\n"
