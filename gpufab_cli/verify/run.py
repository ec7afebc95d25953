"""Run the suite in a pytest of its own, apart from whatever pytest and plugins the site has configured."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from gpufab_cli.errors import Exit, GpufabError
from gpufab_cli.verify.results import Result, load

SUITE = Path(__file__).parent
_ENDED = (0, 1, int(Exit.UNKNOWN))


def run(
    fabric: Path, *, limit: str | None = None, expression: str = "", junit: Path | None = None
) -> tuple[Result, ...]:
    """Verify the nodes of a fabric.

    Args:
        fabric: the fabric.yml.
        limit: which hosts, as for every command; None means all.
        expression: pytest's -k: which checks.
        junit: write a JUnit report there.

    Raises:
        GpufabError: pytest itself failed.
    """
    with tempfile.TemporaryDirectory(prefix="gpufab-") as scratch:
        results = Path(scratch) / "results.json"
        done = subprocess.run(
            _argv(fabric, limit, expression, junit, results),
            env=_environment(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode not in _ENDED or not results.exists():
            said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            raise GpufabError(f"pytest: {said[-1] if said else f'exit {done.returncode}'}")
        if junit is not None and junit.is_file():
            _clean(junit)
        return load(results)


def _clean(junit: Path) -> None:
    """Take out of a report what a node may have chosen to turn a reader's terminal or text around with."""
    text = junit.read_text(encoding="utf-8")
    junit.write_text("".join(char if char.isprintable() or char in "\n\t" else "?" for char in text), encoding="utf-8")


def _argv(fabric: Path, limit: str | None, expression: str, junit: Path | None, results: Path) -> list[str]:
    return [
        *(sys.executable, "-P", "-m", "pytest", "-c", os.devnull, f"--rootdir={SUITE}"),
        *("--import-mode=importlib", "--quiet", "--no-header", "--tb=short", "-p", "no:cacheprovider"),
        *("-p", "no:unraisableexception"),  # which collects garbage five times at its end
        *("--fabric", str(fabric), "--results", str(results)),
        *(("--limit", limit) if limit is not None else ()),
        *(("-k", expression) if expression else ()),
        *((f"--junitxml={junit}", "-o", "junit_suite_name=gpufab") if junit else ()),
        str(SUITE),
    ]


def _environment() -> dict[str, str]:
    """This process's, without what would change pytest."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")}
    return {**kept, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
