"""``gpufab audit``: what on the nodes is not as declared, and what is not known."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpufab_cli.commands.options import collect_options, fabric_option, format_option, limit_option
from gpufab_cli.errors import GpufabError
from gpufab_cli.report.console import counting, progress, results, tell_skipped

if TYPE_CHECKING:
    from gpufab_cli.apply.effects import Doors
    from gpufab_cli.audit.audit import AuditReport
    from gpufab_cli.audit.collect import Collected
    from gpufab_cli.audit.judge import HostReport
    from gpufab_cli.compile.fabric import Fabric


@click.command()
@fabric_option
@limit_option
@collect_options
@format_option
@click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write a JUnit report to FILE."
)
@click.option("--save", type=click.Path(path_type=Path), metavar="DIR", help="Keep each host's snapshot in DIR.")
@click.option(
    "--from", "origin", type=click.Path(path_type=Path), metavar="DIR", help="Judge saved snapshots; contact no host."
)
@click.pass_context
def command(
    context: click.Context,
    *,
    fabric: Path,
    limit: str | None,
    forks: int,
    timeout: float,
    output: str,
    junit: Path | None,
    save: Path | None,
    origin: Path | None,
) -> int:
    """Compare the nodes with what is declared; change nothing.

    Each host is asked by one SSH exec within its own time limit; one that is unreachable, hangs or prints garbage is
    named as such. What cannot be read is unknown: neither right nor wrong.

    \b
    Examples:
      gpufab audit
      gpufab audit --limit gpu[001-032] --format json
      gpufab audit --junit audit.xml
      gpufab audit --save before/ ; gpufab audit --from before/

    Exit codes: 0 in sync, 1 drift or a finding, 2 usage or spec error, 3 only unknown or unreachable.
    """
    from gpufab_cli.apply.effects import Doors
    from gpufab_cli.compile.fabric import load_fabric

    if save and origin:
        raise GpufabError("--save and --from exclude each other", "saved snapshots are saved already")
    declared = load_fabric(fabric, limit)
    tell_skipped(declared.skipped)
    doors = context.find_object(Doors) or Doors()
    report = _audit(declared, _collected(declared, doors, timeout=timeout, forks=forks, save=save, origin=origin))
    if origin is None:
        report = _with_left_drained(report, fabric)
    _show(report, output)
    if junit is not None:
        _write(junit, report)
    return report.exit_code


def _with_left_drained(report: "AuditReport", fabric: Path) -> "AuditReport":
    """Name the hosts that an apply from this folder has drained and not given back."""
    from gpufab_cli.apply.left import noted, unsaid
    from gpufab_cli.apply.states import States

    states = States(fabric.parent)
    if states.busy():
        progress("an apply is at work in this folder: what it has drained is not named as left drained")
        return report
    known = states.all()
    report = noted(report, known)
    for host, words in unsaid(report, known).items():
        progress(f"left drained: {host}: {words}")
    return report


def _collected(
    fabric: "Fabric", doors: "Doors", *, timeout: float, forks: int, save: Path | None, origin: Path | None
) -> "Iterator[Collected]":
    from gpufab_cli.audit import saved
    from gpufab_cli.audit.collect import collect, unlocked

    if origin is not None:
        return chain(unlocked(fabric.unlocked), saved.load(origin, fabric.wants))
    collected = collect(fabric.jobs, doors.execute, seconds=timeout, forks=forks)
    return chain(unlocked(fabric.unlocked), saved.save(collected, save) if save is not None else collected)


def _audit(fabric: "Fabric", collected: "Iterable[Collected]") -> "AuditReport":
    from gpufab_cli.audit.audit import audit
    from gpufab_cli.audit.waive import Waivers

    with _watching(len(fabric.wants) + len(fabric.unlocked)) as watch:
        return audit(collected, fabric.wants, watch, Waivers.of(fabric.waivers), fabric.profiles)


@contextmanager
def _watching(hosts: int) -> "Iterator[Callable[[HostReport], None]]":
    """Count the hosts that have come in, by what became of them."""
    with counting("audit", hosts) as count:
        yield lambda report: count(report.failure.kind.value if report.failure else report.state.value)


def _write(path: Path, report: "AuditReport") -> None:
    from gpufab_cli.report.audit.junit import xml

    try:
        path.write_bytes(xml(report))
    except OSError as error:
        raise GpufabError(f"{path}: {error.strerror}") from error


def _show(report: "AuditReport", output: str) -> None:
    if output == "json":
        from gpufab_cli.report.audit.json import text

        for part in text(report):
            click.echo(part, nl=False)
        return
    from gpufab_cli.report.audit.table import show

    show(report, results())
    if any(host.rows or host.failure for host in report.hosts.values()):
        progress("hint: gpufab explain CODE says what a code means and what to do")
