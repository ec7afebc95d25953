"""The vendor tools face: what dcb, ethtool, rdma, devlink and nvidia-smi print and do."""
