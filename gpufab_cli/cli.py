"""The command line: finds the commands, and turns whatever goes wrong into one line and an exit code."""

import ast
import contextlib
import errno
import gc
import importlib
import io
import os
import pkgutil
import signal
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from gpufab_cli import __version__, commands
from gpufab_cli.errors import Exit, GpufabError, did_you_mean
from gpufab_cli.terminal import one_line

PROGRAM = "gpufab"

BROKEN_PIPE = 128 + signal.SIGPIPE
"""What a shell gives for a program whose reader has gone: no verdict was read to its end."""

_OF_THE_MACHINE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EBADF})
"""What a disk, or what output leads to, does to a program that is in order."""

COLLECT_AFTER = (50_000, 2, 2)
"""For gc.set_threshold(). Python's own, a search for garbage after every 700 objects, takes a fourteenth of a short
command's time and finds next to none. Often enough all the same for what the connections of a large fleet leave behind.
"""


@cache
def summaries() -> dict[str, str]:
    """Each command and the first line of its help, read from source: listing them must not import what they use.

    A module of gpufab_cli/commands that defines ``command`` is one; the others there are helpers.
    """
    found = {}
    for module in pkgutil.iter_modules(commands.__path__):
        tree = ast.parse((Path(commands.__path__[0]) / f"{module.name}.py").read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and node.name == "command":
                lines = (ast.get_docstring(node) or "").splitlines()
                found[module.name.replace("_", "-")] = lines[0].rstrip(".") if lines else ""
    return found


class Commands(click.Group):
    """A group whose commands are modules, imported when used."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        """Every command by name, sorted."""
        return sorted(summaries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import one command; None if there is no such."""
        if cmd_name not in summaries():
            return None
        module = importlib.import_module(f"{commands.__name__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments start with."""
        if args[0] not in summaries():
            raise GpufabError(f"no command {args[0]!r}", did_you_mean(args[0], summaries()))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(summaries().items()))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("-v", "--verbose", is_flag=True, expose_value=False, help="Say more; print tracebacks.")
@click.version_option(__version__, prog_name=PROGRAM)
def cli() -> None:
    """Declare a GPU fabric once; provision, prove and audit every node of it.

    \b
    gpufab validate     is fabric.yml right?
    gpufab lock         which device is which rail
    gpufab render       write the Ansible inventory
    gpufab audit        what is not as declared, and why
    gpufab apply        bring the nodes to what is declared

    Exit codes: 0 in sync, 1 drift, pending, refused or failed, 2 usage or spec error, 3 only unknown or unreachable.
    """


def main() -> None:
    """Run the command line and leave the process."""
    gc.set_threshold(*COLLECT_AFTER)
    if sys.stderr is None:  # closed (2>&-): nobody listens, and no file may be opened in its place
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 (it stays open)
    if sys.stdout is None:
        _say(["error: stdout is closed", "hint: send it to /dev/null where no result is wanted"])
        sys.exit(Exit.USAGE)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an encoding that lacks a character of a report ends none
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str], doors: object = None) -> int:
    """Run one command and return its exit code; errors are printed on stderr.

    Args:
        doors: a test's own ways out of this machine; commands that have any know its type.
    """
    try:
        result = _invoke(arguments, doors)
    except GpufabError as error:
        _say(error.lines())
        return error.exit_code
    except NoArgsIsHelpError as error:
        error.show()
        return Exit.USAGE
    except click.ClickException as error:
        _say([f"error: {error.format_message()}", "hint: --help shows how the command is used"])
        return Exit.USAGE
    except click.Abort:
        _say(["error: interrupted"])
        return Exit.DRIFT
    except BrokenPipeError:
        _silence()  # the reader has gone (| head)
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in _OF_THE_MACHINE:
            _crash(error, verbose=bool({"-v", "--verbose"} & set(arguments)))
            return Exit.USAGE
        _silence()
        _say([f"error: {error.filename or 'what is printed cannot be written'}: {error.strerror}"])
        return Exit.USAGE
    except Exception as error:
        _crash(error, verbose=bool({"-v", "--verbose"} & set(arguments)))
        return Exit.USAGE
    return int(result) if isinstance(result, int) else Exit.IN_SYNC


def _invoke(arguments: list[str], doors: object) -> object:
    """Run one command; what it printed is out, or it has failed."""
    stdout, stderr = sys.stdout, sys.stderr
    try:
        result: object = cli.main(arguments, prog_name=PROGRAM, standalone_mode=False, obj=doors)
    except SystemExit:
        if sys.stdout is stdout:
            raise
        sys.stdout, sys.stderr = stdout, stderr  # click has met a broken pipe, and would say 1, which means drift here
        raise BrokenPipeError from None
    sys.stdout.flush()
    return result


def _silence() -> None:
    """Send what is still to be printed nowhere: the interpreter's own flush at exit must not complain either."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say(lines: Any) -> None:
    for line in lines:
        with contextlib.suppress(OSError):  # the terminal may be what has gone
            click.echo(one_line(line), err=True)


def _crash(error: Exception, *, verbose: bool) -> None:
    """Report a bug of gpufab itself: one line, and the traceback in a file of the user's own."""
    text = "".join(traceback.format_exception(error))
    try:
        with tempfile.NamedTemporaryFile("w", prefix="gpufab-", suffix=".txt", delete=False, encoding="utf-8") as file:
            file.write(text)
        where = f"its traceback is in {file.name}"
    except OSError as failure:
        where = f"its traceback cannot be kept ({failure.strerror}): -v prints it"
    if verbose:
        click.echo(text, err=True, nl=False)
    what = (str(error).splitlines() or [""])[0]
    _say([f"error: {type(error).__name__}: {what}", f"hint: this is a bug in gpufab; {where}"])
