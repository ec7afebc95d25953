"""``gpufab launch``: the command that starts a job over the fabric's hosts, one rank next to each GPU."""

import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from gpufab_cli.commands.options import fabric_option, format_option, limit_option
from gpufab_cli.errors import Exit, GpufabError
from gpufab_cli.report.console import print_json, progress

if TYPE_CHECKING:
    from gpufab_cli.launch.job import Job
    from gpufab_cli.launch.words import Line, Options
    from gpufab_cli.spec.model import FabricSpec

LAUNCHERS = ("mpirun", "srun", "torchrun")


def _pairs(_: click.Context, option: click.Parameter, words: Iterable[str]) -> dict[str, str]:
    found = dict(word.partition("=")[::2] for word in words)
    if not all(found) or any("=" not in word for word in words):
        raise click.BadParameter("NAME=VALUE is wanted", param=option)
    return found


@click.command(context_settings={"allow_interspersed_args": False})
@fabric_option
@limit_option
@click.option("--launcher", type=click.Choice(LAUNCHERS), default="mpirun", show_default=True)
@click.option("--ranks", type=click.IntRange(1), metavar="N", help="Ranks on each host; one a GPU if left out.")
@click.option("--bind/--no-bind", default=True, show_default=True, help="Have gpufab-bind put each rank near its GPU.")
@click.option("--gpus", is_flag=True, help="Each rank sees its own GPU alone.")
@click.option("--nics", is_flag=True, help="Each rank uses the rails of its own GPU alone.")
@click.option("-x", "environment", multiple=True, metavar="NAME=VALUE", callback=_pairs, help="For each rank.")
@click.option("--release", type=click.Choice(["4", "5"]), help="Open MPI's; 5, or with --run the host's, if left out.")
@click.option("--mpirun", default="mpirun", show_default=True, metavar="PATH", help="The program on the hosts.")
@click.option("--transport", type=click.Choice(["ucx", "tcp"]), default="ucx", show_default=True, help="For MPI.")
@click.option("--mca", multiple=True, metavar="NAME=VALUE", callback=_pairs, help="A parameter of Open MPI.")
@click.option("--hostfile", type=click.Path(path_type=Path), help="Write the hosts there, in place of --host.")
@click.option("--run", "start", is_flag=True, help="Start it, with mpirun on the first host.")
@click.option(
    "--judge", type=click.File(errors="replace"), metavar="FILE", help="Judge what mpirun --report-bindings printed."
)
@click.option("--packages", type=click.IntRange(1), metavar="N", help="Of each host, which Open MPI 5's report lacks.")
@format_option
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def command(fabric: Path, output: str, **given: Any) -> int:
    """Print, or with --run start, a job: one rank a GPU, next to it.

    Hosts stand in the order of their leaves (`leaf:` in fabric.yml). What /etc/nccl.conf and ucx.conf tell on the
    hosts is not repeated; interfaces for Gloo and start-up are, for those read neither. With --run the first host
    must reach the others by SSH.

    \b
    Examples:
      gpufab launch ./all_reduce_perf -b 8 -e 8G -f 2 -g 1
      gpufab launch --launcher torchrun --gpus python train.py
      gpufab launch --run --limit gpu[01-02] hostname
      mpirun -n 16 --report-bindings ./prog 2>&1 | gpufab launch --judge -

    Exit codes: 0 printed, done or nothing wrong in a report, 1 the job or a report's ranks failed, 2 usage or spec
    error, 3 a report does not tell enough.
    """
    if given["judge"] is not None:
        if given["program"]:
            raise click.UsageError("--judge reads a report: no program is started")
        return _judge(given["judge"], given["packages"], output)
    if not given["program"]:
        raise click.MissingParameter(param_type="argument", param_hint="'PROGRAM...'")
    from gpufab_cli.fabric.resolve import load_resolved
    from gpufab_cli.launch import job, words

    if given["start"] and given["launcher"] != "mpirun":
        raise GpufabError(f"--run starts mpirun, not {given['launcher']}", "leave --run out and run what is printed")
    resolved = load_resolved(fabric)
    flags = tuple(f"--{name}" for name in ("gpus", "nics") if given[name])
    if flags and not given["bind"]:
        raise GpufabError(f"{flags[0]} is gpufab-bind's", "leave --no-bind out")
    request = job.Request(
        given["program"], given["limit"], given["ranks"], flags if given["bind"] else None, given["environment"]
    )
    made = job.make(resolved, request)
    options = words.Options(
        release=int(given["release"] or words.FIVE),
        mpirun=given["mpirun"],
        transport=given["transport"],
        parameters=given["mca"],
        hostfile=str(given["hostfile"]) if given["hostfile"] else None,
    )
    for name in words.DIFFERS if len(made.places) > 1 else ():
        if name in made.environment:
            progress(f"{name} is one for all hosts here: names differ between hosts, and files there tell each its own")
    if given["start"]:
        return _start(resolved.spec, fabric, made, options, asked=given["release"] is not None)
    lines = words.lines(made, given["launcher"], options)
    if given["hostfile"]:
        _write(given["hostfile"], words.hostfile(made))
    _print(lines, made, output)
    return Exit.IN_SYNC


def _judge(report: TextIO, packages: int | None, output: str) -> int:
    """Say of each node in a report whether its ranks can be meant to be where they are."""
    from dataclasses import asdict

    from gpufab_cli.launch import bindings
    from gpufab_cli.terminal import printable

    ranks = bindings.parse(report.read())
    if not ranks:
        raise GpufabError(f"{report.name}: no rank's binding in it", "mpirun --report-bindings prints on stderr: 2>&1")
    verdicts = bindings.judge(ranks, packages)
    if output == "json":
        print_json({"nodes": [asdict(verdict) for verdict in verdicts]})
    for line in bindings.rows(verdicts) if output != "json" else ():
        click.echo(printable(line))
    statuses = {verdict.status for verdict in verdicts}
    return Exit.DRIFT if "fail" in statuses else Exit.UNKNOWN if "unknown" in statuses else Exit.IN_SYNC


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise GpufabError(f"{path}: {error.strerror}") from error


def _print(lines: "tuple[Line, ...]", made: "Job", output: str) -> None:
    from gpufab_cli.launch.words import hostfile

    if output == "json":
        commands = [{"host": line.host or None, "argv": line.argv} for line in lines]
        print_json({"commands": commands, "hostfile": hostfile(made), "environment": made.environment})
        return
    for line in lines:
        if line.host:
            click.echo(f"# on {line.host}")
        click.echo(shlex.join(line.argv))


def _start(spec: "FabricSpec", fabric: Path, made: "Job", options: "Options", *, asked: bool) -> int:
    """Run it on the first host, in the words of the Open MPI that is there."""
    from dataclasses import replace

    from gpufab_cli.fabric.targets import targets
    from gpufab_cli.launch import run, words

    if options.hostfile:
        raise GpufabError("a hostfile written here is not on the host that --run starts mpirun on", "leave one out")
    first = made.places[0].host
    target = next(target for target in targets(spec, fabric.parent) if target.host == first)
    if not asked:
        options = replace(options, release=run.release(target, options.mpirun))
    (line,) = words.lines(made, "mpirun", options)
    progress(f"{first}: {shlex.join(line.argv)}")
    status = run.run(target, line.argv)
    if status:
        progress(f"{first}: mpirun ended with {status}")
    return Exit.DRIFT if status else Exit.IN_SYNC
