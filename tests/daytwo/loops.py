"""Applies killed at random moments, and two operators at once. What must never happen is read from the log."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from gpufab_cli.apply.states import States
from gpufab_cli.spec.lock import FILE_NAME, dump
from tests import fabrics
from tests.daytwo.operator import Fleet
from tests.snapshots import HOSTS

REPOSITORY = Path(__file__).resolve().parents[2]
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL)
APPLY = ("apply", "--allow", "traffic,link-flap")
MARK = "GPUFAB_DAYTWO"


@dataclass
class Site:
    """A fleet, and clones of its fabric.yml."""

    folder: Path
    clones: int = 1
    fleet: Fleet = field(init=False)

    def __post_init__(self):
        self.fleet = Fleet(self.folder / "fleet")
        for host in HOSTS:
            (self.fleet.folder / "nodes" / host / "run").mkdir(parents=True)
        (self.fleet.folder / "scheduler").mkdir()
        for number in range(self.clones):
            clone = self.clone(number)
            clone.mkdir()
            hook = REPOSITORY / "tests" / "daytwo" / "hook"
            hooks = "".join(
                f"{do}: {{command: [{hook}, {do}, '{{host}}', {self.fleet.folder}]}}\n" for do in ("drain", "resume")
            )
            rollout = "rollout: {canary: 1, batch: 100%, soak_s: 0}\n"
            (clone / "fabric.yml").write_text(fabrics.SMALL + rollout + hooks)
            (clone / FILE_NAME).write_text(dump(fabrics.lock()))
            assert self.run("render", clone=number).returncode == 0

    def clone(self, number):
        return self.folder / f"clone{number}"

    def break_(self):
        for host in HOSTS:
            (self.fleet.folder / "nodes" / host / "good").unlink(missing_ok=True)

    def start(self, *arguments, clone=0):
        return subprocess.Popen(
            [sys.executable, "-m", "tests.daytwo.operator", str(self.fleet.folder), *arguments],
            cwd=self.clone(clone),
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), MARK: str(self.folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments, clone=0):
        process = self.start(*arguments, clone=clone)
        output, _ = process.communicate(timeout=120)
        return subprocess.CompletedProcess(arguments, process.returncode, output)

    @property
    def log(self):
        path = self.fleet.folder / "log"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def wait_for(self, words, after):
        deadline = time.monotonic() + 60
        while not any(line[: len(words)] == words for line in self.log[after:]):
            assert time.monotonic() < deadline, f"never came: {words}"
            time.sleep(0.005)

    def known(self):
        """The hosts that are on record as drained, in any clone."""
        return {host for number in range(self.clones) for host in States(self.clone(number)).all()}

    def orphans(self):
        """Processes that an operator has left behind, once they have had a moment."""
        deadline = time.monotonic() + 10
        while (found := self._marked()) and time.monotonic() < deadline:
            time.sleep(0.02)
        return found

    def _marked(self):
        mark = f"{MARK}={self.folder}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found

    def settle(self):
        """Apply until all is in order and in service. A claim that a killed run of another clone holds goes by hand."""
        for _ in range(8):
            for number in range(self.clones):
                self._resume_left(number)
            if self.run(*APPLY).returncode == 0 and not self.known():
                return
        raise AssertionError(f"never settled: {self.run(*APPLY).stdout}")

    def _resume_left(self, number):
        """The operator gives back what an apply has left for them, having looked at it."""
        for host, state in States(self.clone(number)).all().items():
            if state.left:
                self.fleet.log("operator-looked", host)
                self.run("resume", host, clone=number)

    def check(self):
        """What must hold at any time."""
        assert self.orphans() == []
        drained = {host for host in HOSTS if self.fleet.drained(host)}
        assert drained <= self.known(), f"drained and forgotten: {drained - self.known()}"
        assert wrong(self.log) == []


def wrong(log):
    """What must never be in a log: a host disturbed that is not drained, one given back that is not proven."""
    found, unproven = [], set()
    for number, (what, host, *rest) in enumerate(log):
        if what == "disturb":
            unproven.add(host)
            if rest != ["drained"]:
                found.append(f"line {number}: {host} was disturbed undrained")
        elif what in ("verified", "operator-looked"):
            unproven.discard(host)
        elif what == "resume-begins" and host in unproven:
            found.append(f"line {number}: {host} was given back unproven")
    return found


def killed(folder, rounds, seed):
    """Kill an apply at a random moment, so many times; how often each signal, and in which states it left hosts."""
    dice, site, seen = random.Random(seed), Site(folder), {}
    site.break_()
    seconds = _length(site)
    for _ in range(rounds):
        site.break_()
        number, after = dice.choice(SIGNALS), len(site.log)
        process = site.start(*APPLY)
        site.wait_for(["asked"], after)
        time.sleep(dice.uniform(0, seconds))
        process.send_signal(number)
        output, _ = process.communicate(timeout=60)
        site.check()
        stages = ",".join(sorted({state.stage.value for state in States(site.clone(0)).all().values()})) or "none"
        seen[number.name, stages] = seen.get((number.name, stages), 0) + 1
        if process.returncode == 1 and "interrupted by" in output:
            assert output.count("error: interrupted by") == 1, output
        if dice.random() < 0.5:
            site.settle()
            site.check()
            assert not any(site.fleet.drained(host) for host in HOSTS)
    site.settle()
    site.check()
    return seen


def _length(site):
    after = len(site.log)
    process = site.start(*APPLY)
    site.wait_for(["asked"], after)
    began = time.monotonic()
    process.communicate(timeout=60)
    return time.monotonic() - began


def two_operators(folder, rounds, seed):
    """Two applies at once from two clones, so many times; how often one left a host to the other."""
    dice, site, left = random.Random(seed), Site(folder, clones=2), 0
    for _ in range(rounds):
        site.break_()
        first, second = dice.sample((0, 1), 2)
        one = site.start(*APPLY, clone=first)
        time.sleep(dice.uniform(0, 1.5))
        other = site.start(*APPLY, clone=second)
        outputs = [process.communicate(timeout=120)[0] for process in (one, other)]
        left += any("claimed by" in output for output in outputs)
        site.check()
        site.settle()
        site.check()
    return left
