"""Folding names loses nothing and is short."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.spec.ranges import expand

NAMES = st.builds(
    lambda head, number, width, tail: f"{head}{number:0{width}d}{tail}",
    st.sampled_from(["gpu", "r1n", "compute/", ""]),
    st.integers(0, 120),
    st.integers(1, 4),
    st.sampled_from(["", "-ib"]),
)


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        ([], ""),
        (["gpu01"], "gpu01"),
        (["gpu01", "gpu02", "gpu03", "gpu07"], "gpu[01-03,07]"),
        (["gpu03", "gpu01", "gpu02"], "gpu[01-03]"),
        (["gpu9", "gpu10"], "gpu[9-10]"),
        (["gpu099", "gpu100"], "gpu[099-100]"),
        (["compute/0", "compute/1", "storage/0"], "compute/[0-1],storage/0"),
        (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
        (["login", "gpu01"], "login,gpu01"),
        (["gpu01", "gpu01"], "gpu01"),
        (["node files", "roce compute/0"], "node files,roce compute/0"),
    ],
)
def test_examples(names, folded):
    assert fold(names) == folded


@given(st.lists(NAMES, max_size=12))
def test_unfolding_gives_the_same_names(names):
    unfolded = {name for part in _parts(fold(names)) for name in expand(part)}
    assert unfolded == set(names)


def _parts(text):
    """The folded groups: a comma within brackets parts nothing."""
    depth, parts = 0, [""]
    for char in text:
        depth += (char == "[") - (char == "]")
        if char == "," and not depth:
            parts.append("")
        else:
            parts[-1] += char
    return [part for part in parts if part]
