"""What a tool or a file is known to print and does not: it is unknown, and never an empty or absent value."""

import json

import pytest

from gpufab_cli.module_utils import devices, management, processes
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.dvfs import smi
from gpufab_cli.module_utils.firmware import table
from gpufab_cli.module_utils.host import Output
from gpufab_cli.module_utils.limits import gather as limits
from gpufab_cli.module_utils.packages import database, kernel
from gpufab_cli.module_utils.queries import MEMORY_LIMIT
from gpufab_cli.module_utils.roce import dcb, gids, mlnx_qos_text
from gpufab_cli.module_utils.sriov import vfinfo
from tests.fakes import FakeHost, ok

from .mlnx_qos_outputs import port
from .packages_node import ROCKY, UBUNTU
from .test_dvfs_smi import CLOCKS, H100, QUERY, REASONS

ADDR = ("ip", "-j", "addr", "show")
LINK = ("ip", "-d", "-j", "link", "show", "dev", "ens1")
APP = ("dcb", "-j", "app", "show", "dev", "ens1")
# As iproute2 6.15 prints a VF of a kernel of today.
VF = {
    "vf": 0, "link_type": "ether", "address": "02:11:22:33:44:55", "broadcast": "ff:ff:ff:ff:ff:ff",
    "vlan_list": [{"vlan": 100, "qos": 3}], "rate": {"max_tx": 0, "min_tx": 0}, "spoofchk": True, "link_state": "auto",
    "trust": False,
}  # fmt: skip


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


def vfs(*rows, **link):
    return vfinfo.read(FakeHost(answers={LINK: ok([{"ifname": "ens1", "vfinfo_list": list(rows), **link}])}), "ens1")


def test_a_list_of_vfs_that_is_empty_is_there_and_one_that_is_missing_is_unknown():
    assert vfs() == ()
    link = {"ifname": "ens1", "parentbus": "pci", "parentdev": "0000:18:00.0"}
    assert isinstance(vfinfo.read(FakeHost(answers={LINK: ok([link])}), "ens1"), Unknown)


@pytest.mark.parametrize("row", [{"vlan_list": []}, {"rate": {}}, {"rate": {"max_tx": 100}}, {"vlan_list": None}])
def test_a_vf_without_what_every_kernel_of_today_tells_is_unknown(row):
    assert vfs(VF)[0]["vlan"] == 100
    assert isinstance(vfs({**VF, **row}), Unknown)


def test_older_kernels_tell_vlan_and_rate_in_the_row_itself():
    (found,) = vfs({**without(VF, "vlan_list", "rate"), "vlan": 7, "qos": 5, "tx_rate": 100})
    assert (found["vlan"], found["vlan_qos"], found["max_tx_mbps"], found["min_tx_mbps"]) == (7, 5, 100, 0)
    (found,) = vfs(without(VF, "vlan_list", "rate"))
    assert (found["vlan"], found["max_tx_mbps"]) == (0, 0)


@pytest.mark.parametrize("said", [{"dscp_priority": [[26, 3, " "]]}, {"error": 1}])
def test_an_app_table_under_a_name_that_is_not_known_is_not_an_empty_one(said):
    def read(data):
        return dcb.read(FakeHost(answers={APP: ok(data)}), {"ens1": False})["ens1"]

    assert read({}).trust == "pcp"
    assert read({"default_prio": [3]}).dscp == ()
    assert isinstance(read(said).dscp, Unknown)
    assert isinstance(read(said).trust, Unknown)


def test_mlnx_qos_without_its_map_does_not_map_nothing():
    assert mlnx_qos_text.parse(port(trust="pcp"), "", "ens1").dscp == ()
    assert isinstance(mlnx_qos_text.parse(port(dscps=""), "", "ens1").dscp, Unknown)


@pytest.mark.parametrize(
    "row",
    [
        {"ifname": "ens1"},
        {"ifname": "ens1", "addr_info": [{"family": "inet", "prefixlen": 24}]},
        {"ifname": "ens1", "addr_info": [{"family": "inet", "local": "10.0.0.1"}]},
    ],
)
def test_an_interface_without_its_addresses_has_not_none(row):
    assert management.addresses(FakeHost(answers={ADDR: ok([{"ifname": "ens1", "addr_info": []}])})) == {"ens1": ()}
    assert isinstance(management.addresses(FakeHost(answers={ADDR: ok([row])})), Unknown)


