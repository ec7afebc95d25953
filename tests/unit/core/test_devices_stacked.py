"""Interfaces above a port, bonded ports' own MACs, and functions that belong to the GPU baseboard."""

import json

from gpufab_cli.module_utils.devices import gather
from tests.fakes import FakeHost, ok

FIRST, SECOND, SWITCH = "0000:18:00.0", "0000:18:00.1", "0000:27:00.0"


def port(pci, name, mac, rdma=None, link_layer="Ethernet"):
    folder, net = f"/sys/bus/pci/devices/{pci}", f"/sys/class/net/{name}"
    files = {f"{folder}/net/{name}/x": "", f"{net}/address": mac + "\n", f"{net}/mtu": "9000\n"}
    if rdma:
        files[f"{folder}/infiniband/{rdma}/x"] = ""
        files[f"/sys/class/infiniband/{rdma}/ports/1/link_layer"] = link_layer + "\n"
    return files


def host(files, **addresses):
    rows = [
        {"ifname": name, "addr_info": [{"local": ip, "prefixlen": 24}]}
        for name, ip in {**addresses, "eth9": "10.0.0.9"}.items()
    ]
    answers = {("ip", "-j", "addr", "show"): ok(json.dumps(rows))}
    answers |= {("ip", "-j", family, "route", "show", "default"): ok("[]") for family in ("-4", "-6")}
    return FakeHost(files, answers=answers)


def bond(*ports):
    files = {"/sys/class/net/bond0/bonding/mode": "802.3ad 4\n", "/sys/class/net/bond0/mtu": "9000\n"}
    files |= {"/sys/class/net/vlan7/mtu": "1500\n", "/sys/class/net/bond0/upper_vlan7/x": ""}
    for name, mac in ports:
        files[f"/sys/class/net/{name}/upper_bond0/x"] = ""
        files[f"/sys/class/net/{name}/bonding_slave/perm_hwaddr"] = mac + "\n"
    return files


def test_a_bond_and_the_vlan_on_it_are_above_each_of_its_ports():
    files = {
        **port(FIRST, "ens1f0", "02:00:00:00:00:01", "mlx5_bond_0"),
        **port(SECOND, "ens1f1", "02:00:00:00:00:01"),
        **bond(("ens1f0", "02:00:00:00:00:01"), ("ens1f1", "02:00:00:00:00:02")),
    }
    devices = gather(host(files, vlan7="10.10.7.1"))
    first, second = devices.nics
    assert [(upper.name, upper.mtu, upper.bond) for upper in second.netdev.uppers] == [
        ("bond0", 9000, True),
        ("vlan7", 1500, False),
    ]
    assert second.netdev.uppers[1].addresses == ("10.10.7.1/24",)
    assert second.netdev.bond.name == "bond0"
    assert devices.bonded_with(second) == (first,)
    # A bond gives its ports one address; the lock knows them by their own.
    assert (first.netdev.mac, second.netdev.mac) == ("02:00:00:00:00:01", "02:00:00:00:00:02")


def test_ports_of_no_bond_are_bonded_with_nobody():
    devices = gather(
        host({**port(FIRST, "ens1f0", "02:00:00:00:00:01"), **port(SECOND, "ens1f1", "02:00:00:00:00:02")})
    )
    assert devices.bonded_with(devices.nics[0]) == ()
    assert devices.nics[0].netdev.uppers == ()


def test_the_baseboards_management_functions_are_told_by_their_product_data():
    files = {
        **port(FIRST, "ibp24s0", "02:00:00:00:00:01", "mlx5_0", "InfiniBand"),
        **port(SWITCH, "ibp39s0", "02:00:00:00:00:03", "mlx5_8", "InfiniBand"),
        f"/sys/bus/pci/devices/{FIRST}/vpd": "\x82 ConnectX-7",
        f"/sys/bus/pci/devices/{SWITCH}/vpd": "\x82 Nvidia ... SW_MNG ...",
    }
    assert [nic.nvswitch for nic in gather(host(files)).nics] == [False, True]
