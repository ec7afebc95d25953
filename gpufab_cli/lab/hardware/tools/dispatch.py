"""Hands a call to the tool it is for, past the faults that beset tools."""

import time

from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools import (
    cma_roce,
    dcb,
    devlink,
    dmesg,
    ethtool,
    gpu_software,
    ip,
    lspci,
    mlnx_qos,
    mlxconfig,
    mlxfwreset,
    nvidia_smi,
    ofed,
    rdma,
)
from gpufab_cli.lab.hardware.tools.answer import Answer, Request, Tool

_TOOLS: dict[str, Tool] = {
    "cma_roce_mode": cma_roce.answer,
    "cma_roce_tos": cma_roce.answer,
    "dcb": dcb.answer,
    "devlink": devlink.answer,
    "dmesg": dmesg.answer,
    "ethtool": ethtool.answer,
    "ibdev2netdev": ofed.ibdev2netdev,
    "ip": ip.answer,
    "lspci": lspci.answer,
    "mlnx_qos": mlnx_qos.answer,
    "mlxconfig": mlxconfig.answer,
    "mlxfwreset": mlxfwreset.answer,
    "modinfo": gpu_software.modinfo,
    "mstconfig": mlxconfig.answer,
    "mstfwreset": mlxfwreset.answer,
    "nv-fabricmanager": gpu_software.nv_fabricmanager,
    "nvidia-smi": nvidia_smi.answer,
    "ofed_info": ofed.ofed_info,
    "rdma": rdma.answer,
    "show_gids": ofed.show_gids,
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
