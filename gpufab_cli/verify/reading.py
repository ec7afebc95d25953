"""One look at one node: ``read.sh`` over SSH, and what it printed, section by section."""

import os
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testinfra.backend.ssh import SshBackend
from testinfra.host import Host

from gpufab_cli.reach.target import Target
from gpufab_cli.verify.expected import Node

LIMIT_BYTES = 64 << 20  # a node with many GPUs prints less than one
POLL_S = 0.05
LIMIT_S = 120  # read.sh takes a second or two; with every tool hanging, half a minute
CONNECT_S = 10
AT_ONCE = 8
SCRIPT = Path(__file__).with_name("read.sh")
END = "end"
NONE = "none"
NOT_READ = "?"
"""What ``read.sh`` prints in place of a value that it could not read."""

# Never a prompt, never an unknown host key, no master left behind; the rest is the site's ssh_config.
_OPTIONS = ("BatchMode=yes", "StrictHostKeyChecking=yes", "ControlMaster=no", f"ConnectTimeout={CONNECT_S}")
_WORDS = {
    "clocks": "dvfs",
    "kernel": "kernel",
    "stack": "gpu_stack",
    "numa": "numa",
    "nccl": "nccl_env",
    "mpi": "mpi",
}  # what is looked at only for a feature
_SUDO = 'sudo -n true 2>/dev/null && exec sudo -n "$@"; exec "$@"'
_SECTION = re.compile(r"^@@gpufab (\S+) (\S+)$", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")  # ECMA-48; some vendor tools colour a pipe as well


class UnreadableError(Exception):
    """A value that could not be read; unknown, and so neither right nor wrong."""


class UnreachableError(Exception):
    """A node that could not be read at all."""


@dataclass(frozen=True)
class Section:
    """What one probe printed, which may hold secrets: no traceback shows it.

    Attributes:
        code: an exit status, what ``read.sh`` says instead of one, or "unread" where it says nothing.
    """

    name: str
    code: str
    text: str = field(repr=False)

    def require(self, tool: str) -> str:
        """The text of a probe that succeeded.

        Raises:
            UnreadableError: it did not; the message names the tool.
        """
        if self.code == "absent":
            raise UnreadableError(f"{tool}: not there")
        if self.code == "unread":
            raise UnreadableError(f"{tool}: not looked at")
        if self.code == "hung":
            raise UnreadableError(f"{tool}: no answer in time")
        if self.code != "0":
            said = (self.text.strip().splitlines() or [f"exit {self.code}"])[-1]
            raise UnreadableError(f"{tool}: {said}")
        return self.text

    @property
    def there(self) -> bool:
        """Whether there is such a program or file at all, which it then may not have been possible to read."""
        return self.code not in ("absent", "unread")

    def words(self, tool: str) -> str:
        """The text of a probe that always prints something.

        Raises:
            UnreadableError: it failed, or printed nothing.
        """
        text = self.require(tool).strip()
        if not text:
            raise UnreadableError(f"{tool}: printed nothing")
        return text

    def lines(self, tool: str) -> list[str]:
        """The lines of a list, which says so where it has none.

        Raises:
            UnreadableError: the probe failed, or the list says nothing.
        """
        text = self.words(tool)
        return [] if text == NONE else self.text.splitlines()

    def fields(self, tool: str, width: int) -> list[list[str]]:
        """The fields of each line of a list, with tabs between.

        Raises:
            UnreadableError: as for lines, or some line has not so many fields.
        """
        rows = [line.split("\t") for line in self.lines(tool)]
        if not all(len(row) == width for row in rows):
            raise UnreadableError(f"{tool}: cut short or garbled")
        return rows


def told(value: str, what: str) -> str:
    """A value that was read.

    Raises:
        UnreadableError: it could not be.
    """
    if value == NOT_READ:
        raise UnreadableError(f"{what}: could not be read")
    return value


def release(section: Section) -> str:
    """The running kernel's release, of ``uname -r``.

    Raises:
        UnreadableError: it is none.
    """
    found = section.words("uname")
    if not re.fullmatch(r"[0-9]+[.][0-9]+\S*", found):
        raise UnreadableError(f"uname: {found!r} is no release of a kernel")
    return found


def number(value: str, what: str) -> int:
    """A decimal number that was read.

    Raises:
        UnreadableError: it is none.
    """
    if not re.fullmatch("[0-9]{1,19}", value):
        raise UnreadableError(f"{what}: {value if value not in ('', NOT_READ) else 'could not be read'}")
    return int(value)


@dataclass(frozen=True)
class Reading:
    """Every section of one look at a node, by name."""

    sections: Mapping[str, Section]

    def section(self, name: str) -> Section:
        """One section; what was not looked at cannot be required."""
        return self.sections.get(name, Section(name, "unread", ""))

    def names(self, prefix: str) -> tuple[str, ...]:
        """The rest of every section name that begins with ``prefix``."""
        return tuple(name.removeprefix(prefix) for name in self.sections if name.startswith(prefix))

    @property
    def is_root(self) -> bool:
        """Whether the node was read as root."""
        return self.section("uid").text.strip() == "0"


def parse(text: str) -> Reading:
    """The sections of the output of ``read.sh``, without colours.

    Raises:
        UnreachableError: the last one is missing: the output was cut short.
    """
    text = _COLOUR.sub("", text)
    marks = list(_SECTION.finditer(text))
    starts = [mark.start() for mark in marks]
    sections = [
        Section(mark[1], mark[2], text[mark.end() : end].strip("\n"))
        for mark, end in zip(marks, [*starts, len(text)][1:], strict=True)
    ]
    if not sections or sections[-1].name != END:
        said = text.strip().splitlines()
        raise UnreachableError("its answer is cut short" if sections or not said else f"it only says {said[-1]!r}")
    return Reading({section.name: section for section in sections})


def bounded(argv: Sequence[str], seconds: float, most: int) -> tuple[int, bytes, bytes]:
    """Run a program within a limit of wall time and of output: its exit status, stdout and the end of stderr.

    Raises:
        UnreachableError: it went beyond a limit; it is ended then.
    """
    end = time.monotonic() + seconds
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, start_new_session=True
        )
        try:
            while process.poll() is None:
                if time.monotonic() > end:
                    raise UnreachableError(f"no answer within {seconds:g} s")
                if max(os.fstat(stream.fileno()).st_size for stream in (stdout, stderr)) > most:
                    raise UnreachableError(f"printed more than {most} bytes")
                with suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_S)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        found = []
        for stream in (stdout, stderr):
            stream.seek(0)
            found.append(stream.read(most))
    return process.returncode, found[0], found[1]


