"""What OpenSSH's own configuration says about the way to a host, and whether paramiko can go it.

``ssh -G`` is asked rather than parsing ssh_config a second time: Include, Match, tokens and canonical names come out as
they do for Ansible, which runs the same program. It is asked once about all hosts that it cannot tell apart
(:mod:`.ssh_config_groups`). An option that differs from the program's defaults and that nobody here has thought about
sends the host to the ssh program, never to a guess.
"""

import functools
import subprocess
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path

from gpufab_cli.reach.ssh_config_groups import Configuration, Kind
from gpufab_cli.reach.target import Target

Options = Mapping[str, tuple[str, ...]]

SSH_PORT = 22

# fmt: off
_HONOURED = frozenset({
    "host", "hostname", "port", "user", "identityfile", "identitiesonly", "hostkeyalias", "connecttimeout",
    "userknownhostsfile", "globalknownhostsfile",
})
"""What :mod:`.connections` does as ssh does."""

# In this order: what is stricter here than any site can say; what is about connections that stay open and what is sent
# or shown besides; ways to authenticate that paramiko lacks: it is then refused, and the ssh program has the last word.
_WITHOUT_EFFECT = frozenset({
    "stricthostkeychecking", "batchmode", "passwordauthentication", "kbdinteractiveauthentication",
    "numberofpasswordprompts", "requesttty", "updatehostkeys", "hashknownhosts", "visualhostkey", "checkhostip",
    "controlmaster", "controlpath", "controlpersist", "serveraliveinterval", "serveralivecountmax",
    "tcpkeepalive", "sendenv", "loglevel", "compression", "addkeystoagent", "forwardagent", "forwardx11",
    "forwardx11trusted", "connectionattempts", "ipqos", "escapechar", "xauthlocation", "fingerprinthash",
    "gssapiauthentication", "gssapidelegatecredentials", "preferredauthentications",
})
# fmt: on


class WayError(Exception):
    """OpenSSH's configuration cannot be evaluated; the message is its own."""


@dataclass(frozen=True)
class Way:
    """How to reach a host.

    Attributes:
        alias: the name its host key is known by, where that is not its address.
        identities: existing private key files.
        agent: whether keys of an SSH agent may be offered.
        known_hosts: existing files of host keys.
        connect_seconds: ``ConnectTimeout``, if the site sets one.
        jump: the jump host or proxy on the way, as ssh_config names it; "" for none.
        paramiko: whether paramiko can go it; else why not, in ``reason``.
    """

    address: str
    port: int
    user: str
    alias: str
    identities: tuple[Path, ...]
    agent: bool
    known_hosts: tuple[Path, ...]
    connect_seconds: float | None
    reason: str = ""
    jump: str = ""

    @property
    def key_name(self) -> str:
        """What known_hosts has its key by."""
        return self.alias or (self.address if self.port == SSH_PORT else f"[{self.address}]:{self.port}")

    @property
    def paramiko(self) -> bool:
        """Whether nothing on this way needs the ssh program."""
        return not self.reason


class Ways:
    """The ways to the hosts of a run."""

    def __init__(self) -> None:
        self._configurations: dict[Path | None, Configuration] = {}
        self._found: dict[_Question, Future[Way | None]] = {}
        self._lock = threading.Lock()

    def find(self, target: Target, seconds: float) -> Way:
        """The way to a target.

        Raises:
            WayError: the configuration is wrong, or asking took longer than ``seconds``.
        """
        kind = self._configuration(target, seconds).kind(target.address)
        return _ask(target, seconds) if kind is None else self._of_kind(kind, target, seconds)

    def _configuration(self, target: Target, seconds: float) -> Configuration:
        if not self._lock.acquire(timeout=max(seconds, 0)):
            raise _late(seconds)
        try:
            if target.ssh_config not in self._configurations:
                read = Configuration.read_by(_run(("-v", *_words(target)), seconds).stderr)
                self._configurations[target.ssh_config] = read
            return self._configurations[target.ssh_config]
        finally:
            self._lock.release()

    def _of_kind(self, kind: Kind, target: Target, seconds: float) -> Way:
        address = kind.address or target.address
        question = (replace(kind, address=""), target.ssh_config, target.port, target.user)
        with self._lock:
            first = question not in self._found
            found = self._found.setdefault(question, Future())
        if first:
            return self._first(question, address, target, seconds)
        try:
            way = found.result(seconds)
        except TimeoutError as error:
            raise _late(seconds) from error
        return replace(way, address=address) if way is not None else _ask(target, seconds)

    def _first(self, question: "_Question", address: str, target: Target, seconds: float) -> Way:
        """Ask for all hosts of a kind. None is told to the others where ssh has read the configuration otherwise."""
        found = self._found[question]
        try:
            way = _ask(target, seconds)
        except BaseException as error:
            del self._found[question]
            found.set_exception(error)
            raise
        found.set_result(way if way.address == address else None)
        return way


