"""Since which release NCCL reads a variable, by the tags of NVIDIA/nccl; what is not here may be as old as any.

The node core has a table of its own, and a test holds one against the other: verify takes nothing from the core, whose
mistakes it is there to find.
"""

Version = tuple[int, ...]

_FIRST: dict[Version, str] = {
    (2, 4, 8): "SOCKET_NTHREADS NSOCKS_PERTHREAD",
    (2, 5, 6): "CROSS_NIC HOSTID",
    (2, 6, 4): "NET_GDR_LEVEL TOPO_FILE TOPO_DUMP_FILE GRAPH_FILE IB_AR_THRESHOLD",
    (2, 8, 3): "IB_PKEY",
    (2, 10, 3): "IB_QPS_PER_CONNECTION",
    (2, 11, 4): "NET_PLUGIN",
    (2, 12, 7): "IB_PCI_RELAXED_ORDERING PXN_DISABLE P2P_PXN_LEVEL",
    (2, 13, 4): "DMABUF_ENABLE",
    (2, 16, 2): "IB_ADAPTIVE_ROUTING",
    (2, 17, 1): "NVLS_ENABLE",
    (2, 18, 1): "IB_SPLIT_DATA_ON_QPS IB_MERGE_VFS CUMEM_ENABLE",
    (2, 20, 3): "IB_MERGE_NICS",
    (2, 21, 5): "IB_ROCE_VERSION_NUM IB_ADDR_FAMILY IB_ADDR_RANGE MNNVL_ENABLE",
    (2, 22, 3): "IB_FIFO_TC IB_ROUTABLE_FLID_GID_INDEX",
    (2, 23, 4): "CONF_FILE IB_ECE_ENABLE IB_RETURN_ASYNC_EVENTS",
    (2, 24, 3): "NET_MERGE_LEVEL NET_FORCE_MERGE IB_WARN_RAIL_LOCAL",
    (2, 26, 2): "NET_GDR_C2C",
    (2, 27, 3): "IB_DATA_DIRECT",
    (2, 28, 3): "NETDEVS_POLICY",
    (2, 30, 3): "IB_OOO_RQ",
    (2, 30, 7): "GIN_IB_TC IB_SUBNET_AWARE_ROUTING",
}
SINCE: dict[str, Version] = {f"NCCL_{name}": first for first, names in _FIRST.items() for name in names.split()}


def version(text: str) -> Version:
    """2.27.5 as numbers."""
    return tuple(int(part) for part in text.split("."))
