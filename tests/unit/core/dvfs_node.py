"""A node in memory that has GPUs and CPUs: as found, to plan on, and as a host that answers nvidia-smi and sysfs."""

from dataclasses import replace

from gpufab_cli.module_utils.change import ABSENT
from gpufab_cli.module_utils.devices import Devices, Gpu
from gpufab_cli.module_utils.dvfs.seen import CpuSeen, DvfsSeen, GpuSeen, Service
from gpufab_cli.module_utils.dvfs.want import CpuWant, DvfsWant, GpuPolicy, GpuWant
from gpufab_cli.module_utils.host import HostError, Output
from gpufab_cli.module_utils.record import Entry
from gpufab_cli.module_utils.snapshot import Snapshot
from tests.fakes import FakeHost, ok

GPU0, GPU1 = "0000:1b:00.0", "0000:43:00.0"
BOOT = "boot-1"
H100_CLOCKS = tuple(range(210, 1995, 15))
POLICY = GpuPolicy(persistence=True, power_limit_w=650, graphics_mhz=(1200, 1980))

H100 = GpuSeen(
    name="NVIDIA H100 80GB HBM3",
    persistence=False,
    power_limit_w=700.0,
    power_enforced_w=700.0,
    power_default_w=700.0,
    power_min_w=200.0,
    power_max_w=700.0,
    graphics_now_mhz=345,
    ecc=True,
    ecc_pending=True,
    mig=False,
    mig_pending=False,
    throttle=0x1,
    memory_clocks_mhz=(1593, 2619),
    graphics_clocks_mhz=H100_CLOCKS,
    load=77,
)
GOOD = replace(H100, persistence=True, power_limit_w=650.0, power_enforced_w=650.0)

INTEL = CpuSeen(
    driver="intel_pstate",
    mode="active",
    governor=(("powersave", "0-3"),),
    governors=("performance", "powersave"),
    epp=(("balance_performance", "0-3"),),
    epps=("default", "performance", "balance_performance", "balance_power", "power"),
    min_khz=(("800000", "0-3"),),
    max_khz=(("3800000", "0-3"),),
    range_khz=(800000, 3800000),
    boost=True,
    latency_us=(("any", "0-3"),),
)


def locked(pci=GPU0, value=(1200, 1980), boot=BOOT, load="77", name="graphics_mhz"):
    return Entry((pci, name), value, boot, load=load)


def want(policy=POLICY, gpus=(GPU0,), **changes):
    return DvfsWant(policies={"default": policy}, gpus=tuple(GpuWant(pci, "default") for pci in gpus), **changes)


def cpu_want(**wish):
    return DvfsWant(cpu=CpuWant(**wish))


def snapshot(gpus=None, records=(), boot=BOOT, device="0x2330", **seen):
    found = {GPU0: GOOD} if gpus is None else gpus
    pcis = found if isinstance(found, dict) else {GPU0: None}
    devices = Devices(gpus=tuple(Gpu(pci, "0x10de", device, "nvidia", 0) for pci in (*pcis, *seen.get("lost", {}))))
    return Snapshot(boot, 0, devices, {"dvfs": DvfsSeen(gpus=found, **seen)}, records={"dvfs": records})


def service(active="active", loaded=True, starting=False, enabled="enabled"):
    return Service(loaded, active, starting, enabled)


UNITS = ("nvidia-persistenced", "nvidia-fabricmanager", "tuned", "power-profiles-daemon", "cpupower")


