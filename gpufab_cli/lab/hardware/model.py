"""The machine: its state, its cables and what mlx5 does when told something.

Methods that set something raise OSError with the errno the kernel gives; both faces turn that into what a user sees.
"""

import errno
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from gpufab_cli.lab.hardware.netdev import Links, Node, no_device
from gpufab_cli.lab.hardware.state import Cma, Ets, Fault, Port, State
from gpufab_cli.lab.hardware.writes import Writes
from gpufab_cli.lab.machine import Identity, Machine, PortPlace

# How long a link stays down when the driver toggles it; real optics take seconds, which tests need not wait for.
FLAP_S = 0.1
FOREIGN_CNP_DSCP = 4
# mlx5's limits of the cable length in metres.
_CABLE_M = range(1, 1000)
WHOLE_PERCENT = 100


@dataclass(frozen=True)
class Cables:
    """Where the rails' far ends are: interface names by rail, in the lab's network namespace."""

    links: Links
    ends: tuple[str, ...]


def fail(code: int) -> OSError:
    """The OSError of an errno."""
    return OSError(code, os.strerror(code))


class Plug(Protocol):
    """The node's side of what VFs bring: netdevs with their cables, and device files."""

    def attach(self, rail: int, index: int, name: str, mac: str) -> None:
        """A VF's netdev comes, with a cable to its rail."""

    def detach(self, rail: int, index: int) -> None:
        """It goes, wherever it has been moved to."""

    def device(self, path: str, present: bool) -> None:
        """A file below /dev comes or goes."""


