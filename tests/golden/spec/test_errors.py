"""The error text is an interface too: what a wrong fabric.yml prints, to the letter."""

import pytest

from tests.golden.cases import SPEC, names, stderr_of


@pytest.mark.parametrize("name", names(SPEC))
def test_a_wrong_fabric_says_so(name):
    expected = (SPEC / name / "stderr.txt").read_text(encoding="utf-8")
    assert stderr_of(SPEC / name) == expected
    assert expected.startswith("error: fabric.")
