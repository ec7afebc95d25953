"""Over random nodes: as wanted plans nothing; planned changes written into the snapshot plan nothing more."""

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.features import SEEN_TYPES, WANT_TYPES
from gpufab_cli.module_utils.roce.knobs import DcqcnWant
from gpufab_cli.module_utils.roce.plan import plan
from gpufab_cli.module_utils.roce.seen import PortSeen, RoceSeen
from gpufab_cli.module_utils.roce.settings import CODES
from gpufab_cli.module_utils.roce.want import QosWant
from gpufab_cli.module_utils.schema import decode, encode
from gpufab_cli.module_utils.snapshot import dumps, loads
from tests.property.octets import bits, octets
from tests.unit.core.roce_node import PCI, snapshot, want

priority = st.integers(0, 7)
byte = st.integers(0, 255)
eight = octets(8, lambda drawn: drawn % 8)
tsa = octets(8, lambda drawn: ("ets", "strict", "vendor")[drawn % 3])
bandwidth = octets(8, lambda drawn: drawn % 101)
unknown = st.builds(Unknown, st.sampled_from(["", "no tool", "exit 1: é"]))
absent = st.just(ABSENT)


numbers = octets(8, lambda drawn: drawn * 4099)
knobs = st.fixed_dictionaries({}, optional={"rpg_ai_rate": st.integers(0, 99), "rpg_time_reset": st.integers(0, 99)})
dscp = st.lists(st.tuples(st.integers(0, 63), priority), unique=True, max_size=80).map(sorted).map(tuple)


@st.composite
def known_ports(draw):
    table = draw(dscp)
    return PortSeen(
        pause=draw(st.tuples(st.booleans(), st.booleans())),
        trust="dscp" if table else "pcp",
        dscp_priority=table,
        pfc=draw(bits),
        prio_tc=draw(eight),
        tc_tsa=draw(tsa),
        tc_bw=draw(bandwidth),
        ecn_np=draw(bits),
        ecn_rp=draw(bits),
        cnp_dscp=draw(st.integers(0, 63)),
        cnp_priority=draw(priority),
        traffic_class=draw(absent | byte),
        rdma_cm_tos=draw(absent | byte),
        rdma_cm_mode=draw(absent | st.sampled_from(["RoCE v2", "IB/RoCE v1"])),
        dcbx=draw(st.sampled_from(["host", "firmware"])),
        cable_m=draw(st.integers(0, 999)),
        prio_buffer=draw(eight),
        buffer_bytes=draw(numbers),
        dcqcn=draw(st.fixed_dictionaries(dict.fromkeys(("rpg_ai_rate", "rpg_time_reset"), st.integers(0, 99)))),
        control=draw(st.sampled_from(["vendor", "bnxt"])),
    )


@st.composite
def ports(draw):
    found = draw(known_ports())
    names = draw(st.lists(st.sampled_from(sorted(set(CODES) - {"dcqcn"})), unique=True, max_size=3))
    return replace(found, **{name: draw(unknown) for name in names})


qos = st.builds(
    QosWant,
    dscp_priority=octets(64, lambda drawn: drawn % 8),
    pfc=bits,
    prio_tc=st.none() | eight,
    tc_tsa=st.none() | tsa,
    tc_bw=st.none() | bandwidth,
    ecn=st.none() | bits,
    cnp_dscp=st.none() | st.integers(0, 63),
    cnp_priority=st.none() | priority,
    traffic_class=st.none() | byte,
    rdma_cm_tos=st.none() | byte,
    rdma_cm_mode=st.none() | st.sampled_from(["RoCE v2", "IB/RoCE v1"]),
    cable_m=st.none() | st.integers(1, 999),
    prio_buffer=st.none() | eight,
    buffer_bytes=st.none() | numbers,
    dcqcn=st.none() | knobs.map(lambda values: DcqcnWant(**values)),
)


def predicted(found, changes):
    values = {change.path[1]: change.desired for change in changes}
    dcqcn = {**found.dcqcn, **{name: values.pop(name) for name in set(values) & set(found.dcqcn)}}
    return replace(found, **values, dcqcn=dcqcn)


@settings(max_examples=400)
@given(known_ports(), qos)
def test_what_is_planned_is_all_there_is_to_plan(found, wish):
    wanted = want(wish, takeover=("dcbx",))
    steps = plan(snapshot(found), wanted).steps
    after = predicted(found, [change for step in steps for change in step.changes])
    assert plan(snapshot(after), wanted).steps == ()


@settings(max_examples=300)
@given(ports(), qos)
def test_every_change_is_a_change_and_unknown_never_passes(found, wish):
    changes = [change for step in plan(snapshot(found), want(wish)).steps for change in step.changes]
    assert all(change.current != change.desired for change in changes)
    managed = {"trust", "dscp_priority", "pfc"} | {name for name, value in wish.__dict__.items() if value is not None}
    changed = {change.path[1] for change in changes}
    for name in managed & set(CODES) - {"dcqcn"}:
        if isinstance(getattr(found, name), Unknown):
            assert name in changed


@settings(max_examples=300)
@given(known_ports(), qos)
def test_undo_plans_back_to_the_start(found, wish):
    changes = [change for step in plan(snapshot(found), want(wish)).steps for change in step.changes]
    after = predicted(found, changes)
    assert predicted(after, [replace(change, desired=change.current) for change in reversed(changes)]) == found


@settings(max_examples=300)
@given(ports(), qos)
def test_snapshot_and_wish_survive_json(found, wish):
    snap = replace(snapshot(), seen={"roce": RoceSeen({PCI: found})})
    assert loads(dumps(snap), SEEN_TYPES) == snap
    wanted = want(wish)
    assert decode(WANT_TYPES["roce"], json.loads(json.dumps(encode(wanted)))) == wanted
