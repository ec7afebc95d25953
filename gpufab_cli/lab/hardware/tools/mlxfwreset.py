"""mlxfwreset and mstfwreset: restart firmware and driver of a card."""

from gpufab_cli.lab.hardware import sriov
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools.answer import Answer, Request

_STEPS = (
    "Sending Reset Command To Fw",
    "Stopping Driver",
    "Resetting PCI",
    "Starting Driver",
    "Restarting MST",
)


def answer(hw: Hardware, request: Request) -> Answer:
    """Answers one call; without a yes it resets nothing."""
    words = list(request.argv)
    device = words[words.index("-d") + 1] if "-d" in words[:-1] else ""
    place = next((port for port in hw.machine.ports if device in (port.pci, port.pci.removeprefix("0000:"))), None)
    if place is None or not request.is_root or hw.state.fault("nic-locked-down", place.netdev):
        return Answer(stderr=f"-E- Failed to open device: {device}\n", rc=1)
    said = f"Minimal reset level for device, {device}:\n\n3: Driver restart and PCI reset\n"
    if words[-1] != "reset":
        return Answer(said)
    if not {"-y", "--yes"} & set(words):
        return Answer(said, stderr="-E- Aborted by user\n", rc=1)
    try:
        with hw.writes.write(request.tool, " ".join(request.argv), alive=request.alive):
            sriov.reset_card(hw, place)
    except OSError as error:
        return Answer(said, stderr=f"-E- Failed to reset the device, VFs are enabled: {error.strerror}\n", rc=1)
    told = "".join(f"-I- {step:<44}-Done\n" for step in _STEPS)
    return Answer(f"{said}Continue with reset?[y/N] y\n{told}-I- FW was loaded successfully.\n")
