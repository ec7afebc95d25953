"""nvidia-smi: the list and the two queries that gpufab and its users script against."""

from collections.abc import Callable

from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools.answer import Answer, Request

_INVALID_RC = 2
# What a compute process looks like while the fault gpu-busy is in force.
_BUSY_PID, _BUSY_NAME, _BUSY_MIB = 4242, "python3", 61440


def _pci(hw: Hardware, index: int) -> str:
    """nvidia-smi writes the PCI domain with eight digits, in upper case."""
    domain, rest = hw.machine.gpus[index].pci.split(":", 1)
    return f"{domain:0>8}:{rest}".upper()


def _busy(hw: Hardware, index: int) -> bool:
    return index == 0 and hw.state.fault("gpu-busy") is not None


# Field, unit of its header, value.
_Field = tuple[str, Callable[[Hardware, int], object]]
_GPU: dict[str, _Field] = {
    "index": ("", lambda _, index: index),
    "name": ("", lambda hw, _: hw.machine.gpu.name),
    "uuid": ("", lambda hw, index: hw.identity.gpu_uuid(index)),
    "serial": ("", lambda hw, index: hw.identity.serial("165", index)),
    "pci.bus_id": ("", _pci),
    "count": ("", lambda hw, _: len(hw.machine.gpus)),
    "driver_version": ("", lambda hw, _: hw.machine.gpu.driver_version),
    "memory.total": ("MiB", lambda hw, _: hw.machine.gpu.memory_mib),
    "memory.used": ("MiB", lambda hw, index: _BUSY_MIB if _busy(hw, index) else 0),
    "power.limit": ("W", lambda hw, _: f"{hw.machine.gpu.power_w[1]:.2f}"),
    "power.default_limit": ("W", lambda hw, _: f"{hw.machine.gpu.power_w[1]:.2f}"),
    "power.min_limit": ("W", lambda hw, _: f"{hw.machine.gpu.power_w[0]:.2f}"),
    "power.max_limit": ("W", lambda hw, _: f"{hw.machine.gpu.power_w[1]:.2f}"),
    "clocks.max.sm": ("MHz", lambda hw, _: hw.machine.gpu.sm_mhz),
    "persistence_mode": ("", lambda *_: "Disabled"),
    "mig.mode.current": ("", lambda *_: "Disabled"),
    "compute_mode": ("", lambda *_: "Default"),
}
_GPU["gpu_uuid"], _GPU["gpu_name"], _GPU["gpu_serial"] = _GPU["uuid"], _GPU["name"], _GPU["serial"]
_GPU["gpu_bus_id"] = _GPU["pci.bus_id"]
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
    """Answers one call."""
    options = dict(_option(word) for word in _joined(request.argv))
    every = range(len(hw.machine.gpus))
    if "-L" in options or "--list-gpus" in options:
        return Answer("".join(f"GPU {i}: {hw.machine.gpu.name} (UUID: {hw.identity.gpu_uuid(i)})\n" for i in every))
    style = options.get("--format", "")
    chosen = [index for index in every if _is_chosen(hw, index, options.get("-i", options.get("--id", "")))]
    if "--query-gpu" in options:
        return _csv(hw, options["--query-gpu"], _GPU, chosen, style)
    if "--query-compute-apps" in options:
        return _csv(hw, options["--query-compute-apps"], _APP, [index for index in chosen if _busy(hw, index)], style)
    return Answer("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n", rc=1)


def _is_chosen(hw: Hardware, index: int, selector: str) -> bool:
    return selector in ("", str(index), _pci(hw, index), hw.identity.gpu_uuid(index))


def _joined(argv: tuple[str, ...]) -> list[str]:
    """Options with their values as one word."""
    words: list[str] = []
    for word in argv:
        if words and words[-1] == "-i":
            words[-1] = f"-i={word}"
        else:
            words.append(word)
    return words


def _option(word: str) -> tuple[str, str]:
    name, _, value = word.partition("=")
    return name, value


def _csv(hw: Hardware, names: str, fields: dict[str, _Field], rows: list[int], style: str) -> Answer:
    """Prints the named fields of the rows."""
    wanted, styles = names.split(","), style.split(",")
    for name in wanted:
        if name not in fields:
            return Answer(f'Field "{name}" is not a valid field to query.\n\n', rc=_INVALID_RC)
    if "csv" not in styles:
        return Answer(
            '"--format=" switch is missing or invalid. Please run "nvidia-smi --help" for help.\n', rc=_INVALID_RC
        )
    units = "nounits" not in styles
    lines = [] if "noheader" in styles else [", ".join(_header(name, fields[name][0], units) for name in wanted)]
    lines += [", ".join(_cell(hw, fields[name], row, units) for name in wanted) for row in rows]
    return Answer("".join(f"{line}\n" for line in lines))


def _header(name: str, unit: str, units: bool) -> str:
    return f"{name} [{unit}]" if unit and units else name


def _cell(hw: Hardware, field: _Field, row: int, units: bool) -> str:
    unit, read = field
    value = read(hw, row)
    return f"{value} {unit}" if unit and units else f"{value}"
