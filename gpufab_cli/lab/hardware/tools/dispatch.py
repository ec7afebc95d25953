"""Hands a call to the tool it is for, past the faults that beset tools."""

import time

from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools import (
    dcb,
    devlink,
    dmesg,
    ethtool,
    ip,
    mlxconfig,
    mlxfwreset,
    nvidia_smi,
    rdma,
)
from gpufab_cli.lab.hardware.tools.answer import Answer, Request, Tool

_TOOLS: dict[str, Tool] = {
    "dcb": dcb.answer,
    "devlink": devlink.answer,
    "dmesg": dmesg.answer,
    "ethtool": ethtool.answer,
    "ip": ip.answer,
    "mlxconfig": mlxconfig.answer,
    "mlxfwreset": mlxfwreset.answer,
    "mstconfig": mlxconfig.answer,
    "mstfwreset": mlxfwreset.answer,
    "nvidia-smi": nvidia_smi.answer,
    "rdma": rdma.answer,
}
_POLL_S = 0.1


def answer(hw: Hardware, request: Request) -> Answer:
    """What the tool says."""
    tool = _TOOLS.get(request.tool)
    if tool is None:
        return Answer(stderr=f"{request.tool}: not emulated\n", rc=127)
    while hw.state.fault("tool-hangs", request.tool) and request.alive():
        time.sleep(_POLL_S)
    if hw.state.fault("garbage-output", request.tool):
        return Answer(stdout="\x00\x7fELF segmentation fault (core dumped)\n")
    if hw.state.fault("tool-lies", request.tool):
        with hw.pretending():
            return tool(hw, request)
    return tool(hw, request)
