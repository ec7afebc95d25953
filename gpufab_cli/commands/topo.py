"""``gpufab topo``: how a node is put together, as a matrix, as data and as a picture."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from gpufab_cli.commands.options import fabric_option, format_option, timeout_option
from gpufab_cli.errors import Exit, GpufabError, did_you_mean
from gpufab_cli.report.console import print_json, print_table, progress

if TYPE_CHECKING:
    from gpufab_cli.apply.effects import Doors
    from gpufab_cli.reach.target import Target
    from gpufab_cli.topology.layout import Layout


_CELL, _AFFINITY = 8, 120  # columns of a terminal: a cell of the matrix is not folded, nor is a usual list of CPUs


class _Host(click.ParamType[str]):
    """A host of the fabric."""

    name = "host"

    def shell_complete(
        self,
        ctx: click.Context,
        param: click.Parameter,  # noqa: ARG002 (click's signature)
        incomplete: str,
    ) -> list[CompletionItem]:
        """Hosts of the fabric.yml at hand that start so; none where it cannot be read."""
        from gpufab_cli.spec.load import load

        try:
            hosts = load(ctx.params.get("fabric") or Path("fabric.yml")).in_state("active", "maintenance")
        except GpufabError:
            return []
        return [CompletionItem(host.name) for host in hosts if host.name.startswith(incomplete)]


@click.command()
@click.argument("host", required=False, type=_Host())
@fabric_option
@click.option(
    "--from",
    "origin",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="PATH",
    help="Contact no host: read snapshots of audit --save, a pasted nvidia-smi topo -m, an NCCL XML file; - is stdin.",
)
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Draw it into FILE.")
@timeout_option
@format_option
@click.pass_context
def command(
    context: click.Context,
    *,
    host: str | None,
    fabric: Path,
    origin: Path | None,
    svg: Path | None,
    timeout: float,
    output: str,
) -> int:
    """Show how a node is put together: distances, NUMA nodes, which NIC is which GPU's rail.

    Distances are those of nvidia-smi topo -m. The node is only read.

    \b
    Examples:
      gpufab topo gpu017
      gpufab topo gpu017 --svg gpu017.svg
      gpufab topo gpu017 --from before/        what gpufab audit --save before/ kept
      gpufab topo --from topo.txt              a pasted nvidia-smi topo -m
      gpufab topo --from topo.xml              what NCCL_TOPO_DUMP_FILE wrote

    Exit codes: 0 nothing odd, 1 a finding, 2 usage or spec error, 3 unreachable.
    """
    from gpufab_cli.apply.effects import Doors
    from gpufab_cli.topology.findings import findings

    found = _layout(host, fabric, origin, timeout, context.find_object(Doors) or Doors())
    if svg is not None:
        _draw(found, svg)
    _show(found, output)
    bad = any(finding.severity != "info" for finding in findings(found))
    return Exit.DRIFT if bad else Exit.IN_SYNC


def _layout(host: str | None, fabric: Path, origin: Path | None, timeout: float, doors: "Doors") -> "Layout":
    from gpufab_cli.fabric.resolve import locked_rails
    from gpufab_cli.topology import sources

    if origin is not None and not origin.is_dir():
        if host is not None and (origin.exists() or str(origin) == "-"):
            raise GpufabError(f"{origin}: no directory of snapshots, and a file names no host", "leave out HOST")
        return sources.from_file(origin)
    if host is None:
        raise GpufabError("no host is named", "gpufab topo HOST, or --from FILE")
    if origin is not None:
        return sources.from_saved(origin, host, locked_rails(fabric, host))
    found, doubts = sources.from_host(_target(fabric, host), locked_rails(fabric, host), doors.execute, timeout)
    for doubt in doubts:
        progress(f"{host}: {doubt}")
    return found


def _target(fabric: Path, host: str) -> "Target":
    from gpufab_cli.fabric.targets import targets
    from gpufab_cli.spec.load import load

    reached = {target.host: target for target in targets(load(fabric), fabric.parent)}
    if host not in reached:
        raise GpufabError(f"no host {host!r} in {fabric}", did_you_mean(host, reached))
    return reached[host]


def _draw(found: "Layout", path: Path) -> None:
    from gpufab_cli.topology.picture import picture

    try:
        path.write_text(picture(found), encoding="utf-8")
    except OSError as error:
        raise GpufabError(f"{path}: {error.strerror}") from error
    progress(f"{path}: drawn")


def _show(found: "Layout", output: str) -> None:
    from gpufab_cli.topology import text
    from gpufab_cli.topology.findings import findings

    if output == "json":
        print_json(text.data(found))
        return
    heads, rows = text.matrix_rows(found)
    print_table(heads, rows, title=found.name, width=_CELL * len(heads) + _AFFINITY)
    print_table(*text.port_rows(found))
    told = findings(found)
    if told:
        print_table(
            ["severity", "device", "finding", "code"], [[f.severity, f.device, f.evidence, f.code] for f in told]
        )
    if found.links is None and len(found.gpus) > 1:
        progress("between GPUs: PCIe paths; the source does not tell of NVLinks")
