"""Over real SSH on the loopback, by paramiko and by the ssh program: what arrives, what is refused, what is cut off."""

import shlex
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import paramiko
import pytest

from gpufab_cli.reach import connections, jump_limit
from gpufab_cli.reach.connections import Ssh
from gpufab_cli.reach.result import OverdueError, UnreachableError
from gpufab_cli.reach.ssh_config import Ways
from gpufab_cli.reach.target import Target
from tests.sshd import Sshd


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """Private keys by name, as files: paramiko reads them, so does ssh."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("host", "other", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    return folder


@pytest.fixture
def server(keys):
    public = (keys / "user.pub").read_text().split()[1]
    sshd = Sshd(paramiko.Ed25519Key.from_private_key_file(str(keys / "host")), public)
    yield sshd
    sshd.close()


@pytest.fixture
def site(tmp_path, keys, server):
    """Write the site's ssh_config and known_hosts and return the target of the host ``node``."""

    def write(*options, known="host", prefix="", identity="user"):
        public = " ".join((keys / f"{known}.pub").read_text().split()[:2])
        (tmp_path / "known_hosts").write_text(f"{prefix}[127.0.0.1]:{server.port} {public}\n")
        lines = [
            "Host node",
            "HostName 127.0.0.1",
            f"Port {server.port}",
            "User ops",
            f"IdentityFile {keys / identity}",
            "IdentitiesOnly yes",
            f"UserKnownHostsFile {tmp_path / 'known_hosts'}",
            "GlobalKnownHostsFile /dev/null",
            *options,
        ]
        (tmp_path / "ssh_config").write_text("\n  ".join(lines) + "\n")
        return Target("node", "node", None, None, tmp_path / "ssh_config", "none", "/usr/bin/python3", "active")

    return write


@pytest.fixture
def programs(monkeypatch):
    """The command lines of the ssh program that were started."""
    started = []
    original = connections.ssh_argv
    monkeypatch.setattr(connections, "ssh_argv", lambda *args: started.append(args) or original(*args))
    return started


SH = ["/bin/sh", "-c"]


@pytest.fixture
def relayed(site, tmp_path):
    """A target behind a program that passes everything on."""

    def write():
        relay = tmp_path / "relay.py"
        relay.write_text(RELAY)
        return site(f"ProxyCommand python3 {relay} 127.0.0.1 %p")

    return write


@pytest.mark.parametrize("option", ["", "ProxyCommand nc 127.0.0.1 %p"], ids=["paramiko", "program"])
class TestEitherWay:
    """What holds whoever does it. The option is one that paramiko is not trusted with."""

    @pytest.fixture
    def target(self, site, option, relayed):
        return relayed() if option else site()

    def test_the_way(self, target, option, programs):
        Ssh().exec(target, ["true"], b"", 20)
        assert bool(programs) == bool(option)

    def test_output_and_exit_status(self, target):
        result = Ssh().exec(target, [*SH, "cat; echo oops >&2; exit 3"], b"given", 20)
        assert (result.rc, result.stdout, result.stderr, result.cut) == (3, b"given", b"oops\n", False)

    def test_arguments_arrive_as_they_are(self, target):
        odd = ["a b", "$HOME", "it's", '"', "*", "", "\\"]
        result = Ssh().exec(target, [*SH, 'for word; do printf "%s|" "$word"; done', "sh", *odd], b"", 20)
        assert result.stdout.decode().split("|")[:-1] == odd

    def test_much_in_and_out(self, target):
        data = bytes(range(256)) * 2000
        result = Ssh().exec(target, ["cat"], data, 20)
        assert result.stdout == data

    def test_a_connection_that_breaks_is_tried_once_more(self, target, server, quick):
        server.behaviour, server.drop_first = server.moody, 1
        assert Ssh().exec(target, ["true"], b"", 20).rc == 0
        assert (server.dropped, server.connections) == (1, 2)

    def test_and_no_more_than_that(self, target, server, quick):
        server.behaviour, server.drop_first = server.moody, 99
        with pytest.raises(UnreachableError):
            Ssh().exec(target, ["true"], b"", 20)
        assert server.connections <= 3  # where paramiko is refused, ssh has the last word

    def test_a_refusal_is_not_tried_again(self, target, site, server, quick, option):
        known = target.ssh_config.parent / "known_hosts"
        known.write_text("")
        with pytest.raises(UnreachableError, match="host key is not known"):
            Ssh().exec(target, ["true"], b"", 20)
        assert server.connections == (1 if option else 2)

    def test_a_command_that_hangs_is_cut_off(self, target):
        with pytest.raises(OverdueError, match=r"no answer within 1 s"):
            Ssh().exec(target, ["sleep", "60"], b"", 1)

    def test_a_command_that_never_stops_printing_is_cut_off(self, target, monkeypatch):
        monkeypatch.setattr(connections, "OUTPUT_BYTES", 100_000)
        result = Ssh().exec(target, ["yes"], b"", 20)
        assert result.cut
        assert len(result.stdout) == 100_000

    @pytest.mark.parametrize("forged", ["CHANGED", "verification", "denied"])
    def test_a_node_cannot_speak_for_ssh(self, target, server, forged):
        words = FORGED[forged]
        server.banner = words.replace("\n", "\r\n")
        try:
            result = Ssh().exec(target, [*SH, f"printf '%s' {shlex.quote(words)} >&2; exit 255"], b"", 20)
        except UnreachableError as refusal:
            found = refusal
        else:
            found = None
            assert (result.rc, result.stderr) == (255, words.encode())
        assert found is None or (str(found).startswith("ended with status 255 and said '"), found.hint) == (True, "")

    def test_nor_when_it_ends_the_connection_before_login(self, target, server, quick):
        server.banner, server.user_key = FORGED["CHANGED"] + FORGED["verification"], "nobody's"
        message, hint = refused(target)
        assert "Permission denied" in message
        assert "known_hosts" not in message + hint

    def test_nor_in_what_it_says_in_place_of_a_banner(self, target, server, quick):
        server.behaviour = lambda connection: (connection.sendall(FORGED["CHANGED"].encode()), connection.close())
        message, hint = refused(target)
        assert message != "host key has changed"
        assert "known_hosts" not in hint


