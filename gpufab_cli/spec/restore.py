"""``restore:``: how long a node that boots waits for its pinned ports, and what waits with it."""

from typing import Annotated

from gpufab_cli.module_utils.node.want import WAIT_S
from gpufab_cli.module_utils.schema import Range
from gpufab_cli.spec.base import Model
from gpufab_cli.spec.limits import Service


class Restore(Model):
    """The restore at boot."""

    wait_s: Annotated[int, Range(0, 600)] = WAIT_S
    """Seconds that the network and services that start jobs wait at boot for the pinned ports; 0: not at all."""
    services: tuple[Service, ...] | None = None
    """Services that start jobs, without .service: they start after the ports. gpufab's own list if left out."""
