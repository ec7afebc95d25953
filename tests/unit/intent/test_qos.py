"""One QoS profile, and everything a port derives from it."""

import pytest

from gpufab_cli.intent.qos import qos_want, traffic_class
from gpufab_cli.spec import source
from gpufab_cli.spec.load import validate
from gpufab_cli.spec.model import Qos


def want(text):
    return qos_want(validate(source.parse(text, "qos.yml"), Qos))


USUAL = "lossless: [{priority: 3, dscp: [26]}]\ncnp: {priority: 6, dscp: 48}\n"


@pytest.mark.parametrize(
    ("dscp", "ecn", "byte"),
    [(26, True, 106), (26, False, 104), (40, True, 162), (40, False, 160), (0, True, 2), (63, True, 254)],
)
def test_the_byte_of_a_dscp(dscp, ecn, byte):
    assert traffic_class(dscp, ecn=ecn) == byte
    assert byte >> 2 == dscp


def test_the_usual_class():
    found = want(USUAL + "ets: {3: 50, 0: 50}\ntraffic_class: true\n")
    assert [(dscp, prio) for dscp, prio in enumerate(found.dscp_priority) if prio] == [(26, 3), (48, 6)]
    assert found.pfc == found.ecn == (3,)
    assert found.tc_bw == (50, 0, 0, 50, 0, 0, 0, 0)
    assert found.tc_tsa == ("ets",) * 6 + ("strict", "ets")
    assert found.prio_tc == tuple(range(8))
    assert (found.cnp_dscp, found.cnp_priority) == (48, 6)
    assert found.rdma_cm_tos == found.traffic_class == 106
    assert found.rdma_cm_mode == "RoCE v2"


def test_a_site_that_uses_dscp_40_on_priority_5():
    found = want("lossless: [{priority: 5, dscp: [40]}]\ncnp: {priority: 7, dscp: 46}\nets: {5: 70, 0: 30}\n")
    assert found.pfc == (5,)
    assert found.rdma_cm_tos == 162
    assert found.dscp_priority[40] == 5
    assert found.dscp_priority[26] == 0
    assert found.tc_tsa[7] == "strict"
    assert found.tc_bw == (30, 0, 0, 0, 0, 70, 0, 0)


def test_two_lossless_classes_in_any_order():
    found = want("lossless: [{priority: 4, dscp: [4, 24]}, {priority: 3, dscp: [3]}]\ncnp: {priority: 6, dscp: 48}\n")
    assert found.pfc == (3, 4)
    assert [found.dscp_priority[dscp] for dscp in (3, 4, 24, 48, 5)] == [3, 4, 4, 6, 0]
    assert found.rdma_cm_tos == 4 << 2 | 2  # the first class that the file names


def test_other_traffic_goes_where_it_is_told():
    found = want(USUAL + "other_dscp: {priority: 1}\nextra_dscp: {46: 5, 0: 0}\n")
    assert [found.dscp_priority[dscp] for dscp in (0, 1, 46, 63)] == [0, 1, 5, 1]


def test_cnps_with_a_share_are_not_strict():
    found = want(USUAL + "ets: {3: 50, 0: 40, 6: 10}\n")
    assert found.tc_tsa == ("ets",) * 8
    assert found.tc_bw[6] == 10


def test_off_and_not_managed_are_two_things():
    off = want("lossless: [{priority: 3, dscp: [26]}]\npfc: false\necn: false\nrdma_cm: null\n")
    assert off.pfc == off.ecn == ()
    assert off.prio_tc is off.tc_tsa is off.tc_bw is None
    assert off.traffic_class is off.rdma_cm_tos is off.rdma_cm_mode is None
    assert off.cnp_dscp is off.cnp_priority is None


def test_without_ecn_the_byte_says_so():
    assert want("lossless: [{priority: 3, dscp: [26]}]\necn: false\n").rdma_cm_tos == 104
