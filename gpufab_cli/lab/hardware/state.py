"""What a machine remembers: per port the running settings, and the faults in force. Saved as JSON after each change."""

import json
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpufab_cli.lab.hardware.cards import Card
from gpufab_cli.lab.hardware.gpu_state import CpuState, GpuState
from gpufab_cli.lab.hardware.numa_state import NumaState
from gpufab_cli.lab.hardware.vf_state import Sriov
from gpufab_cli.lab.machine import Machine

PRIORITIES = 8

# ConnectX-7 firmware defaults (NVIDIA "DCQCN CC parameters"); units: see docs/lab.md.
NP_DEFAULTS = {"min_time_between_cnps": 4, "cnp_dscp": 48, "cnp_802p_prio": 6}
RP_DEFAULTS = {
    "clamp_tgt_rate": 0,
    "clamp_tgt_rate_after_time_inc": 1,
    "rpg_time_reset": 300,
    "rpg_byte_reset": 32767,
    "rpg_threshold": 1,
    "rpg_max_rate": 0,
    "rpg_ai_rate": 5,
    "rpg_hai_rate": 50,
    "rpg_gd": 11,
    "rpg_min_dec_fac": 50,
    "rpg_min_rate": 1,
    "rate_to_set_on_first_cnp": 0,
    "dce_tcp_g": 1019,
    "dce_tcp_rtt": 1,
    "rate_reduce_monitor_period": 4,
    "initial_alpha_value": 1023,
}
# Broadcom bnxt_re's own (bnxt_re.h): RoCE on DSCP 26 and priority 3, CNPs on 48 and 7.
BNXT_DEFAULTS = {
    "ecn_enable": 1,
    "ecn_marking": 1,
    "cc_mode": 1,
    "roce_prio": 3,
    "roce_dscp": 26,
    "cnp_prio": 7,
    "cnp_dscp": 48,
    "disable_prio_vlan_tx": 1,
    "min_time_bet_cnp": 0,
}
# Faults that are processes: they end with the boot they run in.
PROCESSES = frozenset({"verbs-busy", "gpu-busy", "ssh-over-rail", "vf-busy", "foreign-writer"})
ROCE_MODES = ("IB/RoCE v1", "RoCE v2")


def _all_off() -> list[bool]:
    return [False] * PRIORITIES


def _all_on() -> list[bool]:
    return [True] * PRIORITIES


def _zeros() -> list[int]:
    return [0] * PRIORITIES


@dataclass
class Ets:
    """Transmission selection as the mlx5 driver sets it up: all vendor, priorities 0 and 1 crossed."""

    tsa: list[str] = field(default_factory=lambda: ["vendor"] * PRIORITIES)
    bw: list[int] = field(default_factory=_zeros)
    prio_tc: list[int] = field(default_factory=lambda: [1, 0, 2, 3, 4, 5, 6, 7])


@dataclass
class Cma:
    """RDMA-CM defaults of one device: kept by rdma_cm, shown in configfs only while the directory exists."""

    directory: bool = False
    tos: int = 0
    mode: str = "RoCE v2"


@dataclass
class Port:
    """Running settings of one port. Every field but `dscp` falls back to its default when the driver reloads."""

    dscp: dict[int, int] = field(default_factory=dict)
    pfc: list[bool] = field(default_factory=_all_off)
    pfc_delay: int = 7
    pause_rx: bool = True
    pause_tx: bool = True
    ets: Ets = field(default_factory=Ets)
    prio_buffer: list[int] = field(default_factory=_zeros)
    buffer_size: list[int] = field(default_factory=lambda: [262016, 0, 0, 0, 0, 0, 0, 0])
    dcbx: list[str] = field(default_factory=lambda: ["host", "ieee"])
    np_enable: list[bool] = field(default_factory=_all_on)
    rp_enable: list[bool] = field(default_factory=_all_on)
    np: dict[str, int] = field(default_factory=lambda: dict(NP_DEFAULTS))
    rp: dict[str, int] = field(default_factory=lambda: dict(RP_DEFAULTS))
    traffic_class: int | None = None
    cma: Cma = field(default_factory=Cma)
    sriov: Sriov = field(default_factory=Sriov)
    cnp_prio_mode: int = 0
    bnxt: dict[str, int] = field(default_factory=lambda: dict(BNXT_DEFAULTS))
    bnxt_staged: dict[str, int] = field(default_factory=dict)
    bnxt_directory: bool = False
    link_downs: int = 0

    def driver_reload(self) -> "Port":
        """The port after its driver came back: the DSCP map is read back from hardware, the rest is default."""
        return Port(dscp=dict(self.dscp), sriov=Sriov(autoprobe=self.sriov.autoprobe), link_downs=0)


