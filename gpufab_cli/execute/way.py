"""What OpenSSH's own configuration says about the way to a host, and whether paramiko can go it.

``ssh -G`` is asked rather than parsing ssh_config a second time: Include, Match, tokens and canonical names come out as
they do for Ansible, which runs the same program. An option that differs from the program's defaults and that nobody
here has thought about sends the host to the ssh program, never to a guess.
"""

import functools
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.execute.target import Target

Options = Mapping[str, tuple[str, ...]]

# fmt: off
_HONOURED = frozenset({
    "host", "hostname", "port", "user", "identityfile", "identitiesonly", "hostkeyalias", "connecttimeout",
    "userknownhostsfile", "globalknownhostsfile",
})
"""What :mod:`.connect` does as ssh does."""

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
        key_name: the name its host key is known by.
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
    key_name: str
    identities: tuple[Path, ...]
    agent: bool
    known_hosts: tuple[Path, ...]
    connect_seconds: float | None
    reason: str = ""
    jump: str = ""

    @property
    def paramiko(self) -> bool:
        """Whether nothing on this way needs the ssh program."""
        return not self.reason


def find_way(target: Target, seconds: float) -> Way:
    """The way to a target.

    Raises:
        WayError: the configuration is wrong, or asking took longer than ``seconds``.
    """
    options = _ask(("-F", str(target.ssh_config)) if target.ssh_config else (), arguments(target), seconds)
    known = _paths(options, "userknownhostsfile", "globalknownhostsfile")
    port = int(_one(options, "port", "22"))
    hostname = _one(options, "hostname", target.address)
    return Way(
        address=hostname,
        port=port,
        user=_one(options, "user", ""),
        key_name=_one(options, "hostkeyalias", _bracketed(hostname, port)),
        identities=_paths(options, "identityfile"),
        agent=_one(options, "identitiesonly", "no") == "no",
        known_hosts=known,
        connect_seconds=_seconds(_one(options, "connecttimeout", "none")),
        reason=_needs_program(options, known),
        jump=_proxy(options, "proxyjump") or _proxy(options, "proxycommand"),
    )


def arguments(target: Target) -> tuple[str, ...]:
    """What the ssh program is told about the target besides its configuration: what fabric.yml says itself."""
    port = ("-p", str(target.port)) if target.port is not None else ()
    user = ("-l", target.user) if target.user is not None else ()
    return (*port, *user, "--", target.address)


def _ask(config: tuple[str, ...], words: tuple[str, ...], seconds: float) -> Options:
    try:
        done = subprocess.run(
            ["ssh", "-G", *config, *words], capture_output=True, text=True, timeout=max(seconds, 0.1), check=False
        )
    except subprocess.TimeoutExpired as error:
        raise WayError(f"ssh -G did not answer within {seconds:.0f} s") from error
    except OSError as error:
        raise WayError(f"the ssh program cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        raise WayError((done.stderr.strip().splitlines() or [f"ssh -G: exit {done.returncode}"])[-1])
    options: dict[str, tuple[str, ...]] = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition(" ")
        options[name] = (*options.get(name, ()), value)
    return options


@functools.cache
def _defaults() -> Options:
    return _ask(("-F", "none"), ("--", "localhost"), 10)


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
    if any(line.startswith("@") for path in known_hosts for line in _lines(path, path.stat().st_mtime_ns)):
        return "known_hosts has @cert-authority or @revoked lines"
    return ""


@functools.lru_cache(maxsize=16)
def _lines(path: Path, _mtime: int) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())


def _one(options: Options, name: str, default: str) -> str:
    return options[name][0] if name in options else default


def _paths(options: Options, *names: str) -> tuple[Path, ...]:
    """The existing files of an option; ``identityfile`` has one a line, the others several on one."""
    values = [value for name in names for value in options.get(name, ())]
    words = values if names == ("identityfile",) else [word for value in values for word in value.split()]
    paths = [Path(word.strip('"')).expanduser() for word in words]
    return tuple(path for path in paths if path.is_file())


def _bracketed(hostname: str, port: int) -> str:
    return hostname if port == 22 else f"[{hostname}]:{port}"  # noqa: PLR2004


def _seconds(value: str) -> float | None:
    return float(value) if value.isdigit() else None
