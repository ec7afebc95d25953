"""nvidia-smi: lists, the CSV queries, and hands settings on; the XML is in a file of its own."""

from collections.abc import Callable

from gpufab_cli.lab.hardware import gpu_software, gpus
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools import nvidia_smi_set, nvidia_smi_topo, nvidia_smi_xml
from gpufab_cli.lab.hardware.tools.answer import Answer, Request
from gpufab_cli.lab.hardware.tools.nvidia_smi_words import NA, bus_id, flag

_INVALID_RC = 2
_LOST_RC = 15
_MISMATCH_RC = 18
# What a compute process looks like while the fault gpu-busy is in force.
_BUSY_PID, _BUSY_NAME, _BUSY_MIB = 4242, "python3", 61440
_LONG = {"--id": "-i", "--query": "-q", "--xml-format": "-x", "--list-gpus": "-L"}


# Field, unit of its header, value.
_Field = tuple[str, Callable[[Hardware, int], object]]
_GPU: dict[str, _Field] = {
    "index": ("", lambda _, index: index),
    "name": ("", lambda hw, _: hw.machine.gpu.name),
    "uuid": ("", lambda hw, index: hw.identity.gpu_uuid(index)),
    "serial": ("", lambda hw, index: hw.identity.serial("165", index)),
    "pci.bus_id": ("", bus_id),
    "count": ("", lambda hw, _: len(hw.machine.gpus)),
    "driver_version": ("", lambda hw, _: gpu_software.running(hw)),
    "fabric.state": ("", lambda hw, _: gpu_software.fabric(hw)[0]),
    "fabric.status": ("", lambda hw, _: gpu_software.fabric(hw)[1]),
    "memory.total": ("MiB", lambda hw, _: hw.machine.gpu.memory_mib),
    "memory.used": ("MiB", lambda hw, index: _BUSY_MIB if gpus.busy(hw, index) else 0),
    "power.limit": ("W", lambda hw, index: f"{gpus.limit(hw, index):.2f}"),
    "enforced.power.limit": ("W", lambda hw, index: f"{gpus.limit(hw, index):.2f}"),
    "power.default_limit": ("W", lambda hw, _: f"{hw.machine.gpu.power_w[1]:.2f}"),
    "power.min_limit": ("W", lambda hw, _: f"{hw.machine.gpu.power_w[0]:.2f}"),
    "power.max_limit": ("W", lambda hw, _: f"{hw.machine.gpu.power_w[1]:.2f}"),
    "clocks.max.sm": ("MHz", lambda hw, _: hw.machine.gpu.sm_mhz),
    "clocks.max.graphics": ("MHz", lambda hw, _: hw.machine.gpu.sm_mhz),
    "clocks.max.memory": ("MHz", lambda hw, _: max(hw.machine.gpu.memory_mhz)),
    "clocks.current.graphics": ("MHz", gpus.graphics_clock),
    "clocks_event_reasons.active": ("", lambda hw, index: f"0x{gpus.reasons(hw, index):016x}"),
    "persistence_mode": ("", lambda hw, index: flag(hw.state.gpus[index].persistence)),
    "ecc.mode.current": ("", lambda hw, i: flag(hw.state.gpus[i].ecc) if hw.machine.gpu.ecc else NA),
    "ecc.mode.pending": ("", lambda hw, i: flag(hw.state.gpus[i].ecc_pending) if hw.machine.gpu.ecc else NA),
    "mig.mode.current": ("", lambda hw, i: flag(hw.state.gpus[i].mig) if hw.machine.gpu.mig else NA),
    "mig.mode.pending": ("", lambda hw, i: flag(hw.state.gpus[i].mig_pending) if hw.machine.gpu.mig else NA),
    "compute_mode": ("", lambda *_: "Default"),
}
_GPU["gpu_uuid"], _GPU["gpu_name"], _GPU["gpu_serial"] = _GPU["uuid"], _GPU["name"], _GPU["serial"]
_GPU["gpu_bus_id"], _GPU["clocks.gr"] = _GPU["pci.bus_id"], _GPU["clocks.current.graphics"]
_GPU["clocks_throttle_reasons.active"] = _GPU["clocks_event_reasons.active"]
_APP: dict[str, _Field] = {
    "pid": ("", lambda *_: _BUSY_PID),
    "process_name": ("", lambda *_: _BUSY_NAME),
    "used_gpu_memory": ("MiB", lambda *_: _BUSY_MIB),
    "used_memory": ("MiB", lambda *_: _BUSY_MIB),
    "gpu_uuid": _GPU["uuid"],
    "gpu_name": _GPU["name"],
    "gpu_bus_id": _GPU["pci.bus_id"],
}


