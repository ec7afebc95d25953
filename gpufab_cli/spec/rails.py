"""What NCCL and MPI have in common in a profile: the rails and the interfaces that they use."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from gpufab_cli.errors import did_you_mean
from gpufab_cli.module_utils.nccl_env.want import NetdevName
from gpufab_cli.spec.base import Model, NotEmpty, Rails
from gpufab_cli.spec.faults import Fault
from gpufab_cli.spec.types import Name

if TYPE_CHECKING:
    from gpufab_cli.spec.model import FabricSpec, Profile, Rail

RDMA = ("roce", "infiniband")


class RailUser(Model):
    """Software that sends over rails."""

    network: Name | None = None
    """The network that it uses; that which carries RDMA, where the profile has ports on one only, if left out."""
    rail: Rails | None = None
    """Numbers of rails, such as 0-3; all that the profile has of the network if left out."""
    socket: Name | None = None
    """The network for start-up and sockets, whose ports the profile has; not managed if both are left out."""
    socket_interfaces: Annotated[tuple[NetdevName, ...], NotEmpty] | None = None
    """Interfaces for start-up and sockets by name, where their ports are not the fabric's."""
    takeover: bool = False
    """Whether the site's own lines that say otherwise are taken out; else such a file is left alone."""


def rails_of(spec: "FabricSpec", profile: "Profile", user: RailUser) -> "tuple[Rail, ...]":
    """The ports that the software uses, in the order of rails; none where no network is told."""
    network = user.network or _only(spec, profile)
    return tuple(sorted(profile.rails_of(network, user.rail))) if network is not None else ()


def _only(spec: "FabricSpec", profile: "Profile") -> str | None:
    found = _rdma(spec, profile)
    return found[0] if len(found) == 1 else None


def _rdma(spec: "FabricSpec", profile: "Profile") -> list[str]:
    """The networks with RDMA that a profile has ports on."""
    names = dict.fromkeys(rail.network for rail in profile.rails)
    return [name for name in names if name in spec.networks and spec.networks[name].transport in RDMA]


def user_faults(spec: "FabricSpec", profile: "Profile", key: str, user: RailUser) -> Iterator[Fault]:
    """Networks that are not declared, that the profile has no port on, or of which there are several."""
    rdma = _rdma(spec, profile)
    if user.network is None and len(rdma) != 1:
        what = f"the profile's ports are on {', '.join(rdma)}" if rdma else "the profile has no port with RDMA"
        yield Fault((key, "network"), f"missing: {what}", "network: NAME" if rdma else "give it ports, or leave it out")
    elif user.network is not None and user.network not in rdma:
        hint = did_you_mean(user.network, rdma) if rdma else "give the profile ports on a network with RDMA"
        yield Fault((key, "network"), f"the profile has no RDMA port on {user.network!r}", hint)
    elif not rails_of(spec, profile, user):
        yield Fault((key, "rail"), "the profile has none of these rails")
    if user.socket is not None and user.socket_interfaces is not None:
        yield Fault((key, "socket_interfaces"), "socket says it already", "give one of the two")
    if user.socket is not None and not profile.rails_of(user.socket, None):
        hint = "socket_interfaces: [NAME], where the ports are not the fabric's"
        yield Fault((key, "socket"), f"the profile has no port on {user.socket!r}", hint)
