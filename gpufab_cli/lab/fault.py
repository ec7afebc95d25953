"""What a fault is: how it is brought about on a node, and how it ends."""

from collections.abc import Callable
from dataclasses import dataclass

from gpufab_cli.lab.node import Node


@dataclass(frozen=True)
class Strike:
    """One fault about to strike, or to end, on one node; `netdev` is the port it is meant for."""

    node: Node
    netdev: str
    rail: int
    argument: str

    def shell(self, script: str, *arguments: str) -> None:
        """Runs a fixed script as root on the node."""
        self.node.execute("sh", "-euc", script, "sh", *arguments)


TARGETED = ("TOOL", "RELEASE", "GPU")
"""The arguments that say what a fault is about; the hardware process remembers them as its target."""

Act = Callable[[Strike], None]


@dataclass(frozen=True)
class FaultKind:
    """A fault there is.

    Attributes:
        name: What the command line calls it.
        help: What it does, in a few words.
        strike: Brings it about.
        mend: Ends it; None for a one-shot change of settings, which the next apply puts right.
        argument: What it takes besides a port: TOOL, RELEASE, GPU (0 if left out), N or nothing.
        on_port: Whether it is about one port.
    """

    name: str
    help: str
    strike: Act
    mend: Act | None = None
    argument: str = ""
    on_port: bool = False


def drift(name: str, text: str, on_port: bool = True) -> FaultKind:
    """A change of settings behind gpufab's back, made by the model."""

    def strike(strike: Strike) -> None:
        strike.node.ask("drift", name=name, netdev=strike.netdev)

    return FaultKind(name, text, strike, on_port=on_port)


def _nothing(_: Strike) -> None:
    """The hardware process does all there is to do."""


def model(name: str, text: str, argument: str = "", on_port: bool = False) -> FaultKind:
    """A lasting fault that the model itself shows."""
    return FaultKind(name, text, _nothing, _nothing, argument, on_port)
