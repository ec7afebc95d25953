"""DCQCN parameters, cable length and buffers of a QoS profile: what is taken, what is refused, what a port is told."""

import pytest
from pydantic import ValidationError

from gpufab_cli.intent.qos import qos_want
from gpufab_cli.module_utils.roce.knobs import DcqcnWant
from gpufab_cli.spec.model import Qos

BASE = {"lossless": ({"priority": 3, "dscp": (26,)},), "cnp": {"priority": 6, "dscp": 48}}
EIGHT = (0, 0, 0, 1, 0, 0, 0, 0)


def qos(**keys):
    return Qos.model_validate({**BASE, **keys})


def test_what_is_left_out_is_not_managed():
    want = qos_want(qos())
    assert (want.dcqcn, want.cable_m, want.prio_buffer, want.buffer_bytes) == (None, None, None, None)


def test_what_is_said_reaches_the_port():
    want = qos_want(
        qos(dcqcn={"rpg_ai_rate": 10, "rpg_max_rate": 0}, cable_m=5, buffers={"priority": EIGHT, "bytes": EIGHT})
    )
    assert want.dcqcn == DcqcnWant(rpg_ai_rate=10, rpg_max_rate=0)
    assert want.dcqcn.wanted() == {"rpg_ai_rate": 10, "rpg_max_rate": 0}
    assert (want.cable_m, want.prio_buffer, want.buffer_bytes) == (5, EIGHT, EIGHT)


@pytest.mark.parametrize(
    ("keys", "where"),
    [
        ({"dcqcn": {"rpg_gd": 9}}, "dcqcn.rpg_gd"),
        ({"dcqcn": {"dce_tcp_g": 1024}}, "dcqcn.dce_tcp_g"),
        ({"dcqcn": {"initial_alpha_value": 0}}, "dcqcn.initial_alpha_value"),
        ({"dcqcn": {"rpg_min_dec_fac": 101}}, "dcqcn.rpg_min_dec_fac"),
        ({"dcqcn": {"rpg_ai_rat": 5}}, "dcqcn.rpg_ai_rat"),
        ({"dcqcn": {"rpg_ai_rate": "5"}}, "dcqcn.rpg_ai_rate"),
        ({"dcqcn": {"clamp_tgt_rate": True}}, "dcqcn.clamp_tgt_rate"),
        ({"dcqcn": [5]}, "dcqcn"),
        ({"cable_m": 0}, "cable_m"),
        ({"cable_m": 1000}, "cable_m"),
        ({"buffers": {"priority": (0,), "bytes": EIGHT}}, "buffers.priority"),
        ({"buffers": {"priority": (8, *EIGHT[1:]), "bytes": EIGHT}}, "buffers.priority.0"),
        ({"buffers": {"priority": EIGHT}}, "buffers.bytes"),
    ],
)
def test_what_is_out_of_range_is_refused_where_it_stands(keys, where):
    with pytest.raises(ValidationError) as refused:
        qos(**keys)
    assert where in {".".join(map(str, error["loc"])) for error in refused.value.errors()}


def test_editors_are_told_names_ranges_and_units():
    found = Qos.model_json_schema()["$defs"]["Dcqcn"]["properties"]
    assert set(found) == set(DcqcnWant.__dataclass_fields__)
    assert all("description" in entry for entry in found.values())
