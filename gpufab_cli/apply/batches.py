"""Which hosts an apply takes at a time: a canary, then batches. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

Batches = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Portions:
    """How hosts are to be divided.

    Attributes:
        canary: how many hosts the first batch has; 0 makes none of its own.
        canaries: the hosts of the first batch by name, in place of so many, as far as they have work.
        batch: hosts of each later batch: ``"8"``, or ``"25%"`` of all of them.
    """

    canary: int = 1
    canaries: tuple[str, ...] = ()
    batch: str = "25%"


def batches(
    hosts: Sequence[str], portions: Portions, last: frozenset[str] = frozenset()
) -> tuple[tuple[str, ...], ...]:
    """The hosts in the order in which they are taken; each is in one batch.

    Args:
        hosts: those with work.
        last: hosts of which nothing is known: they prove nothing as a canary, so they come in the end.
    """
    ordered = [*(host for host in hosts if host not in last), *(host for host in hosts if host in last)]
    first = _canary(ordered, portions)
    rest = [host for host in ordered if host not in first]
    size = batch_size(portions.batch, len(hosts))
    return (*((first,) if first else ()), *(tuple(rest[at : at + size]) for at in range(0, len(rest), size)))


def _canary(ordered: Sequence[str], portions: Portions) -> tuple[str, ...]:
    named = tuple(host for host in ordered if host in portions.canaries)
    return named or tuple(ordered[: portions.canary])


def batch_size(batch: str, hosts: int) -> int:
    """How many hosts ``"8"`` or ``"25%"`` of so many are: at least one, fractions rounded up."""
    if batch.endswith("%"):
        return max(1, -(-hosts * int(batch[:-1]) // 100))
    return int(batch)