@dataclass(frozen=True)
class Fault:
    """A lasting fault in force; `target` is a netdev or a tool name, `count` the writes left before it strikes."""

    name: str
    target: str = ""
    count: int = 0


@dataclass
class State:
    """The whole machine."""

    ports: dict[str, Port]
    boot_id: str = ""
    boots: int = 0
    faults: list[Fault] = field(default_factory=list)
    cards: dict[str, Card] = field(default_factory=dict)
    """Firmware parameters by the slot of the card."""
    gpus: list[GpuState] = field(default_factory=list)
    gpu_loads: int = 1
    """How often the GPUs' driver was loaded: sysfs shows it."""
    cpu: CpuState = field(default_factory=CpuState)
    driver: str = ""
    """Version of the GPUs' driver that runs; "": the machine's own."""
    driver_installed: str = ""
    """Version of its packages; "": the one that runs."""
    numa: NumaState = field(default_factory=NumaState)

    @classmethod
    def factory(cls, machine: Machine) -> "State":
        """A machine as delivered."""
        gpus = [GpuState() for _ in machine.gpus]
        return cls(ports={port.netdev: Port() for port in machine.ports}, gpus=gpus)

    def reboot(self, *, mig_is_live: bool = False) -> None:
        """Drops what hardware drops at a reboot and takes a new boot id; faults stay, unless they are processes."""
        self.ports = {name: Port() for name in self.ports}
        if not self.fault("firmware-not-applied"):
            for card in self.cards.values():
                card.reset()
        for gpu in self.gpus:
            gpu.unload(mig_is_live)
            gpu.reset()
        self.gpu_loads, self.cpu, self.numa = 1, CpuState(), NumaState()
        self.driver = self.driver_installed or self.driver
        self.faults = [fault for fault in self.faults if fault.name not in PROCESSES]
        self.boot_id = str(uuid.uuid4())
        self.boots += 1

    def driver_reload(self) -> None:
        """All ports come back as after a reload of the NIC driver and rdma_cm."""
        self.ports = {name: port.driver_reload() for name, port in self.ports.items()}

    def fault(self, name: str, target: str = "") -> Fault | None:
        """The fault of that name on that target, if it is in force."""
        return next((f for f in self.faults if f.name == name and f.target in ("", target)), None)

    def held(self, name: str) -> bool:
        """Whether the fault is in force on any target."""
        return any(fault.name == name for fault in self.faults)

    def set_fault(self, fault: Fault) -> None:
        """Adds a fault, in place of the same one on the same target."""
        self.clear_fault(fault.name, fault.target)
        self.faults.append(fault)

    def clear_fault(self, name: str, target: str | None = None) -> None:
        """Ends a fault; without a target on all targets."""
        self.faults = [f for f in self.faults if f.name != name or target not in (None, f.target)]

    def save(self, path: Path) -> None:
        """Writes the state so that a crash leaves the old file or the new one."""
        scratch = path.with_suffix(".new")
        scratch.write_text(json.dumps(self, default=vars))  # asdict copies all of it, at each change
        scratch.replace(path)

    @classmethod
    def load(cls, path: Path) -> "State":
        """Reads what `save` wrote."""
        raw = json.loads(path.read_text())
        return cls(
            ports={name: _port(port) for name, port in raw["ports"].items()},
            boot_id=raw["boot_id"],
            boots=raw["boots"],
            faults=[Fault(**fault) for fault in raw["faults"]],
            cards={slot: Card(**card) for slot, card in raw["cards"].items()},
            gpus=[GpuState.load(gpu) for gpu in raw["gpus"]],
            gpu_loads=raw["gpu_loads"],
            cpu=CpuState(**raw["cpu"]),
            driver=raw["driver"],
            driver_installed=raw["driver_installed"],
            numa=NumaState(**raw["numa"]),
        )


def _port(raw: dict[str, Any]) -> Port:
    """JSON turns the integer keys of the DSCP map into strings: back again."""
    dscp = {int(code): prio for code, prio in raw["dscp"].items()}
    parts = {"dscp": dscp, "ets": Ets(**raw["ets"]), "cma": Cma(**raw["cma"]), "sriov": Sriov.load(raw["sriov"])}
    return Port(**{**raw, **parts})
