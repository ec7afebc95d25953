"""What a check across all hosts is made of."""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpufab_cli.audit.collect import Wants
from gpufab_cli.catalogue import Severity, catalogue
from gpufab_cli.module_utils.snapshot import Snapshot

Fact = Hashable


@dataclass(frozen=True)
class FabricFinding:
    """What the hosts together show; ``hosts`` are those that stand out.

    ``unknown``: these could not be compared. That is not a pass, and not drift either.
    """

    code: str
    hosts: tuple[str, ...]
    evidence: str
    unknown: bool = False

    @property
    def severity(self) -> Severity:
        """How bad the catalogue says it is."""
        return catalogue()[self.code].severity


@dataclass(frozen=True)
class Check:
    """``fact`` is told what is wanted of the host; None for one that has nothing to say or where it is unknown.

    ``by_profile``: only hosts of one profile are compared.
    """

    fact: Callable[[Snapshot, Wants], Fact | None]
    verdict: Callable[[Mapping[str, Any]], Iterator[FabricFinding]]
    by_profile: bool = False
