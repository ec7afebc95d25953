"""How far the drain of each host has come, on disk beside fabric.yml, so that gpufab may be killed at any moment.

asked → drained → disturbed → proven → given back; a host that is given back, or was never drained, has no file. A
state is written before what it stands for begins (asked, disturbed) or after it has ended (drained, proven): when in
doubt a host counts as less far than it is.
"""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from gpufab_cli.errors import GpufabError
from gpufab_cli.module_utils.host import Host, HostError
from gpufab_cli.module_utils.schema import SchemaError, decode, encode
from gpufab_cli.module_utils.texts import parse_json

FOLDER = ".gpufab/drained"
"""A file a host, in the folder of fabric.yml."""

LOCK = ".gpufab/apply.lock"
LOCK_SECONDS = 15.0
"""A killed apply holds it until its hooks and playbook have ended, which takes a moment."""


RUNS = 50
"""So many runs are remembered as ended: their claims on nodes hold nobody up here."""


class Stage(StrEnum):
    """How far the drain of a host has come."""

    ASKED = "asked"
    DRAINED = "drained"
    DISTURBED = "disturbed"
    PROVEN = "proven"


@dataclass(frozen=True)
class State:
    """A host that is drained, or may be.

    Attributes:
        run: the apply that drained it, and ``user`` who started that.
        since: when it was asked for, in seconds since the epoch.
        left: why it was left drained for the operator; "" if an apply was on its way with it.
    """

    stage: Stage = Stage.ASKED
    run: str = ""
    user: str = ""
    since: float = 0.0
    left: str = ""

    @property
    def words(self) -> str:
        """Who drained it, when, and how far that went."""
        when = f" since {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime(self.since))}" if self.since else ""
        who = f" by {self.user} (run {self.run})" if self.run else ""
        why = f": {self.left}" if self.left else "; that apply did not come to its end"
        return f"{self.stage.value}{who}{when}{why}"


class States:
    """The states of a fabric's hosts."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._top = folder / FOLDER, folder / Path(FOLDER).parent
        self.ended: tuple[str, ...] = ()
        """The runs that had the lock before, and so have ended."""

    def read(self, host: str) -> State | None:
        """The state of a host; None: it is in service. A file that is empty or damaged may be that of a drained one."""
        try:
            text = (self._folder / host).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            return State()
        try:
            state: State = decode(State, parse_json(text))
        except (ValueError, SchemaError):
            return State()
        return state

    def all(self) -> dict[str, State]:
        """Every host that is drained, or may be."""
        names = sorted(path.name for path in self._folder.glob("*") if not path.name.endswith(".gpufab"))
        return {name: state for name in names if (state := self.read(name)) is not None}

    def write(self, host: str, state: State) -> None:
        """Have the state on disk before returning.

        Raises:
            GpufabError: it cannot be written, so nothing that it stands for may begin.
        """
        self._make_folder()
        try:
            Host().put(str((self._folder / host).absolute()), (json.dumps(encode(state)) + "\n").encode())
        except HostError as error:
            raise GpufabError(str(error), "no host is drained whose state cannot be kept") from error

    def advance(self, host: str, stage: Stage, left: str = "") -> None:
        """Take a drained host on; nothing is to be done for one in service."""
        state = self.read(host)
        if state is not None:
            self.write(host, replace(state, stage=stage, left=left))

    def forget(self, host: str) -> None:
        """The host is given back."""
        (self._folder / host).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            handle = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)

    def _make_folder(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        ignore = self._top / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")

    def busy(self) -> bool:
        """Whether an apply or resume is at work in this folder: what is drained is on its way then."""
        try:
            with (self._top / Path(LOCK).name).open(encoding="utf-8") as stream:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return False

    @contextmanager
    def locked(self, run: str = "") -> Iterator[int]:
        """Let one apply or resume at a time act from this folder; the descriptor that holds the lock.

        What is started with it keeps the lock until it has ended, so that nobody begins beside it.

        Raises:
            GpufabError: another has it.
        """
        self._make_folder()
        path = self._top / Path(LOCK).name
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _wait(handle, LOCK_SECONDS)
            before = os.pread(handle, 8192, 0).decode("utf-8", "replace").splitlines()[1:]
            self.ended = tuple(before[-RUNS:])
            text = "\n".join((f"process {os.getpid()}", *self.ended, run)) + "\n"
            os.ftruncate(handle, 0)
            os.pwrite(handle, text.encode(), 0)
            yield handle
        finally:
            os.close(handle)


def _wait(handle: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if time.monotonic() >= deadline:
                who = os.pread(handle, 64, 0).decode("utf-8", "replace").partition("\n")[0]
                raise GpufabError(
                    f"another gpufab apply or resume is at work in this folder ({who or 'unknown'})",
                    "wait for its end, or end it",
                ) from error
            time.sleep(0.1)
        else:
            return


def summary(states: Mapping[str, State], hosts: Iterable[str]) -> str:
    """Which of the hosts are how far, in short; "" when none is drained."""
    from gpufab_cli.fabric.hostlist import fold

    chosen = set(hosts)
    by_stage: dict[Stage, list[str]] = {}
    for host, state in states.items():
        if host in chosen:
            by_stage.setdefault(state.stage, []).append(host)
    return ", ".join(f"{fold(by_stage[stage])} {stage.value}" for stage in Stage if stage in by_stage)
