"""What packages and drivers may do to those who use the node while they are changed. Pure.

Maintainer scripts of a vendor's stack unload modules, restart openibd by its path and burn firmware. Services can be
kept from starting, a script that calls modprobe cannot: so such packages take the consent that a reload takes.
"""

from typing import Collection, FrozenSet, Tuple

from ..change import Change, Impact
from ..devices import Devices
from .platforms import FIRMWARE_UPDATER
from .recipe import Recipe
from .seen import PackagesSeen

DRIVER = "mlx5_core"
HEAVY = ("packages.version", "packages.other-stack", "packages.firmware-updater")
"""Codes of changes by which packages come or go, and not only files and holds."""
RELOAD = frozenset({Impact.DRIVER_RELOAD, Impact.LINK_FLAP, Impact.TRAFFIC, Impact.SERVICE_RESTART})
BURN = frozenset({Impact.FIRMWARE_RESET})
"""What is burnt runs from the next reset of the card on, whoever makes it."""


def of_reload(seen: PackagesSeen, devices: Devices) -> FrozenSet[Impact]:
    """What is lost while the drivers are loaded anew, or are gone."""
    vfs = frozenset({Impact.VF_LOSS}) if seen.vfs else frozenset()
    return RELOAD | vfs | (BURN if seen.burns else frozenset()) | _management(devices)


def of_changes(
    seen: PackagesSeen, made: Recipe, devices: Devices, changes: Tuple[Change, ...], *, resolved: bool
) -> FrozenSet[Impact]:
    """Of changes that are planned. ``resolved``: the versions of all packages are known, and not only of the roots."""
    if not any(_has_scripts(made, change) for change in changes):
        return frozenset()
    burns = made.burns and (not resolved or any(change.path[0] == FIRMWARE_UPDATER for change in changes))
    return of_reload(seen, devices) | (BURN if burns else frozenset())


def of_packages(seen: PackagesSeen, made: Recipe, devices: Devices, with_scripts: Collection[str]) -> FrozenSet[Impact]:
    """Of packages of a vendor's stack that a rehearsal has found to come, change or go."""
    burns = made.burns and FIRMWARE_UPDATER in with_scripts
    return (of_reload(seen, devices) if with_scripts else frozenset()) | (BURN if burns else frozenset())


def _has_scripts(made: Recipe, change: Change) -> bool:
    """Whether a vendor's package comes, changes or goes; of the distribution's none unloads a driver."""
    if change.code not in HEAVY:
        return False
    vendor = bool(made.modules) or change.code != "packages.version"
    return vendor or made.strange(change.path[0], str(change.current))


def _management(devices: Devices) -> FrozenSet[Impact]:
    """What a port carries that the node depends on would be cut; where it cannot be told, that counts as so."""
    carried = (netdev.carries for nic in devices.nics if nic.driver == DRIVER for netdev in nic.netdevs)
    return frozenset({Impact.MANAGEMENT_PORT}) if any(carried) else frozenset()