class _Ssh(SshBackend):  # type: ignore[misc]
    """testinfra's ssh, without a shell on this side and within one limit of wall time."""

    def run_local(self, command: str, *args: str) -> Any:
        argv = shlex.split(self.quote(command, *args))
        code, stdout, stderr = bounded(argv, LIMIT_S, LIMIT_BYTES)
        return self.result(code, self.encode(" ".join(argv)), stdout, stderr)


def connect(target: Target) -> Host:
    """testinfra's host for a target; nothing is sent yet."""
    address = f"[{target.address}]" if ":" in target.address else target.address
    user = f"{target.user}@" if target.user is not None else ""
    port = f":{target.port}" if target.port is not None else ""
    config = str(target.ssh_config) if target.ssh_config else None
    options = " ".join(f"-o {option}" for option in _OPTIONS)
    backend = _Ssh(f"{user}{address}{port}", ssh_config=config, ssh_extra_args=options)
    host = Host(backend)
    backend.set_host(host)
    return host


def read(node: Node) -> Reading:
    """Look at a node, as root where the site lets us.

    Raises:
        UnreachableError: there is no way to it, or no whole answer.
    """
    argv = ["sh", "-c", SCRIPT.read_text(encoding="utf-8"), "read", *_asked(node)]
    if node.target.become == "sudo":
        argv = ["sh", "-c", _SUDO, "become", *argv]
    try:
        done = connect(node.target).run(" ".join(["%s"] * len(argv)), *argv)
    except RuntimeError as error:  # how testinfra says that ssh itself failed
        said = error.args[0].stderr_bytes.decode("utf-8", "replace").strip().splitlines()
        raise UnreachableError(f"ssh failed, and said {said[-1]!r}" if said else "ssh failed without a word") from error
    return parse(done.stdout_bytes.decode("utf-8", "replace"))


def _asked(node: Node) -> Iterator[str]:
    """What of a node is looked at, in the words of ``read.sh``."""
    yield from (word for word, feature in _WORDS.items() if feature in node.wishes)
    if "limits" in node.wishes:
        yield f"limits:{','.join(node.wishes['limits']['services'])}"
    if {"ofed", "nccl"} & set(node.wishes):
        yield "packages"
    yield from (f"{card.pci}={','.join(card.parameters)}" for card in node.cards if card.parameters)
    yield from (port.pci for port in node.ports)


def read_all(nodes: Sequence[Node]) -> dict[str, Reading | UnreachableError]:
    """Look at many nodes, several at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip((node.host for node in nodes), pool.map(_try, nodes), strict=True))


def _try(node: Node) -> Reading | UnreachableError:
    try:
        return read(node)
    except UnreachableError as error:
        return error
    except Exception as error:  # no other node is to pay for it
        return UnreachableError(f"gpufab stumbled: {type(error).__name__}: {error}")