class GpuHost(FakeHost):
    """Answers nvidia-smi out of ``gpus``, PCI address by GpuSeen, as the driver keeps them.

    ``refuses`` names the GPUs that refuse a power limit; ``locks`` holds what clocks are really locked.
    """

    def __init__(self, gpus):
        super().__init__()
        self.gpus, self.locks, self.refuses, self.ignores = dict(gpus), {}, set(), set()
        self.files["/proc/sys/kernel/random/boot_id"] = BOOT + "\n"
        self.systemd = dict.fromkeys(UNITS, "LoadState=not-found\nActiveState=inactive\nUnitFileState=")
        for pci in gpus:
            base = f"/sys/bus/pci/devices/{pci}"
            self.files |= {f"{base}/class": "0x030200\n", f"{base}/vendor": "0x10de\n", f"{base}/device": "0x2330\n"}
            self.links[f"{base}/driver"] = "../../../../bus/pci/drivers/nvidia"
            self.load(pci, 77)

    def load(self, pci, number):
        """The driver binds to the GPU, for the ``number``-th time."""
        self.links[f"/sys/bus/pci/drivers/nvidia/{pci}"] = "x"
        self.inodes[f"/sys/bus/pci/drivers/nvidia/{pci}"] = number

    def reload(self):
        """Unload and load the driver: everything is as from the factory."""
        for pci in self.gpus:
            self.gpus[pci] = replace(self.gpus[pci], persistence=False, power_limit_w=700.0, power_enforced_w=700.0)
            self.load(pci, self.inodes[f"/sys/bus/pci/drivers/nvidia/{pci}"] + 1)
        self.locks.clear()

    def _answer(self, argv):
        if argv[0] == "nvidia-smi":
            return self._smi(list(argv[1:]))
        if argv[:2] == ("systemctl", "show"):
            if self.systemd is None:
                return Output(1, "", "no answer\n")
            return ok("\n\n".join(f"Id={unit}.service\n{text}" for unit, text in self.systemd.items()))
        if argv[:2] == ("devlink", "-j"):
            return ok({"info": {}})
        return super()._answer(argv)

    def _smi(self, argv):
        chosen = list(self.gpus)
        if argv[0] == "-i":
            chosen, argv = [argv[1]], argv[2:]
        lost = next((pci for pci in chosen if self.gpus[pci] is None), None)
        if lost is not None:
            return Output(15, f"Unable to determine the device handle for GPU {smi(lost)}: GPU is lost.\n", "")
        if argv[0].startswith("--query-gpu="):
            return self._query(chosen, argv[0].partition("=")[2].split(","))
        if argv[0].startswith("--query-supported-clocks"):
            rows = [f"{smi(p)}, {m}, {c}" for p in chosen for m in self.gpus[p].memory_clocks_mhz for c in H100_CLOCKS]
            return ok("\n".join(rows))
        if argv[0].startswith("--query-compute-apps"):
            return ok("")
        (pci,) = chosen
        return self._set(pci, argv)

    def _query(self, chosen, fields):
        if any(field not in _CELLS for field in fields):
            return Output(2, f'Field "{fields[-1]}" is not a valid field to query.\n', "")
        return ok("\n".join(", ".join(_CELLS[field](pci, self.gpus[pci]) for field in fields) for pci in chosen))

    def _set(self, pci, argv):
        gpu, word, value = self.gpus[pci], argv[0], argv[1] if len(argv) > 1 else ""
        if pci in self.ignores:
            return ok(
                f"Changing it is not supported for GPU: {smi(pci)}.\nTreating as warning and moving on.\nAll done.\n"
            )
        if word == "-pl" and pci in self.refuses:
            return Output(4, f"Failed to set power management limit for GPU {smi(pci)}: Insufficient Permissions\n", "")
        if word == "-pm":
            self.gpus[pci] = replace(gpu, persistence=value == "1")
        elif word == "-pl":
            self.gpus[pci] = replace(gpu, power_limit_w=float(value), power_enforced_w=float(value))
        elif word in ("-lgc", "-lmc"):
            self.locks[pci, word] = tuple(map(int, value.split(",")))
        elif word in ("-rgc", "-rmc"):
            self.locks.pop((pci, word.replace("r", "l")), None)
        elif word == "-e":
            self.gpus[pci] = replace(gpu, ecc_pending=value == "1")
        elif word == "-mig":
            self.gpus[pci] = replace(gpu, mig=value == "1", mig_pending=value == "1")
        else:
            raise HostError(word)
        return ok("All done.\n")


def smi(pci):
    return f"0000{pci}".upper()


def _word(value):
    return "[N/A]" if value is ABSENT else {True: "Enabled", False: "Disabled"}.get(value, str(value))


def _watts(value):
    return "[N/A]" if value is ABSENT else f"{value:.2f}"


_CELLS = {
    "pci.bus_id": lambda pci, gpu: smi(pci),
    "name": lambda pci, gpu: gpu.name,
    "persistence_mode": lambda pci, gpu: _word(gpu.persistence),
    "power.limit": lambda pci, gpu: _watts(gpu.power_limit_w),
    "enforced.power.limit": lambda pci, gpu: _watts(gpu.power_enforced_w),
    "power.default_limit": lambda pci, gpu: _watts(gpu.power_default_w),
    "power.min_limit": lambda pci, gpu: _watts(gpu.power_min_w),
    "power.max_limit": lambda pci, gpu: _watts(gpu.power_max_w),
    "clocks.gr": lambda pci, gpu: str(gpu.graphics_now_mhz),
    "ecc.mode.current": lambda pci, gpu: _word(gpu.ecc),
    "ecc.mode.pending": lambda pci, gpu: _word(gpu.ecc_pending),
    "mig.mode.current": lambda pci, gpu: _word(gpu.mig),
    "mig.mode.pending": lambda pci, gpu: _word(gpu.mig_pending),
    "clocks_throttle_reasons.active": lambda pci, gpu: f"0x{gpu.throttle:016x}",  # as before R535
}
