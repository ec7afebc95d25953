"""Claims on the nodes (module_utils/claim.py): how the applies of two operators with a clone each keep apart."""

import socket
import threading
from collections.abc import Callable, Iterable, Mapping

from gpufab_cli.audit.collect import Exec, Failure, answer, ask, no_root
from gpufab_cli.module_utils.claim import Answer, Question
from gpufab_cli.module_utils.journal import Run
from gpufab_cli.module_utils.schema import SchemaError, decode, encode
from gpufab_cli.module_utils.texts import parse_json
from gpufab_cli.reach import remote_loader
from gpufab_cli.reach.parallel import each
from gpufab_cli.reach.target import Target

LIVES_SECONDS = 180.0
RENEW_SECONDS = 40.0
"""Four times within its life: a claim outlasts a connection or two that fail."""


class Claims:
    """The hosts that one run has claimed. Renewed in the background until :meth:`close`."""

    def __init__(
        self,
        targets: Mapping[str, Target],
        execute: Exec,
        run: Run,
        *,
        seconds: float,
        forks: int,
        drained: bool,
        ended: tuple[str, ...] = (),
    ) -> None:
        """Claim nothing yet.

        Args:
            drained: whether a host is drained for its claim.
            ended: runs known to have ended: their claims may be taken over.
        """
        self._ended = ended
        self._targets, self._execute, self._run = targets, execute, run
        self._seconds, self._forks, self._drained = seconds, forks, drained
        self._held: set[str] = set()
        self._guard = threading.Lock()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def holds(self, host: str) -> bool:
        """Whether the host is claimed."""
        return host in self._held

    def take(self, hosts: Iterable[str]) -> dict[str, str]:
        """Claim hosts; those that could not be, and why."""
        refused: dict[str, str] = {}
        for host, got in self._all([host for host in hosts if host not in self._held], "take"):
            if got.problem:
                refused[host] = got.problem
            else:
                with self._guard:
                    self._held.add(host)
        if self._held and self._thread is None:
            self._thread = threading.Thread(target=self._renewing, daemon=True)
            self._thread.start()
        return refused

    def release(self, hosts: Iterable[str]) -> None:
        """Hosts are given back: the next run may have them."""
        self._drop(hosts, "release")

    def leave(self, hosts: Iterable[str]) -> None:
        """Hosts stay drained: their nodes keep saying so, and any run may claim them."""
        self._drop(hosts, "leave")

    def close(self) -> None:
        """Renew nothing any more: what is not released is over on its nodes within :data:`LIVES_SECONDS`."""
        self._over.set()

    def _drop(self, hosts: Iterable[str], do: str) -> None:
        with self._guard:  # before the node hears of it: it is not to be renewed afterwards
            chosen = [host for host in hosts if host in self._held]
            self._held -= set(chosen)
        for _ in self._all(chosen, do):
            pass

    def _renewing(self) -> None:
        while not self._over.wait(RENEW_SECONDS):
            with self._guard:
                held = sorted(self._held)
            for _ in self._all(held, "renew"):
                pass

    def _all(self, hosts: list[str], do: str) -> Iterable[tuple[str, Answer]]:
        remote_loader.program()  # now, and not in each of the threads
        return each(hosts, lambda host: (host, self._ask(host, do)), self._forks)

    def _ask(self, host: str, do: str) -> Answer:
        ask_node = settler(self._run, self._execute, self._seconds, drained=self._drained)
        return ask_node(self._targets[host], do, self._ended)


def settler(
    run: Run, execute: Exec, seconds: float, *, drained: bool
) -> Callable[[Target, str, tuple[str, ...]], Answer]:
    """Ask a node on behalf of a run: its target, what to do, and the ended runs whose claims may be taken over."""

    def ask_node(target: Target, do: str, ended: tuple[str, ...]) -> Answer:
        question = Question(do, run.id, run.user, socket.gethostname(), LIVES_SECONDS, drained, ended)
        return settle(target, question, execute, seconds)

    return ask_node


def settle(target: Target, question: Question, execute: Exec, seconds: float) -> Answer:
    """What a node says to a question about its claim; what went wrong on the way to it is a problem, too."""
    asked = ask(target, "claim", {"claim": encode(question)}, execute, seconds)
    if isinstance(asked, Failure):
        return Answer(f"cannot be claimed: {asked.message}")
    line = answer(asked, target)
    if isinstance(line, Failure):
        return Answer(f"cannot be claimed: {line.message}")
    try:
        found: Answer = decode(Answer, parse_json(line))
    except (ValueError, SchemaError) as error:
        return Answer(f"cannot be claimed: the node's answer cannot be read: {error}"[:200])
    refused = no_root(asked)
    return Answer(f"cannot be claimed: {refused}") if refused and found.problem else found
