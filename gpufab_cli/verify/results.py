"""What came of every check, as data."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import pytest

from gpufab_cli.errors import Exit

Status = Literal["pass", "fail", "unknown"]
UNREACHABLE = "unreachable"
"""The property of a test that says that its node could not be read at all; no words of a node can."""


@dataclass(frozen=True)
class Result:
    """One check on one node, or on one port of it; ``detail`` says what is wrong or why it is not known."""

    host: str
    port: str
    check: str
    status: Status
    detail: str = ""


class Results:
    """A pytest plugin that collects them."""

    def __init__(self) -> None:
        self._found: list[Result] = []

    @property
    def unknown(self) -> bool:
        """Whether anything could not be read."""
        return any(result.status == "unknown" for result in self._found)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the outcome of a test: that of the test itself, or of a setup that did not let it come to that."""
        if report.when == "call" or not report.passed:
            self._found.append(_result(report))

    def write(self, path: Path) -> None:
        """Write them for :func:`load`."""
        path.write_text(json.dumps([asdict(result) for result in self._found]), encoding="utf-8")


def load(path: Path) -> tuple[Result, ...]:
    """The results that a run has written."""
    return tuple(Result(**data) for data in json.loads(path.read_text(encoding="utf-8")))


def exit_code(results: Iterable[Result]) -> Exit:
    """A failure outweighs what is unknown. A run without a result has proven nothing, and has failed."""
    found = {result.status for result in results}
    return Exit.DRIFT if "fail" in found or not found else Exit.IN_SYNC if found == {"pass"} else Exit.UNKNOWN


def check_name(nodeid: str) -> str:
    """The name of a check: that of its test, spelt as options are."""
    return nodeid.rpartition("::")[2].partition("[")[0].removeprefix("test_").replace("_", "-")


def _result(report: pytest.TestReport) -> Result:
    about = dict(report.user_properties)
    host, port = str(about.get("host", "")), str(about.get("port", ""))
    check = check_name(report.nodeid)
    if report.passed:
        return Result(host, port, check, "pass")
    if report.skipped:
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        reason = reason.removeprefix("Skipped: ")
        if UNREACHABLE in about:
            return Result(host, "", "reachable", "unknown", reason)
        return Result(host, port, check, "unknown", reason)
    return Result(host, port, check, "fail", _first_line(report))


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines: Sequence[str] = (crash.message if crash else str(report.longrepr)).splitlines()
    return (lines[0] if lines else "failed without a word").removeprefix("AssertionError: ")
