"""A fleet over real SSH, each host a server of its own; a tenth do what they like. Each is named, the others are done.

Audit and apply are the commands themselves, down to the sockets. Ansible is played: a server here would run its modules
on this machine. The events that it would send go through the same door as ansible-runner's.
"""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from itertools import cycle

import paramiko
import pytest

from gpufab_cli import cli
from gpufab_cli.apply import ansible
from gpufab_cli.apply.effects import Doors
from gpufab_cli.errors import Exit
from gpufab_cli.module_utils import snapshot
from gpufab_cli.module_utils.ansible_module import module_result
from gpufab_cli.module_utils.change import Change, Impact, Step
from gpufab_cli.module_utils.converge import Outcome, Status, StepResult
from gpufab_cli.module_utils.program import MARKER
from gpufab_cli.reach import connections
from gpufab_cli.reach.connections import Ssh
from gpufab_cli.spec import source
from gpufab_cli.spec.load import validate
from gpufab_cli.spec.lock import FILE_NAME, Lock, LockedHost, LockedPort, dump
from gpufab_cli.spec.model import FabricSpec
from tests.fabrics import PSID, SMALL, compiled
from tests.snapshots import in_sync
from tests.sshd import Sshd
from tests.unit.apply.test_ansible import event

ODD = ("refuse", "hang", "drop", "babble", "huge", "nested", "digits", "lie")
KINDS = {"refuse": "unreachable", "hang": "timeout", "drop": "unreachable", "lie": "unreachable"}
"""How each ends; the others are garbage."""
LIMITS = {40: 10.0, 500: 30.0}
"""Seconds that a host may take; servers and clients share this one process."""


class Fleet:
    """The servers by host name, and the folder of a site that has them as hosts."""

    def __init__(self, site, number, odd):
        """``odd`` of the hosts do what they like."""
        self.site, self.seconds = site, LIMITS[number]
        hosts = [f"gpu{index:03d}" for index in range(1, number + 1)]
        bad = hosts[3 :: number // odd] if odd else []
        self.kinds = dict.fromkeys(hosts, "good") | dict(zip(bad, cycle(ODD), strict=False))
        self.good = [host for host in hosts if self.kinds[host] == "good"]
        for name in ("host", "other", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(site / name)], check=True)
        self.servers, self.port = self._served()
        self._write(number)
        self.answers(pfc=())

    def _served(self):
        user = (self.site / "user.pub").read_text().split()[1]
        keys = {name: paramiko.Ed25519Key.from_private_key_file(str(self.site / name)) for name in ("host", "other")}
        made, port = {}, 0
        for index, (host, kind) in enumerate(self.kinds.items()):
            key = keys["other" if kind == "lie" else "host"]
            made[host] = Sshd(key, user, (f"127.77.{index // 250}.{index % 250 + 1}", port))
            port = made[host].port
            if kind == "hang":
                made[host].behaviour = made[host].silent
            elif kind == "refuse":
                made[host].close()
        return made, port

    def _write(self, number):
        public = " ".join((self.site / "host.pub").read_text().split()[:2])
        names = (f"127.77.{index // 250}.{index % 250 + 1}" for index in range(number))
        (self.site / "known_hosts").write_text("".join(f"[{name}]:{self.port} {public}\n" for name in names))
        (self.site / "ssh_config").write_text(
            f"Host *\n  IdentityFile {self.site}/user\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.site}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
        )
        entries = "".join(
            f'  - {{name: "gpu[{first + 1:03d}-{last:03d}]", profile: box,'
            f' address: "127.77.{first // 250}.[1-{last - first}]"}}\n'
            for first, last in ((first, min(first + 250, number)) for first in range(0, number, 250))
        )
        text = SMALL.replace('  - {name: "gpu[01-03]", profile: box, address: "10.0.0.[11-13]"}\n', entries)
        text = text.replace("{user: ops}", f"{{user: ops, port: {self.port}, ssh_config: ssh_config, become: none}}")
        text += "rollout: {canary: 0, batch: 100%, soak_s: 0, verify: false}\n"
        (self.site / "fabric.yml").write_text(text)
        lock = Lock(hosts={host: LockedHost(ports=_ports(index)) for index, host in enumerate(self.kinds)})
        (self.site / FILE_NAME).write_text(dump(lock))
        self.wants = compiled(validate(source.parse(text, "fabric.yml"), FabricSpec), lock)

    def answers(self, **changes):
        """What each host says from now on: as declared but for these settings of its first port, or what it likes."""
        for host, kind in self.kinds.items():
            text = snapshot.dumps(in_sync(host, ports={0: changes}, wants=self.wants))
            whole = f"{MARKER}\n{text}\n".encode()
            self.servers[host].canned = {
                "drop": (whole[:500], ...),
                "babble": (b"Closed for maintenance\n",),
                "huge": (b"x" * (9 << 20),),
                "nested": (f"{MARKER}\n{'[' * 990}{']' * 990}\n".encode(),),
                "digits": (whole.replace(b'"uid": 0', b'"uid": 1' + b"0" * 400),),
            }.get(kind, (whole,))

    def run(self, *arguments):
        """Run a command over the whole fleet: its exit code, and the wall time in seconds."""
        doors = Doors(Ssh().exec, self.play)
        begin = time.monotonic()
        code = cli.run([*arguments, "--timeout", f"{self.seconds:g}", "--format", "json"], doors)
        return code, time.monotonic() - begin

    def play(self, play, listen):
        """Ansible's part: all good hosts are changed; of the others some are not reached, some answer garbage."""
        run = ansible._Run(self.site, listen)
        self.answers()
        for host in play.hosts:
            kind = self.kinds[host]
            if kind in KINDS:
                run._hear(event("runner_on_unreachable", {"msg": "ssh: no way"}, host=host))
            elif kind == "nested":
                run._hear(event("runner_on_ok", {"steps": json.loads("[" * 900 + "]" * 900)}, host=host))
            elif kind == "good":
                change = Change((self.wants[host]["roce"].ports[0].pci, "pfc"), (), (3,), "roce.pfc")
                step = Step("roce compute/0", (change,), frozenset({Impact.TRAFFIC}), change.path[0])
                result = module_result(Outcome((StepResult("roce", step, Status.MADE),)))
                run._hear(event("runner_on_ok", json.loads(json.dumps(result)), host=host))
            else:
                run._hear(event("runner_on_failed", {"msg": {"steps": "x"}, "steps": 10**400}, host=host))
        return tuple(run.said)

    def close(self):
        for server in self.servers.values():
            server.close()


