"""The machine types whose topology differs, with the right answer for each."""

from dataclasses import dataclass, replace
from pathlib import Path

from gpufab_cli.module_utils.devices import gather
from gpufab_cli.topology import matrix
from gpufab_cli.topology.layout import layout
from tests.machine import LabHost

MATRICES = Path(__file__).parent / "matrices"


@dataclass(frozen=True)
class Answer:
    """Each GPU's rails by index, how far they are, and the devices of other roles."""

    rails: tuple[tuple[str, ...], ...]
    distance: str
    roles: dict[str, tuple[str, ...]]
    remote: tuple[tuple[int, str], ...] = ()
    order: tuple[str, ...] = ()  # of the rails in a lock; as they come in `rails` where nothing is said


def each(*names):
    return tuple((name,) for name in names)


ONE_TO_ONE = each(*(f"mlx5_{number}" for number in range(8)))
ANSWERS = {
    "hgx-h100": Answer(ONE_TO_ONE, "PIX", {}),
    "hgx-h100-ib": Answer(ONE_TO_ONE, "PIX", {}),
    "hgx-h100-ib-eth": Answer(ONE_TO_ONE, "PIX", {"storage": ("mlx5_8", "mlx5_9")}),
    "hgx-a100-80": Answer(ONE_TO_ONE, "PIX", {}),
    "hgx-a100-nps4": Answer(
        each("mlx5_1", "mlx5_1", "mlx5_0", "mlx5_0", "mlx5_5", "mlx5_5", "mlx5_2", "mlx5_2"),
        "PXB",
        {"storage": ("mlx5_3", "mlx5_4")},
        order=("mlx5_1", "mlx5_0", "mlx5_5", "mlx5_2"),
    ),
    "hgx-b200": Answer(ONE_TO_ONE, "PXB", {"nvswitch": ("mlx5_10", "mlx5_11", "mlx5_8", "mlx5_9")}),
    "gb200": Answer(ONE_TO_ONE[:4], "NODE", {}),
    "l40s-one-socket": Answer(
        ((), (), ("mlx5_0",), ("mlx5_1",)),
        "NODE",
        {},
        remote=((0, "mlx5_0"), (1, "mlx5_1")),
        order=("mlx5_0", "mlx5_1"),
    ),
    "guest-h100": Answer(ONE_TO_ONE[:4], "PHB", {}),
    "l40s-inbox": Answer(  # names by udev
        (("rocep24s0f0", "rocep24s0f1"), ()),
        "PHB",
        {},
        remote=((1, "rocep24s0f1"),),
        order=("rocep24s0f0", "rocep24s0f1"),
    ),
    "l40s-broadcom": Answer(each("bnxt_re0", "bnxt_re1"), "PHB", {}),
    "t4-guest": Answer((("mlx5_0",), ("mlx5_0",)), "PHB", {}, order=("mlx5_0",)),
}


def devices(folder, kind):
    """All that a machine of a type has, read by the node core."""
    return gather(LabHost(folder, kind, rails=None, cpus=None))


def drawn(folder, kind):
    """The topology of a machine of a type, its NVLinks by what nvidia-smi was recorded to print."""
    found = devices(folder, kind)
    recorded = MATRICES / f"{kind}.txt"
    links = matrix.links(matrix.parse(recorded.read_text()), found.gpus) if recorded.exists() else None
    return layout(kind, found, links=links)


def pairs(found):
    """The pairs of a node's devices, drafted without a lock, as GPU and NIC addresses."""
    pairing = layout("x", found).rails.pairing
    return {(item.gpu, item.nic) for item in pairing.pairs}


def without(found, pci):
    """The devices but one."""
    return replace(
        found,
        nics=tuple(nic for nic in found.nics if nic.pci != pci),
        gpus=tuple(gpu for gpu in found.gpus if gpu.pci != pci),
    )
