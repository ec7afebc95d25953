"""The resource limits of one host."""

from gpufab_cli.fabric.model import Resolved, ResolvedHost
from gpufab_cli.module_utils.limits.want import LimitsWant


def limits_want(_: Resolved, host: ResolvedHost) -> LimitsWant | None:
    """What the limits feature is told about one host; None where its profile says nothing of limits."""
    limits = host.profile.limits
    return LimitsWant(limits.memlock, limits.services) if limits is not None else None
