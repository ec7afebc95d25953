"""Look at the wanted cards: their parameters, and the VFs that a reset would take away."""

from typing import List, Tuple, Union

from .. import vfs
from ..change import Unknown
from ..devices import Devices
from ..host import Reader
from . import backend
from .cards import Card, cards, found_serial, functions
from .seen import CardSeen, FirmwareSeen
from .want import FirmwareWant

GATE = "ADVANCED_PCI_SETTINGS"
"""Parameters such as MAX_ACC_OUT_READ show only once this one is current."""


def gather(host: Reader, devices: Devices, want: FirmwareWant) -> FirmwareSeen:
    """Read every wanted card that is there; what is wrong with the others is the plan's to say."""
    held = vfs.holders(host) if want.ports else vfs.Held({}, {})
    present = [card for card in cards(want.ports, found_serial(devices)) if devices.nic(card.pci) is not None]
    return FirmwareSeen({card.pci: _card(host, devices, card, held) for card in present})


def _card(host: Reader, devices: Devices, card: Card, held: vfs.Holders) -> CardSeen:
    names = tuple(dict.fromkeys([*card.parameters, GATE]))
    found = [vf for pci in functions(devices, card.pci) for vf in vfs.read(host, pci)]
    return CardSeen(
        parameters=backend.read(host, card.pci, names) if card.parameters else {},
        vfs=len(found),
        users=_users(host, found, held),
    )


def _users(host: Reader, found: List[vfs.Vf], held: vfs.Holders) -> Union[Tuple[str, ...], Unknown]:
    users: List[str] = []
    for vf in found:
        own = vfs.users(host, vf, held)
        if isinstance(own, Unknown):
            return own
        users += own
    return tuple(users)
