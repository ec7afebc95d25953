"""``gpufab apply``: bring the nodes to what is declared."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpufab_cli.commands.options import collect_options, fabric_option, format_option, limit_option
from gpufab_cli.errors import Exit, GpufabError, did_you_mean
from gpufab_cli.report.console import print_json, progress, results, tell_skipped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpufab_cli.apply.ansible import Listener, Play, Said
    from gpufab_cli.apply.apply import ApplyReport, Request
    from gpufab_cli.apply.batches import Portions
    from gpufab_cli.apply.drain import Service
    from gpufab_cli.apply.effects import Doors
    from gpufab_cli.apply.rollout import Ways
    from gpufab_cli.audit.audit import AuditReport
    from gpufab_cli.compile.fabric import Fabric, Whole
    from gpufab_cli.module_utils.change import Impact
    from gpufab_cli.spec.rollout import Rollout


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


def _portion(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    from pydantic import TypeAdapter, ValidationError

    from gpufab_cli.spec.rollout import Portion

    try:
        portion: str = TypeAdapter(Portion).validate_python(value)
        return portion
    except ValidationError:
        raise GpufabError(f"--batch {value}: no portion", "a number of hosts or a share of them: 8 or 25%") from None


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
@click.option("--canary", metavar="PATTERN", help="These hosts first, whatever rollout.canary says.")
@click.option("--batch", callback=_portion, metavar="N|P%", help="Hosts of each later batch. [default: rollout.batch]")
@click.option(
    "--soak",
    type=click.IntRange(0, 86400),
    metavar="SECONDS",
    help="How long error counters must stand still after a batch. [default: rollout.soak_s]",
)
@click.option(
    "--step-timeout",
    type=click.IntRange(1, 86400),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long one role's module may take on one host; package managers have half an hour at least.",
)
@click.option("--no-verify", is_flag=True, help="Go on to the next batch without gpufab verify.")
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
    canary: str | None,
    batch: str | None,
    soak: int | None,
    step_timeout: int,
    no_verify: bool,
    forks: int,
    timeout: float,
    output: str,
) -> int:
    """Bring the nodes to what is declared.

    An audit finds what is to be done; Ansible runs only the roles that have work, only on the hosts that need them; an
    audit looks again; three rounds at most. Of several hosts with work one is the canary, the others follow in batches
    (rollout: in fabric.yml): each only when the audit of the last is clean for what was applied, verify passes on it
    and its error counters stand still. A step that disturbs those who use a node is made only with --allow for
    each of its impacts, on an idle node. The inventory on disk is what is applied, reviewed and with the site's own
    variables in it: one that is stale is refused rather than rendered anew behind the operator's back.

    \b
    Examples:
      gpufab apply --check --diff
      gpufab apply --allow traffic,link-flap
      gpufab apply --allow gpu-reset --canary gpu017 --batch 4
      gpufab apply --limit gpu017 --allow link-flap --allow traffic --busy-ok gpu017

    Impacts: traffic, link-flap, vf-loss, gpu-reset, service-restart, driver-reload, firmware-reset, reboot,
    management-port. No step reboots a node: what takes a reboot is pending until somebody makes one.

    Consent is --allow of this command line alone: role variables such as roce_allow are for plain Ansible. Each host
    to be disturbed is claimed on its node before it is drained: another apply leaves it alone. HUP, INT and TERM end
    hooks and playbook, and keep what is drained on record: gpufab apply goes on from there, gpufab resume gives back.

    Exit codes: 0 in sync, 1 drift, pending, refused, failed or interrupted, 2 usage or spec error, 3 only unknown or
    unreachable.
    """
    from gpufab_cli.apply.apply import Request
    from gpufab_cli.apply.effects import Doors
    from gpufab_cli.compile.fabric import limited, load_whole

    whole = load_whole(fabric)
    declared = limited(whole, limit)
    tell_skipped(declared.skipped)
    _refuse_stale(whole)
    request = Request(
        check=check,
        allow=allow,
        only=only,
        busy_ok=_named(busy_ok, declared),
        full=full,
        forks=forks,
        connect_seconds=timeout,
        step_seconds=step_timeout,
    )
    told = declared.rollout.model_copy(update=_filled(batch=batch, soak_s=soak, verify=False if no_verify else None))
    report = _roll_out(declared, request, context.find_object(Doors) or Doors(), told, canary)
    _show(report, output, diff=diff)
    return report.exit_code


def _named(patterns: tuple[str, ...], fabric: "Fabric") -> tuple[str, ...]:
    from gpufab_cli.fabric.host_pattern import select

    return tuple(host for pattern in patterns for host in select(pattern, tuple(fabric.wants)))


def _refuse_stale(whole: "Whole") -> None:
    from gpufab_cli.outputs.render import inventory_changes

    found = inventory_changes(whole)
    if found:
        raise GpufabError(
            f"the rendered inventory is stale: {len(found)} files differ", "run gpufab render, review, apply"
        )


def _filled(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def _portions(told: "Rollout", canary: str | None, hosts: tuple[str, ...]) -> "Portions":
    from gpufab_cli.apply.batches import Portions
    from gpufab_cli.fabric.host_pattern import select

    return Portions(told.canary, select(canary, hosts) if canary is not None else (), told.batch)


@contextmanager
def interruptible(service: "Service") -> Iterator[None]:
    """End all that runs for this apply when it is interrupted, and say in one line which hosts are how far."""
    from gpufab_cli.apply import interrupts
    from gpufab_cli.apply.drain import running
    from gpufab_cli.apply.states import summary

    def far() -> str:
        states = service.states.all()
        return summary(states, states)

    advice = "gpufab apply goes on from here, gpufab resume HOST gives one back"
    with interrupts.handled():
        try:
            yield
        except interrupts.InterruptedApply as error:
            running.end_all()
            told = f"{far()}; {advice}" if far() else "no host is drained"
            raise GpufabError(f"interrupted by {error}: {told}", exit_code=Exit.DRIFT) from None
        except BaseException:
            running.end_all()
            if far():
                progress(f"still drained: {far()}; {advice}")
            raise


def _roll_out(
    fabric: "Fabric", request: "Request", doors: "Doors", told: "Rollout", canary: str | None
) -> "ApplyReport":
    from gpufab_cli.apply.apply import new_run
    from gpufab_cli.apply.claims import Claims
    from gpufab_cli.apply.drain import Service, running
    from gpufab_cli.apply.rollout import rollout

    hosts, run = tuple(fabric.wants), new_run(fabric)
    service = Service(fabric.path.parent, fabric.drain, fabric.resume, doors.command, run)
    portions, ways = _portions(told, canary, hosts), _ways(fabric, doors, told, request.connect_seconds, request.forks)
    if request.check:
        return rollout(fabric, request, portions, ways=ways, service=service, run=run)
    with interruptible(service), service.states.locked(run.id) as lock, running.keeping(lock):
        claims = Claims(
            fabric.targets,
            doors.execute,
            run,
            seconds=request.connect_seconds,
            forks=request.forks,
            drained=service.managed,
            ended=service.states.ended,
        )
        try:
            ways = replace(ways, claims=claims)
            return rollout(fabric, request, portions, ways=ways, service=service, run=run)
        finally:
            claims.close()


def _ways(fabric: "Fabric", doors: "Doors", told: "Rollout", timeout: float, forks: int) -> "Ways":
    from gpufab_cli.apply.rollout import Ways
    from gpufab_cli.audit.audit import audit
    from gpufab_cli.audit.collect import collect, unlocked
    from gpufab_cli.audit.counters import soak
    from gpufab_cli.audit.waive import Waivers
    from gpufab_cli.reach.jump_limit import forks_through
    from gpufab_cli.report.apply import told as told_of

    waivers = Waivers.of(fabric.waivers)

    def look(part: "Fabric") -> "AuditReport":
        collected = chain(unlocked(part.unlocked), collect(part.jobs, doors.execute, seconds=timeout, forks=forks))
        report = audit(collected, part.wants, waivers=waivers, profiles=part.profiles)
        progress(f"audit: {told_of(report)}")
        return report

    def watch(hosts: tuple[str, ...]) -> "Mapping[str, str]":
        jobs = fabric.only(hosts).jobs
        return soak(jobs, doors.execute, told.soak_s, seconds=timeout, forks=forks, sleep=doors.sleep)

    def play(told: "Play", listen: "Listener") -> "tuple[Said, ...]":
        fewer = forks_through((fabric.targets[host] for host in told.hosts), told.forks)
        return doors.runner(replace(told, forks=fewer), listen)

    return Ways(
        audit=look,
        runner=play,
        listen=_hear,
        verify=(lambda hosts: doors.verify(fabric.path, hosts)) if told.verify else None,
        soak=watch if told.soak_s else None,
        tell=progress,
        sleep=doors.sleep,
    )


def _hear(said: "Said") -> None:
    """Tell what became of one feature of one host."""
    counts = Counter(result.status.value for result in said.steps)
    words = [f"{count} {status}" for status, count in counts.items()]
    words += [f"{'unreachable' if said.unreachable else 'failed'}: {said.problem}"] if said.problem else []
    progress(f"{said.host} {said.feature or 'ansible'}: {', '.join(words) or 'nothing to do'}")


def _show(report: "ApplyReport", output: str, *, diff: bool) -> None:
    from gpufab_cli.report.apply import data, show

    if output == "json":
        print_json(data(report))
    else:
        show(report, results(), diff=diff)
