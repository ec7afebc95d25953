"""``gpufab apply``: bring the nodes to what is declared."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpufab_cli.commands.options import collect_options, fabric_option, format_option, limit_option
from gpufab_cli.commands.output import print_json, progress, results
from gpufab_cli.errors import GpufabError, did_you_mean

if TYPE_CHECKING:
    from gpufab_cli.audit.audit import AuditReport
    from gpufab_cli.execute.ansible import Said
    from gpufab_cli.execute.apply import Audit
    from gpufab_cli.execute.doors import Doors
    from gpufab_cli.execute.fabric import Fabric
    from gpufab_cli.module_utils.change import Impact


def _impacts(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> "frozenset[Impact]":
    from gpufab_cli.module_utils.change import Impact

    known = [impact.value for impact in Impact]
    names = [name.strip() for value in values for name in value.split(",")]
    for name in names:
        if name not in known:
            raise GpufabError(f"--allow {name}: no such impact", did_you_mean(name, known))
    return frozenset(map(Impact, names))


def _features(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> frozenset[str]:
    from gpufab_cli.intent.compile import FEATURES

    for name in values:
        if name not in FEATURES:
            raise GpufabError(f"--only {name}: no such feature", did_you_mean(name, FEATURES))
    return frozenset(values)


@click.command()
@fabric_option
@click.option("--check", is_flag=True, help="Change nothing; say what would be changed.")
@click.option("--diff", is_flag=True, help="Print each value that was, or would be, changed.")
@limit_option
@click.option("--only", multiple=True, callback=_features, metavar="FEATURE", help="Only this feature; repeatable.")
@click.option(
    "--allow",
    multiple=True,
    callback=_impacts,
    metavar="NAME",
    help="Consent to an impact; repeatable, or with commas.",
)
@click.option(
    "--busy-ok",
    multiple=True,
    metavar="HOST",
    help="Make steps with impact on this host though it is in use; repeatable.",
)
@click.option("--full", is_flag=True, help="Run every role on every host, in sync or not.")
@collect_options
@format_option
@click.pass_context
def command(
    context: click.Context,
    *,
    fabric: Path,
    check: bool,
    diff: bool,
    limit: str | None,
    only: frozenset[str],
    allow: "frozenset[Impact]",
    busy_ok: tuple[str, ...],
    full: bool,
    forks: int,
    timeout: float,
    output: str,
) -> int:
    """Bring the nodes to what is declared.

    An audit finds what is to be done; Ansible runs only the roles that have work, only on the hosts that need them; an
    audit looks again; three rounds at most. A step that disturbs those who use a node is made only with --allow for
    each of its impacts, on an idle node. The inventory on disk is what is applied, reviewed and with the site's own
    variables in it: one that is stale is refused rather than rendered anew behind the operator's back.

    \b
    Examples:
      gpufab apply --check --diff
      gpufab apply --allow traffic,link-flap
      gpufab apply --limit gpu017 --allow link-flap --allow traffic --busy-ok gpu017

    Impacts: traffic, link-flap, vf-loss, gpu-reset, service-restart, driver-reload, firmware-reset, reboot,
    management-port.

    Exit codes: 0 in sync, 1 drift, pending, refused or failed, 2 usage or spec error, 3 only unknown or unreachable.
    """
    from gpufab_cli.execute.apply import Request, apply, new_run
    from gpufab_cli.execute.doors import Doors
    from gpufab_cli.execute.fabric import load_fabric
    from gpufab_cli.execute.limit import select

    declared = load_fabric(fabric, limit)
    _refuse_stale(fabric)
    request = Request(
        check=check,
        allow=allow,
        only=only,
        busy_ok=tuple(host for pattern in busy_ok for host in select(pattern, tuple(declared.wants))),
        full=full,
        forks=forks,
        connect_seconds=timeout,
    )
    doors = context.find_object(Doors) or Doors()
    looking = _auditor(declared, doors, timeout, forks)
    report = apply(declared, request, audit=looking, runner=doors.runner, listen=_hear, run=new_run(declared))
    if output == "json":
        from gpufab_cli.execute.report import data

        print_json(data(report))
    else:
        from gpufab_cli.execute.report import show

        show(report, results(), diff=diff)
    return report.exit_code


def _refuse_stale(fabric: Path) -> None:
    from gpufab_cli.render.fabric import changes

    found = changes(fabric)
    if found:
        raise GpufabError(
            f"the rendered inventory is stale: {len(found)} files differ", "run gpufab render, review, apply"
        )


def _auditor(fabric: "Fabric", doors: "Doors", timeout: float, forks: int) -> "Audit":
    from gpufab_cli.audit.audit import audit
    from gpufab_cli.audit.collect import collect
    from gpufab_cli.execute.report import told

    def look() -> "AuditReport":
        collected = collect(fabric.jobs, doors.execute, seconds=timeout, forks=forks)
        report = audit(collected, fabric.wants, waivers=fabric.waivers)
        progress(f"audit: {told(report)}")
        return report

    return look


def _hear(said: "Said") -> None:
    """Tell what became of one feature of one host."""
    counts = Counter(result.status.value for result in said.steps)
    words = [f"{count} {status}" for status, count in counts.items()]
    words += [f"{'unreachable' if said.unreachable else 'failed'}: {said.problem}"] if said.problem else []
    progress(f"{said.host} {said.feature or 'ansible'}: {', '.join(words) or 'nothing to do'}")
