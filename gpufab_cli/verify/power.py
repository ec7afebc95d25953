"""What ``nvidia-smi -q -x`` says of GPUs. The node core reads NVML or the CSV queries; this suite reads the log."""

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from gpufab_cli.verify.reading import UnreadableError

MODES = {"Enabled": True, "Disabled": False}


@dataclass(frozen=True)
class GpuReading:
    """One GPU; what the driver does not tell is None. Watts and MHz."""

    persistence: bool | None
    power_limit_w: float | None
    graphics_mhz: float | None
    ecc: bool | None
    mig: bool | None


def gpus(text: str) -> dict[str, GpuReading]:
    """The GPUs of the log by PCI address as sysfs writes it. Element names differ between versions of its DTD.

    Raises:
        UnreadableError: it is no such log.
    """
    try:
        log = ElementTree.fromstring(text)  # noqa: S314 (of our own nodes; expat bounds the expansion of entities)
        return {_address(gpu.attrib["id"]): _gpu(gpu) for gpu in log.iter("gpu")}
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise UnreadableError("nvidia-smi -q -x: printed what no known release prints") from error


def _address(bus_id: str) -> str:
    domain, _, rest = bus_id.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _gpu(gpu: ElementTree.Element) -> GpuReading:
    limits = ("gpu_power_readings/requested_power_limit", "power_readings/power_limit")
    return GpuReading(
        persistence=MODES.get(_text(gpu, "persistence_mode")),
        power_limit_w=next((watts for path in limits if (watts := _number(gpu, path)) is not None), None),
        graphics_mhz=_number(gpu, "clocks/graphics_clock"),
        ecc=MODES.get(_text(gpu, "ecc_mode/current_ecc")),
        mig=MODES.get(_text(gpu, "mig_mode/current_mig")),
    )


def _text(gpu: ElementTree.Element, path: str) -> str:
    return (gpu.findtext(path) or "").strip()


def _number(gpu: ElementTree.Element, path: str) -> float | None:
    """A number with its unit; N/A is none."""
    word = _text(gpu, path).partition(" ")[0]
    return float(word) if word.replace(".", "", 1).isdigit() else None


def wanted(wish: Mapping[str, object], name: str) -> dict[str, object]:
    """What is wanted of each GPU, by PCI address; those of which nothing is are left out."""
    policies, listed = wish.get("policies", {}), wish.get("gpus", [])
    if not isinstance(policies, Mapping) or not isinstance(listed, list):
        return {}
    found = {gpu["pci"]: policies[gpu["policy"]].get(name) for gpu in listed}
    return {pci: value for pci, value in found.items() if value is not None}
