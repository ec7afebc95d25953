"""Faults by name on a living node: each shows, and ends with its repair."""

import pytest

pytestmark = pytest.mark.lab

PORT = "enp24s0np0"
ECN = f"/sys/class/net/{PORT}/ecn"


def test_a_missing_tool(lab, sh):
    lab.break_("gpu01", "tool-missing", "dcb")
    assert "not found" in sh("dcb -V", rc=127)
    lab.repair("gpu01")
    assert "iproute2" in sh("dcb -V")


def test_a_tool_that_hangs(lab, sh):
    lab.break_("gpu01", "tool-hangs", "ethtool")
    sh(f"timeout 1 ethtool -a {PORT}", rc=124)
    lab.repair("gpu01", "tool-hangs")
    assert "RX" in sh(f"ethtool -a {PORT}")


def test_a_tool_that_lies(lab, sh):
    lab.break_("gpu01", "tool-lies", "dcb")
    sh(f"dcb app add dev {PORT} dscp-prio 10:1")
    assert "AF11" not in sh(f"dcb app show dev {PORT}")


def test_processes_that_are_in_the_way(lab, sh):
    lab.break_("gpu01", "lldpad-running")
    lab.break_("gpu01", "verbs-busy", port="2")
    assert sh("pgrep -x lldpad; systemctl is-active lldpad").count("\n") == 2
    pid = sh("pgrep -x ib_write_bw").strip()
    held = sh("rdma -j resource show qp")
    assert f'"pid":{pid}' in held
    assert '"ifname":"mlx5_2"' in held
    lab.repair("gpu01")
    sh("pgrep -x lldpad || pgrep -x ib_write_bw", rc=1)
    assert sh("rdma -j resource show qp") == "[]\n"


def test_a_login_over_a_rail(lab, sh):
    peers = "ss -Htn state established sport = :22 | grep 10.10.5.1"
    sh(peers, rc=1)
    lab.break_("gpu01", "ssh-over-rail", port="5")
    assert "10.10.5.254" in sh(peers)
    lab.repair("gpu01")
    sh(f"sleep 0.5; {peers}", rc=1)


def test_a_cable_that_carries_nothing(lab, sh):
    lab.break_("gpu01", "link-down", port="3")
    assert sh("cat /sys/class/net/enp94s0np0/carrier") == "0\n"
    lab.repair("gpu01")
    assert sh("cat /sys/class/net/enp94s0np0/carrier") == "1\n"


def test_files_that_are_not_there(lab, sh):
    lab.break_("gpu01", "no-ecn-sysfs")
    lab.break_("gpu01", "no-rdma-cm")
    sh(f"test -e {ECN} || test -e /sys/kernel/config/rdma_cm || test -e /sys/class/infiniband/mlx5_0/tc", rc=1)
    lab.repair("gpu01")
    sh(f"test -e {ECN} && test -e /sys/kernel/config/rdma_cm && test -e /sys/class/infiniband/mlx5_0/tc")


def test_no_root(lab):
    lab.break_("gpu01", "no-root")
    assert lab.run("gpu01", "sudo -n true").returncode != 0
    lab.repair("gpu01")
    assert lab.run("gpu01", "sudo -n true").returncode == 0


def test_the_nth_write_fails(lab, sh):
    lab.break_("gpu01", "fail-at-write", "2")
    sh(f"echo 0 >{ECN}/roce_np/enable/6")
    assert "Input/output error" in sh(f"dcb pfc set dev {PORT} delay 9", rc=1)
    sh(f"echo 1 >{ECN}/roce_np/enable/6")


def test_the_nth_write_stalls_and_only_the_writer(lab, sh):
    lab.break_("gpu01", "stall-at-write", "1")
    sh(f'timeout -s KILL 1 sh -c "echo 0 >{ECN}/roce_np/enable/7"; true')
    assert sh(f"cat {ECN}/roce_np/enable/7") == "1\n"
    lab.repair("gpu01")
    sh(f"sleep 0.3; echo 1 >{ECN}/roce_np/enable/7")
    assert sh(f"cat {ECN}/roce_np/enable/7") == "1\n"


def test_a_node_that_is_off(lab, sh):
    lab.break_("gpu02", "node-stopped")
    assert lab.run("gpu02", "true").returncode == 255
    lab.repair("gpu02")
    sh("true", node="gpu02")


def test_reading_everything_leaves_the_write_log_empty(lab, sh):
    sh(f"echo 1 >{ECN}/roce_np/enable/5")
    assert lab.writes("gpu01", clear=True)
    sh(f"dcb -j pfc show dev {PORT}; ethtool -a {PORT}; ip -j addr; rdma -j link; nvidia-smi -L")
    sh("grep -r . /sys/class/net/*/ecn /sys/class/infiniband/*/ports >/dev/null; true")
    assert lab.writes("gpu01") == []
    sh(f"ip link set {PORT} mtu 9000")
    assert [entry["face"] for entry in lab.writes("gpu01")] == ["ip"]


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
