"""Which ports the node itself depends on."""

import pytest

from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.management import addresses, carried
from gpufab_cli.module_utils.processes import connections
from tests.fakes import FakeHost, failed, ok, start

HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
# 10.10.0.1:22 <- 10.10.0.9:40000, inode 500
SSH = "   0: 01000A0A:0016 09000A0A:9C40 01 00000000:00000000 00:00000000 00000000     0        0 500 1\n"
SSH6 = (
    "   0: 0000000000000000FFFF000001000A0A:0016 0000000000000000FFFF000009000A0A:9C40 01 "
    "00000000:00000000 00:00000000 00000000     0        0 500 1\n"
)
ISCSI = "   1: 0200000A:8000 0900000A:0CBC 01 00000000:00000000 00:00000000 00000000     0        0 600 1\n"
LISTEN = "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 500 1\n"
ADDRESSES = [
    {"ifname": "lo", "addr_info": [{"local": "127.0.0.1", "prefixlen": 24}]},
    {"ifname": "rail0", "addr_info": [{"local": "10.10.0.1", "prefixlen": 24}, {"local": "fd00::1", "prefixlen": 24}]},
    {"ifname": "eth0", "addr_info": [{"local": "10.0.0.2", "prefixlen": 24}]},
    {"ifname": "bond0.7", "addr_info": [{"local": "10.7.0.1", "prefixlen": 24}]},
]


def found(host):
    return carried(host, addresses(host))


def node(tcp="", tcp6="", default=(), mounts="", addresses=ADDRESSES, **more):
    files = {
        "/proc/net/tcp": HEADER + tcp,
        "/proc/net/tcp6": HEADER + tcp6,
        "/proc/self/mounts": mounts,
        "/sys/class/net/bond0.7/lower_bond0": "",
        "/sys/class/net/bond0/lower_ens1": "",
        "/sys/class/net/bond0/lower_ens2": "",
    }
    answers = {
        ("ip", "-j", "addr", "show"): ok(addresses),
        ("ip", "-j", "-4", "route", "show", "default"): ok(list(default)),
        ("ip", "-j", "-6", "route", "show", "default"): ok([]),
        **more,
    }
    host = FakeHost(files, answers=answers)
    start(host, 9, "sshd", "socket:[500]")
    start(host, 8, "nginx", "socket:[501]")
    return host


@pytest.mark.parametrize("tables", [{"tcp": SSH}, {"tcp6": SSH6}])
def test_ssh_over_a_rail(tables):
    assert found(node(**tables)) == {"rail0": ("ssh",)}


def test_a_listening_socket_and_other_programs_are_not_the_ssh_path():
    assert found(node(tcp=LISTEN + SSH.replace(" 500 ", " 501 "))) == {}


def test_default_route_and_its_nexthops():
    assert found(node(default=[{"dst": "default", "dev": "eth0"}])) == {"eth0": ("default-route",)}
    hops = [{"dst": "default", "nexthops": [{"dev": "eth0"}, {"dev": "rail0"}]}]
    assert found(node(default=hops)) == {"eth0": ("default-route",), "rail0": ("default-route",)}


def test_storage_sessions_and_mounts():
    assert found(node(tcp=ISCSI)) == {"eth0": ("storage",)}
    get = {("ip", "-j", "route", "get", "10.7.0.9"): ok([{"dst": "10.7.0.9", "dev": "bond0.7"}])}
    host = node(mounts="nas:/x /data nfs4 rw,addr=10.7.0.9 0 0\n")
    host.answers.update(get)
    assert found(host) == dict.fromkeys(("bond0.7", "bond0", "ens1", "ens2"), ("storage",))
    host = node(mounts="10.7.0.9:/root / nfs rw,addr=10.7.0.9 0 0\n")
    host.answers.update(get)
    assert found(host)["ens2"] == ("root",)


def test_what_cannot_be_told_is_unknown():
    host = node()
    host.unreadable["/proc/9/fd"] = "Permission denied"
    assert found(host) == Unknown("/proc/9/fd: Permission denied")
    host = node(tcp=SSH)
    host.unreadable["/proc/9/fd/3"] = "Permission denied"
    assert found(host) == Unknown("/proc/9/fd/3: Permission denied")
    assert isinstance(found(FakeHost()), Unknown)
    host = node()
    host.answers["ip", "-j", "-6", "route", "show", "default"] = failed("no")
    assert isinstance(found(host), Unknown)
    host.answers["ip", "-j", "addr", "show"] = ok("garbage")
    assert isinstance(found(host), Unknown)


