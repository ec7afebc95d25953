"""Whatever a file holds, loading it ends in a fabric or in located errors; never in a traceback.

Few examples here keep the suite short; ``make fuzz`` runs ten thousand of each (GPUFAB_FUZZ).
"""

import os

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpufab_cli.errors import SpecErrors
from gpufab_cli.spec import source
from gpufab_cli.spec.load import load, validate
from gpufab_cli.spec.lock import Lock
from gpufab_cli.spec.model import FabricSpec
from gpufab_cli.spec.text import dumps
from tests.fabrics import SMALL

EXAMPLES = int(os.environ.get("GPUFAB_FUZZ", "150"))
LINES = SMALL.splitlines(keepends=True)
KEYS = [
    "name",
    "networks",
    "qos",
    "profiles",
    "hosts",
    "connection",
    "compute",
    "ports",
    "rail",
    "ets",
    "lossless",
    "cnp",
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=20),
    st.sampled_from(["roce", "dcqcn", "box", "0-7", "gpu[1-3]", "[", "{rail}", "{{ x }}", "10.0.0.[1-3]"]),
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.one_of(st.sampled_from(KEYS), SCALARS), inner, max_size=4),
    ),
    max_leaves=20,
)


def ends_well(call):
    try:
        call()
    except SpecErrors as errors:
        lines = list(errors.lines())
        assert lines
        assert all(line.startswith(("error: ", "hint: ")) and "\n" not in line for line in lines)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.binary(max_size=200))
@example(b"\xff\xfea")
@example(b"%YAML 9.9\n--- x")
@example(b"? ? ? a")
def test_any_bytes(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("f") / "fabric.yml"
    path.write_bytes(content)
    ends_well(lambda: load(path))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.text(alphabet="abn01:-[]{}&*!|>'\"%@`,?#~<\\ \t\n", max_size=60))
def test_any_text_made_of_yaml(text):
    ends_well(lambda: validate(source.parse(text, "f"), FabricSpec))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), DATA, max_size=7))
@pytest.mark.parametrize("model", [FabricSpec, Lock])
def test_any_data_under_the_right_keys(model, data):
    ends_well(lambda: validate(source.Document("f", data, ""), model))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.integers(0, len(LINES) - 1), st.text(max_size=12), st.integers(0, 80), st.integers(0, 10))
def test_any_slip_in_a_right_file(line, inserted, column, deleted):
    text = LINES[line]
    column = min(column, len(text))
    lines = [*LINES[:line], text[:column] + inserted + text[column + deleted :], *LINES[line + 1 :]]
    ends_well(lambda: validate(source.parse("".join(lines), "f"), FabricSpec))


ODD = st.sampled_from(
    ["no", "1:20", "0x1f", "0o17", "1e5", "2027-01-31", "=", "<<", "~", "a: b", "a #b", "-", "---", ""]
)
LEAF = st.one_of(st.text(max_size=12), ODD, st.integers(), st.booleans())
WRITTEN = st.dictionaries(
    st.one_of(st.text(max_size=12), ODD),
    st.recursive(
        st.one_of(LEAF, st.lists(LEAF, max_size=3), st.lists(st.dictionaries(ODD, LEAF, min_size=1), max_size=3)),
        lambda inner: st.dictionaries(ODD, inner, max_size=3),
        max_leaves=8,
    ),
    max_size=5,
)


@settings(max_examples=EXAMPLES, deadline=None)
@given(WRITTEN)
def test_what_is_written_is_read_back_as_it_was_by_yaml_1_1_and_1_2(data):
    text = dumps(data)
    assert yaml.safe_load(text) == data
    assert tuples(data) == source.parse(text, "f").data


def tuples(data):
    if isinstance(data, list):
        return tuple(map(tuples, data))
    return {key: tuples(value) for key, value in data.items()} if isinstance(data, dict) else data
