"""nvidia-smi's settings, with its words, exit codes and habits.

What a GPU does not support is a warning and exit 0; clocks beyond its range are clamped without a word; without
persistence mode the success comes with a warning, and what was set is lost as soon as the last client ends.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass

from gpufab_cli.lab.hardware import gpus
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools.answer import Answer, Request
from gpufab_cli.lab.hardware.tools.nvidia_smi_words import bus_id, flag

LONG = {
    "--persistence-mode": "-pm",
    "--power-limit": "-pl",
    "--lock-gpu-clocks": "-lgc",
    "--reset-gpu-clocks": "-rgc",
    "--lock-memory-clocks": "-lmc",
    "--reset-memory-clocks": "-rmc",
    "--ecc-config": "-e",
    "--multi-instance-gpu": "-mig",
    "--gpu-reset": "-r",
}
VALUED = frozenset({"-i", "--id", "-pm", "-pl", "-lgc", "-lmc", "-e", "-mig", *LONG})
_INVALID_RC, _PERMISSION_RC, _IN_USE_RC = 2, 4, 255
_DONE = "All done.\n"
_EARLY = "Terminating early due to previous errors.\n"
_FORGOTTEN = (
    "\nWarning: persistence mode is disabled on device {where}. See the Known Issues section of the nvidia-smi(1) man "
    "page for more information. Run with [--help | -h] switch to get more information on how to enable persistence "
    "mode.\n\n"
)


@dataclass(frozen=True)
class Setting:
    """One option: what it is called in complaints, how it is made, and what success says."""

    what: str
    make: Callable[[Hardware, int, str], None]
    said: Callable[[Hardware, int, str], str]
    lasts: bool = False


def _pair(value: str) -> tuple[int, int]:
    """One clock or two: MIN,MAX."""
    low, _, high = value.partition(",")
    clocks = int(low), int(high or low)
    if clocks[0] > clocks[1]:
        raise ValueError(value)
    return clocks


def _on(value: str) -> bool:
    return {"0": False, "1": True, "DISABLED": False, "ENABLED": True}[value.upper()]


def _persistence(hw: Hardware, index: int, value: str) -> None:
    gpus.change(hw, index, lambda gpu: setattr(gpu, "persistence", _on(value)))


def _persistence_said(hw: Hardware, index: int, value: str) -> str:
    if hw.state.gpus[index].persistence == _on(value):
        return f"Persistence mode is already {flag(_on(value))} for GPU {bus_id(hw, index)}.\n"
    return f"{flag(_on(value))} persistence mode for GPU {bus_id(hw, index)}.\n"


def _power_said(hw: Hardware, index: int, value: str) -> str:
    default = hw.machine.gpu.power_w[1]  # called "from", whatever the limit was
    return f"Power limit for GPU {bus_id(hw, index)} was set to {float(value):.2f} W from {default:.2f} W.\n"


def _clocks_said(kind: str, short: str) -> Callable[[Hardware, int, str], str]:
    def said(hw: Hardware, index: int, value: str) -> str:
        low, high = _pair(value)
        return f'{kind} clocks set to "({short}ClkMin {low}, {short}ClkMax {high})" for GPU {bus_id(hw, index)}\n'

    return said


def _nothing_said(hw: Hardware, index: int, value: str) -> str:  # noqa: ARG001
    return ""


def _reset_said(hw: Hardware, index: int, value: str) -> str:  # noqa: ARG001
    return f"GPU {bus_id(hw, index)} was successfully reset.\n"


def _mode_said(mode: str) -> Callable[[Hardware, int, str], str]:
    return lambda hw, index, value: f"{flag(_on(value))} {mode} for GPU {bus_id(hw, index)}.\n"


def _lock_graphics(hw: Hardware, index: int, value: str) -> None:
    gpus.lock_graphics(hw, index, _pair(value) if value else None)


def _lock_memory(hw: Hardware, index: int, value: str) -> None:
    gpus.lock_memory(hw, index, _pair(value) if value else None)


SETTINGS = {
    "-pm": Setting("Setting persistence mode", _persistence, _persistence_said, lasts=True),
    "-pl": Setting("Changing power management limit", lambda hw, i, v: gpus.set_power(hw, i, float(v)), _power_said),
    "-lgc": Setting("Setting locked GPU clocks", _lock_graphics, _clocks_said("GPU", "gpu")),
    "-rgc": Setting("Resetting GPU clocks", _lock_graphics, _nothing_said, lasts=True),
    "-lmc": Setting("Setting locked Memory clocks", _lock_memory, _clocks_said("Memory", "mem")),
    "-rmc": Setting("Resetting Memory clocks", _lock_memory, _nothing_said, lasts=True),
    "-e": Setting("ECC mode", lambda hw, i, v: gpus.set_ecc(hw, i, _on(v)), _mode_said("ECC support"), lasts=True),
    "-mig": Setting("MIG mode", lambda hw, i, v: gpus.set_mig(hw, i, _on(v)), _mode_said("MIG Mode"), lasts=True),
    "-r": Setting("GPU Reset", lambda hw, i, _: gpus.reset(hw, i), _reset_said, lasts=True),
}


def answer(hw: Hardware, request: Request, options: dict[str, str], chosen: list[int]) -> Answer | None:
    """Makes the first setting there is on each chosen GPU; None when there is none."""
    name = next((name for name in options if name in SETTINGS), None)
    if name is None:
        return None
    setting, value, said = SETTINGS[name], options[name], ""
    for index in chosen:
        one = _one(hw, request, setting, index, value)
        said += one.stdout
        if one.rc:
            return Answer(said + _EARLY, rc=one.rc)
    return Answer(said + _DONE)


def _one(hw: Hardware, request: Request, setting: Setting, index: int, value: str) -> Answer:
    where = bus_id(hw, index)
    if not request.is_root:
        return Answer(f"{setting.what} for GPU {where}: Insufficient Permissions\n", rc=_PERMISSION_RC)
    try:
        said = setting.said(hw, index, value)
        with hw.writes.write("nvidia-smi", " ".join(request.argv), alive=request.alive):
            setting.make(hw, index, value)
    except (ValueError, KeyError):
        return Answer(f"Invalid argument: {value!r}\n", rc=_INVALID_RC)
    except OSError as error:
        return _refused(hw, setting, index, value, error.errno or errno.EIO)
    forgotten = "" if setting.lasts or hw.state.gpus[index].persistence else _FORGOTTEN.format(where=where)
    return Answer(said + forgotten)


def _refused(hw: Hardware, setting: Setting, index: int, value: str, code: int) -> Answer:
    where = bus_id(hw, index)
    if code == errno.EOPNOTSUPP:
        return Answer(f"{setting.what} is not supported for GPU {where}.\nTreating as warning and moving on.\n")
    if code == errno.EINVAL:
        low, high = hw.machine.gpu.power_w
        bounds = f"which should be between {low:.2f} W and {high:.2f} W for GPU {where}"
        return Answer(
            f"Provided power limit {float(value):.2f} W is not a valid power limit {bounds}\n", rc=_INVALID_RC
        )
    if code == errno.EBUSY:
        return Answer(f"GPU {where} is currently in use by another process.\n", rc=_IN_USE_RC)
    return Answer(f"{setting.what} for GPU {where} failed: Unknown Error\n", rc=_IN_USE_RC)
