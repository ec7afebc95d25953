"""dmesg: what the emulated kernel has said since the boot; the container's own would be the host's."""

from gpufab_cli.lab.hardware import gpu_software
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools.answer import Answer, Request


def answer(hw: Hardware, request: Request) -> Answer:
    """Answers one call; no line has a time."""
    if not request.is_root:
        return Answer(stderr="dmesg: read kernel buffer failed: Operation not permitted\n", rc=1)
    return Answer("".join(f"{line}\n" for line in [*hw.kernel_log, *gpu_software.refusals(hw)]))
