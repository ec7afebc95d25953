"""Hosts taken out of service and given back by the site's own commands, ``drain:`` and ``resume:``.

A host that an apply has drained is noted beside fabric.yml until it is given back, or told to the operator as one that
stays drained: when gpufab itself is killed in between, the next apply knows it and gives it back.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from gpufab_cli.reach.parallel import each
from gpufab_cli.spec.hooks import Hook

AT_ONCE = 16
"""So many commands of the site run at a time: they ask a scheduler, which is one."""

NOTES = ".gpufab/drained"
"""A file a host, in the folder of fabric.yml."""

_WORDS = 160

Command = Callable[[Sequence[str], float], str]
"""Runs a command of the site within so many seconds; why it failed, or ""."""


class Service:
    """The hosts of a fabric, in service or drained by an apply."""

    def __init__(self, folder: Path, drain: Hook | None, resume: Hook | None, run: "Command | None" = None) -> None:
        self._notes, self._drain, self._resume = folder / NOTES, drain, resume
        self._run = run or run_command

    @property
    def managed(self) -> bool:
        """Whether the site has said how hosts are drained."""
        return self._drain is not None and self._resume is not None

    def drained(self, hosts: Iterable[str]) -> tuple[str, ...]:
        """Those of the hosts that this apply, or one that was killed, has drained and not given back."""
        return tuple(host for host in hosts if (self._notes / host).exists())

    def drain(self, hosts: Iterable[str]) -> dict[str, str]:
        """Drain the hosts that are in service; those that could not be, and why. These are given back at once."""
        if self._drain is None:
            return {}
        waiting = [host for host in hosts if not (self._notes / host).exists()]
        for host in waiting:  # before it is done: a note too many is mended, one too few is not
            self._note(host)
        failed = self._all(self._drain, waiting)
        return {host: f"drain: {why}{self._undone(host)}" for host, why in failed.items()}

    def _undone(self, host: str) -> str:
        why = self.resume((host,)).get(host, "")
        return f"; resume: {why}" if why else "; it was given back"

    def resume(self, hosts: Iterable[str]) -> dict[str, str]:
        """Give hosts back that are drained; those that could not be, and why."""
        if self._resume is None:
            return {}
        chosen = self.drained(hosts)
        failed = self._all(self._resume, chosen)
        self.leave(host for host in chosen if host not in failed)
        return failed

    def leave(self, hosts: Iterable[str]) -> None:
        """From now on they are the operator's affair."""
        for host in hosts:
            (self._notes / host).unlink(missing_ok=True)

    def _all(self, hook: Hook, hosts: Sequence[str]) -> dict[str, str]:
        def work(host: str) -> tuple[str, str]:
            return host, self._run(hook.argv(host), hook.timeout_s)

        return {host: why for host, why in each(hosts, work, AT_ONCE) if why}

    def _note(self, host: str) -> None:
        self._notes.mkdir(parents=True, exist_ok=True)
        ignore = self._notes.parent / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        (self._notes / host).touch()


def run_command(argv: Sequence[str], seconds: float) -> str:
    """Run a command of the site, without a shell and without a terminal; why it failed, or ""."""
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return f"{argv[0]} cannot be started: {error.strerror}"
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"no end within {seconds:g} s"
    finally:
        _end(process)
    return "" if process.returncode == 0 else f"exit {process.returncode}{_last_words(output)}"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Leave nothing of it behind when it hangs or the operator has had enough."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _last_words(output: bytes) -> str:
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    clean = "".join(char if char.isprintable() else "?" for char in lines[-1]) if lines else ""
    return f": {clean[:_WORDS]}" if clean else ""
