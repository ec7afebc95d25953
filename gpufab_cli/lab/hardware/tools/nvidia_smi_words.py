"""How nvidia-smi writes values."""

from gpufab_cli.lab.hardware.model import Hardware

NA = "[N/A]"


def bus_id(hw: Hardware, index: int) -> str:
    """nvidia-smi writes the PCI domain with eight digits, in upper case."""
    domain, rest = hw.machine.gpus[index].pci.split(":", 1)
    return f"{domain:0>8}:{rest}".upper()


def flag(on: bool) -> str:
    """A mode."""
    return "Enabled" if on else "Disabled"