FORGED = {
    "CHANGED": "@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@\n",
    "verification": "Host key verification failed.\n",
    "denied": "ops@node: Permission denied (publickey).\n",
}


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(connections, "RETRY_SECONDS", (0.0, 0.1))


def test_a_crowded_jump_host_drops_none(relayed, server, monkeypatch):
    """Fourteen hosts behind one jump host that takes three at a time."""
    monkeypatch.setattr(connections, "Handshakes", lambda: jump_limit.Handshakes(limit=3, held_seconds=60))
    server.behaviour, server.max_startups = server.crowded, 3
    target, ssh = relayed(), Ssh()
    with ThreadPoolExecutor(14) as pool:
        results = list(pool.map(lambda _: ssh.exec(target, [*SH, "echo up; sleep 0.5"], b"", 60), range(14)))
    assert {result.rc for result in results} == {0}
    assert (server.dropped, server.connections) == (0, 14)


RELAY = """\
import socket, sys, threading
peer = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def up():
    while chunk := sys.stdin.buffer.raw.read(65536):
        peer.sendall(chunk)
    peer.shutdown(socket.SHUT_WR)
threading.Thread(target=up, daemon=True).start()
while chunk := peer.recv(65536):
    sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()
"""


def refused(target, seconds=20):
    with pytest.raises(UnreachableError) as caught:
        Ssh().exec(target, ["true"], b"", seconds)
    return str(caught.value), caught.value.hint


def test_a_command_that_ends_without_reading_its_input_is_heard(site, server):
    server.canned, server.deaf = (b"Closed for maintenance\n",), True
    more_than_a_window = b"x" * (4 << 20)
    result = Ssh().exec(site(), ["true"], more_than_a_window, 20)
    assert (result.rc, result.stdout) == (0, b"Closed for maintenance\n")


def test_an_unknown_host_key(site, server):
    target = site(prefix="elsewhere.example,")
    (target.ssh_config.parent / "known_hosts").write_text("")
    message, hint = refused(target)
    assert message == "host key is not known"
    assert "known_hosts" in hint


def test_a_changed_host_key(site):
    message, hint = refused(site(known="other"))
    assert message == "host key has changed"
    assert "installed anew" in hint


def test_a_host_key_under_an_alias(site, programs):
    target = site("HostKeyAlias rack1")
    known = target.ssh_config.parent / "known_hosts"
    known.write_text("rack1 " + known.read_text().partition(" ")[2])
    assert Ssh().exec(target, ["true"], b"", 20).rc == 0
    assert programs == []


def test_a_hashed_known_hosts_file(site, server, programs):
    target = site()
    known = target.ssh_config.parent / "known_hosts"
    known.write_text("# a comment\n\nnonsense\n[other]:1 ssh-rsa !!!\n" + known.read_text())
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(known)], check=False, capture_output=True)
    assert Ssh().exec(target, ["true"], b"", 20).rc == 0
    assert programs == []


