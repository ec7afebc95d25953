"""What NCCL and MPI have in common in a profile: the rails and the interfaces that they use."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from gpufab_cli.errors import did_you_mean
from gpufab_cli.module_utils.nccl_env.want import NetdevName
from gpufab_cli.spec.base import Model, NotEmpty, Rails
from gpufab_cli.spec.faults import Fault
from gpufab_cli.spec.types import Name

if TYPE_CHECKING:
    from gpufab_cli.spec.model import FabricSpec, Profile, Rail

RDMA = ("roce", "infiniband")


def _one_or_many(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class RailUser(Model):
    """Software that sends over rails."""

    network: Annotated[tuple[Name, ...], NotEmpty, BeforeValidator(_one_or_many, Name | tuple[Name, ...])] | None = None
    """The network that it uses, or a list for several planes; the only one with RDMA of the profile if left out."""
    rail: Rails | None = None
    """Numbers of rails, such as 0-3; all that the profile has of the network if left out."""
    socket: Name | None = None
    """The network for start-up and sockets, whose ports the profile has; not managed if both are left out."""
    socket_interfaces: Annotated[tuple[NetdevName, ...], NotEmpty] | None = None
    """Interfaces for start-up and sockets by name, where their ports are not the fabric's."""
    takeover: bool = False
    """Whether the site's own lines that say otherwise are taken out; else such a file is left alone."""


def rails_of(spec: "FabricSpec", profile: "Profile", user: RailUser) -> "tuple[Rail, ...]":
    """The ports that the software uses, in the order of rails, those of several planes by turns."""
    networks = user.network or _only(spec, profile)
    found = [rail for network in networks for rail in profile.rails_of(network, user.rail)]
    return tuple(sorted(found, key=lambda rail: (rail.number, networks.index(rail.network))))


def _only(spec: "FabricSpec", profile: "Profile") -> tuple[str, ...]:
    found = _rdma(spec, profile)
    return tuple(found) if len(found) == 1 else ()


def _class(spec: "FabricSpec", network: str) -> tuple[int, int, bool, bool] | None:
    """What makes the first class of a network; None where it has no QoS profile."""
    qos = spec.qos.get(spec.networks[network].qos or "")
    return (qos.lossless[0].dscp[0], qos.lossless[0].priority, qos.ecn, qos.pfc) if qos is not None else None


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
    without = [name for name in user.network or () if name not in rdma]
    for name in without:
        hint = did_you_mean(name, rdma) if rdma else "give the profile ports on a network with RDMA"
        yield Fault((key, "network"), f"the profile has no RDMA port on {name!r}", hint)
    if len({_class(spec, name) for name in user.network or () if name not in without}) > 1:
        yield Fault((key, "network"), "the networks carry different classes", "jobs have one traffic class: name one")
    if (user.network or rdma[1:] == []) and rdma and not without and not rails_of(spec, profile, user):
        yield Fault((key, "rail"), "the profile has none of these rails")
    if user.socket is not None and user.socket_interfaces is not None:
        yield Fault((key, "socket_interfaces"), "socket says it already", "give one of the two")
    if user.socket is not None and not profile.rails_of(user.socket, None):
        hint = "socket_interfaces: [NAME], where the ports are not the fabric's"
        yield Fault((key, "socket"), f"the profile has no port on {user.socket!r}", hint)
