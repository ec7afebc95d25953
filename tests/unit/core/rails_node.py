"""Emulated machines whose ports are, or are not yet, what NCCL and MPI are to be told of."""

from dataclasses import replace

from gpufab_cli.intent.qos import qos_want
from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import Impact
from gpufab_cli.module_utils.converge import Order, converge
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.mpi.want import MpiWant
from gpufab_cli.module_utils.nccl_env.want import NcclEnvWant
from gpufab_cli.module_utils.rails import ClassWant, RailWant
from gpufab_cli.module_utils.roce.want import PortWant, RoceWant
from tests import fabrics
from tests.machine import LabHost

ALL = Order(allow=frozenset(Impact), busy_ok=True)
CHECK = replace(ALL, check=True)
CLASS = ClassWant(106, 3, pfc=True)
PCIS = ("0000:18:00.0", "0000:3a:00.0")


def rails(host):
    """The rails of a machine, all that it has."""
    kind = "roce" if host.hardware.machine.ethernet else "infiniband"
    return tuple(
        RailWant(f"compute/{number}", port.pci, kind) for number, port in enumerate(host.hardware.machine.ports)
    )


def lossless(host):
    """Give the ports the fabric's class, as feature roce does."""
    (qos,) = fabrics.spec().qos.values()
    ports = tuple(PortWant(rail.rail, rail.pci, "dcqcn") for rail in rails(host))
    outcome = converge(host, FEATURES["roce"], RoceWant({"dcqcn": qos_want(qos)}, ports), ALL)
    assert not outcome.failures(check=False)
    return host


def machine(folder, kind="hgx-h100", count=2, **more):
    """A machine in the state it leaves the factory in."""
    return LabHost(folder, kind, rails=count, **more)


def nccl(host, **more):
    """What NCCL is to be told of a machine."""
    roce = CLASS if host.hardware.machine.ethernet else None
    return NcclEnvWant(**{"rails": rails(host), "roce": roce, **more})


def mpi(host, **more):
    """What MPI is to be told of a machine."""
    roce = CLASS if host.hardware.machine.ethernet else None
    return MpiWant(**{"implementation": "openmpi", "rails": rails(host), "roce": roce, **more})


def look(host, name, want):
    """The plan of a feature as it stands."""
    snapshot = planning.take(host, {name: FEATURES[name]}, {name: want})
    return FEATURES[name].plan(snapshot, want)


def run(host, name, want, order=ALL):
    """Converge a feature; its steps' statuses by their names, the wish's own left out."""
    outcome = converge(host, FEATURES[name], want, order)
    return {r.step.name: (r.status.value, r.reason) for r in outcome.steps if not r.step.name.startswith("persist")}


def found(host, name, want):
    """The findings of a feature by code, with their words."""
    return [(finding.code, finding.path, finding.evidence) for finding in look(host, name, want).findings]
