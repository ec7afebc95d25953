"""What a fabric is written as for others."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from gpufab_cli.spec.faults import Fault

if TYPE_CHECKING:
    from gpufab_cli.spec.model import FabricSpec

OutputName = Literal["ansible"]
"""The outputs that there are; gpufab_cli/outputs makes each."""


def output_faults(spec: "FabricSpec") -> Iterator[Fault]:
    """An output that is named twice."""
    for index, name in enumerate(spec.outputs):
        if name in spec.outputs[:index]:
            yield Fault(("outputs", index), f"{name} is named twice", "take one of them out")
