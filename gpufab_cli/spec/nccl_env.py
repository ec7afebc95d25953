"""What a profile may say of NCCL's environment. What follows from the fabric, such as the traffic class, is no key."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from gpufab_cli.module_utils.nccl_env.variables import GID, HCA, SL, SOCKET, TC
from gpufab_cli.module_utils.nccl_env.want import Container, Release, Value, Variable
from gpufab_cli.module_utils.schema import Range
from gpufab_cli.spec.base import NotEmpty
from gpufab_cli.spec.faults import Fault
from gpufab_cli.spec.rails import RailUser, rails_of, user_faults

if TYPE_CHECKING:
    from gpufab_cli.spec.model import FabricSpec, Profile

CROSS_NIC = {"never": "0", "allowed": "1", "avoided": "2"}
OWN_KEYS = {
    "NCCL_IB_PCI_RELAXED_ORDERING": "relaxed_ordering",
    "NCCL_IB_QPS_PER_CONNECTION": "qps_per_connection",
    "NCCL_IB_SPLIT_DATA_ON_QPS": "split_data_on_qps",
    "NCCL_IB_ADAPTIVE_ROUTING": "adaptive_routing",
    "NCCL_CROSS_NIC": "cross_nic",
    SL: "service_level",
    GID: "gid_index",
}
"""The variables that have a key of their own."""
DERIVED = {HCA: "network and rail", SOCKET: "socket", TC: "the network's QoS profile"}
"""The variables that follow from something else."""


class NcclEnv(RailUser):
    """What NCCL is told on each host. What is left out is left to NCCL."""

    release: Release | None = None
    """Oldest NCCL that is told, containers included; that of nccl or, without it, of the host's library if left out."""
    service_level: Annotated[int, Range(0, 15)] | None = None
    """InfiniBand service level (NCCL_IB_SL)."""
    gid_index: Annotated[int, Range(0, 255)] | None = None
    """GID index on every port (NCCL_IB_GID_INDEX), held against every port; seldom wanted: it shifts with addresses."""
    relaxed_ordering: bool | None = None
    """PCI relaxed ordering (NCCL_IB_PCI_RELAXED_ORDERING)."""
    qps_per_connection: Annotated[int, Range(1, 128)] | None = None
    """Queue pairs of a connection, more of them spread over more paths (NCCL_IB_QPS_PER_CONNECTION)."""
    split_data_on_qps: bool | None = None
    """Whether each message goes over all queue pairs (NCCL_IB_SPLIT_DATA_ON_QPS)."""
    adaptive_routing: bool | None = None
    """Whether switches may reorder (NCCL_IB_ADAPTIVE_ROUTING)."""
    cross_nic: Literal["never", "allowed", "avoided"] | None = None
    """Whether a ring may leave its rail (NCCL_CROSS_NIC): never, where each rail has switches of its own."""
    variables: dict[Variable, Value] = Field(default_factory=dict)
    """Further variables, such as {NCCL_DEBUG: WARN}."""
    containers: Annotated[tuple[Container, ...], NotEmpty] | None = None
    """Where containers get the same from: enroot (environ.d), slurm (task prolog), env-file (/etc/gpufab/nccl.env)."""

    def told(self) -> dict[str, str]:
        """The variables that are declared, by their names."""
        flags = ("relaxed_ordering", "qps_per_connection", "split_data_on_qps", "adaptive_routing", "service_level")
        names = {key: name for name, key in OWN_KEYS.items()}
        found = {names[key]: str(int(value)) for key in flags if (value := getattr(self, key)) is not None}
        if self.cross_nic is not None:
            found["NCCL_CROSS_NIC"] = CROSS_NIC[self.cross_nic]
        return {**found, **self.variables}


def nccl_env_faults(spec: "FabricSpec", profile: "Profile") -> Iterator[Fault]:
    """Where NCCL's environment does not fit the fabric; paths are relative to the profile."""
    env = profile.nccl_env
    if env is None:
        return
    yield from user_faults(spec, profile, "nccl_env", env)
    for name in env.variables:
        if name in OWN_KEYS or name in DERIVED:
            said = OWN_KEYS.get(name) or DERIVED[name]
            yield Fault(("nccl_env", "variables", name), f"{name} is not given here", f"{said} says it")
    transports = {spec.networks[rail.network].transport for rail in rails_of(spec, profile, env)}
    if env.service_level is not None and transports == {"roce"}:
        hint = "the QoS profile of the network gives RoCE its traffic class"
        yield Fault(("nccl_env", "service_level"), "the ports are RoCE", hint)
    if env.gid_index is not None and transports == {"infiniband"}:
        yield Fault(("nccl_env", "gid_index"), "the ports are InfiniBand", "leave it out")
