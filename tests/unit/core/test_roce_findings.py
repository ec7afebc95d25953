"""What the operator must know of a port: owners, bonds, VLANs, InfiniBand, masks, GIDs, headroom."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.devices import Devices, RdmaDevice, Upper
from gpufab_cli.module_utils.roce.gather import is_candidate
from gpufab_cli.module_utils.roce.knobs import DcqcnWant
from gpufab_cli.module_utils.roce.plan import plan
from gpufab_cli.module_utils.roce.seen import Gid, RoceSeen
from gpufab_cli.module_utils.roce.want import PortWant, RoceWant
from gpufab_cli.module_utils.snapshot import Snapshot

from .roce_node import FACTORY, FULL, FULL_GOOD, GOOD, OTHER, PCI, QOS, nic, snapshot, want


def found(snap, wish=None):
    return [(finding.code, finding.evidence) for finding in plan(snap, wish or want()).findings]


def changed(snap, wish=None):
    return [change.path[1] for step in plan(snap, wish or want()).steps for change in step.changes]


# ---- who owns the port ----------------------------------------------------------------------------------------------


def test_dcbx_in_firmware_is_named_and_not_fought():
    result = plan(snapshot(pfc=(), dcbx="firmware"), want())
    assert [finding.code for finding in result.findings] == ["foreign.dcbx"]
    assert result.steps[0].blocked == "DCBX in the firmware of ens18np0 owns the port's DCB settings"
    assert "dcbx" not in changed(snapshot(pfc=(), dcbx="firmware"))


def test_until_the_fabric_takes_it_over_first_of_all():
    result = plan(snapshot(FACTORY, dcbx="firmware"), want(takeover=("dcbx",)))
    assert result.findings == ()
    assert result.steps[0].blocked == ""
    assert result.steps[0].changes[0].path == (PCI, "dcbx")


def test_a_driver_that_does_not_say_who_runs_dcbx_is_unknown():
    result = plan(snapshot(dcbx=Unknown("dcb is not installed")), want())
    assert [(finding.code, finding.unknown) for finding in result.findings] == [("foreign.dcbx", True)]
    assert result.steps == ()


# ---- bonds ----------------------------------------------------------------------------------------------------------

BOND = Upper("bond0", 9000, True, ("10.10.0.1/24",))
BOND_RDMA = (RdmaDevice("mlx5_bond_0", "0200:0003:0018:0000", "Ethernet", "ACTIVE", "400 Gb/sec (4X NDR)"),)


def bonded(first=GOOD, second=None, mtu=9000, pcis=(PCI, OTHER)):
    """Two ports in bond0; the first holds the RDMA device of both."""
    nics = (
        nic(addresses=(), uppers=(BOND,), rdma=BOND_RDMA),
        nic(OTHER, "ens18np1", "02:00:00:00:2a:00", serial="MT1", addresses=(), uppers=(BOND,), rdma=(), mtu=mtu),
    )
    rest = replace(GOOD, traffic_class=Unknown("x"), rdma_cm_tos=Unknown("x"), rdma_cm_mode=Unknown("x"), lag_owner=PCI)
    seen = {PCI: first, OTHER: rest if second is None else second(rest)}
    ports = tuple(
        PortWant(f"compute/{rail}", pci, "dcqcn", address="10.10.0.1/24", mtu=9000) for rail, pci in enumerate(pcis)
    )
    return Snapshot("boot-1", 0, Devices(nics), {"roce": RoceSeen(seen)}), RoceWant({"dcqcn": QOS}, ports)


def test_a_bond_as_wanted_plans_nothing_although_one_port_has_no_rdma_device():
    assert plan(*bonded()).clean


def test_pfc_is_wanted_on_both_ports_and_tos_on_the_bonds_device():
    factory = replace(FACTORY, rdma_cm_tos=0)
    snap, wish = bonded(factory, lambda rest: replace(factory, lag_owner=PCI))
    first, second = plan(snap, wish).steps
    assert {"pfc", "rdma_cm_tos"} <= {change.path[1] for change in first.changes}
    names = {change.path[1] for change in second.changes}
    assert "pfc" in names
    assert not names & {"traffic_class", "rdma_cm_tos", "rdma_cm_mode"}


def test_a_bonded_port_with_another_mtu_is_named():
    assert found(*bonded(mtu=1518)) == [
        ("roce.mtu", "ens18np1 has 1518, the fabric wants 9000"),
        ("roce.bond-mtu", "ens18np1 has 1518, its bond bond0 has 9000"),
    ]


def test_a_bond_of_which_only_the_second_port_is_listed_has_nobody_to_set_its_tos():
    ((code, evidence),) = found(*bonded(pcis=(OTHER,)))
    assert code == "roce.rdma-device"
    assert evidence == f"mlx5_bond_0 serves ens18np1 too and belongs to {PCI}, which the fabric does not list"


# ---- VLANs ----------------------------------------------------------------------------------------------------------


def test_an_address_on_a_vlan_is_the_ports():
    vlan = Upper("vlan401", 9000, False, ("10.10.0.1/24",))
    assert plan(snapshot(nics=(nic(addresses=(), uppers=(vlan,)),)), want()).clean


def test_a_vlan_with_small_frames_is_named():
    vlan = Upper("vlan401", 1500, False, ("10.10.0.1/24",))
    assert found(snapshot(nics=(nic(addresses=(), uppers=(vlan,)),))) == [
        ("roce.mtu", "vlan401 has 1500, the fabric wants 9000")
    ]


def test_a_vlans_name_leads_to_its_physical_port():
    vlan = Upper("vlan401", 9000, False, ())
    devices = Devices((nic(uppers=(vlan,)), nic(OTHER, "ens2", "02:00:00:00:2a:00")))
    assert devices.nic_by_netdev("vlan401").pci == PCI
    assert devices.nic_by_netdev("ens2").pci == OTHER
    assert devices.nic_by_netdev("vlan7") is None


# ---- what is no RoCE port -------------------------------------------------------------------------------------------


def infiniband(**changes):
    return nic(rdma=(replace(BOND_RDMA[0], name="mlx5_0", link_layer="InfiniBand"),), **changes)


def test_an_infiniband_port_gets_none_of_it():
    snap = replace(snapshot(nics=(infiniband(),)), seen={"roce": RoceSeen()})
    assert found(snap) == [("roce.link-layer", "mlx5_0 is InfiniBand: nothing is set there")]
    assert changed(snap) == []


def test_the_baseboards_own_functions_are_never_a_port():
    snap = replace(snapshot(nics=(infiniband(nvswitch=True),)), seen={"roce": RoceSeen()})
    assert found(snap) == [("device.management", "it manages the NVSwitches of the GPU baseboard")]


@pytest.mark.parametrize(
    ("device", "is_port"),
    [
        (nic(), True),
        (nic(is_vf=True), False),
        (infiniband(), False),
        (nic(nvswitch=True), False),
        (nic(netdevs=()), False),
    ],
)
def test_only_physical_ethernet_ports_are_looked_at(device, is_port):
    assert is_candidate(device) is is_port


# ---- ECN by the firmware's mask -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mask", "ecn", "finds"),
    [
        (tuple(range(8)), (3,), False),
        ((3,), (3,), False),
        ((0, 5), (3,), True),
        ((), (3,), True),
        ((3,), (), True),
        ((), (), False),
        ((5,), None, False),
    ],
)
def test_inbox_the_mask_is_a_finding_and_never_a_change(mask, ecn, finds):
    snap, wish = snapshot(control="inbox", ecn_np=mask, ecn_rp=mask), want(replace(QOS, ecn=ecn))
    assert [code for code, _ in found(snap, wish)] == (["roce.cc-mask"] if finds else [])
    assert changed(snap, wish) == []


def test_inbox_the_mask_unread_withholds_the_class():
    unread = Unknown("neither tool is installed")
    (step,) = plan(snapshot(control="inbox", ecn_np=unread, ecn_rp=unread), want()).steps
    assert [change.path[1] for change in step.unknowns] == ["ecn_np", "ecn_rp"]


def test_the_evidence_names_the_parameter_and_both_sides():
    ((_, evidence),) = found(snapshot(control="inbox", ecn_np=(0, 5), ecn_rp=(0, 5)))
    assert evidence == "ROCE_CC_PRIO_MASK_P1 has congestion control on for 0, 5, the fabric wants priority 3"


# ---- Broadcom -------------------------------------------------------------------------------------------------------


def test_one_roce_priority_cannot_serve_two_lossless_classes():
    qos = replace(QOS, ecn=(3, 4), pfc=(3, 4))
    (step,) = plan(snapshot(control="bnxt", ecn_rp=(3,)), want(qos)).steps
    assert step.blocked == "ens18np0 has one RoCE priority, the profile wants ECN on 2"


def test_its_priority_is_replaced_and_not_added_to():
    (step,) = plan(snapshot(control="bnxt", ecn_rp=(0,)), want()).steps
    assert [(change.current, change.desired) for change in step.changes] == [((0,), (3,))]


def test_a_directory_nobody_made_is_drift():
    absent = {"ecn_np": ABSENT, "ecn_rp": ABSENT, "cnp_dscp": ABSENT, "cnp_priority": ABSENT}
    assert changed(snapshot(control="bnxt", **absent)) == ["ecn_np", "ecn_rp", "cnp_dscp", "cnp_priority"]


# ---- parameters, cable, buffers -------------------------------------------------------------------------------------


def test_only_parameters_that_are_managed_and_differ_change():
    assert plan(snapshot(FULL_GOOD), want(FULL)).clean
    wish = want(replace(FULL, dcqcn=DcqcnWant(rpg_ai_rate=10, min_time_between_cnps=0)))
    assert changed(snapshot(FULL_GOOD), wish) == ["min_time_between_cnps"]
    assert changed(snapshot(replace(FULL_GOOD, dcqcn={"rpg_ai_rate": 99})), want()) == []


def test_buffers_come_before_pfc():
    names = changed(snapshot(replace(FULL_GOOD, pfc=(), buffer_bytes=(9,) * 8, cable_m=5)), want(FULL))
    assert names == ["cable_m", "buffer_bytes", "pfc"]


def test_a_buffer_without_headroom_is_refused():
    wish = want(replace(FULL, buffer_bytes=(200_000, 100_000, 0, 0, 0, 0, 0, 0)))
    result = plan(snapshot(FULL_GOOD), wish)
    ((code, evidence),) = found(snapshot(FULL_GOOD), wish)
    assert code == "roce.headroom"
    assert evidence == "buffer 1 holds 100000 bytes, at least 160272 at 7 m and MTU 9000"
    assert result.steps[0].blocked == evidence


# ---- GIDs -----------------------------------------------------------------------------------------------------------

LOCAL = "fe80:0000:0000:0000:0200:00ff:fe00:0001"
STABLE = "fe80:0000:0000:0000:02aa:bbcc:ddee:0001"
MAPPED = "0000:0000:0000:0000:0000:ffff:0a0a:0001"


def table(*addresses):
    kinds = ("IB/RoCE v1", "RoCE v2")
    return tuple(Gid(2 * row + half, text, kinds[half]) for row, text in enumerate(addresses) for half in (0, 1))


@pytest.mark.parametrize(
    ("gids", "finds"),
    [
        (table(LOCAL, MAPPED), False),
        # A second link-local address moves the IPv4 one from 3 to 5: no matter.
        (table(LOCAL, STABLE, MAPPED), False),
        (table(LOCAL, STABLE), True),
        ((), True),
        ((Gid(3, MAPPED, "IB/RoCE v1"),), True),
        (None, False),
        (Unknown("the port has no RDMA device"), False),
    ],
)
def test_the_address_has_a_roce_v2_gid_at_whatever_index(gids, finds):
    assert [code for code, _ in found(snapshot(gids=gids))] == (["roce.gid"] if finds else [])


def test_without_a_declared_address_any_gid_but_a_link_local_one_does():
    assert found(snapshot(gids=table(LOCAL, MAPPED)), want(address=None)) == []
    assert [code for code, _ in found(snapshot(gids=table(LOCAL)), want(address=None))] == ["roce.gid"]


def test_what_explains_a_missing_gid_is_said_instead():
    assert [code for code, _ in found(snapshot(gids=(), nics=(nic(operstate="down"),)))] == ["roce.link"]
    assert [code for code, _ in found(snapshot(gids=(), nics=(nic(addresses=()),)))] == ["roce.address"]
