"""A node as it comes: reached by ssh, with the hardware its machine type says."""

import pytest

pytestmark = pytest.mark.lab

PORT = "enp24s0np0"


def test_ssh_reaches_a_user_who_may_become_root(lab):
    assert lab.run("gpu01", "whoami").stdout == "ops\n"
    assert lab.run("gpu01", "sudo -n whoami").stdout == "root\n"


def test_systemd_is_up(sh):
    assert sh("systemctl is-system-running") == "running\n"


def test_rails_reach_one_another(sh):
    assert "1 received" in sh("ping -c 1 -W 2 10.10.3.2")


def test_what_the_kernel_shows_is_what_ip_shows(sh):
    mac = sh(f"cat /sys/class/net/{PORT}/address").strip()
    assert mac in sh(f"ip -o link show {PORT}")
    sh(f"ip link set {PORT} mtu 4200")
    assert sh(f"cat /sys/class/net/{PORT}/mtu") == "4200\n"
    sh(f"echo 9000 >/sys/class/net/{PORT}/mtu")
    assert "mtu 9000" in sh(f"ip -o link show {PORT}")


def test_a_port_leads_to_its_function_and_its_rdma_device(sh):
    assert sh(f"readlink -f /sys/class/net/{PORT}/device").endswith("/0000:17:00.0/0000:18:00.0\n")
    assert sh(f"ls /sys/class/net/{PORT}/device/infiniband") == "mlx5_0\n"
    assert sh("cat /sys/bus/pci/devices/0000:1b:00.0/class") == "0x030200\n"


def test_a_shell_s_wildcard_finds_what_is_there(sh):
    assert len(sh("echo /sys/class/infiniband/*/device/net/*").split()) == 8


def test_gids_are_the_addresses(sh):
    base = "/sys/class/infiniband/mlx5_0/ports/1"
    assert sh(f"cat {base}/gids/3 {base}/gid_attrs/types/3") == "0000:0000:0000:0000:0000:ffff:0a0a:0001\nRoCE v2\n"
    assert "Invalid argument" in sh(f"cat {base}/gid_attrs/types/15", rc=1)


def test_a_new_interface_shows_without_a_device(sh):
    sh("ip link add br7 type bridge")
    assert sh("readlink /sys/class/net/br7") == "../../devices/virtual/net/br7\n"
    sh("ip link del br7")
    assert "br7" not in sh("ls /sys/class/net")


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        ("ecn/roce_np/cnp_dscp", "64", "Invalid argument"),
        ("ecn/roce_np/enable/3", "on", "Invalid argument"),
        ("address", "02:00:00:00:00:01", "Permission denied"),
        ("ecn/roce_np/none", "1", "Permission denied"),
        ("device/sriov_numvfs", "99", "Numerical result out of range"),
    ],
)
def test_writes_fail_as_the_kernels_do(sh, path, value, error):
    assert error in sh(f"exec 2>&1; echo {value} >/sys/class/net/{PORT}/{path}", rc=1)


def test_only_root_writes(lab):
    done = lab.run("gpu01", f"echo 1 >/sys/class/net/{PORT}/ecn/roce_np/enable/3")
    assert "Permission denied" in done.stderr


def test_configfs_views_come_and_go_but_values_stay(sh):
    base = "/sys/kernel/config/rdma_cm"
    assert "No such device" in sh(f"mkdir {base}/mlx5_9", rc=1)
    sh(f"mkdir {base}/mlx5_4 && echo 106 >{base}/mlx5_4/ports/1/default_roce_tos")
    sh(f"rmdir {base}/mlx5_4")
    sh(f"test -e {base}/mlx5_4", rc=1)
    sh(f"mkdir {base}/mlx5_4")
    assert sh(f"cat {base}/mlx5_4/ports/1/default_roce_tos") == "106\n"


def test_pfc_flaps_the_link_for_real(sh):
    both = f"dcb pfc set dev {PORT} prio-pfc 5:on; ip -br link show {PORT}; sleep 1; ip -br link show {PORT}"
    before, after = sh(both).splitlines()
    assert "NO-CARRIER" in before
    assert "LOWER_UP" in after
    assert "NO-CARRIER" not in sh(f"dcb pfc set dev {PORT} prio-pfc 5:on; ip -br link show {PORT}")


def test_devices_without_hardware_behind_get_the_real_tools(sh):
    assert "Operation not supported" in sh("dcb pfc show dev lo", rc=1)
    assert "driver: veth" in sh("ethtool -i eth0")
