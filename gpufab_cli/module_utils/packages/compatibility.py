"""Which of a vendor's stacks is known to work, or not to, with which kernel and which NIC: a table. Pure.

It holds what somebody has published, and nothing that follows from it. Where it is silent nobody knows.
"""

import re
from dataclasses import dataclass
from typing import Dict, Iterator, Optional, Tuple

from ..devices import Devices, Nic
from .recipe import natural
from .want import OfedWant, Stack

MELLANOX = "0x15b3"
CONNECTX4, CONNECTX8, CONNECTX9, BLUEFIELD3 = "0x1013", "0x1023", "0x1025", "0xa2dc"
_CARDS: Dict[str, str] = {
    CONNECTX4: "ConnectX-4",
    CONNECTX8: "ConnectX-8",
    CONNECTX9: "ConnectX-9",
    BLUEFIELD3: "BlueField-3",
}
"""Generations by PCI device id (linux, drivers/net/ethernet/mellanox/mlx5/core/main.c)."""


@dataclass(frozen=True)
class Fact:
    """One thing that is known of a stack.

    Attributes:
        says: why it does not work; "" of a combination that does.
        stack: None means either of the vendor's.
        since: the first version that it is known of, and ``until`` the last; 2.9 is also 2.9.1. "" is no bound.
        kernel: a pattern that the whole release of the running kernel matches.
        kernel_since: the first such kernel.
        cards: PCI device ids, one of which is there; () where it is not about NICs.
        modules: how the modules come; "" means either way.
    """

    says: str
    stack: Optional[Stack] = None
    since: str = ""
    until: str = ""
    kernel: str = ".*"
    kernel_since: str = ""
    cards: Tuple[str, ...] = ()
    modules: str = ""


FACTS: Tuple[Fact, ...] = (
    # DOCA-Host Installation and DKMS Management Guide, 3.3.0.
    Fact("DOCA has no prebuilt modules since 3.3: say modules: dkms", "doca-ofed", "3.3", modules="prebuilt"),
    # stackhpc/ansible-slurm-appliance#994 and #999, stackhpc/stackhpc-kayobe-config#2404 and #2430.
    Fact(
        "DOCA 3.2.2 does not build for RHEL 9.8 since its kernel 5.14.0-687.17.1; 3.2.3 does",
        "doca-ofed",
        "3.2.2",
        "3.2.2",
        r".*\.el9_8\..*",
        "5.14.0-687.17.1",
    ),
    Fact("", "doca-ofed", "3.2.2", "3.2.2", r"5\.14\.0-687\.12\.1\.el9_8\..*"),
    Fact("", "doca-ofed", "3.2.3", "3.2.3", r"5\.14\.0-687\.25\.1\.el9_8\..*"),
    # stackhpc/ansible-slurm-appliance#712.
    Fact("MLNX_OFED 23.10 does not support RHEL 9.5", "mlnx-ofed", "23.10", "23.10", r".*\.el9_5\..*"),
    # Users of Proxmox VE: modules that were built for its kernels load, and make no queue pairs.
    Fact("the vendor's modules do not work with kernels of Proxmox VE: say stack: inbox", kernel=r".*-pve"),
    # DOCA 2.9 release notes: General Support; Changes and New Features.
    Fact(
        "MLNX_OFED does not support {card}, ConnectX-7 and BlueField-2 were its last: say stack: doca-ofed",
        "mlnx-ofed",
        cards=(CONNECTX8, CONNECTX9, BLUEFIELD3),
    ),
    Fact("DOCA 2.9 was the last for {card}", "doca-ofed", "2.10", cards=(CONNECTX4,)),
    Fact("DOCA 2.9 does not support {card}", "doca-ofed", "2.9", "2.9", cards=(CONNECTX8,)),
)


def against(want: OfedWant, running: str, devices: Devices) -> Iterator[str]:
    """Why a vendor's stack is known not to work with the running kernel or with a NIC of the node."""
    for fact in FACTS:
        if fact.says and _is_about(fact, want, running):
            cards = [nic.device for nic in devices.nics if _is_one(fact, nic)]
            if cards or not fact.cards:
                yield fact.says.format(card=_CARDS.get(cards[0], "") if cards else "")


def works(want: OfedWant, running: str) -> bool:
    """Whether it is known to work with the running kernel."""
    return any(not fact.says and _is_about(fact, want, running) for fact in FACTS)


def _is_one(fact: Fact, nic: Nic) -> bool:
    return nic.vendor == MELLANOX and not nic.is_vf and nic.device in fact.cards


def _is_about(fact: Fact, want: OfedWant, running: str) -> bool:
    return (
        fact.stack in (None, want.stack)
        and fact.modules in ("", want.modules)
        and _is_between(want.version or "", fact.since, fact.until)
        and re.fullmatch(fact.kernel, running) is not None
        and natural(running) >= natural(fact.kernel_since)
    )


def _is_between(version: str, since: str, until: str) -> bool:
    """Whether a version is so; the end is that of a series."""
    words, last = natural(version), natural(until)
    return natural(since) <= words and (not last or words[: len(last)] <= last)
