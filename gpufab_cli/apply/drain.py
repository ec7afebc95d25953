"""Hosts taken out of service and given back by the site's own commands, ``drain:`` and ``resume:``.

How far each host is lies on disk (states.py). A drain that is not known to have ended well is run again by the next
apply; so is one of an earlier run, for somebody may have given the host back since.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gpufab_cli.apply import supervise
from gpufab_cli.apply.states import Stage, State, States
from gpufab_cli.module_utils.journal import Run
from gpufab_cli.reach.parallel import each
from gpufab_cli.spec.hooks import Hook

AT_ONCE = 16
"""So many commands of the site run at a time: they ask a scheduler, which is one."""

INTERRUPTED = "interrupted"
_WORDS = 160

Command = Callable[[Sequence[str], float], str]
"""Runs a command of the site within so many seconds; why it failed, or ""."""


class Service:
    """The hosts of a fabric, in service or drained by an apply."""

    def __init__(
        self,
        folder: Path,
        drain: Hook | None,
        resume: Hook | None,
        command: "Command | None" = None,
        run: Run | None = None,
    ) -> None:
        self.states = States(folder)
        self._drain, self._resume, self._command = drain, resume, command or run_command
        self._run = run or Run()
        self._mine: set[str] = set()

    @property
    def managed(self) -> bool:
        """Whether the site has said how hosts are drained."""
        return self._drain is not None and self._resume is not None

    def drained(self, hosts: Iterable[str]) -> tuple[str, ...]:
        """Those of the hosts that an apply, this or another, has drained or begun to drain, and not given back."""
        known = self.states.all()
        return tuple(host for host in hosts if host in known)

    def is_mine(self, host: str) -> bool:
        """Whether this run has drained the host, and not given it back."""
        return host in self._mine

    def drain(self, hosts: Iterable[str]) -> dict[str, str]:
        """Drain the hosts that this run has not drained yet; those that could not be, and why. They are given back."""
        if self._drain is None:
            return {}
        waiting = [host for host in hosts if host not in self._mine]
        known = self.states.all()
        for host in waiting:  # before it is done: a state too many is mended, one too few is not
            since = known[host].since if host in known else time.time()
            self.states.write(host, State(Stage.ASKED, self._run.id, self._run.user, since))
        failed = self._all(self._drain, waiting, self._drained)
        return {host: f"drain: {why}{self._undone(host)}" for host, why in failed.items()}

    def _drained(self, host: str) -> None:
        self.states.advance(host, Stage.DRAINED)
        self._mine.add(host)

    def _undone(self, host: str) -> str:
        why = self.give_back((host,)).get(host, "")
        return f"; resume: {why}" if why else "; it was given back"

    def disturb(self, hosts: Iterable[str]) -> None:
        """Note that the drained ones of the hosts are about to be disturbed."""
        for host in hosts:
            if host in self._mine:
                self.states.advance(host, Stage.DISTURBED)

    def resume(self, hosts: Iterable[str]) -> dict[str, str]:
        """Give hosts back that are proven; those that could not be, and why."""
        chosen = self.drained(hosts)
        for host in chosen:
            self.states.advance(host, Stage.PROVEN)
        return self.give_back(chosen)

    def give_back(self, hosts: Sequence[str]) -> dict[str, str]:
        """Run the site's command on hosts, whatever is known of them; those that could not be given back, and why."""
        if self._resume is None:
            return {}
        failed = self._all(self._resume, hosts, self.forget)
        for host, why in failed.items():
            state = self.states.read(host)
            self.states.advance(host, state.stage if state else Stage.ASKED, f"resume: {why}")
        return failed

    def forget(self, host: str) -> None:
        """The host is in service again, whoever has given it back."""
        self.states.forget(host)
        self._mine.discard(host)

    def leave(self, reasons: Mapping[str, str]) -> None:
        """Leave hosts drained for the operator, and keep why."""
        for host, why in reasons.items():
            state = self.states.read(host)
            if state is not None:
                self.states.advance(host, state.stage, why)

    def _all(self, hook: Hook, hosts: Sequence[str], done: Callable[[str], None]) -> dict[str, str]:
        def work(host: str) -> tuple[str, str]:
            why = self._command(hook.argv(host), hook.timeout_s)
            if not why:
                done(host)
            return host, why

        return {host: why for host, why in each(hosts, work, AT_ONCE) if why}


class _Running:
    """The commands of the site that run now."""

    def __init__(self) -> None:
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._guard = threading.Lock()
        self._ending = False
        self.kept: tuple[int, ...] = ()
        """Descriptors that each of them keeps open: that of the apply's lock."""

    def start(self, argv: Sequence[str]) -> "subprocess.Popen[bytes] | None":
        with self._guard:
            if self._ending:
                return None
            process = subprocess.Popen(
                supervised(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=self.kept,
            )
            self._processes.add(process)
            return process

    def end(self, process: "subprocess.Popen[bytes]") -> None:
        """Leave nothing of it behind when it hangs or the operator has had enough."""
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(supervise.PATIENCE_SECONDS + 5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.discard(process)

    def end_all(self) -> None:
        """End all of them, and let none begin any more."""
        with self._guard:
            self._ending = True
            found = tuple(self._processes)
        for process in found:
            process.terminate()
        for process in found:
            self.end(process)

    @contextlib.contextmanager
    def keeping(self, lock: int) -> Iterator[None]:
        """Let commands run, each with the apply's lock, for as long as that is open."""
        self._ending, self.kept = False, (lock,)
        try:
            yield
        finally:
            self.kept = ()


running = _Running()


def supervised(argv: Sequence[str], note: Path | None = None) -> list[str]:
    """The command, below a process that ends it and all that it has started when gpufab ends in any way.

    Args:
        note: a file that is to hold the number of that process.
    """
    return [sys.executable, "-I", "-S", supervise.__file__, str(os.getpid()), str(note or ""), *argv]


def run_command(argv: Sequence[str], seconds: float) -> str:
    """Run a command of the site, without a shell and without a terminal; why it failed, or ""."""
    process = running.start(argv)
    if process is None:
        return INTERRUPTED
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no end within {seconds:g} s"
    finally:
        running.end(process)
        if process.stdout is not None:
            with contextlib.suppress(OSError):
                process.stdout.close()
    if process.returncode == supervise.NOT_STARTED and b"cannot be started: " in output:
        return _last_line(output)
    words = _last_line(output)
    return "" if process.returncode == 0 else f"exit {process.returncode}{f': {words}' if words else ''}"


def _last_line(output: bytes) -> str:
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    clean = "".join(char if char.isprintable() else "?" for char in lines[-1]) if lines else ""
    return clean[:_WORDS]
