"""``accept:``: deviations that an operator lives with for a time. They stay visible and expire by themselves."""

import datetime
from collections.abc import Iterable, Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator

from gpufab_cli.errors import did_you_mean
from gpufab_cli.module_utils.schema import Pattern
from gpufab_cli.spec import ranges
from gpufab_cli.spec.base import Model
from gpufab_cli.spec.faults import Fault
from gpufab_cli.spec.types import HostRange, OneLine, RailName


def _date(value: Any) -> Any:
    try:
        return datetime.datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=datetime.UTC).date()
    except (TypeError, ValueError):
        raise ValueError(f"{value!r:.40} is not a date such as 2027-01-31") from None


Date = Annotated[datetime.date, BeforeValidator(_date, json_schema_input_type=datetime.date)]
Code = Annotated[str, Pattern(r"[a-z][a-z0-9-]{0,39}(?:\.[a-z0-9-]{1,40})+", "a code such as device.missing")]

_NEVER = ("fabric.", "host.", "waiver.")
"""What is said of no host, or that nothing is known of one."""


class Waiver(Model):
    """One code that hosts may show until a day."""

    code: Code
    """The code, as the audit prints it; ``gpufab explain`` lists them."""
    hosts: HostRange
    """The hosts, as a name or a range such as ``gpu[001-004]``."""
    rail: RailName | None = None
    """The one rail it is accepted on; all of a host's devices if left out."""
    reason: OneLine
    """Why, for those who read the audit."""
    expires: Date
    """The last day on which it is accepted, YYYY-MM-DD (UTC)."""

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts one by one."""
        return ranges.expand(self.hosts)


def waiver_faults(waivers: Iterable[Waiver], hosts: Iterable[str]) -> Iterator[Fault]:
    """Codes that are none, and hosts that are not in the fabric."""
    from gpufab_cli.catalogue import catalogue

    known = set(hosts)
    for index, waiver in enumerate(waivers):
        if waiver.code.startswith(_NEVER):
            unread = waiver.code.startswith("host.")
            hint = "set a host that cannot be read to state: maintenance" if unread else "it is of no single host"
            yield Fault(("accept", index, "code"), f"{waiver.code} cannot be accepted", hint)
        elif waiver.code not in catalogue():
            yield Fault(("accept", index, "code"), f"no code {waiver.code!r}", did_you_mean(waiver.code, catalogue()))
        stranger = next((name for name in waiver.names if name not in known), None)
        if stranger is not None:
            yield Fault(("accept", index, "hosts"), f"no host {stranger!r}", did_you_mean(stranger, known))
