"""One operator: the real command line with real hooks. Nodes are folders, on which the core's own claims are kept.

``python -m tests.daytwo.operator FLEET ARGUMENTS...`` in the folder of a fabric.yml. Instead of Ansible a program of
its own (``module``) changes a node as a module does: under the node's lock, under the claim, with the consent given.
"""

import json
import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from gpufab_cli import cli
from gpufab_cli.apply import interrupts
from gpufab_cli.apply.ansible import Said
from gpufab_cli.apply.drain import run_command, supervised
from gpufab_cli.apply.effects import Doors
from gpufab_cli.module_utils import claim, planning, snapshot
from gpufab_cli.module_utils.change import Change, Impact, Step
from gpufab_cli.module_utils.converge import Status, StepResult
from gpufab_cli.module_utils.host import NODE_LOCK, Host
from gpufab_cli.module_utils.program import MARKER
from gpufab_cli.module_utils.schema import decode, encode
from gpufab_cli.reach.result import Result
from tests.snapshots import in_sync

PCI = "0000:18:00.0"
IMPACT = frozenset({Impact.LINK_FLAP, Impact.TRAFFIC})
DRIFT = {0: {"pfc": ()}}


class Fleet:
    """What all operators share: the nodes, the scheduler, and a log of what happened, in order."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def node(self, host):
        return Host(str(self.folder / "nodes" / host))

    def good(self, host):
        return (self.folder / "nodes" / host / "good").exists()

    def drained(self, host):
        return (self.folder / "scheduler" / host).exists()

    def log(self, *words):
        handle = os.open(self.folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, (" ".join(words) + "\n").encode())
        os.close(handle)

    def collect(self, host):
        ports = {} if self.good(host) else DRIFT
        found = replace(in_sync(host, ports=ports), claim=planning.left_behind(self.node(host)))
        return snapshot.dumps(found)

    def execute(self, target, argv, stdin, seconds):
        at = stdin.find(b'{"claim"', len(stdin) - 600)
        if at < 0:
            self.log("asked", target.host)
            text = self.collect(target.host)
        else:
            question = decode(claim.Question, json.loads(stdin[at:])["claim"])
            text = json.dumps(encode(claim.settle(self.node(target.host), question)))
        return Result(0, f"{MARKER}\n{text}\n".encode(), b"")

    def runner(self, play, listen):
        """One program a host, as Ansible's workers are; ended as ansible.py ends a playbook."""
        with interrupts.deferred() as interrupted:
            running = {host: self._start(play, host) for host in play.hosts}
            while any(process.poll() is None for process in running.values()):
                if interrupted():
                    for process in running.values():
                        process.terminate()
                time.sleep(0.005)
        return tuple(_said(host, process.stdout.read()) for host, process in running.items())

    def _start(self, play, host):
        allowed = bool(play.extra_vars["gpufab_granted"].get(host))
        run = play.extra_vars["gpufab_run"]
        argv = [sys.executable, "-m", "tests.daytwo.module", str(self.folder), host, run["id"], str(int(allowed))]
        return subprocess.Popen(supervised(argv), stdout=subprocess.PIPE, start_new_session=True)

    def verify(self, fabric, hosts):
        for host in hosts:
            if self.good(host):
                self.log("verified", host)
        return {host: "verify: pfc: fail" for host in hosts if not self.good(host)}


def _said(host, output):
    status, _, reason = output.decode().strip().partition(" ")
    if not status:
        return Said(host, "roce", problem="the module was ended")
    step = Step("roce compute/0", (Change((PCI, "pfc"), (), (3,), "roce.pfc"),), IMPACT, PCI)
    return Said(host, "roce", (StepResult("roce", step, Status(status), reason),))


def module(folder, host, run, allowed):
    """Change a node as a module would; what it prints is how its step ended, and why."""
    fleet = Fleet(folder)
    node = fleet.node(host)
    with node.lock(NODE_LOCK, 30):
        if not allowed:
            return "refused needs --allow link-flap,traffic"
        theirs = claim.in_the_way(node, run, needed=True)
        if theirs:
            return f"busy {theirs}"
        fleet.log("disturb", host, "drained" if fleet.drained(host) else "UNDRAINED")
        time.sleep(random.uniform(0.01, 0.1))
        if random.random() < 0.1:
            return "failed did not stick"
        (fleet.folder / "nodes" / host / "good").touch()
        fleet.log("made", host)
        return "made"


def main():
    fleet = Fleet(sys.argv[1])
    fleet.log("began", str(os.getpid()))
    doors = Doors(fleet.execute, fleet.runner, fleet.verify, run_command, lambda _: None)
    sys.exit(cli.run(sys.argv[2:], doors))


if __name__ == "__main__":
    main()
