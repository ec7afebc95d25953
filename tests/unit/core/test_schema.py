"""The codec: every value survives the round trip, and what does not fit is named by its path."""

import json
from dataclasses import dataclass
from typing import Annotated, Dict, Literal, Optional, Tuple, Union

import pytest

from gpufab_cli.module_utils.arguments import argument_spec
from gpufab_cli.module_utils.change import ABSENT, Absent, Unknown
from gpufab_cli.module_utils.schema import Doc, Length, Priority, Range, SchemaError, decode, encode


@dataclass(frozen=True)
class Inner:
    number: Priority
    word: Optional[str] = None


@dataclass(frozen=True)
class Outer:
    inner: Inner
    many: Tuple[Inner, ...]
    table: Dict[str, Tuple[int, ...]]
    value: Union[int, Absent, Unknown]
    mode: Literal["a", "b"]
    pair: Annotated[Tuple[int, ...], Length(2), Doc("Two numbers.")] = (0, 0)
    flag: bool = False


FULL = Outer(Inner(3, "x"), (Inner(0), Inner(7)), {"k": (1, 2)}, 0, "a", (4, 5), flag=True)


@pytest.mark.parametrize("value", [0, 5, ABSENT, Unknown("why")])
def test_round_trip_keeps_zero_absent_and_unknown_apart(value):
    outer = Outer(**{**FULL.__dict__, "value": value})
    assert decode(Outer, json.loads(json.dumps(encode(outer)))) == outer


def test_none_is_left_out_and_comes_back():
    assert encode(Inner(1)) == {"number": 1}
    assert decode(Inner, {"number": 1, "word": None}) == Inner(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inner": {"number": 8}}, "inner.number: 8 is not in 0..7"),
        ({"inner": {}}, "inner.number: missing"),
        ({"inner": {"number": True}}, "inner.number: True is not of type int"),
        ({"many": [{"number": 1}, {"number": "1"}]}, "many[1].number: '1' is not of type int"),
        ({"mode": "c"}, "mode: 'c' is not one of a, b"),
        ({"pair": [1]}, "pair: 1 items, 2 wanted"),
        ({"flag": 1}, "flag: 1 is not of type bool"),
        ({"table": {"k": [None]}}, "table.k[0]: None is not of type int"),
        ({"surplus": 1}, "surplus: 'surplus' is not a field of Outer"),
        ({"value": None}, "value: None is not of type int"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    data = {**encode(FULL), **change}
    with pytest.raises(SchemaError) as caught:
        decode(Outer, data)
    assert str(caught.value) == message


@dataclass(frozen=True)
class Arguments:
    inner: Inner
    mode: Literal["a", "b"]
    table: Dict[str, Inner]
    pair: Annotated[Tuple[int, ...], Length(2), Doc("Two numbers.")] = (0, 0)


def test_argument_spec_follows_the_types():
    spec = argument_spec(Arguments)
    assert spec["table"] == {"type": "dict", "required": True}
    assert spec["inner"] == {
        "type": "dict",
        "required": True,
        "options": {"number": {"type": "int", "required": True}, "word": {"type": "str"}},
    }
    assert spec["pair"] == {"type": "list", "elements": "int", "description": "Two numbers."}
    assert spec["mode"] == {"type": "str", "choices": ["a", "b"], "required": True}


def test_range_holds_at_both_ends():
    Range(0, 7).check(0)
    Range(0, 7).check(7)
    for bad in (-1, 8):
        with pytest.raises(SchemaError):
            Range(0, 7).check(bad)
