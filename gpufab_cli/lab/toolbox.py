"""Where each emulated tool stands in a node."""

from pathlib import PurePosixPath

SHIM = "/usr/lib/gpufab-lab/shim"
_BIN, _SBIN = PurePosixPath("/usr/bin"), PurePosixPath("/usr/sbin")
# Those of a NIC vendor's stack are there only on machines that come with it.
VENDOR = ("cma_roce_mode", "cma_roce_tos", "ibdev2netdev", "mlnx_qos", "ofed_info", "show_gids")
FABRIC_MANAGER = "nv-fabricmanager"  # only where there are NVSwitches
TOOLS = {
    **{tool: _BIN / tool for tool in ("dmesg", "ip", "lspci", "mlxconfig", "mlxfwreset", "mstconfig", "mstfwreset")},
    **{tool: _BIN / tool for tool in ("nvidia-smi", FABRIC_MANAGER, "rdma")},
    **{tool: _SBIN / tool for tool in ("dcb", "devlink", "ethtool", "modinfo", *VENDOR)},
}
