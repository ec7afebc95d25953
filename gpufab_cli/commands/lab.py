"""``gpufab lab``: emulated GPU nodes."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpufab_cli.commands.options import format_option
from gpufab_cli.lab.platforms import DEFAULT
from gpufab_cli.report.console import print_json, print_table, progress

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gpufab_cli.lab.lab import Lab


def _open_lab(_: click.Context, __: click.Parameter, folder: Path) -> "Lab":
    from gpufab_cli.lab.lab import Lab

    return Lab(folder, progress)


_dir_option = click.option(
    "--dir",
    "lab",
    type=click.Path(path_type=Path),
    default=".lab",
    show_default=True,
    envvar="GPUFAB_LAB",
    show_envvar=True,
    callback=_open_lab,
    help="The lab's folder.",
)


def _complete_node(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    from gpufab_cli.lab.lab import Lab

    lab = Lab(Path(context.params.get("dir") or os.environ.get("GPUFAB_LAB", ".lab")))
    return [node.record.name for node in lab.nodes() if node.record.name.startswith(incomplete)]


_node_argument = click.argument("node", shell_complete=_complete_node)


class _Fault(click.ParamType[str]):
    """A fault's name; the table is read only when one is completed or checked."""

    name = "fault"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 (click's signature)
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list["CompletionItem"]:
        """Offers names with their help."""
        from click.shell_completion import CompletionItem

        from gpufab_cli.lab.faults import KINDS

        return [CompletionItem(k.name, help=k.help) for k in KINDS.values() if k.name.startswith(incomplete)]


class _ListsFaults(click.Command):
    """A command whose help lists the faults."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Writes the table."""
        from gpufab_cli.lab.faults import KINDS

        for title, lasting in (("One-shot faults (apply puts them right)", False), ("Until `lab repair`", True)):
            with formatter.section(title):
                rows = [(f"{k.name} {k.argument}", k.help) for k in KINDS.values() if (k.mend is not None) == lasting]
                formatter.write_dl(rows)


@click.group()
def command() -> None:
    """Emulated GPU nodes to try everything on.

    \b
    gpufab lab up --nodes 2
    ssh -F .lab/ssh_config gpu01
    gpufab lab break gpu01 pfc-off --port 3
    gpufab lab down

    Needs root and podman on a Debian host. docs/lab.md says what is emulated and what is real.
    """


@command.command()
@_dir_option
@click.option("--nodes", type=click.IntRange(1, 64), default=2, show_default=True, help="How many nodes.")
@click.option("--name-prefix", default="gpu", show_default=True, help="Names are the prefix and two digits.")
@click.option("--machine", default="hgx-h100", show_default=True, help="Machine type.")
@click.option("--platform", default=DEFAULT, show_default=True, help="Operating system.")
def up(lab: "Lab", nodes: int, name_prefix: str, machine: str, platform: str) -> None:
    """Bring nodes up; what already runs is left alone.

    \b
    Examples:
      gpufab lab up
      gpufab lab up --nodes 10 --dir /tmp/big
      gpufab lab up --nodes 1 --name-prefix el --platform rocky9
    """
    lab.up([f"{name_prefix}{number:02d}" for number in range(1, nodes + 1)], machine, platform)
    progress(f"ssh -F {shlex.quote(str(lab.ssh_config))} {name_prefix}01")


@command.command()
@_dir_option
def down(lab: "Lab") -> None:
    """Remove all nodes and what the lab keeps in its folder.

    \b
    Example:
      gpufab lab down
    """
    lab.down()


@command.command()
@_dir_option
@format_option
def status(lab: "Lab", output: str) -> None:
    """Show what runs, and the faults in force.

    \b
    Examples:
      gpufab lab status
      gpufab lab status --format json
    """
    nodes = lab.status()
    if output == "json":
        print_json(nodes)
        return
    print_table(
        ("node", "machine", "platform", "container", "hardware", "ssh port", "boots", "faults"), map(_status_row, nodes)
    )


def _status_row(node: dict[str, Any]) -> tuple[str, ...]:
    faults = "?" if node["faults"] is None else ", ".join(map(_fault, node["faults"])) or "-"
    boots = "?" if node["boots"] is None else str(node["boots"])
    port = str(node["ssh_port"])
    return node["name"], node["machine"], node["platform"], node["container"], node["hardware"], port, boots, faults


def _fault(fault: dict[str, Any]) -> str:
    return " ".join(filter(None, (fault["name"], fault["target"], str(fault["count"] or ""))))


@command.command("break", cls=_ListsFaults)
@_dir_option
@click.option("--port", default="0", show_default=True, help="Rail number or netdev, for faults of a port.")
@_node_argument
@click.argument("fault", type=_Fault())
@click.argument("argument", default="")
def break_(lab: "Lab", port: str, node: str, fault: str, argument: str) -> None:
    """Inject a fault; some take a TOOL or a count N as ARGUMENT.

    \b
    Examples:
      gpufab lab break gpu01 pfc-off --port 3
      gpufab lab break gpu01 tool-missing dcb
      gpufab lab break gpu02 stall-at-write 4
    """
    lab.break_(node, fault, argument, port)


@command.command()
@_dir_option
@_node_argument
@click.argument("fault", type=_Fault(), default="")
def repair(lab: "Lab", node: str, fault: str) -> None:
    """End a lasting fault, or all of them.

    \b
    Examples:
      gpufab lab repair gpu01
      gpufab lab repair gpu01 tool-missing
    """
    lab.repair(node, fault)


@command.command()
@_dir_option
@click.argument("nodes", nargs=-1, required=True, shell_complete=_complete_node)
def reboot(lab: "Lab", nodes: tuple[str, ...]) -> None:
    """Power-cycle nodes and wait until they are back.

    \b
    Example:
      gpufab lab reboot gpu01 gpu02
    """
    lab.reboot(nodes)


@command.command(context_settings={"ignore_unknown_options": True})
@_dir_option
@_node_argument
@click.argument("argv", nargs=-1, type=click.UNPROCESSED)
def shell(lab: "Lab", node: str, argv: tuple[str, ...]) -> None:
    """Log in to a node, or run a command there.

    \b
    Examples:
      gpufab lab shell gpu01
      gpufab lab shell gpu01 sudo dcb pfc show dev enp24s0np0
    """
    words = lab.ssh(node, *argv)
    os.execvp(words[0], words)  # noqa: S606 - an argv list; the terminal becomes ssh's


@command.command()
@_dir_option
@click.option("--clear", is_flag=True, help="Empty the log after printing it.")
@format_option
@_node_argument
def writes(lab: "Lab", clear: bool, output: str, node: str) -> None:
    """Show everything that was written to a node's hardware.

    \b
    Examples:
      gpufab lab writes gpu01
      gpufab lab writes gpu01 --clear --format json
    """
    entries = lab.writes(node, clear)
    if output == "json":
        print_json(entries)
        return
    rows = ((e["face"], e["target"], e["value"], os.strerror(e["errno"]) if e["errno"] else "ok") for e in entries)
    print_table(("face", "target", "value", "result"), rows)
