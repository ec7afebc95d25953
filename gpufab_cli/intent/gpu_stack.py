"""The GPU software of one host, as it is to be found."""

from gpufab_cli.fabric.model import Resolved, ResolvedHost
from gpufab_cli.module_utils.gpu_stack.want import GpuStackWant


def gpu_stack_want(_: Resolved, host: ResolvedHost) -> GpuStackWant | None:
    """What the gpu_stack feature is told about one host; None where its profile does not ask for it."""
    stack = host.profile.gpu_stack
    if stack is None:
        return None
    has_rdma = any(port.rdma for port in host.ports.values())
    way = stack.gpudirect or ("any" if has_rdma else "none")
    return GpuStackWant(stack.driver, None if way == "none" else way)
