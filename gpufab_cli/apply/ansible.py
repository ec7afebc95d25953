"""Run a playbook: the one place that knows ansible-runner. What comes out is what the modules said of each host.

Everything lies in a private directory that is gone afterwards. No secret is in any argv: vaults and SSH agents are
Ansible's and OpenSSH's own affair.
"""

import contextlib
import json
import locale
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpufab_cli.apply import interrupts
from gpufab_cli.apply.drain import supervised
from gpufab_cli.catalogue import catalogue
from gpufab_cli.errors import Exit, GpufabError
from gpufab_cli.intent.needs import FAILED, LAST_TASK
from gpufab_cli.module_utils.converge import StepResult
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.host import Output
from gpufab_cli.module_utils.packages.transaction import said
from gpufab_cli.module_utils.schema import SchemaError, decode, shown
from gpufab_cli.module_utils.texts import blame, parse_json
from gpufab_cli.module_utils.time_limit import GRACE_SECONDS

COLLECTION = "gpufab.fabric"
PLAYBOOK = f"{COLLECTION}.site"

SSH_ARGS = (
    "-o ControlMaster=auto -o ControlPersist=60s"
    # Nobody is there to answer a prompt, and a node that dies in the middle is noticed within a minute.
    " -o BatchMode=yes -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
)


MASTERS = "cp"
"""The folder of their sockets; a short name, for the path of a socket may have no more than 107 bytes (unix(7))."""
HANG_UP_SECONDS = 5.0

NESTING_LIMIT = 5000
"""Calls within calls; Python's own limit, which ansible-playbook has, is 1000."""


@dataclass(frozen=True)
class Play:
    """What to run, and where.

    Attributes:
        inventory: the rendered inventory.
        groups: hosts by group, in a second inventory beside it.
        hosts: the run is limited to these.
        extra_vars: what stands above all other variables.
        connect_seconds: how long connecting to a host may take.
        step_seconds: how long one module may take on one host.
    """

    inventory: Path
    groups: Mapping[str, tuple[str, ...]]
    hosts: tuple[str, ...]
    extra_vars: Mapping[str, Any]
    check: bool
    forks: int
    connect_seconds: float
    step_seconds: int = 0


@dataclass(frozen=True)
class Said:
    """What one feature's module said of one host. ``problem`` is "" where it ended well.

    Attributes:
        feature: "" when something else than one of gpufab's modules failed.
        unreachable: Ansible could not get to the host at all.
        ended: the role has failed; what needs its feature is not begun.
    """

    host: str
    feature: str
    steps: tuple[StepResult, ...] = ()
    problem: str = ""
    unreachable: bool = False
    ended: bool = False


UNREADABLE = "its module's result cannot be read; is an older gpufab.fabric in ANSIBLE_COLLECTIONS_PATH?"

KILLED = "gpufab apply goes on from how the nodes are now"
_BY_SIGNAL = range(129, 193)  # the exit status of what a signal has ended, as supervise.py gives it
_FAILED = ("runner_on_failed", "runner_on_unreachable")
_BY_HAND = f"ansible-playbook -i {{}} {PLAYBOOK} --check shows all of what Ansible says"
_PREFIXES = ("Task failed: ", "Module failed: ")  # what ansible-core puts before a module's own words

Listener = Callable[[Said], None]


def run(play: Play, listen: Listener) -> tuple[Said, ...]:
    """Run the site playbook and return what was said, in the order in which it was; ``listen`` hears it at once.

    Raises:
        GpufabError: Ansible itself failed before it came to any host.
        KeyboardInterrupt: it was interrupted.
    """
    with tempfile.TemporaryDirectory(prefix="gpufab-") as folder:
        try:
            return _Run(Path(folder), listen).run(play)
        finally:
            _hang_up(Path(folder) / MASTERS)


def _hang_up(masters: Path) -> None:
    """End the SSH connections that were kept for the next task: nobody will find them again."""
    for socket in masters.iterdir() if masters.is_dir() else ():
        argv = ["ssh", "-F", "none", "-o", f"ControlPath={socket}", "-O", "exit", "node"]
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG_UP_SECONDS, check=False)