_Question = tuple[Kind, Path | None, int | None, str | None]


def arguments(target: Target) -> tuple[str, ...]:
    """What the ssh program is told about the target besides its configuration: what fabric.yml says itself."""
    port = ("-p", str(target.port)) if target.port is not None else ()
    user = ("-l", target.user) if target.user is not None else ()
    return (*port, *user, "--", target.address)


def _words(target: Target) -> tuple[str, ...]:
    return (*(("-F", str(target.ssh_config)) if target.ssh_config else ()), *arguments(target))


def _ask(target: Target, seconds: float) -> Way:
    """The way as ssh tells it about this host."""
    options = _options(_run(_words(target), seconds).stdout)
    known = _paths(options, "userknownhostsfile", "globalknownhostsfile")
    return Way(
        address=_one(options, "hostname", target.address),
        port=int(_one(options, "port", str(SSH_PORT))),
        user=_one(options, "user", ""),
        alias=_one(options, "hostkeyalias", ""),
        identities=_paths(options, "identityfile"),
        agent=_one(options, "identitiesonly", "no") == "no",
        known_hosts=known,
        connect_seconds=_seconds(_one(options, "connecttimeout", "none")),
        reason=_needs_program(options, known),
        jump=_proxy(options, "proxyjump") or _proxy(options, "proxycommand"),
    )


def _run(words: tuple[str, ...], seconds: float) -> "subprocess.CompletedProcess[str]":
    try:
        done = subprocess.run(
            ["ssh", "-G", *words], capture_output=True, text=True, timeout=max(seconds, 0.1), check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _late(seconds) from error
    except OSError as error:
        raise WayError(f"the ssh program cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        raise WayError((done.stderr.strip().splitlines() or [f"ssh -G: exit {done.returncode}"])[-1])
    return done


def _late(seconds: float) -> WayError:
    return WayError(f"ssh -G did not answer within {seconds:.0f} s")


def _options(said: str) -> Options:
    options: dict[str, tuple[str, ...]] = {}
    for line in said.splitlines():
        name, _, value = line.partition(" ")
        options[name] = (*options.get(name, ()), value)
    return options


@functools.cache
def _defaults() -> Options:
    return _options(_run(("-F", "none", "--", "localhost"), 10).stdout)


def _proxy(options: Options, name: str) -> str:
    value = _one(options, name, "")
    return "" if value == "none" else value


def _needs_program(options: Options, known_hosts: tuple[Path, ...]) -> str:
    odd = [n for n, v in options.items() if n not in _HONOURED | _WITHOUT_EFFECT and v != _defaults().get(n)]
    if odd:
        return f"ssh_config sets {', '.join(sorted(odd))}"
    # Tokens that ssh expands only when it connects.
    if any("%" in value for name in ("identityfile", "userknownhostsfile") for value in options.get(name, ())):
        return "ssh_config uses % tokens"
    if any(_has_marks(path, path.stat().st_mtime_ns) for path in known_hosts):
        return "known_hosts has @cert-authority or @revoked lines"
    return ""


@functools.lru_cache(maxsize=16)
def _has_marks(path: Path, _mtime: int) -> bool:
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return any(line.startswith("@") for line in lines)


def _one(options: Options, name: str, default: str) -> str:
    return options[name][0] if name in options else default


def _paths(options: Options, *names: str) -> tuple[Path, ...]:
    """The existing files of an option; ``identityfile`` has one a line, the others several on one."""
    values = [value for name in names for value in options.get(name, ())]
    words = values if names == ("identityfile",) else [word for value in values for word in value.split()]
    paths = [Path(word.strip('"')).expanduser() for word in words]
    return tuple(path for path in paths if path.is_file())


def _seconds(value: str) -> float | None:
    return float(value) if value.isdigit() else None