def _ports(index):
    macs = (f"02:00:00:{index >> 8:02x}:{index & 255:02x}:{rail:02x}" for rail in range(2))
    return {
        f"compute/{rail}": LockedPort(pci=f"0000:{rail + 1}8:00.0", mac=mac, serial=f"SN{index}-{rail}", psid=PSID)
        for rail, mac in enumerate(macs)
    }


@pytest.fixture
def fleet(tmp_path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(connections, "RETRY_SECONDS", (0.0, 0.1))
    before = set(threading.enumerate())
    made = Fleet(tmp_path, *request.param)
    yield made
    made.close()
    deadline = time.monotonic() + 60
    while set(threading.enumerate()) - before and time.monotonic() < deadline:
        time.sleep(0.1)
    assert set(threading.enumerate()) - before == set()


FULL = pytest.mark.full
SIZES = [(40, 8), pytest.param((500, 50), marks=FULL), pytest.param((500, 0), marks=FULL)]


@pytest.mark.process
@pytest.mark.parametrize("fleet", SIZES, indirect=True, ids=str)
def test_a_tenth_of_a_fleet_misbehaves(fleet, capsys):
    code, audit_seconds = fleet.run("audit")
    found = json.loads(capsys.readouterr().out)["hosts"]
    assert code == Exit.DRIFT
    _each_is_named(fleet, found)
    assert {row["code"] for host in fleet.good for row in found[host]["rows"]} == {"roce.pfc"}

    assert cli.run(["render"]) == Exit.IN_SYNC
    capsys.readouterr()
    code, apply_seconds = fleet.run("apply", "--allow", "traffic")
    report = json.loads(capsys.readouterr().out)
    bad = set(fleet.kinds) - set(fleet.good)
    assert code == (Exit.DRIFT if bad else Exit.IN_SYNC)  # what a module of theirs said cannot be read
    _each_is_named(fleet, report["audit"]["hosts"])
    for host in fleet.good:
        assert report["audit"]["hosts"][host]["state"] == "in-sync"
        assert [step["status"] for step in report["hosts"][host]["steps"]] == ["made"]
    assert all(report["hosts"][host]["problem"] for host in bad)
    with capsys.disabled():
        ends = Counter(host["failure"]["code"] if "failure" in host else "read" for host in found.values())
        sys.stderr.write(
            f"\n{len(fleet.kinds)} hosts, {len(bad)} odd: audit {audit_seconds:.1f} s, apply {apply_seconds:.1f} s;"
            f" limit of one host {fleet.seconds:g} s; {dict(ends)}\n"
        )


def _each_is_named(fleet, found):
    ends = {host: found[host].get("failure", {"code": "", "message": ""}) for host in fleet.kinds}
    for host, kind in fleet.kinds.items():
        wanted = "" if kind == "good" else f"host.{KINDS.get(kind, 'garbage')}"
        assert (host, kind, ends[host]["code"]) == (host, kind, wanted)
    words = {kind: ends[host]["message"] for host, kind in fleet.kinds.items()}
    told = {"lie": "host key has changed", "refuse": "Connection refused", "drop": "connection broke", "hang": "login"}
    told |= {"babble": "Closed for maintenance", "huge": "printed more than", "nested": "nested too deeply"}
    told |= {"digits": "digits"}
    assert all(told[kind] in words[kind] for kind in words if kind != "good")
