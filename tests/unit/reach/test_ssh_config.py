"""What ssh itself says of each host of a configuration, asked about as few of them as that takes."""

import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gpufab_cli.reach import ssh_config
from gpufab_cli.reach.ssh_config import WayError, Ways
from gpufab_cli.reach.target import Target

NAMES = ("gpu01", "gpu02", "gpu10", "10.0.0.7", "login", "GPU01", "fd00::7")
PATTERNS = ("gpu01", "gpu02", "gpu0?", "gpu*", "!gpu02", "*", "10.0.0.*", "GPU01", "log[i]n", "l.gin", "fd00::7")
LINES = (
    "User ops",
    "user=adm",
    "Port 2222",
    "HostName 10.9.0.1",
    "HostName 10.9.0.2",
    "HostName %h.example",
    "HostName Upper.Example",
    "HostName fd00::1",
    "HostKeyAlias known",
    "IdentityFile /etc/hostname",
    "IdentityFile ~/.ssh/%n",
    "IdentitiesOnly yes",
    "ConnectTimeout 7",
    "ProxyJump door",
    "ProxyCommand nc %h %p",
    "ControlPath ~/.ssh/%r@%h",
    "UserKnownHostsFile /etc/hostname",
    "CanonicalizeHostname yes",
    "# Port 1",
    "",
    "Match host gpu01",
    "Match all",
    "Include INCLUDED",
    'User "with quotes"',
)


def outcome(find, *arguments):
    """What is found, or why nothing is."""
    try:
        return find(*arguments)
    except WayError as error:
        return str(error)


def target(path, name, port=None, user=None):
    return Target(name, name, port, user, path, "none", "python3", "active")


@pytest.fixture
def questions(monkeypatch):
    """The hosts that ssh was asked about."""
    found = []
    original = ssh_config._run
    monkeypatch.setattr(ssh_config, "_run", lambda words, seconds: found.append(words[-1]) or original(words, seconds))
    ssh_config._defaults()
    found.clear()
    return found


def config(path, text):
    path.write_text(text)
    return path


def text(lines, blocks):
    return "\n".join([*lines, *(f"Host {' '.join(patterns)}\n  " + "\n  ".join(of) for patterns, of in blocks)]) + "\n"


def written():
    lines = st.lists(st.sampled_from(LINES), max_size=2)
    patterns = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=3)
    return st.builds(text, lines, st.lists(st.tuples(patterns, lines), max_size=5))


@pytest.mark.process
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(main="Host gpu* !gpu02\n  Port 2222\n", included="")
@example(main="Host gpu0?\n  Port 2222\nHost log[i]n\n  User adm\n", included="")
@example(main="Host GPU01\n  Port 2222\n", included="")
@example(main="Host gpu*\n  HostName gpu01\n  User ops\n", included="")
@example(main="Host gpu02\n  HostName 10.9.0.1\nHost gpu02\n  HostName 10.9.0.2\n", included="")
@example(main="Host login\n  Include INCLUDED\n", included="Host gpu02\n  HostName 10.9.0.2\n")
@example(main="Include INCLUDED\nUser ops\n", included="Host gpu02\n  Port 2222\n")
@given(main=written(), included=written().filter(lambda text: "INCLUDED" not in text))
def test_the_ways_are_those_that_ssh_tells_host_by_host(tmp_path, main, included):
    more = config(tmp_path / "more", included)
    path = config(tmp_path / "ssh_config", main.replace("INCLUDED", str(more)))
    ways = Ways()
    for name in NAMES:
        assert outcome(ways.find, target(path, name), 10) == outcome(ssh_config._ask, target(path, name), 10)


@pytest.mark.process
@pytest.mark.parametrize("odd", ["\u00a0x", "\x0bx", "\x0cx", "\x1c", "\x85", "\u3000", "\0x", "x\rHost gpu02\r"])
def test_what_python_takes_for_a_blank_and_ssh_does_not_tells_hosts_apart(tmp_path, odd):
    lines = f"Host gpu01\n  HostName 10.9.0.1\n# \x0b\rHost gpu02\nHost gpu02{odd}\n  HostName 10.9.0.2\n"
    path = tmp_path / "c"
    path.write_bytes(lines.encode())
    ways = Ways()
    for name in ("gpu01", "gpu10", "gpu02"):
        assert outcome(ways.find, target(path, name), 10) == outcome(ssh_config._ask, target(path, name), 10)


