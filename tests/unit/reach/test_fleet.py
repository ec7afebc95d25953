"""Two hundred hosts over real SSH, a tenth of which do what they like: each is named, and nothing is left behind."""

import subprocess
import threading
import time
from collections import Counter

import paramiko
import pytest

from gpufab_cli.audit.collect import Failure, collect
from gpufab_cli.module_utils import snapshot
from gpufab_cli.module_utils.program import MARKER
from gpufab_cli.reach import connections
from gpufab_cli.reach.connections import Ssh
from gpufab_cli.reach.target import Target
from tests.snapshots import WANTS, in_sync
from tests.sshd import Sshd

ANSWER = f"{MARKER}\n{snapshot.dumps(in_sync('gpu01'))}\n".encode()
ODD = ("refuse", "hang", "drop", "babble", "lie")
HOSTS = {f"{kind}{number}": kind for kind in ODD for number in range(4)}
HOSTS |= {f"gpu{number:03d}": "good" for number in range(180)}


@pytest.fixture
def keys(tmp_path):
    for name in ("host", "other", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    return tmp_path


@pytest.fixture
def servers(keys):
    user = (keys / "user.pub").read_text().split()[1]
    before = set(threading.enumerate())
    made = {}
    for kind in ("good", *ODD):
        key = keys / ("other" if kind == "lie" else "host")
        made[kind] = Sshd(paramiko.Ed25519Key.from_private_key_file(str(key)), user)
        made[kind].canned = (ANSWER,)
    made["refuse"].close()
    made["hang"].behaviour = made["hang"].silent
    made["drop"].canned = (ANSWER[:500], ...)
    made["babble"].canned = (b"Closed for maintenance\n",)
    yield made
    for server in made.values():
        server.close()
    deadline = time.monotonic() + 30
    while set(threading.enumerate()) - before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert set(threading.enumerate()) - before == set()


@pytest.fixture
def jobs(keys, servers):
    public = " ".join((keys / "host.pub").read_text().split()[:2])
    known = "".join(f"[127.0.0.1]:{server.port} {public}\n" for server in servers.values())
    (keys / "known_hosts").write_text(known)
    common = f"  IdentityFile {keys}/user\n  IdentitiesOnly yes\n  UserKnownHostsFile {keys}/known_hosts\n"
    (keys / "ssh_config").write_text(f"Host *\n  User ops\n{common}  GlobalKnownHostsFile /dev/null\n")
    return {
        host: (
            Target(host, "127.0.0.1", servers[kind].port, None, keys / "ssh_config", "none", "python3", "active"),
            WANTS["gpu01"],
        )
        for host, kind in HOSTS.items()
    }


@pytest.mark.process
def test_a_tenth_of_the_fleet_misbehaves(jobs, monkeypatch):
    monkeypatch.setattr(connections, "RETRY_SECONDS", (0.0, 0.1))
    found = {item.host: item.result for item in collect(jobs, Ssh().exec, seconds=10, forks=32)}
    words = {host: f"{r.kind.value}: {r.message}" if isinstance(r, Failure) else "read" for host, r in found.items()}
    by_kind = {kind: {words[host] for host in HOSTS if HOSTS[host] == kind} for kind in ("good", *ODD)}
    assert by_kind["good"] == {"read"}
    assert Counter(word.partition(":")[0] for word in words.values()) == {
        "read": 180,
        "unreachable": 12,
        "timeout": 4,
        "garbage": 4,
    }
    assert by_kind["hang"] == {"timeout: no answer within 10 s (login)"}
    assert by_kind["babble"] == {"garbage: printed 'Closed for maintenance'"}
    assert by_kind["lie"] == {"unreachable: host key has changed"}
    assert all("Connection refused" in word for word in by_kind["refuse"])
    assert all("connection broke" in word for word in by_kind["drop"])
