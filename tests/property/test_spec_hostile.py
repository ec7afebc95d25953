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


BROAD = source.parse(
    """\
name: broad
networks:
  compute: {transport: roce, speed_gbps: 400, mtu: 9000, rails: 2, qos: dcqcn,
            addressing: {ipv4: "10.{rail}.{rack}.{host}/24"}}
  pod: {transport: infiniband, speed_gbps: 400, rails: 8}
  management: {transport: ethernet, speed_gbps: 10}
qos:
  dcqcn:
    lossless: [{priority: 3, dscp: [26]}, {priority: 4, dscp: [34]}]
    cnp: {priority: 6, dscp: 48}
    other_dscp: {priority: 0}
    extra_dscp: {46: 5}
    ets: {3: 40, 4: 20, 5: 20, 0: 20}
    rdma_cm: {mode: RoCE v2}
profiles:
  box: {ports: [{network: compute, rail: 0-1, pci: "*.0"}, {network: pod, rail: "0-3,7"}], takeover: [dcbx]}
hosts:
  - {name: "r[1-2]n[01-03]", profile: box, address: "10.0.[1-2].[11-13]"}
  - {name: r3n1, profile: box, state: maintenance, override: {ports: [{network: compute, rail: 1}], takeover: null}}
connection: {user: ops, port: 22, become: sudo, python: /usr/bin/python3, ssh_config: ssh/config}
accept:
  - {code: roce.mtu, hosts: "r1n[01-02]", rail: compute/1, reason: the switch is due, expires: 2030-01-31}
drain: {command: [scontrol, update, "nodename={host}"], timeout_s: 60}
resume: {command: [scontrol, resume, "{host}"]}
""",
    "broad",
).data


def places(data, path=()):
    """Every path in the data, keys of mappings included."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, tuple) else ()
    for key, value in inner:
        yield (*path, key)
        yield from places(value, (*path, key))


def put(data, path, value):
    """The data with one value replaced."""
    if not path:
        return value
    if isinstance(data, dict):
        return {key: put(item, path[1:], value) if key == path[0] else item for key, item in data.items()}
    return tuple(put(item, path[1:], value) if index == path[0] else item for index, item in enumerate(data))


def outcome(data):
    """Load the data, and ask the result what is asked of every fabric."""
    fabric = validate(source.Document("f", data, ""), FabricSpec)
    for host in fabric.hosts:
        assert set(fabric.rails(host)) == set(fabric.profile_of(host).rails)


def test_the_broad_fabric_is_right():
    outcome(BROAD)


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(places(BROAD), key=str)), DATA), min_size=1, max_size=3))
def test_any_value_at_any_place(changes):
    data = BROAD
    for path, value in changes:
        data = put(data, path, value) if path in set(places(data)) else data
    ends_well(lambda: outcome(data))


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