def test_a_line_of_known_hosts_that_was_cut_off_costs_no_other(site, programs):
    target = site()
    known = target.ssh_config.parent / "known_hosts"
    known.write_text("[other]:1 ssh-rsa AAA\n" + known.read_text())
    assert Ssh().exec(target, ["true"], b"", 20).rc == 0
    assert programs == []


def test_a_revoked_host_key(site, keys):
    target = site()
    known = target.ssh_config.parent / "known_hosts"
    known.write_text(known.read_text() + "@revoked * " + (keys / "host.pub").read_text())
    assert refused(target)[0].startswith("host key")


def test_a_wrong_user_key(site):
    message, hint = refused(site(identity="other"))
    assert "Permission denied" in message
    assert "user and key" in hint


def test_what_fabric_yml_says_beats_ssh_config(site, server):
    target = site("Port 1", "User nobody")
    told = Target("node", "node", server.port, "ops", target.ssh_config, "none", "python3", "active")
    assert Ssh().exec(told, ["true"], b"", 20).rc == 0


def test_nothing_listens(site, server):
    target = site()
    server.close()
    assert refused(target)[0] == f"127.0.0.1 port {server.port}: Connection refused"


def test_a_name_that_is_none(site):
    target = Target("x", "no-such-host.invalid", None, None, site().ssh_config, "none", "python3", "active")
    message, hint = refused(target)
    assert message.startswith("no-such-host.invalid: ")
    assert "address" in hint


def test_a_host_that_takes_connections_and_says_nothing(site, server):
    server.behaviour = server.silent
    target = site()
    before = time.monotonic()
    with pytest.raises(OverdueError, match="no answer within 1 s"):
        Ssh().exec(target, ["true"], b"", 1)
    assert time.monotonic() - before < 10


def test_a_host_that_speaks_something_else(site, server):
    server.behaviour = server.rude
    message, _ = refused(site())
    assert message


def test_a_broken_ssh_config(site):
    message, hint = refused(site("Port many"))
    assert "ssh_config" in message or "Bad" in message
    assert "fabric.yml" in hint


def test_known_hosts_are_read_once(site, server, monkeypatch):
    target, loads = site(), []
    original = connections.KnownHosts
    monkeypatch.setattr(connections, "KnownHosts", lambda names: loads.append(names) or original(names))
    ssh = Ssh()
    ssh.exec(target, ["true"], b"", 20)
    ssh.exec(target, ["true"], b"", 20)
    assert len(loads) == 1


@pytest.mark.parametrize(
    ("option", "needs"),
    [
        ("", ""),
        ("ConnectTimeout 3", ""),
        ("ControlMaster auto", ""),
        ("ServerAliveInterval 5", ""),
        ("StrictHostKeyChecking no", ""),
        ("ProxyJump bastion", "ssh_config sets proxyjump"),
        ("ProxyCommand nc %h %p", "ssh_config sets proxycommand"),
        ("PKCS11Provider /lib/p.so", "ssh_config sets pkcs11provider"),
        ("CertificateFile ~/cert.pub", "ssh_config sets certificatefile"),
        ("Ciphers aes256-ctr", "ssh_config sets ciphers"),
        ("BindAddress 127.0.0.1", "ssh_config sets bindaddress"),
        ("IdentityFile ~/%h", "ssh_config uses % tokens"),
    ],
)
def test_what_paramiko_is_not_trusted_with(tmp_path, option, needs):
    path = tmp_path / "ssh_config"
    path.write_text(f"Host *\n  {option}\n  UserKnownHostsFile /dev/null\n")
    way = Ways().find(Target("n", "n", None, None, path, "none", "python3", "active"), 10)
    assert way.reason == needs
    assert way.jump == (option.partition(" ")[2] if option.startswith("Proxy") else "")


def test_an_ssh_config_is_what_openssh_takes_it_for(tmp_path):
    (tmp_path / "more").write_text("Host gpu*\n  Port 2222\n  User early\n")
    path = tmp_path / "ssh_config"
    path.write_text(f"Include {tmp_path}/more\nMatch host gpu7\n  HostName 10.9.9.9\nHost *\n  User late\n")
    way = Ways().find(Target("gpu7", "gpu7", None, None, path, "none", "python3", "active"), 10)
    assert (way.address, way.port, way.user, way.key_name) == ("10.9.9.9", 2222, "early", "[10.9.9.9]:2222")