FLEET = """\
Host *
  User ops
  Port 2222
  ControlPath ~/.ssh/%r@%h
"""


@pytest.mark.process
def test_hosts_that_differ_by_their_address_alone_are_one_question(tmp_path, questions):
    addresses = {f"gpu{number:02d}": f"10.0.0.{number}" for number in range(1, 21)}
    path = config(tmp_path / "c", "".join(f"Host {n}\nHostName {a}\n" for n, a in addresses.items()) + FLEET)
    ways = Ways()
    found = {name: ways.find(target(path, name), 10) for name in addresses}
    assert {name: way.address for name, way in found.items()} == addresses
    assert found["gpu07"].key_name == "[10.0.0.7]:2222"
    assert questions == ["gpu01", "gpu01"]  # which files there are, and what they say


@pytest.mark.process
def test_what_fabric_yml_says_itself_is_part_of_the_question(tmp_path, questions):
    path, ways = config(tmp_path / "c", FLEET), Ways()
    found = [ways.find(target(path, "gpu01", port, user), 10) for port, user in ((None, None), (22, None), (22, "kim"))]
    assert [(way.user, way.port) for way in found] == [("ops", 2222), ("ops", 22), ("kim", 22)]
    assert len(questions) == 4


@pytest.mark.process
@pytest.mark.parametrize(
    "line", ["Match host gpu0*", "HostName %h.example", "CanonicalizeHostname yes", "IdentityFile ~/.ssh/%h"]
)
def test_what_only_ssh_knows_is_asked_of_each_host(tmp_path, questions, line):
    path, ways = config(tmp_path / "c", f"{FLEET}\n{line}\n"), Ways()
    for name in ("gpu01", "gpu02", "gpu03"):
        ways.find(target(path, name), 10)
    assert questions[-3:] == ["gpu01", "gpu02", "gpu03"]


def test_a_configuration_that_was_read_otherwise_is_asked_of_each_host(tmp_path, monkeypatch):
    """Such as by an ssh that knows a keyword for addresses that nobody here does."""
    path, ways = config(tmp_path / "c", FLEET), Ways()

    def said(words, _):
        told = f"hostname 10.0.0.{words[-1][-1]}\n"
        return subprocess.CompletedProcess(words, 0, told, f"debug1: Reading configuration data {path}\n")

    monkeypatch.setattr(ssh_config, "_run", said)
    assert [ways.find(target(path, name), 10).address for name in ("gpu01", "gpu02")] == ["10.0.0.1", "10.0.0.2"]


def test_an_ssh_that_does_not_tell_its_files_is_asked_of_each_host(tmp_path, questions, monkeypatch):
    monkeypatch.setattr(
        ssh_config,
        "_run",
        lambda words, _: questions.append(words[-1]) or subprocess.CompletedProcess(words, 0, "", ""),
    )
    ways = Ways()
    for name in ("gpu01", "gpu02"):
        ways.find(target(None, name), 10)
    assert questions == ["gpu01", "gpu01", "gpu02"]


@pytest.mark.process
def test_hosts_of_one_kind_wait_for_the_first_and_no_longer_than_they_may(tmp_path, monkeypatch):
    path, ways = config(tmp_path / "c", FLEET), Ways()
    asked, answered, original = threading.Event(), threading.Event(), ssh_config._ask

    def slow(target, seconds):
        asked.set()
        assert answered.wait(20)
        return original(target, seconds)

    monkeypatch.setattr(ssh_config, "_ask", slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(ways.find, target(path, "gpu01"), 10)
        assert asked.wait(20)
        with pytest.raises(WayError, match="did not answer"):
            ways.find(target(path, "gpu02"), 0.01)
        second = pool.submit(ways.find, target(path, "gpu03"), 10)
        answered.set()
        assert [first.result().address, second.result().address] == ["gpu01", "gpu03"]


@pytest.mark.process
def test_a_mistake_in_the_configuration_is_told_to_each_host(tmp_path):
    path, ways = config(tmp_path / "c", FLEET), Ways()
    ways.find(target(path, "gpu01"), 10)
    path.write_text("Gibberish yes\n")
    for user in ("a", "a", "b"):
        with pytest.raises(WayError, match="bad configuration option"):
            ways.find(target(path, "gpu01", user=user), 10)
