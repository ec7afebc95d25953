"""What is wrong with what UCX and Open MPI are told, whoever has written it."""

from typing import Dict, Iterator, Mapping, Tuple

from .. import jobs_environment, rails
from ..change import Finding, Unknown
from ..devices import Devices
from ..settings_file import take_apart
from ..texts import natural
from . import files
from .seen import MpiSeen
from .values import NET, TC
from .want import MpiWant

OTHERS = ("all", "")
MOST = 12
"""Names of a list that are told: a user's may have any number."""


def findings(devices: Devices, seen: MpiSeen, want: MpiWant) -> Iterator[Finding]:
    """Everything to be said of a node's MPI."""
    if not seen.installs:
        yield Finding("mpi.missing", ("Open MPI",), "no library where packages put it")
    elif seen.ucx is None:
        yield Finding("mpi.no-ucx", ("UCX",), "no libucp.so.0: messages go over TCP or the old openib transport")
    for who, values in _sources(seen):
        yield from _net_devices(devices, seen, who, values)
        yield from _class(seen, want, who, values)
    yield from jobs_environment.unread(seen.jobs, "mpi.unread")


def _sources(seen: MpiSeen) -> Iterator[Tuple[str, Mapping[str, str]]]:
    text = seen.files.get(files.UCX_CONF)
    if isinstance(text, str):
        form = files.form(files.UCX_CONF)
        content = take_apart(form, text)
        yield files.UCX_CONF, {**content.own, **content.others(form)}
    for job in seen.jobs if isinstance(seen.jobs, tuple) else ():
        yield str(job), job.variables


def _net_devices(devices: Devices, seen: MpiSeen, who: str, values: Mapping[str, str]) -> Iterator[Finding]:
    """Names that UCX finds nothing under. RDMA devices have a port; interfaces, for its transport tcp, have none."""
    text = values.get(NET, "all")
    if "=" in text:
        yield Finding("mpi.net-devices", (who, NET), f"{text}: = is NCCL's; UCX takes names as they are")
        return
    names = {device.name for nic in devices.nics for device in nic.rdma}
    wrong: Dict[str, None] = {}
    for word in text.lstrip("^").split(","):
        name, _, port = word.partition(":")
        there = name in names and port != "" and port in seen.device_ports.get(name, (port,))
        if there or word in OTHERS or word in seen.interfaces:
            continue
        lacks = f"{name} has no port {port}" if port else f"{word} lacks its port, {word}:1"
        wrong[lacks if name in names else f"no device is called {name}"] = None
    more = (f"and {len(wrong) - MOST} more",) if len(wrong) > MOST else ()
    for why in (*tuple(wrong)[:MOST], *more):
        yield Finding("mpi.net-devices", (who, NET), why)


def _class(seen: MpiSeen, want: MpiWant, who: str, values: Mapping[str, str]) -> Iterator[Finding]:
    number = natural(values.get(TC, ""))
    if number is None or want.roce is None:
        return
    wrong: Dict[str, Tuple[str, ...]] = {}
    for rail in want.rails:
        why = rails.astray(seen.ports[rail.pci], number, want.roce) if rail.pci in seen.ports else ""
        if isinstance(why, Unknown):
            yield Finding("mpi.class", (who, TC), f"{rail.rail}: {why.reason}", unknown=True)
        elif why:
            wrong[why] = (*wrong.get(why, ()), rail.rail)
    for why, ports in wrong.items():
        yield Finding("mpi.class", (who, TC), f"{number} is DSCP {number >> 2}, which {why} on {', '.join(ports)}")