class Hardware:
    """One machine."""

    def __init__(self, machine: Machine, identity: Identity, state_path: Path, cables: Cables | None = None) -> None:
        self.machine = machine
        self.identity = identity
        self._path = state_path
        self.state = State.load(state_path) if state_path.exists() else State.factory(machine)
        self.writes = Writes(state_path.with_name("writes.jsonl"), self.state)
        self.cables = cables
        self.node: Node | None = None
        self.plug: Plug | None = None
        self.kernel_log: list[str] = []
        self.structure = 0  # grows whenever files of /sys may have come or gone
        self._discarded: Counter[str] = Counter()
        self._lock = threading.RLock()
        self._thread = threading.local()

    # ---- state -------------------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Writes the state down."""
        with self._lock:
            self.state.save(self._path)

    def restructure(self) -> None:
        """Tells the /sys face that files may have come or gone."""
        self.structure += 1

    def log(self, line: str) -> None:
        """The kernel says something."""
        self.kernel_log.append(line)

    def live(self) -> Node:
        """The node's interfaces.

        Raises:
            OSError: ENODEV while the node is down.
        """
        if self.node is None:
            raise no_device()
        return self.node

    def place(self, netdev: str) -> PortPlace | None:
        """The port behind a netdev, None for interfaces that are no hardware."""
        return next((port for port in self.machine.ports if port.netdev == netdev), None)

    def serial(self, rail: int) -> str:
        """The serial number of a port's card, one for all its ports; of another card when it was swapped."""
        slots = [port.pci.rsplit(".", 1)[0] for port in self.machine.ports]
        swapped = self.state.fault("nic-swapped", self.machine.ports[rail].netdev)
        return self.identity.serial("MX" if swapped else "MT", slots.index(slots[rail]))

    def port(self, netdev: str) -> Port:
        """The settings of a port."""
        return self.state.ports[netdev]

    def reboot(self) -> None:
        """A power cycle: what hardware forgets is forgotten."""
        with self._lock:
            self.state.reboot(mig_is_live=self.machine.gpu.mig == "live")
            self.kernel_log.clear()
            self.restructure()
            self.save()

    def driver_reload(self) -> None:
        """Unloads and loads the NIC driver and rdma_cm; the links go down and up."""
        with self._lock:
            self.state.driver_reload()
            self.restructure()
            self.save()
        for port in self.machine.ports:
            self.flap(port.netdev)

    @contextmanager
    def pretending(self) -> Iterator[None]:
        """While it holds, settings made by this thread are accepted and forgotten."""
        self._thread.pretends = True
        try:
            yield
        finally:
            self._thread.pretends = False

    def edit(self, edit: Callable[[], None]) -> None:
        """Edits the state and saves, unless this thread pretends."""
        if getattr(self._thread, "pretends", False):
            return
        with self._lock:
            edit()
            self.save()

    def change(self, netdev: str, edit: Callable[[Port], None]) -> None:
        """Edits a port and saves. A foreign writer has answered before anybody can read back."""

        def edit_all() -> None:
            edit(self.port(netdev))
            if self.state.fault("foreign-writer", netdev):
                self.port(netdev).np["cnp_dscp"] = FOREIGN_CNP_DSCP

        self.edit(edit_all)

    # ---- links -------------------------------------------------------------------------------------------------------

    def _cable(self, netdev: str, up: bool) -> None:
        place = self.place(netdev)
        if self.cables is not None and place is not None:
            self.cables.links.set_up(self.cables.ends[self.machine.ports.index(place)], up)

    def flap(self, netdev: str) -> None:
        """Takes the link down and brings it back after FLAP_S, unless it is held down by a fault."""
        if self.state.fault("link-down", netdev):
            return
        self.port(netdev).link_downs += 1
        self._cable(netdev, False)
        timer = threading.Timer(FLAP_S, self._rise, [netdev])
        timer.daemon = True
        timer.start()

    def _rise(self, netdev: str) -> None:
        if not self.state.fault("link-down", netdev):
            self._cable(netdev, True)

    def carrier(self, netdev: str) -> bool:
        """Whether the link is up."""
        return self.live().carrier(netdev)

    def discards(self, netdev: str) -> int:
        """Packets that the port has dropped on their way in; while errors rise, one more at each look."""
        self._discarded[netdev] += self.state.fault("errors-rising", netdev) is not None
        return self._discarded[netdev]

    def negotiated(self, netdev: str) -> bool:
        """Whether DCBX in the firmware owns PFC, ETS and the map: what the host sets then, it soon sets back."""
        return "host" not in self.port(netdev).dcbx

    # ---- mlx5 --------------------------------------------------------------------------------------------------------

    def set_pfc(self, netdev: str, pfc: list[bool], delay: int | None) -> None:
        """Sets PFC. mlx5 clears global pause with it and toggles the link when the mask changes.

        Args:
            netdev: The port.
            pfc: One flag a priority.
            delay: Cable length in metres; None leaves it, and so does what is outside 1..999: the driver says nothing
                (en_dcbnl.c, mlx5e_dcbnl_ieee_setpfc).
        """

        def edit(port: Port) -> None:
            port.pfc = pfc
            port.pause_rx = port.pause_tx = False
            self.flap(netdev)

        if self.port(netdev).pfc != pfc and not self.negotiated(netdev):
            self.change(netdev, edit)
        if delay in _CABLE_M and delay != self.port(netdev).pfc_delay:
            self.change(netdev, lambda port: setattr(port, "pfc_delay", delay))

    def set_pause(self, netdev: str, rx: bool, tx: bool) -> None:
        """Sets global pause; mlx5 clears PFC with it. The kernel passes on only what differs."""

        def edit(port: Port) -> None:
            port.pause_rx, port.pause_tx = rx, tx
            port.pfc = [False] * len(port.pfc)

        if (rx, tx) != (self.port(netdev).pause_rx, self.port(netdev).pause_tx):
            self.change(netdev, edit)

    def set_ets(self, netdev: str, ets: Ets) -> None:
        """Sets transmission selection.

        Raises:
            OSError: EINVAL when shares of ets classes do not add up to 100; EOPNOTSUPP for a selection mlx5 lacks.
        """
        if "cbs" in ets.tsa:
            raise fail(errno.EOPNOTSUPP)
        shares = [bw for tsa, bw in zip(ets.tsa, ets.bw, strict=True) if tsa == "ets"]
        if shares and sum(shares) != WHOLE_PERCENT:
            raise fail(errno.EINVAL)
        if not self.negotiated(netdev):
            self.change(netdev, lambda port: setattr(port, "ets", ets))

    def set_buffer(self, netdev: str, prio_buffer: list[int], sizes: list[int]) -> None:
        """Sets receive buffers in bytes.

        Raises:
            OSError: EINVAL when they exceed the port's buffer.
        """
        if sum(sizes) > self.machine.nic.buffer_bytes:
            raise fail(errno.EINVAL)

        def edit(port: Port) -> None:
            port.prio_buffer, port.buffer_size = prio_buffer, sizes

        self.change(netdev, edit)

    def set_dscp(self, netdev: str, dscp: int, priority: int) -> None:
        """Maps a DSCP; mlx5 holds one priority a DSCP, and a new one takes the place of the old."""
        self.change(netdev, lambda port: port.dscp.update({dscp: priority}))

    def set_dscp_map(self, netdev: str, table: dict[int, int]) -> None:
        """Sets the whole map; an empty one means that the port trusts PCP."""
        self.change(netdev, lambda port: setattr(port, "dscp", table))

    def unset_dscp(self, netdev: str, dscp: int, priority: int) -> None:
        """Removes a mapping.

        Raises:
            OSError: ENOENT when there is no such mapping.
        """
        if self.port(netdev).dscp.get(dscp) != priority:
            raise fail(errno.ENOENT)

        def edit(port: Port) -> None:
            del port.dscp[dscp]

        self.change(netdev, edit)

    # ---- RDMA-CM -----------------------------------------------------------------------------------------------------

    def cma_directory(self, netdev: str, present: bool) -> None:
        """Makes or removes a device's directory in configfs; its values live on in rdma_cm."""
        self.change(netdev, lambda port: setattr(port.cma, "directory", present))
        self.restructure()

    # ---- faults ------------------------------------------------------------------------------------------------------

    def set_fault(self, fault: Fault) -> None:
        """Puts a lasting fault in force."""
        with self._lock:
            self.writes.set_fault(fault)
            if fault.name == "no-rdma-cm":
                for port in self.state.ports.values():
                    port.cma = Cma()  # unloading the module loses its values
            self.restructure()
            self.save()
        if fault.name == "foreign-writer":
            self.change(fault.target, lambda _: None)
        if fault.name == "link-down":
            self.port(fault.target).link_downs += 1
            self._cable(fault.target, False)

    def clear_fault(self, name: str, target: str | None = None) -> None:
        """Ends a lasting fault."""
        with self._lock:
            held = [f.target for f in self.state.faults if f.name == "link-down" and name == f.name]
            self.writes.clear_fault(name, target)
            self.restructure()
            self.save()
        for netdev in held:
            self._rise(netdev)
