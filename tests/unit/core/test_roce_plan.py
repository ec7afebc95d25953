"""What is planned on a RoCE port, row by row."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils.change import ABSENT, Impact, Unknown
from gpufab_cli.module_utils.roce.plan import plan
from gpufab_cli.module_utils.roce.settings import CODES

from .roce_node import FACTORY, FULL, FULL_GOOD, GOOD, MAP, OTHER, PCI, QOS, nic, snapshot, want


def planned(snap, wish=None):
    steps = plan(snap, wish or want()).steps
    return {change.path[1]: (change.current, change.desired) for step in steps for change in step.changes}


def codes(snap, wish=None):
    return [finding.code for finding in plan(snap, wish or want()).findings]


def test_a_port_as_wanted_plans_nothing():
    assert plan(snapshot(), want()).clean


def test_the_factory_state_is_one_step_with_everything():
    (step,) = plan(snapshot(FACTORY), want()).steps
    assert step.name == "roce compute/0"
    assert step.device == PCI
    assert step.impact == {Impact.TRAFFIC, Impact.LINK_FLAP}
    assert [change.path[1] for change in step.changes] == [
        *("pause", "trust", "dscp_priority", "pfc", "prio_tc", "tc_tsa", "tc_bw"),
        *("traffic_class", "rdma_cm_tos", "rdma_cm_mode"),
    ]


@pytest.mark.parametrize(
    ("found", "changes"),
    [
        ({"pause": (True, False)}, {"pause": ((True, False), (False, False))}),
        ({"pfc": ()}, {"pfc": ((), (3,))}),
        ({"pfc": (3, 4)}, {"pfc": ((3, 4), (3,))}),
        ({"pfc": (6, 7)}, {"pfc": ((6, 7), (3,))}),
        ({"tc_bw": (0,) * 8}, {"tc_bw": ((0,) * 8, QOS.tc_bw)}),
        ({"cnp_dscp": 0}, {"cnp_dscp": (0, 48)}),
        ({"cnp_priority": 0}, {"cnp_priority": (0, 6)}),
        # ToS 26 is DSCP 6: somebody gave a DSCP where a ToS belongs.
        ({"rdma_cm_tos": 26}, {"rdma_cm_tos": (26, 106)}),
        ({"rdma_cm_tos": 0}, {"rdma_cm_tos": (0, 106)}),
        ({"rdma_cm_tos": ABSENT}, {"rdma_cm_tos": (ABSENT, 106)}),
        ({"rdma_cm_mode": "IB/RoCE v1"}, {"rdma_cm_mode": ("IB/RoCE v1", "RoCE v2")}),
        ({"traffic_class": ABSENT}, {"traffic_class": (ABSENT, 106)}),
        ({"traffic_class": 41}, {"traffic_class": (41, 106)}),
        # 104 and 106 are both DSCP 26.
        ({"traffic_class": 104, "rdma_cm_tos": 104}, {}),
        # The notification point is port-wide, the reaction point is per priority.
        ({"ecn_np": (5,), "ecn_rp": (3,)}, {}),
        ({"ecn_np": ()}, {"ecn_np": ((), (3,))}),
        ({"ecn_rp": (0, 5)}, {"ecn_rp": ((0, 5), (0, 3, 5))}),
        ({"ecn_rp": tuple(range(8))}, {}),
    ],
)
def test_one_difference(found, changes):
    assert planned(snapshot(**found)) == changes


def test_one_wrong_dscp_changes_the_map_alone():
    found = tuple((dscp, 4 if dscp == 26 else prio) for dscp, prio in enumerate(MAP))
    assert set(planned(snapshot(dscp_priority=found))) == {"dscp_priority"}


def test_ecn_not_wanted_means_off_and_not_managed_means_left_alone():
    off = want(replace(QOS, ecn=()))
    assert planned(snapshot(), off) == {"ecn_np": ((3,), ()), "ecn_rp": ((3,), ())}
    assert planned(snapshot(ecn_np=(), ecn_rp=()), want(replace(QOS, ecn=None))) == {}


def test_zero_is_a_wish():
    zero = want(replace(QOS, rdma_cm_tos=0, cnp_dscp=0))
    assert planned(snapshot(), zero) == {"rdma_cm_tos": (106, 0), "cnp_dscp": (48, 0)}


def test_a_site_on_priority_5_and_dscp_40():
    table = tuple(5 if dscp == 40 else 6 if dscp == 48 else 0 for dscp in range(64))
    qos = replace(QOS, dscp_priority=table, pfc=(5,), ecn=(5,), traffic_class=162, rdma_cm_tos=162)
    found = replace(GOOD, dscp_priority=tuple(enumerate(table)), pfc=(5,), traffic_class=160, rdma_cm_tos=160)
    assert planned(snapshot(found, ecn_rp=tuple(range(8))), want(qos)) == {}
    assert set(planned(snapshot(found, ecn_rp=tuple(range(8))))) == {
        "dscp_priority",
        "pfc",
        "traffic_class",
        "rdma_cm_tos",
    }


@pytest.mark.parametrize("name", [name for name in CODES if name != "dcqcn"])
def test_unknown_is_never_as_wanted_and_withholds_the_step(name):
    found = replace(FULL_GOOD, **{name: Unknown("no tool")})
    (step,) = plan(snapshot(found), want(FULL, takeover=("dcbx",))).steps
    assert [change.path[1] for change in step.unknowns] == [name]


def test_an_unknown_parameter_withholds_the_step_too():
    found = replace(FULL_GOOD, dcqcn={"rpg_ai_rate": 10, "min_time_between_cnps": Unknown("no tool")})
    (step,) = plan(snapshot(found), want(FULL)).steps
    assert [change.path[1] for change in step.unknowns] == ["min_time_between_cnps"]


def test_what_a_snapshot_for_another_wish_lacks_is_unknown():
    (step,) = plan(snapshot(), want(FULL)).steps
    names = ["cable_m", "prio_buffer", "buffer_bytes", "min_time_between_cnps", "rpg_ai_rate"]
    assert sorted(change.path[1] for change in step.unknowns) == sorted(names)


def test_each_impact():
    def impact(**found):
        (step,) = plan(snapshot(**found), want()).steps
        return {item.value for item in step.impact}

    assert impact(rdma_cm_tos=0) == set()
    assert impact(cnp_dscp=0) == {"traffic"}
    assert impact(pfc=()) == {"traffic", "link-flap"}
    assert impact(pfc=(), nics=(nic(carries=("ssh",)),)) == {"traffic", "link-flap", "management-port"}
    assert impact(rdma_cm_tos=0, nics=(nic(carries=("default-route",)),)) == {"management-port"}


def test_a_port_that_may_carry_ssh_is_blocked():
    (step,) = plan(snapshot(pfc=(), nics=(nic(carries=Unknown("ip is not installed")),)), want()).steps
    assert step.blocked == "cannot tell what ens18np0 carries: ip is not installed"


def test_lldpad_is_named_and_not_fought():
    result = plan(snapshot(pfc=(), lldpad="123"), want())
    assert [finding.code for finding in result.findings] == ["foreign.lldpad"]
    assert result.steps[0].blocked == "lldpad (process 123) owns the port's DCB settings"


@pytest.mark.parametrize(
    ("nics", "code", "evidence"),
    [
        ((nic(OTHER, mac="02:00:00:00:2a:00"),), "device.missing", "nothing there"),
        ((nic(netdevs=()),), "device.missing", "no netdev there: the driver is not loaded or has failed"),
        ((nic(OTHER),), "device.moved", "02:00:00:00:18:00 is now at 0000:2a:00.0"),
        ((nic(serial="MT2"),), "device.replaced", "serial MT2, the lock holds MT1"),
        ((nic(mac="02:00:00:00:99:99"),), "device.replaced", "MAC 02:00:00:00:99:99, the lock holds 02:00:00:00:18:00"),
        ((nic(is_vf=True),), "device.ambiguous", "a VF"),
    ],
)
def test_a_device_that_is_not_the_locked_one_is_a_finding_and_never_changed(nics, code, evidence):
    result = plan(snapshot(FACTORY, nics=nics), want())
    assert [(finding.code, finding.evidence) for finding in result.findings] == [(code, evidence)]
    assert result.steps == ()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"mtu": 1500}, "roce.mtu"),
        ({"operstate": "down"}, "roce.link"),
        ({"rdma": ()}, "roce.rdma-device"),
        ({"addresses": ("10.10.0.2/24", "fe80::1/64")}, "roce.address"),
        ({"addresses": ("10.10.0.1/16",)}, "roce.address"),
        ({"addresses": ()}, "roce.address"),
    ],
)
def test_what_the_site_must_mend(changes, code):
    assert codes(snapshot(nics=(nic(**changes),))) == [code]


def test_traffic_class_rules_of_others_are_shown():
    assert codes(snapshot(traffic_class_rules=("src_ip=1.2.3.4/24,tclass=32",))) == ["roce.traffic-class-rules"]