@contextlib.contextmanager
def _room_for_nesting() -> Iterator[None]:
    """Let ansible-runner read whatever ansible-playbook could: it reads from deeper in its own stack, with one limit.

    A host's result that is nested too deeply would else end the run on all hosts.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, NESTING_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@dataclass
class _Run:
    folder: Path
    listen: Listener
    said: list[Said] = field(default_factory=list)
    failed_on_hosts: bool = False
    stopped: bool = False

    def run(self, play: Play) -> tuple[Said, ...]:
        with interrupts.deferred() as interrupted, _room_for_nesting():
            result = self._play(play, interrupted)
        if result.rc is None or result.rc in _BY_SIGNAL:  # it did not exit
            raise GpufabError("ansible-playbook was killed", KILLED, Exit.DRIFT)
        if result.rc != 0 and not self.failed_on_hosts:
            raise GpufabError(f"ansible-playbook: {_error(result.stdout.read())}", _BY_HAND.format(play.inventory))
        return tuple(self.said)

    def _play(self, play: Play, interrupted: Callable[[], bool]) -> Any:
        from ansible_runner.interface import init_runner

        limit = self._file("limit", "".join(f"{host}\n" for host in play.hosts))
        runner = init_runner(
            private_data_dir=str(self.folder),
            playbook=PLAYBOOK,
            inventory=[str(play.inventory.resolve()), str(self._file("insync.json", _inventory(play)))],
            limit=f"@{limit}",
            extravars=dict(play.extra_vars),
            cmdline="--check" if play.check else None,
            forks=play.forks,
            envvars=self._environment(play),
            event_handler=self._hear,
            cancel_callback=lambda: self._stop(interrupted()),
            quiet=True,
        )
        pid = self.folder / "pid"
        runner.config.command = [*supervised((), pid), *runner.config.command]
        runner.run()
        return runner

    def _stop(self, wanted: bool) -> bool:
        """End ansible-playbook and all below it, where that is wanted. ansible-runner would end its own group alone,
        and Ansible's workers and their ssh have sessions of their own.
        """
        if wanted and not self.stopped:
            self.stopped = True
            with contextlib.suppress(OSError, ValueError):
                os.kill(int((self.folder / "pid").read_text()), signal.SIGTERM)
        return False

    def _file(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def _environment(self, play: Play) -> dict[str, str]:
        return {
            # ansible-playbook of the same installation, whatever else is on PATH.
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "ANSIBLE_HOST_KEY_CHECKING": "True",
            "ANSIBLE_PIPELINING": "True",
            "ANSIBLE_SSH_ARGS": SSH_ARGS,
            "ANSIBLE_SSH_CONTROL_PATH_DIR": str(self.folder / MASTERS),
            "ANSIBLE_SSH_RETRIES": "1",  # a module plans anew: to run it again is safe
            # The module ends itself first, unless it hangs in the kernel, or ssh does.
            "ANSIBLE_TASK_TIMEOUT": str(play.step_seconds and play.step_seconds + 2 * GRACE_SECONDS),
            "ANSIBLE_TIMEOUT": str(max(1, int(play.connect_seconds))),
            "ANSIBLE_LOCAL_TEMP": str(self.folder / "tmp"),
            "ANSIBLE_RETRY_FILES_ENABLED": "False",
            "ANSIBLE_NOCOWS": "1",
            "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_FORCE_COLOR": "0",
            "ANSIBLE_DEPRECATION_WARNINGS": "False",
            **({} if _has_locale() else {"LC_ALL": "C.UTF-8"}),
        }

    def _hear(self, event: Mapping[str, Any]) -> bool:
        """Take what is of interest; False: the event is not kept on disk.

        Nothing is raised here: it would end this run on all hosts, and ansible-playbook would go on unheard.
        """
        self.failed_on_hosts = self.failed_on_hosts or event.get("event") in _FAILED
        said = heard(event)
        if said is not None:
            self.said.append(said)
            try:
                if not said.ended:
                    self.listen(said)
            except Exception as error:
                self.said.append(Said(said.host, said.feature, problem=f"gpufab stumbled: {blame(error)}"))
        return False


def _has_locale() -> bool:
    """Whether the locale that the environment names is there, and of UTF-8: Ansible does not start otherwise."""
    before = locale.setlocale(locale.LC_ALL)
    try:
        locale.setlocale(locale.LC_ALL, "")
        return locale.nl_langinfo(locale.CODESET).upper() == "UTF-8"
    except locale.Error:
        return False
    finally:
        locale.setlocale(locale.LC_ALL, before)


def _inventory(play: Play) -> str:
    groups: dict[str, Any] = {name: {"hosts": {host: {} for host in hosts}} for name, hosts in play.groups.items()}
    return json.dumps({"all": {"hosts": {}}, **groups})


def heard(event: Mapping[str, Any]) -> Said | None:
    """What an event of ansible-runner says; None when it is nothing of interest.

    What is not as gpufab's modules write it is a problem of its own host.
    """
    kind, data = event.get("event"), event.get("event_data") or {}
    if kind not in ("runner_on_ok", *_FAILED):
        return None
    host = str(data.get("host"))
    if data.get("task") == LAST_TASK:
        return None  # says again what has been heard
    feature = str(data.get("task_action", "")).removeprefix(f"{COLLECTION}.")
    feature = feature if feature in FEATURES else ""
    try:
        return _heard(str(kind), host, feature, data.get("res") or {})
    except Exception as error:
        why = str(error) if isinstance(error, ValueError) else blame(error)
        return Said(host, feature, problem=f"{UNREADABLE}: {_one_line(why)}")


def _heard(kind: str, host: str, feature: str, result: Any) -> Said | None:
    if not isinstance(result, Mapping):
        raise SchemaError(f"{shown(result)} is no mapping")
    group = str(result.get("add_group") or "")
    if kind == "runner_on_ok" and group.startswith(FAILED):
        return Said(host, group.removeprefix(FAILED), ended=True)
    if kind == "runner_on_unreachable":
        # Ansible repeats what ssh printed, in which the node's own words are: they are shown as such.
        words = f"Ansible did not reach it, and says {_one_line(result.get('msg'))!r}"
        return Said(host, feature, problem=words, unreachable=True)
    if kind == "runner_on_failed" and not (feature and "steps" in result):
        return Said(host, feature, problem=_why(result) or "failed without a word")
    if not feature or (result.get("todo") and not result.get("steps")):
        return None  # a plan whose work is still to be done says nothing yet
    return Said(host, feature, _steps(result))


def _steps(result: Mapping[str, Any]) -> tuple[StepResult, ...]:
    """The steps of a result.

    Raises:
        ValueError: they are not as a module of this gpufab writes them.
    """
    found = parse_json(json.dumps(result.get("steps", [])))  # without what no report could hold
    if not isinstance(found, list):
        raise SchemaError(f"steps: {shown(found)} is no list")
    return tuple(_step(item) for item in found)


def _step(data: Any) -> StepResult:
    if not isinstance(data, dict):
        raise SchemaError(f"{shown(data)} is no step")
    head = {name: data[name] for name in ("feature", "status", "reason") if name in data}
    step = {name: item for name, item in data.items() if name not in head}
    result: StepResult = decode(StepResult, {**head, "step": step})
    strange = next((change.code for change in result.step.changes if change.code not in catalogue()), None)
    if strange is not None or result.feature not in FEATURES:
        raise SchemaError(f"{shown(result.feature if strange is None else strange)} is not known here")
    return result


_DPKG = re.compile(r"^(?:.*\n)?dpkg: error processing .*\n.*$", re.MULTILINE)


def _why(result: Mapping[str, Any]) -> str:
    """What went wrong, in a loop with its first item that failed. Of a package that fails dpkg tells more than the
    command line that Ansible puts first.
    """
    items = (item for item in result.get("results") or () if isinstance(item, Mapping) and item.get("failed"))
    failed = next(items, result)
    found = _DPKG.search(str(failed.get("stdout") or ""))
    return _one_line(found[0] if found else _told(failed))


def _told(failed: Mapping[str, Any]) -> object:
    """What a task says itself. Of a command's failure, and of a module's crash before ansible-core 2.19, Ansible's own
    words are but that there was one.
    """
    words = _one_line(failed.get("msg"))
    if words == "non-zero return code":
        output = Output(failed.get("rc", 1), str(failed.get("stdout") or ""), str(failed.get("stderr") or ""))
        program = next(iter(failed.get("cmd") or ()), "command")
        return f"{program}: {said(output)}"
    if words.startswith("MODULE FAILURE"):
        lines = str(failed.get("module_stderr") or failed.get("module_stdout") or "").split("\n")
        return next((line for line in reversed(lines) if line.strip()), words)
    return words


def _one_line(text: object) -> str:
    words = " ".join(str(text or "").split())
    for prefix in _PREFIXES:
        words = words.removeprefix(prefix)
    return words


def _error(output: str) -> str:
    """The line of Ansible's output that says what went wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    found = [line for line in lines if line.startswith(("ERROR!", "[ERROR]:"))] or lines[-1:]
    return found[0].removeprefix("ERROR!").removeprefix("[ERROR]:").strip() if found else "failed without a word"
