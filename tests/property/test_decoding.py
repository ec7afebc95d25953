"""Whatever stands in a file or an answer of a node is a value, Unknown or a SchemaError: never anything else."""

import json
import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpufab_cli.module_utils import desired, record, snapshot
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.features import SEEN_TYPES, WANT_TYPES
from gpufab_cli.module_utils.schema import SchemaError, decode, encode
from gpufab_cli.module_utils.texts import NESTING, parse_json
from tests.fakes import FakeHost
from tests.snapshots import in_sync


def nested(depth):
    return "[" * depth + "]" * depth


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
WORDS = st.sampled_from(["path", "value", "boot_id", "pending", "format", "want", "ports", "unknown", "absent"])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=20) | st.dictionaries(WORDS, inner, max_size=5), max_leaves=40
)
TEXTS = VALUES.map(json.dumps) | st.integers(0, 2000).map(nested) | st.text(max_size=30)
WRONG = (nested(500), nested(990), nested(100000), "[[[", "")
CRUEL = (*WRONG, "1" + "0" * 400, "9" * 5000, "Infinity", "[NaN]", "-1e999")


def cruel(test):
    for text in CRUEL:
        test = example(text)(test)
    return settings(deadline=None)(test)


@cruel
@given(TEXTS)
def test_json_is_bounded_or_refused(text):
    try:
        data = parse_json(text)
    except ValueError:
        return
    json.dumps(data, allow_nan=False)
    repr(data)


@pytest.mark.parametrize("text", CRUEL)
def test_what_no_tool_prints_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 (json's own error is one too)
        parse_json(text)


def test_what_is_within_bounds_is_read():
    assert parse_json(nested(NESTING)) is not None
    assert parse_json("[18446744073709551615, -1.5e300]") == [2**64 - 1, -1.5e300]
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json(nested(NESTING + 1))


@cruel
@given(TEXTS)
def test_a_damaged_record_is_unknown(text):
    found = record.read(FakeHost({f"{record.FOLDER}/roce.json": text}), "roce")
    assert isinstance(found, tuple | Unknown)
    json.dumps(encode(found), allow_nan=False)
    record.value(found, ("a",), "boot", "")


@cruel
@given(TEXTS)
def test_damaged_management_ports_end_a_restore_by_name(text):
    try:
        found = record.management_ports(FakeHost({record.MANAGEMENT: text}))
    except SchemaError:
        return
    assert all(isinstance(pci, str) for pci in found)


@cruel
@given(TEXTS | VALUES.map(lambda want: json.dumps({"format": 1, "want": want})))
def test_a_damaged_wish_is_told_and_costs_no_other_its_turn(text):
    host = FakeHost({desired.desired_path(name): text for name in WANT_TYPES})
    assert [name for name, _ in desired.load(host, WANT_TYPES)] == list(WANT_TYPES)


@cruel
@given(TEXTS)
def test_a_damaged_snapshot_is_refused(text):
    with pytest.raises(SchemaError):
        snapshot.loads(text, SEEN_TYPES)


@given(st.data())
def test_a_snapshot_with_any_value_in_any_place_is_one_or_refused(data):
    whole = json.loads(snapshot.dumps(in_sync()))
    place: Any = whole
    while isinstance(place, dict | list) and place:
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.integers(0, 3)) == 0:
            place[key] = data.draw(VALUES | st.just(10**20) | st.just([1] * 7))
            break
        place = place[key]
    try:
        found = snapshot.loads(json.dumps(whole), SEEN_TYPES)
    except SchemaError:
        return
    snapshot.dumps(found)


@given(VALUES | st.just(10**5000) | st.just(10**400))
def test_a_value_of_any_type_fits_or_does_not(value):
    for kind in (float, int, tuple[str, ...], SEEN_TYPES["roce"], Any):
        error = None
        try:
            decode(kind, value)
        except SchemaError as found:
            error = found
        assert len(str(error)) < 1000  # what does not fit is shown, cut


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_no_infinity_is_sent(number):
    assert decode(Any, json.loads(json.dumps(encode({"x": number}), allow_nan=False)))["x"] == Unknown(
        f"{number} is no number"
    )
    with pytest.raises(SchemaError, match="is not a number"):
        decode(float, number)


@pytest.mark.parametrize("name", ["prio_tc", "tc_tsa", "tc_bw"])
def test_seven_classes_are_no_port(name):
    whole = json.loads(snapshot.dumps(in_sync()))
    port = next(iter(whole["seen"]["roce"]["ports"].values()))
    port[name] = port[name][:7]
    with pytest.raises(SchemaError, match="7 items, 8 wanted"):
        snapshot.loads(json.dumps(whole), SEEN_TYPES)