@pytest.mark.parametrize(
    ("row", "known"), [({"dst": "default"}, False), ({"dst": "default", "type": "blackhole"}, True)]
)
def test_a_default_route_without_a_device_is_not_passed_over(row, known):
    routes = {("ip", "-j", family, "route", "show", "default"): ok([row]) for family in ("-4", "-6")}
    found = management.carried(FakeHost({"/proc/net/tcp": "  sl  local_address\n"}, answers=routes), {})
    assert (found == {}) is known
    assert isinstance(found, Unknown) is not known


@pytest.mark.parametrize("text", ["", "garbled\n", "  sl  local_address\n   0: 0100007F:0016 01\n"])
def test_connections_that_cannot_be_told_are_not_none(text):
    assert isinstance(processes.connections(FakeHost({"/proc/net/tcp": text})), Unknown)
    host = FakeHost({"/proc/net/tcp": "  sl  local_address\n"})
    assert processes.connections(host) == ()
    host.unreadable["/proc/net/tcp6"] = "Permission denied"
    assert isinstance(management.carried(host, {}), Unknown)


def test_clocks_that_are_not_listed_are_not_offered_only_if_that_is_said():
    def offered(text):
        gpu = "0000:1b:00.0"
        answers = {QUERY: ok(H100), REASONS: ok("00000000:1B:00.0, 0x0\n"), CLOCKS: Output(0, text, "")}
        return smi.read(FakeHost(answers=answers), [gpu], clocks=True)[0][gpu].graphics_clocks_mhz

    assert offered("00000000:1B:00.0, 2619, 1980\n") == (1980,)
    assert offered("00000000:1B:00.0, [N/A], [N/A]\n") is ABSENT
    assert isinstance(offered(""), Unknown)


def test_a_table_of_firmware_without_a_row_is_none():
    head = "Configurations:   Default   Current   Next Boot\n"
    assert table.parse(head + "     SRIOV_EN   True(1)   True(1)   True(1)\n")
    assert table.parse(head) is None


def test_a_service_that_runs_without_a_process_does_not_count_as_stopped():
    shown = "Id=ssh.service\nLoadState=loaded\nActiveState=active\nLimitMEMLOCK=8388608\nLimitMEMLOCKSoft=8388608\n"
    answer = {("systemctl", "show", MEMORY_LIMIT, "ssh.service"): Output(0, shown, "")}
    assert isinstance(limits.running(FakeHost(answers=answer), "ssh.service"), Unknown)
    answer = {("systemctl", "show", MEMORY_LIMIT, "ssh.service"): Output(0, f"{shown}MainPID=0\n", "")}
    assert limits.running(FakeHost(answers=answer), "ssh.service") is ABSENT


def everything(name, version):
    return True


@pytest.mark.parametrize("text", ["", "garbled\n\ngarbled\n"])
def test_a_package_database_without_a_package_is_unknown(text):
    assert isinstance(database.look(FakeHost({database.STATUS: text}), UBUNTU, everything), Unknown)
    answer = {("rpm", "-qa", "--qf", database.RPM_FORMAT): Output(0, text, "")}
    assert isinstance(database.look(FakeHost(answers=answer), ROCKY, everything), Unknown)


def test_half_a_variable_does_not_say_that_secure_boot_is_off():
    assert isinstance(kernel.look(FakeHost({kernel.SECURE_BOOT: b"\x06\0\0"})).secure_boot, Unknown)
    assert kernel.look(FakeHost({kernel.SECURE_BOOT: b"\x06\0\0\0\x00"})).secure_boot is False


def test_a_gid_that_cannot_be_read_is_not_passed_over():
    folder = "/sys/class/infiniband/mlx5_0/ports/1"
    host = FakeHost({f"{folder}/gids/0": "fe80::1\n", f"{folder}/gid_attrs/types/0": "RoCE v2\n"})
    assert len(gids.read(host, "mlx5_0")) == 1
    host.unreadable[f"{folder}/gids/0"] = "Input/output error"
    assert isinstance(gids.read(host, "mlx5_0"), Unknown)


def test_an_entry_of_devlink_that_is_none_is_unknown():
    pci = "0000:18:00.0"

    def serial(info):
        host = FakeHost({f"{devices.PCI_DEVICES}/{pci}/net/ens1/x": ""})
        host.answers[("devlink", "-j", "dev", "info")] = Output(0, json.dumps({"info": info}), "")
        return devices.gather(host).nics[0].serial

    assert serial({}) is ABSENT
    assert isinstance(serial({f"pci/{pci}": []}), Unknown)
