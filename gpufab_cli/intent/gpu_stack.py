"""The GPU software of one host, as it is to be found."""

from gpufab_cli.module_utils.gpu_stack.want import GpuStackWant
from gpufab_cli.spec.model import FabricSpec, Host

RDMA = ("roce", "infiniband")


def gpu_stack_want(spec: FabricSpec, host: Host) -> GpuStackWant | None:
    """What the gpu_stack feature is told about one host; None where its profile does not ask for it."""
    stack = spec.profile_of(host).gpu_stack
    if stack is None:
        return None
    has_rdma = any(spec.networks[rail.network].transport in RDMA for rail in spec.rails(host))
    way = stack.gpudirect or ("any" if has_rdma else "none")
    return GpuStackWant(stack.driver, None if way == "none" else way)
