"""The resource limits of one host."""

from gpufab_cli.module_utils.limits.want import LimitsWant
from gpufab_cli.spec.model import FabricSpec, Host


def limits_want(spec: FabricSpec, host: Host) -> LimitsWant | None:
    """What the limits feature is told about one host; None where its profile says nothing of limits."""
    limits = spec.profile_of(host).limits
    return LimitsWant(limits.memlock, limits.services) if limits is not None else None
