"""What NCCL is told on one host: what its profile says, and what follows from the fabric."""

import re

from gpufab_cli.fabric.model import Resolved, ResolvedHost
from gpufab_cli.intent.rails import class_want, rail_wants, socket_ports
from gpufab_cli.module_utils.nccl_env.want import NcclEnvWant


def nccl_env_want(fabric: Resolved, host: ResolvedHost) -> NcclEnvWant | None:
    """What the nccl_env feature is told about one host; None where its profile says nothing of it."""
    profile = host.profile
    env = profile.nccl_env
    if env is None:
        return None
    installed = re.match(r"[0-9]+(?:\.[0-9]+){1,2}", (profile.nccl.version or "") if profile.nccl is not None else "")
    return NcclEnvWant(
        rails=rail_wants(fabric, host, env),
        release=env.release or (installed[0] if installed else None),
        roce=class_want(fabric, host, env),
        gid_index=env.gid_index,
        socket_interfaces=env.socket_interfaces,
        socket_ports=socket_ports(host, env),
        variables=env.told() or None,
        containers=env.containers,
        takeover=env.takeover or None,
    )
