"""fabric.lock.yml: which physical device is which rail. Written by ``gpufab lock``, committed, never guessed again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from pydantic import Field, model_validator

from gpufab_cli.module_utils.schema import MacAddress, PciAddress
from gpufab_cli.spec.base import Model
from gpufab_cli.spec.faults import Fault, raise_any
from gpufab_cli.spec.load import load_model
from gpufab_cli.spec.text import OneLine, dumps
from gpufab_cli.spec.types import Guid, HostName, RailName, SerialNumber

FILE_NAME = "fabric.lock.yml"
HEADER = """\
# Written by `gpufab lock`: which device is which rail. Commit it; `gpufab lock --update HOST` changes it.
---
"""


class LockedPort(Model):
    """The device that a rail's port is. What the device would not tell when it was locked is left out.

    Ethernet ports are told apart by ``mac``, InfiniBand ports by ``guid``: that of the RDMA device's node.
    """

    pci: PciAddress
    mac: MacAddress | None = None
    guid: Guid | None = None
    serial: SerialNumber | None = None
    psid: SerialNumber | None = None


class LockedGpu(Model):
    """One GPU, told by its address. That it is of the right model is checked by PCI device id (``gpus: model:``)."""

    pci: PciAddress


class LockedHost(Model):
    """The devices of one host; ports by rail name, such as compute/3."""

    ports: dict[RailName, LockedPort] = Field(default_factory=dict)
    gpus: tuple[LockedGpu, ...] = ()


class Lock(Model):
    """A whole fabric.lock.yml."""

    hosts: dict[HostName, LockedHost] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(_faults(self))
        return self


def _faults(lock: Lock) -> Iterator[Fault]:
    """One device in two places: a copied entry, or a card that has moved."""
    macs: dict[str, str] = {}
    guids: dict[str, str] = {}
    for name, host in lock.hosts.items():
        taken: dict[str, str] = {}
        for rail, port in host.ports.items():
            loc = ("hosts", name, "ports", rail)
            yield from _taken((*loc, "pci"), port.pci, f"{name} {rail}", taken)
            if port.mac is not None:
                yield from _taken((*loc, "mac"), port.mac, f"{name} {rail}", macs)
            if port.guid is not None:
                yield from _taken((*loc, "guid"), port.guid, f"{name} {rail}", guids)
        for index, gpu in enumerate(host.gpus):
            yield from _taken(("hosts", name, "gpus", index, "pci"), gpu.pci, f"{name} GPU {index}", taken)


def _taken(loc: tuple[Any, ...], value: str, owner: str, owners: dict[str, str]) -> Iterator[Fault]:
    first = owners.setdefault(value, owner)
    if first != owner:
        yield Fault(loc, f"{value} is already {first}", "run gpufab lock --update for the host that changed")


def lock_path(fabric: Path) -> Path:
    """Where the lock of a fabric.yml lies."""
    return fabric.parent / FILE_NAME


def load_lock(fabric: Path) -> Lock:
    """The lock beside a fabric.yml; an empty one if there is none yet.

    Raises:
        SpecErrors: all that is wrong with the file.
    """
    path = lock_path(fabric)
    return load_model(path, Lock) if path.exists() else Lock()


def dump(lock: Lock) -> str:
    """The text of a lock: hosts by name, one line a device."""
    return HEADER + dumps({"hosts": {name: _host_data(lock.hosts[name]) for name in sorted(lock.hosts)}})


def _host_data(host: LockedHost) -> dict[str, Any]:
    ports = {rail: OneLine(port.model_dump(exclude_none=True)) for rail, port in host.ports.items()}
    gpus = [gpu.model_dump(exclude_none=True) for gpu in host.gpus]
    return {key: value for key, value in (("ports", ports), ("gpus", gpus)) if value}