def answer(hw: Hardware, request: Request) -> Answer:
    """Answers one call. A GPU that is lost makes every call fail that is not about others only."""
    if request.argv == ("topo", "-m"):
        return Answer(nvidia_smi_topo.text(hw))
    if gpu_software.installed(hw) != gpu_software.running(hw):
        return _mismatch(gpu_software.installed(hw))
    options = dict(_option(word) for word in _joined(request.argv))
    selector = options.pop("-i", "")
    chosen = [index for index in range(len(hw.machine.gpus)) if _is_chosen(hw, index, selector)]
    gone = next((index for index in chosen if gpus.lost(hw, index)), None)
    if not chosen:
        return Answer("No devices were found\n", rc=6)
    if gone is not None:
        where = bus_id(hw, gone).removeprefix("0000")
        said = "GPU is lost.  Reboot the system to recover this GPU"
        return Answer(f"Unable to determine the device handle for GPU {where}: {said}\n\n", rc=_LOST_RC)
    return _read(hw, options, chosen) or nvidia_smi_set.answer(hw, request, options, chosen) or _usage()


def _mismatch(installed: str) -> Answer:
    said = "Failed to initialize NVML: Driver/library version mismatch"
    return Answer(f"{said}\nNVML library version: {installed.rpartition('.')[0]}\n", rc=_MISMATCH_RC)


def _usage() -> Answer:
    return Answer("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n", rc=1)


def _read(hw: Hardware, options: dict[str, str], chosen: list[int]) -> Answer | None:
    """Answers what only looks."""
    style = options.get("--format", "")
    if "-L" in options:
        return Answer("".join(f"GPU {i}: {hw.machine.gpu.name} (UUID: {hw.identity.gpu_uuid(i)})\n" for i in chosen))
    if "-q" in options and "-x" in options:
        return Answer(nvidia_smi_xml.log(hw, chosen))
    if "--query-gpu" in options:
        return _csv(hw, options["--query-gpu"], _GPU, chosen, style)
    if "--query-compute-apps" in options:
        return _csv(hw, options["--query-compute-apps"], _APP, [i for i in chosen if gpus.busy(hw, i)], style)
    if "--query-supported-clocks" in options:
        return _supported(hw, options["--query-supported-clocks"].split(","), chosen, style)
    return None


def _is_chosen(hw: Hardware, index: int, selector: str) -> bool:
    """Whether the selector means this GPU."""
    names = (str(index), bus_id(hw, index), bus_id(hw, index).removeprefix("0000"), hw.identity.gpu_uuid(index))
    wanted = {word.lower() for word in selector.split(",")}
    return not selector or not wanted.isdisjoint(name.lower() for name in names)


def _joined(argv: tuple[str, ...]) -> list[str]:
    """Options with their values as one word."""
    words: list[str] = []
    for word in argv:
        if words and "=" not in words[-1] and words[-1] in nvidia_smi_set.VALUED and not word.startswith("--"):
            words[-1] = f"{words[-1]}={word}"
        else:
            words.append(word)
    return words


def _option(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return _LONG.get(name, nvidia_smi_set.LONG.get(name, name)), value


def _csv(hw: Hardware, names: str, fields: dict[str, _Field], rows: list[int], style: str) -> Answer:
    """Prints the named fields of the rows."""
    wanted, styles = names.split(","), style.split(",")
    problem = _problem(wanted, fields, styles)
    if problem is not None:
        return problem
    units = "nounits" not in styles
    lines = [] if "noheader" in styles else [", ".join(_header(name, fields[name][0], units) for name in wanted)]
    lines += [", ".join(_cell(hw, fields[name], row, units) for name in wanted) for row in rows]
    return Answer("".join(f"{line}\n" for line in lines))


def _problem(wanted: list[str], fields: dict[str, _Field], styles: list[str]) -> Answer | None:
    for name in wanted:
        if name not in fields:
            return Answer(f'Field "{name}" is not a valid field to query.\n\n', rc=_INVALID_RC)
    if "csv" not in styles:
        said = '"--format=" switch is missing or invalid. Please run "nvidia-smi --help" for help.\n'
        return Answer(said, rc=_INVALID_RC)
    return None


def _supported(hw: Hardware, wanted: list[str], chosen: list[int], style: str) -> Answer:
    """One row for each graphics clock that goes with a memory clock, highest first."""
    units = "nounits" not in style.split(",")
    unit = " MHz" if units else ""
    lines = [] if "noheader" in style.split(",") else [", ".join(wanted)]
    for index in chosen:
        where = bus_id(hw, index)
        for memory in sorted(hw.machine.gpu.memory_mhz, reverse=True):
            for graphics in hw.machine.gpu.clocks:
                cells = {"gpu_bus_id": where, "memory": f"{memory}{unit}", "graphics": f"{graphics}{unit}"}
                lines.append(", ".join(cells.get(name, NA) for name in wanted))
    return Answer("".join(f"{line}\n" for line in lines))


def _header(name: str, unit: str, units: bool) -> str:
    return f"{name} [{unit}]" if unit and units else name


def _cell(hw: Hardware, field: _Field, row: int, units: bool) -> str:
    unit, read = field
    value = read(hw, row)
    return f"{value} {unit}" if unit and units else f"{value}"
