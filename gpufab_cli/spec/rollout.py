"""``rollout:``: in which portions an apply goes over a fabric, and what each has to pass before the next begins."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from gpufab_cli.module_utils.schema import Pattern, Range
from gpufab_cli.spec.base import Model


def _written(value: Any) -> Any:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Portion = Annotated[
    str,
    BeforeValidator(_written, json_schema_input_type=int | str),
    Pattern(r"[1-9][0-9]{0,5}|(?:[1-9][0-9]?|100)%", "a number of hosts or a share of them, such as 8 or 25%"),
]
"""So many hosts, or so many percent of them."""


class Rollout(Model):
    """How an apply goes over many hosts: first a canary, then batches. All that have work are counted, no others."""

    canary: Annotated[int, Range(0, 1000)] = 1
    """Hosts of the first batch; 0 makes none of its own."""
    batch: Portion = "25%"
    """Hosts of each later batch: a number, or a share of the hosts with work."""
    soak_s: Annotated[int, Range(0, 86400)] = 60
    """Seconds over which error counters must stand still before the next batch begins; 0 does not look at them."""
    verify: bool = True
    """Whether gpufab verify must pass on a batch before the next begins."""


DEFAULT = Rollout()
