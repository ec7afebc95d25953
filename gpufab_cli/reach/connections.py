"""Run one command on one host, within one limit of wall time and of output. Host keys are always checked.

paramiko does it in this process, at a tenth of the cost of an ssh process. Where the site's configuration needs more
than paramiko has, and wherever paramiko is refused (a host key, an authentication, a negotiation), the ssh program with
the same configuration has the last word: it is what Ansible uses, so both reach the same hosts.
"""

import contextlib
import logging
import os
import random
import re
import selectors
import shlex
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any

from gpufab_cli.reach.jump_limit import Handshakes
from gpufab_cli.reach.known_hosts import KnownHosts
from gpufab_cli.reach.paramiko_import import paramiko
from gpufab_cli.reach.result import OUTPUT_BYTES, LostError, OverdueError, Result, UnreachableError
from gpufab_cli.reach.ssh_config import Way, WayError, Ways, arguments
from gpufab_cli.reach.target import Target

SSH_FAILED = 255
"""What the ssh program exits with when it is its own failure (ssh(1), EXIT STATUS)."""

RETRY_SECONDS = (0.5, 2.0)
"""After so long, at random, a connection that was lost is tried once more: not all of them at the same moment."""

NO_STATUS = -1
"""What paramiko gives for the exit status of a command that ended without one."""

_CHUNK = 65536
_QUOTED = 160

# Whole lines of OpenSSH's own log, and such as begin or end so. It is apart from stderr, on which the node and each
# program on the way print, and ssh escapes in it whatever it quotes of them: nobody else can begin a line there.
_CHANGED = re.compile(r"@ +WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! +@")
_UNVERIFIED = re.compile(r"Host key verification failed\.")
_DENIED = re.compile(r"\S+@\S+: Permission denied \([a-z,-]*\)\.")
_CHANCE = re.compile(  # a connection that fails or ends before login
    r"(kex_exchange_identification|banner exchange|Connection (reset|closed) by ).*"
    r"|ssh: .*: (Connection refused|Connection timed out|No route to host|Temporary failure in name resolution)"
)

# What paramiko's threads have to say about a connection that broke would land on the operator's terminal.
logging.getLogger("paramiko").setLevel(logging.CRITICAL)


class Clock:
    """A limit of wall time that all phases share."""

    def __init__(self, seconds: float) -> None:
        self._end, self.limit = time.monotonic() + seconds, seconds

    def put_off(self, seconds: float) -> None:
        """Time that passed without anything to do with the host."""
        self._end += seconds

    def left(self, phase: str) -> float:
        """The seconds that are left.

        Raises:
            OverdueError: none.
        """
        left = self._end - time.monotonic()
        if left <= 0:
            raise OverdueError(f"no answer within {self.limit:g} s ({phase})")
        return left


