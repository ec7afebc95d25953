"""Give hosts back that an apply has left drained: what ``gpufab resume`` does."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.apply.claims import settler
from gpufab_cli.apply.drain import Service
from gpufab_cli.apply.states import State
from gpufab_cli.audit.collect import Exec
from gpufab_cli.compile.fabric import Fabric
from gpufab_cli.module_utils.claim import Answer
from gpufab_cli.module_utils.host import Host
from gpufab_cli.module_utils.journal import Run
from gpufab_cli.reach.parallel import each

RECORD = ".gpufab/given-back.jsonl"
"""One line for each host that an operator has given back, in the folder of fabric.yml."""

NOT_OURS = "no gpufab apply has left it drained"


@dataclass(frozen=True)
class Resume:
    """One run of the command.

    Attributes:
        by_hand: the hosts are in service already.
    """

    fabric: Fabric
    service: Service
    execute: Exec
    run: Run
    seconds: float
    forks: int
    by_hand: bool = False

    def give_back(self, hosts: Sequence[str], note: str) -> dict[str, str]:
        """Give hosts back; why not, for each, or ""."""
        known = self.service.states.all()
        taken = dict(each(hosts, lambda host: (host, self._ask(host, "take", known)), self.forks))
        problems = {host: self._refused(host, known, taken[host]) for host in hosts}
        chosen = [host for host in hosts if not problems[host]]
        if self.by_hand:
            for host in chosen:
                self.service.forget(host)
        else:
            problems |= self._by_command(chosen)
        for host in hosts:
            if not problems[host]:
                self._record(host, note, known.get(host))
        self._end_claims([host for host in hosts if not taken[host].problem], problems, taken, known)
        return problems

    def _by_command(self, hosts: Sequence[str]) -> dict[str, str]:
        if not self.service.managed:
            return dict.fromkeys(hosts, "fabric.yml has no resume: command; give it back yourself, then use --by-hand")
        return {host: f"resume: {why}" for host, why in self.service.give_back(hosts).items()}

    def _refused(self, host: str, known: Mapping[str, State], taken: Answer) -> str:
        """Why a host is not given back. A node that cannot be asked does not keep what is on record here from it."""
        if taken.problem and (taken.before is not None or host not in known):
            return taken.problem
        was_left = host in known or (taken.before is not None and taken.before.drained)
        return "" if was_left else NOT_OURS

    def _ask(self, host: str, do: str, known: Mapping[str, State]) -> Answer:
        target = self.fabric.targets.get(host)
        if target is None:
            return Answer("no active host of fabric.yml")
        ended = (*self.service.states.ended, *((known[host].run,) if host in known else ()))
        return settler(self.run, self.execute, self.seconds, drained=True)(target, do, ended)

    def _end_claims(
        self,
        hosts: Sequence[str],
        problems: Mapping[str, str],
        taken: Mapping[str, Answer],
        known: Mapping[str, State],
    ) -> None:
        """Free the nodes; one whose host was left drained and still is keeps saying so."""

        def work(host: str) -> Answer:
            stays = bool(problems[host]) and (host in known or taken[host].before is not None)
            return self._ask(host, "leave" if stays else "release", known)

        for _ in each(hosts, work, self.forks):
            pass

    def _record(self, host: str, note: str, state: State | None) -> None:
        entry = {
            "time": round(time.time(), 3),
            "host": host,
            "user": self.run.user,
            "by_hand": self.by_hand,
            "note": note,
            "was": state.words if state else "drained from another folder",
        }
        path = Path(self.fabric.path).parent / RECORD
        Host().append(str(path.absolute()), json.dumps(entry, sort_keys=True))
