"""One node of many that hangs, prints without end or is odd in another way costs no other its turn."""

import pytest

from gpufab_cli.verify import reading
from gpufab_cli.verify.expected import expected
from gpufab_cli.verify.reading import UnreachableError, bounded, read_all
from gpufab_cli.verify.results import Results
from gpufab_cli.verify.run import _clean


@pytest.mark.process
def test_what_a_program_says():
    assert bounded(["sh", "-c", "echo a; echo b >&2; exit 3"], 20, 100) == (3, b"a\n", b"b\n")


@pytest.mark.process
@pytest.mark.parametrize(
    ("argv", "seconds", "words"),
    [(["yes"], 60, "printed more than 1000 bytes"), (["sleep", "60"], 0.2, "no answer within 0.2 s")],
)
def test_a_program_that_goes_beyond_a_limit_is_ended(argv, seconds, words):
    with pytest.raises(UnreachableError, match=words):
        bounded(argv, seconds, 1000)


def test_what_gpufab_stumbles_over_is_that_nodes(repository, monkeypatch):
    nodes = expected(repository / "inventory" / "inference-100g" / "fabric.yml")[:2]
    sound = reading.Reading({})

    def read(node):
        if node is nodes[0]:
            raise RecursionError("odd")
        return sound

    monkeypatch.setattr(reading, "read", read)
    found = read_all(nodes)
    assert "RecursionError" in str(found[nodes[0].host])
    assert found[nodes[1].host] is sound


class Report:
    """A test that was skipped."""

    nodeid, when, passed, skipped = "test_x.py::test_pfc[gpu01]", "call", False, True

    def __init__(self, reason, *properties):
        self.longrepr = ("", 1, f"Skipped: {reason}")
        self.user_properties = [("host", "gpu01"), ("port", "compute/0"), *properties]


def test_only_the_suite_itself_says_that_a_node_is_unreachable():
    results = Results()
    results.pytest_runtest_logreport(Report("unreachable: host key has changed"))
    results.pytest_runtest_logreport(Report("no route", ("unreachable", "yes")))
    assert [(found.check, found.detail) for found in results._found] == [
        ("pfc", "unreachable: host key has changed"),
        ("reachable", "no route"),
    ]


def test_a_junit_report_holds_nothing_that_a_terminal_acts_on(tmp_path):
    (tmp_path / "x.xml").write_text("<a>\n\x9b1m\u202e</a>\n")
    _clean(tmp_path / "x.xml")
    assert (tmp_path / "x.xml").read_text() == "<a>\n?1m?</a>\n"
