"""What the lab may ask of a hardware process."""

import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from gpufab_cli.lab.hardware import drift, drift_numa, drift_power, gpu_software, sriov
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.state import Fault

Reply = dict[str, Any]


def answer(hw: Hardware, token: str, request: dict[str, Any]) -> Reply:
    """Answers one request; an error is `{"error": text}`. `token` is the lab's, which must ask with it."""
    if request.pop("token", None) != token:
        return {"error": "this is the hardware of another lab"}
    verb = _VERBS.get(str(request.pop("verb", "")))
    if verb is None:
        return {"error": "unknown verb"}
    try:
        return verb(hw, **request)
    except (OSError, TypeError, KeyError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _status(hw: Hardware) -> Reply:
    return {
        "pid": os.getpid(),
        "init": hw.node.pid if hw.node is not None else None,
        "boot_id": hw.state.boot_id,
        "boots": hw.state.boots,
        "faults": [asdict(fault) for fault in hw.state.faults],
    }


def _break(hw: Hardware, name: str, target: str, count: int) -> Reply:
    """Puts a lasting fault in force."""
    hw.set_fault(Fault(name, target, count))
    return {}


def _repair(hw: Hardware, name: str, target: str | None = None) -> Reply:
    """Ends a lasting fault."""
    hw.clear_fault(name, target)
    return {}


def _drift(hw: Hardware, name: str, netdev: str) -> Reply:
    """Changes settings behind gpufab's back."""
    {**drift.DRIFTS, **drift_numa.DRIFTS}[name](hw, netdev)
    return {}


def _drift_power(hw: Hardware, name: str, gpu: int) -> Reply:
    """Changes clocks or power behind gpufab's back."""
    drift_power.DRIFTS[name](hw, gpu)
    return {}


def _upgrade_driver(hw: Hardware) -> Reply:
    """The packages of the GPUs' driver are upgraded."""
    gpu_software.upgrade(hw)
    return {"version": gpu_software.installed(hw)}


def _firmware(hw: Hardware, netdev: str, name: str, value: int) -> Reply:
    """The card has run with this parameter since its last reset; {port} in its name is the port's number."""
    place = hw.place(netdev)
    if place is not None:
        card, parameter = sriov.card_of(hw, place), name.format(port=int(place.pci[-1]) + 1)
        card.current[parameter] = card.next[parameter] = value
        hw.save()
    return {}


_VERBS: dict[str, Callable[..., Reply]] = {
    "status": _status,
    "break": _break,
    "repair": _repair,
    "drift": _drift,
    "drift-power": _drift_power,
    "upgrade-driver": _upgrade_driver,
    "firmware": _firmware,
}