def test_addresses_are_read_in_host_byte_order():
    (connection,) = connections(node(tcp=SSH))
    assert (connection.local, connection.local_port, connection.remote, connection.remote_port) == (
        *("10.10.0.1", 22),
        *("10.10.0.9", 40000),
    )


def routed(host, remote="10.7.0.9", dev="bond0.7"):
    host.answers["ip", "-j", "route", "get", remote] = ok([{"dst": remote, "dev": dev}])
    return found(host)


BELOW_BOND = ("bond0.7", "bond0", "ens1", "ens2")


def test_no_interface_at_all_is_not_an_idle_node():
    for printed in ("", []):
        assert isinstance(found(node(tcp=SSH, addresses=printed)), Unknown)


@pytest.mark.parametrize(
    ("source", "options"),
    [
        ("10.7.0.9:6789:/", "ceph rw"),
        ("10.7.0.9:6789,10.7.0.10:6789:/", "ceph rw"),
        ("a@f00-1.fs=/", "ceph rw,mon_addr=10.7.0.9:3300/10.7.0.10:3300"),
        ("10.7.0.9@o2ib:/fs", "lustre rw"),
        ("//10.7.0.9/share", "cifs rw"),
    ],
)
def test_the_server_of_a_mount_whatever_is_written_around_its_address(source, options):
    assert routed(node(mounts=f"{source} /data {options} 0 0\n")) == dict.fromkeys(BELOW_BOND, ("storage",))


def test_a_mount_whose_server_is_no_address_asks_nothing_forbidden():
    assert found(node(mounts="a@b:/ /data ceph rw 0 0\n")) == {}


def test_nvme_over_rdma_has_no_connection_and_is_storage():
    host = node()
    host.files["/sys/class/nvme/nvme0/address"] = "0000:01:00.0\n"
    host.files["/sys/class/nvme/nvme1/address"] = "traddr=10.7.0.9,trsvcid=4420,src_addr=10.7.0.1\n"
    assert routed(host) == dict.fromkeys(BELOW_BOND, ("storage",))


def test_what_a_vf_carries_its_port_carries():
    host = node(default=[{"dst": "default", "dev": "vf0"}])
    host.files["/sys/class/net/vf0/device/physfn/net/rail0/mtu"] = "9000\n"
    assert found(host) == {"vf0": ("default-route",), "rail0": ("default-route",)}


@pytest.mark.parametrize("own", ["lo", "dummy0"])
def test_ssh_to_an_address_that_no_port_has_comes_over_the_port_on_the_way(own):
    host = node(tcp=SSH, addresses=[{"ifname": own, "addr_info": [{"local": "10.10.0.1", "prefixlen": 24}]}])
    host.links["/sys/class/net/dummy0"] = "../../devices/virtual/net/dummy0"
    assert routed(host, "10.10.0.9", "rail0")["rail0"] == ("ssh",)
    host.answers["ip", "-j", "route", "get", "10.10.0.9"] = failed("Network is unreachable")
    assert isinstance(found(host), Unknown)


def test_an_internal_port_of_open_vswitch_may_be_carried_by_any_uplink():
    rows = [*ADDRESSES, {"ifname": "br-ex", "addr_info": [{"local": "10.10.0.1", "prefixlen": 24}]}]
    host = node(tcp=SSH, addresses=[row for row in rows if row["ifname"] != "rail0"])
    host.links["/sys/class/net/br-ex"] = "../../devices/virtual/net/br-ex"
    host.answers["ip", "-j", "route", "get", "10.10.0.9"] = ok([{"dst": "10.10.0.9", "dev": "br-ex"}])
    host.files["/sys/class/net/ovs-system/lower_ens1"] = ""
    assert found(host)["ens1"] == ("ssh",)


def test_a_file_system_that_names_no_server_may_be_behind_any_port():
    host = node(mounts="beegfs_nodev /scratch beegfs rw,relatime,cfgFile=/etc/beegfs/beegfs-client.conf 0 0\n")
    for name in ("ens1", "ens2"):
        host.files[f"/sys/class/net/{name}/device/vendor"] = "0x15b3"
    assert found(host) == {"ens1": ("storage",), "ens2": ("storage",)}


def test_a_user_s_process_called_sshd_makes_no_port_one_of_management():
    host = node(tcp=SSH)
    start(host, 9, "sshd", "socket:[500]", uid=1000)
    assert found(host) == {}
    start(host, 9, "sshd-session", "socket:[500]", exe="/usr/lib/openssh/sshd-session (deleted)")
    assert found(host) == {"rail0": ("ssh",)}