class Ssh:
    """Runs commands over SSH; keeps what is the same for all hosts of a run."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], KnownHosts] = {}
        self._lock = threading.Lock()
        self._ways = Ways()
        self._handshakes = Handshakes()

    def exec(self, target: Target, argv: Sequence[str], stdin: bytes, seconds: float) -> Result:
        """Run a command on a host and give it ``stdin``.

        Raises:
            UnreachableError: there is no way to the host.
            OverdueError: all of it together, connecting included, took longer than ``seconds``.
        """
        clock = Clock(seconds)
        try:
            way = self._ways.find(target, clock.left("reading ssh_config"))
        except WayError as error:
            raise UnreachableError(str(error), "check connection in fabric.yml and its ssh_config") from error
        try:
            return self._exec(target, way, argv, stdin, clock, last=False)
        except LostError:
            pause = random.uniform(*RETRY_SECONDS)  # noqa: S311 (nothing secret)
            if clock.left("connecting") <= pause:
                raise
            time.sleep(pause)
            return self._exec(target, way, argv, stdin, clock, last=True)

    def _exec(self, target: Target, way: Way, argv: Sequence[str], stdin: bytes, clock: Clock, *, last: bool) -> Result:
        if way.paramiko:
            with _connected(way, clock) as connection:
                client = self._login(way, connection, clock, last=last)
                if client is not None:
                    with client:
                        return _run(client, argv, stdin, clock)
        with self._handshakes.through(way.jump, clock.put_off) as connected:
            return _program(target, argv, stdin, clock, connected)

    def _login(self, way: Way, connection: socket.socket, clock: Clock, *, last: bool) -> paramiko.SSHClient | None:
        """A client that is logged in; None when it was refused, or lost for the last time: ssh has the last word."""
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        self._add_known_hosts(client, way)
        left = clock.left("login")
        try:
            client.connect(
                way.key_name,  # with a socket given, it serves to find the host key alone
                sock=connection,
                username=way.user,
                key_filename=[str(path) for path in way.identities],  # type: ignore[arg-type] # the stubs lack the list
                allow_agent=way.agent,
                look_for_keys=False,
                timeout=left,
                banner_timeout=left,
                auth_timeout=left,
                transport_factory=_transport,
            )
        except (paramiko.SSHException, OSError, EOFError, ValueError) as error:
            client.close()
            clock.left("login")
            if not last and _is_chance(error):
                raise LostError(f"the connection broke: {error or type(error).__name__}") from error
            return None
        return client

    def _add_known_hosts(self, client: paramiko.SSHClient, way: Way) -> None:
        names = tuple(str(path) for path in way.known_hosts)
        with self._lock:
            if names not in self._known:
                self._known[names] = KnownHosts(names)
            known = self._known[names].keys(way.key_name)
        for key in known:
            client.get_host_keys().add(way.key_name, key.get_name(), key)


def _transport(*arguments: Any, **options: Any) -> paramiko.Transport:
    """A transport that prefers AES-GCM, as OpenSSH 10 does: paramiko compares all other MACs byte by byte in Python."""
    transport = paramiko.Transport(*arguments, **options)
    security = transport.get_security_options()
    security.ciphers = tuple(sorted(security.ciphers, key=lambda cipher: "-gcm@" not in cipher))
    return transport


def _is_chance(error: Exception) -> bool:
    """Whether a login broke off before anything was decided. paramiko has no type of its own for a missing banner."""
    banner = isinstance(error, paramiko.SSHException) and str(error).startswith("Error reading SSH protocol banner")
    return banner or isinstance(error, (EOFError, ConnectionError))


@contextlib.contextmanager
def _connected(way: Way, clock: Clock) -> Iterator[socket.socket]:
    connection = _connect(way, clock)
    try:
        yield connection
    finally:
        connection.close()


def _connect(way: Way, clock: Clock) -> socket.socket:
    """A TCP connection to the first address that takes one."""
    errors: list[str] = []
    for family, kind, protocol, _, address in _resolve(way, clock):
        connection = socket.socket(family, kind, protocol)
        connection.settimeout(min(clock.left("connecting"), way.connect_seconds or clock.limit))
        try:
            connection.connect(address)
        except OSError as error:
            connection.close()
            clock.left("connecting")
            errors.append(f"{address[0]} port {address[1]}: {error.strerror or error}")
        else:
            return connection
    raise LostError("; ".join(errors))


def _resolve(
    way: Way, clock: Clock
) -> "list[tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int]]]":
    """The addresses of a name. The resolver knows no time limit, so it is waited for and, at worst, left behind."""
    found: list[object] = []

    def ask() -> None:
        try:
            found.append(socket.getaddrinfo(way.address, way.port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(clock.left("resolving its name"))
    if not found:
        clock.left("resolving its name")
        raise OverdueError(f"no answer within {clock.limit:g} s (resolving its name)")
    if isinstance(found[0], OSError):
        if found[0].errno == socket.EAI_AGAIN:
            raise LostError(f"{way.address}: {found[0].strerror}")
        raise UnreachableError(f"{way.address}: {found[0].strerror}", "check address in fabric.yml")
    return found[0]  # type: ignore[return-value]


def _run(client: paramiko.SSHClient, argv: Sequence[str], stdin: bytes, clock: Clock) -> Result:
    """Run a command over a client. All of stdin fits the receiver's window, so sending it cannot block for long."""
    transport = client.get_transport()
    if transport is None:
        raise UnreachableError("the connection was closed")
    try:
        channel = transport.open_session(timeout=clock.left("opening a session"))
        channel.settimeout(clock.left("starting the command"))
        channel.exec_command(shlex.join(argv))
        with contextlib.suppress(OSError):  # a command that ended unread has still said something, and tells its status
            channel.sendall(stdin)
            channel.shutdown_write()
        return _read(channel, clock)
    except TimeoutError as error:
        raise OverdueError(f"no answer within {clock.limit:g} s (waiting for its output)") from error
    except (paramiko.SSHException, OSError, EOFError) as error:
        clock.left("waiting for its output")
        raise UnreachableError(f"the connection broke: {error or type(error).__name__}") from error


