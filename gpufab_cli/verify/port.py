"""What was read of one port, by whichever stack it has, and the reasons why some of it may not be known."""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from gpufab_cli.verify import parsers, stacks
from gpufab_cli.verify.compare import compare
from gpufab_cli.verify.expected import Port
from gpufab_cli.verify.reading import Reading, Section, UnreadableError

T = TypeVar("T")
Priorities = tuple[int, ...]
CC_PARAMS, BNXT = "cc_params", "configfs of bnxt_re"


class PortReading:
    """What was read of one port."""

    def __init__(self, reading: Reading, port: Port) -> None:
        self._reading, self._port = reading, port

    def _section(self, name: str) -> Section:
        return self._reading.section(f"{self._port.pci}/{name}")

    def _has(self, name: str) -> bool:
        return self._section(name).there

    def names(self) -> list[str]:
        """The netdevs of the port's PCI function."""
        names = self._section("netdevs").lines("sysfs")
        if not all(re.fullmatch(r"[!-.0-~]{1,15}", name) for name in names):
            raise UnreadableError("sysfs: names of netdevs are garbled")
        return names

    @property
    def netdev(self) -> str:
        """The one netdev."""
        names = self.names()
        if len(names) != 1:
            raise UnreadableError(f"{self._port.pci} has {len(names)} netdevs")
        return names[0]

    def text(self, name: str, tool: str) -> str:
        """The text of a section about the netdev, printed by a tool that may be missing."""
        return self.section(name).require(tool)

    def section(self, name: str) -> Section:
        """A section about the netdev."""
        _ = self.netdev
        return self._section(name)

    def rdma_links(self) -> list[tuple[str, str, str]]:
        """(name, state, physical state) of the RDMA devices on the netdev, or on its bond: a RoCE LAG has one."""
        text = self._reading.section("rdma").require("rdma link")
        own = parsers.rdma_links(text, self.netdev)
        bonded = [] if own else self.section("bonded").lines("sysfs")
        return own or [link for netdev in bonded for link in parsers.rdma_links(text, netdev)]

    def rdma_section(self, name: str) -> Section:
        """A section about the one RDMA device."""
        links = self.rdma_links()
        if len(links) != 1:
            raise UnreadableError(f"{len(links)} RDMA devices on the port")
        return self._section(name)

    # ---- DCB: by dcb, or by mlnx_qos where there is no dcb ---------------------------------------------------------

    def _dcb(self, name: str, by_dcb: Callable[[str], T], by_mlnx_qos: Callable[[str], T]) -> T:
        if not self._has(name) and self._has("mlnx-qos"):
            return by_mlnx_qos(self.text("mlnx-qos", "mlnx_qos"))
        return by_dcb(self.text(name, {"dscp": "dcb app", "buffers": "dcb buffer"}.get(name, f"dcb {name}")))

    def dscp(self) -> dict[int, Priorities]:
        """The priorities of each DSCP."""
        return self._dcb("dscp", parsers.dscp, stacks.dscp)

    def pfc(self) -> Priorities:
        """The priorities with PFC."""
        return self._dcb("pfc", parsers.pfc, stacks.pfc)

    def ets(self) -> stacks.Classes:
        """Traffic class of each priority, algorithm and share of each class."""
        return self._dcb("ets", parsers.ets, stacks.ets)

    def cable_m(self) -> int:
        """The cable length in metres."""
        return self._dcb("pfc", parsers.cable_m, stacks.cable_m)

    def buffers(self) -> tuple[Priorities, Priorities]:
        """The receive buffer of each priority, and the bytes of each buffer."""
        return self._dcb("buffers", parsers.buffers, stacks.buffers)

    # ---- congestion control: the vendor's sysfs, debugfs of the kernel's mlx5, configfs of bnxt_re -----------------

    def _debugfs(self) -> dict[str, int]:
        return parsers.named_numbers(self.text("cc-params", CC_PARAMS))

    def _bnxt(self) -> dict[str, int]:
        section = self.rdma_section("bnxt")
        compare(section.code != "unmade", "nobody has made the device's directory in configfs of bnxt_re")
        return stacks.hexadecimal(section.require(BNXT))

    def ecn(self) -> tuple[Priorities, Priorities]:
        """The priorities for which CNPs are sent, and those that react to them."""
        if self._has("cc-params"):
            parameter = f"ROCE_CC_PRIO_MASK_P{int(self._port.pci[-1]) + 1}"
            running, _ = parsers.firmware(self.text("cc-mask", "mlxconfig or mstconfig"), parameter)
            both = stacks.mask(running)
        elif self._has("bnxt"):
            values = self._bnxt()
            on = all(stacks.number(values, name, BNXT) for name in ("ecn_enable", "ecn_marking"))
            both = (stacks.number(values, "roce_prio", BNXT),) if on else ()
        else:
            np, rp = (parsers.flags(self.text(point, f"ecn/roce_{point}")) for point in ("np", "rp"))
            return np, rp
        return both, both

    def cnp(self) -> tuple[int, int | None]:
        """DSCP and priority of CNPs; None while the firmware chooses the priority."""
        if self._has("cc-params"):
            return stacks.debugfs_cnp(self._debugfs())
        if self._has("bnxt"):
            values = self._bnxt()
            return stacks.number(values, "cnp_dscp", BNXT), stacks.number(values, "cnp_prio", BNXT)
        return parsers.two_numbers(self.text("cnp", "ecn/roce_np"))

    def dcqcn(self, knobs: Iterable[str]) -> dict[str, int]:
        """DCQCN parameters by their usual names."""
        if self._has("cc-params"):
            values = self._debugfs()
            return {knob: stacks.dcqcn(values, stacks.DEBUGFS_NAMES, knob, CC_PARAMS) for knob in knobs}
        if self._has("bnxt"):
            values = self._bnxt()
            return {knob: stacks.dcqcn(values, stacks.BNXT_NAMES, knob, BNXT) for knob in knobs}
        values = parsers.named_numbers(self.text("dcqcn", "ecn/"))
        return {knob: stacks.number(values, knob, "ecn/") for knob in knobs}

    def traffic_class(self) -> int | None:
        """The traffic class forced on every queue pair; None: none is."""
        if self._has("bnxt"):
            values = self._bnxt()
            return stacks.number(values, "roce_dscp", BNXT) << 2 | stacks.number(values, "ecn_marking", BNXT)
        return parsers.traffic_class(self.rdma_section("traffic-class").require("tc/1/traffic_class"))
