"""Commands against nodes in memory: what is printed, and where."""

import json

from gpufab_cli import cli
from gpufab_cli.apply.effects import Doors
from gpufab_cli.module_utils import snapshot
from gpufab_cli.module_utils.claim import Answer
from gpufab_cli.module_utils.program import MARKER
from gpufab_cli.module_utils.schema import encode
from gpufab_cli.module_utils.snapshot import Snapshot
from gpufab_cli.reach.remote_loader import REFUSED
from gpufab_cli.reach.result import OverdueError, Result, UnreachableError
from tests.snapshots import HOSTS, in_sync


class Nodes:
    """What each host answers: a snapshot, text, or an error; and what Ansible's modules say, round by round."""

    def __init__(self):
        self.answers = {host: in_sync(host) for host in HOSTS}
        self.no_root = set()
        self.asked = []
        self.claims = []  # what was asked of the nodes about their claims
        self.answer_claim = Answer()
        self.fails = {}  # the site's commands that fail, and why
        self.plays = []
        self.rounds = []
        self.verified = []
        self.unproven = {}
        self.commands = []
        self.counters = {host: [] for host in HOSTS}  # what a host answers, one look after the other
        self.slept = []

    def execute(self, target, argv, stdin, seconds):
        if b'"ports"' in stdin[-200:]:
            found = self.counters[target.host].pop(0)
            return Result(0, f"{MARKER}\n{json.dumps(found)}\n".encode(), b"")
        if b'"claim"' in stdin[-400:]:
            self.claims.append((target.host, json.loads(stdin[stdin.rindex(b'{"claim"') :])["claim"]["do"]))
            return Result(0, f"{MARKER}\n{json.dumps(encode(self.answer_claim))}\n".encode(), b"")
        self.asked.append(target.host)
        answer = self.answers[target.host]
        if isinstance(answer, Exception):
            raise answer
        if not isinstance(answer, Snapshot):
            return Result(0, answer.encode(), b"")
        stderr = f"{REFUSED}sudo: a password is required\n" if target.host in self.no_root else ""
        return Result(0, f"{MARKER}\n{snapshot.dumps(answer)}\n".encode(), stderr.encode())

    def runner(self, play, listen):
        self.plays.append(play)
        said = tuple(self.rounds.pop(0)(self))
        for item in said:
            listen(item)
        return said

    def verify(self, fabric, hosts):
        self.verified.append(tuple(hosts))
        return {host: why for host, why in self.unproven.items() if host in hosts}

    def command(self, argv, seconds):
        self.commands.append(tuple(argv))
        return self.fails.get(" ".join(argv), "")

    def run(self, *arguments):
        doors = Doors(self.execute, self.runner, self.verify, self.command, self.slept.append)
        return cli.run(list(arguments), doors)


def unreachable():
    return UnreachableError("host key has changed", "if the node was installed anew, replace its line in known_hosts")


def hanging():
    return OverdueError("no answer within 30 s (waiting for its output)")