def _read(channel: paramiko.Channel, clock: Clock) -> Result:
    stdout = bytearray()
    while len(stdout) <= OUTPUT_BYTES:
        channel.settimeout(clock.left("waiting for its output"))
        chunk = channel.recv(_CHUNK)
        if not chunk:
            break
        stdout += chunk
    else:
        return Result(-1, bytes(stdout[:OUTPUT_BYTES]), b"", cut=True)
    stderr = b""
    while channel.recv_stderr_ready():
        stderr += channel.recv_stderr(_CHUNK)
    if not channel.status_event.wait(clock.left("waiting for its end")):
        raise OverdueError(f"no answer within {clock.limit:g} s (waiting for its end)")
    status = channel.recv_exit_status()
    if status == NO_STATUS and not channel.get_transport().is_active():
        raise UnreachableError("the connection broke in the middle of its output")
    return Result(status, bytes(stdout), stderr)


def ssh_argv(target: Target, argv: Sequence[str], seconds: float, log: str = "") -> list[str]:
    """The command line of the ssh program: never a prompt, never an unknown host key, no master left behind.

    Args:
        log: a file for its errors, which then are not on stderr between what the host prints there.
    """
    config = ("-F", str(target.ssh_config)) if target.ssh_config else ()
    logged = ("-E", log, "-o", "LogLevel=ERROR") if log else ()
    options = (
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        "ControlMaster=no",
        f"ConnectTimeout={max(1, int(seconds))}",
    )
    return [
        *("ssh", "-T", *config, *logged),
        *(word for option in options for word in ("-o", option)),
        *arguments(target),
        shlex.join(argv),
    ]


def _program(target: Target, argv: Sequence[str], stdin: bytes, clock: Clock, connected: Callable[[], None]) -> Result:
    """Run the ssh program; ``connected`` is called when the host has said something."""
    left = clock.left("starting ssh")
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors, tempfile.NamedTemporaryFile() as log:
        given.write(stdin)
        given.seek(0)
        command = ssh_argv(target, argv, left, log.name)
        process = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
        try:
            stdout, cut = _read_program(process, clock, connected)
        finally:
            _end(process)
        errors.seek(0)
        stderr, told = errors.read(_CHUNK), log.read(_CHUNK)
    if process.returncode == SSH_FAILED:
        raise _refused(_lines(told), _lines(stderr))
    return Result(process.returncode, stdout, stderr, cut)


def _read_program(
    process: "subprocess.Popen[bytes]", clock: Clock, connected: Callable[[], None]
) -> tuple[bytes, bool]:
    """What ssh prints until it ends, and whether that was too much."""
    stream: IO[bytes] | None = process.stdout
    if stream is None:
        return b"", False
    stdout = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while len(stdout) <= OUTPUT_BYTES:
            if not selector.select(clock.left("waiting for ssh")):
                continue
            chunk = os.read(stream.fileno(), _CHUNK)
            connected()
            if not chunk:
                _wait(process, clock)
                return bytes(stdout), False
            stdout += chunk
    return bytes(stdout[:OUTPUT_BYTES]), True


def _wait(process: "subprocess.Popen[bytes]", clock: Clock) -> None:
    try:
        process.wait(clock.left("waiting for ssh"))
    except subprocess.TimeoutExpired as error:
        raise OverdueError(f"no answer within {clock.limit:g} s (waiting for ssh)") from error


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Leave no ssh process behind, nor the ProxyCommand it has started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _lines(said: bytes) -> list[str]:
    return [line.strip() for line in said.decode("utf-8", "replace").splitlines() if line.strip()]


def _refused(log: Sequence[str], stderr: Sequence[str]) -> UnreachableError:
    """Why ssh gave up, by its own log, with a hint for what only the operator can mend.

    What others may have printed, on stderr, is quoted and nothing is concluded from it. With an empty log the status
    may be that of the command itself.
    """
    quoted = f"{stderr[-1][:_QUOTED]!r}" if stderr else "nothing"
    if not log:
        return UnreachableError(f"ended with status {SSH_FAILED} and said {quoted}")
    if any(_CHANGED.fullmatch(line) for line in log):
        return UnreachableError(
            "host key has changed", "if the node was installed anew, replace its line in known_hosts"
        )
    if any(_UNVERIFIED.fullmatch(line) for line in log):
        return UnreachableError("host key is not known", "add the node's key to the known_hosts file of ssh_config")
    if _DENIED.fullmatch(log[-1]):
        return UnreachableError(log[-1], "check user and key in fabric.yml and its ssh_config")
    words = log[-1] + (f"; somebody on the way said {quoted}" if stderr else "")
    return LostError(words) if any(_CHANCE.fullmatch(line) for line in log) else UnreachableError(words)
