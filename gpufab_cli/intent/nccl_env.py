"""What NCCL is told on one host: what its profile says, and what follows from the fabric."""

import re

from gpufab_cli.intent.rails import class_want, rail_wants, socket_ports
from gpufab_cli.module_utils.nccl_env.want import NcclEnvWant
from gpufab_cli.spec.lock import Lock
from gpufab_cli.spec.model import FabricSpec, Host


def nccl_env_want(spec: FabricSpec, lock: Lock, host: Host) -> NcclEnvWant | None:
    """What the nccl_env feature is told about one host; None where its profile says nothing of it.

    Raises:
        GpufabError: the lock has no device for one of its rails.
    """
    profile = spec.profile_of(host)
    env = profile.nccl_env
    if env is None:
        return None
    installed = re.match(r"[0-9]+(?:\.[0-9]+){1,2}", (profile.nccl.version or "") if profile.nccl is not None else "")
    return NcclEnvWant(
        rails=rail_wants(spec, lock, host, env),
        release=env.release or (installed[0] if installed else None),
        roce=class_want(spec, host, env),
        gid_index=env.gid_index,
        socket_interfaces=env.socket_interfaces,
        socket_ports=socket_ports(spec, lock, host, env),
        variables=env.told() or None,
        containers=env.containers,
        takeover=env.takeover or None,
    )
