"""What is drawn of a node, before it has a place: rows of sockets, NUMA nodes in them, what shares a root port."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpufab_cli.module_utils.devices import Gpu
from gpufab_cli.module_utils.topology.numa import Numa, NumaNode
from gpufab_cli.module_utils.topology.pairing import order
from gpufab_cli.topology.layout import Layout, Port

_SWITCH, _NESTED = 3, 5  # bridges above a device behind one switch, and behind one below another


@dataclass(frozen=True)
class Tile:
    """One device; ``names`` are those of the matrix and of the findings."""

    device: Gpu | Port
    title: str
    detail: str
    names: frozenset[str]

    @property
    def pci(self) -> str:
        """The address of its function."""
        return self.device.pci if isinstance(self.device, Gpu) else self.device.nic.pci


@dataclass(frozen=True)
class Group:
    """What shares a root port, or a root bus where there is none, and what to call that."""

    label: str
    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class Node:
    """A NUMA node with devices; ``node`` is None for those whose node is not known."""

    node: NumaNode | None
    groups: tuple[Group, ...]


@dataclass(frozen=True)
class Row:
    """A socket, or several nodes of which the sockets are not known; ``note`` tells of its nodes without devices."""

    title: str
    nodes: tuple[Node, ...]
    note: str = ""


def rows(found: Layout) -> tuple[Row, ...]:
    """The node's parts from top to bottom."""
    placed: dict[NumaNode | None, list[Tile]] = {}
    numa = found.devices.numa
    for tile in _tiles(found):
        device = tile.device if isinstance(tile.device, Gpu) else tile.device.nic
        placed.setdefault(numa.local(device.numa_node), []).append(tile)
    nodes = [Node(node, _groups(found, tiles)) for node, tiles in placed.items()]
    nodes.sort(key=lambda item: (item.node is None, item.node.id if item.node else 0))
    sockets = dict.fromkeys(item.node.socket for item in nodes if item.node)
    if -1 in sockets or not sockets:
        return tuple(_unsocketed(nodes))
    known = [Row(f"Socket {one}", tuple(_of(nodes, one)), _note(numa, one, nodes)) for one in sorted(sockets)]
    lost = tuple(item for item in nodes if item.node is None)
    return (*known, *([Row("", lost)] if lost else []))


def _of(nodes: Iterable[Node], socket: int) -> Iterable[Node]:
    return (item for item in nodes if item.node is not None and item.node.socket == socket)


def _unsocketed(nodes: Sequence[Node]) -> Iterable[Row]:
    half = (len(nodes) + 1) // 2
    return (Row("", tuple(part)) for part in (nodes[:half], nodes[half:]) if part)


def _note(numa: Numa, socket: int, nodes: Iterable[Node]) -> str:
    """The nodes of a socket that no device is on; those without CPUs with the first socket that is nearest."""
    drawn = {item.node.id for item in nodes if item.node}
    empty = [str(node.id) for node in numa.with_cpus if node.socket == socket and node.id not in drawn]
    bare = [node for node in numa.nodes if not node.cpus]
    memory = [str(node.id) for node in bare if (local := numa.local(node.id)) is not None and local.socket == socket]
    told = [f"no device on {_counted('node', empty)}"] if empty else []
    told += [f"memory only: {_counted('node', memory)}"] if memory else []
    return " · ".join(told)


def _counted(word: str, names: Sequence[str]) -> str:
    return f"{word}{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _tiles(found: Layout) -> Iterable[Tile]:
    for index, gpu in enumerate(found.gpus):
        yield Tile(gpu, f"GPU{index}", _short(found, gpu.pci), frozenset({f"GPU{index}"}))
    for port in found.ports:
        yield Tile(port, port.name, _short(found, port.nic.pci), frozenset({port.name}))


def _short(found: Layout, pci: str) -> str:
    return pci.removeprefix("0000:") if found.addressed else ""


def _groups(found: Layout, tiles: Iterable[Tile]) -> tuple[Group, ...]:
    together: dict[tuple[str, ...], list[Tile]] = {}
    for tile in tiles:
        device = tile.device if isinstance(tile.device, Gpu) else tile.device.nic
        together.setdefault(device.above[:2], []).append(tile)
    ranked = sorted(together.items(), key=lambda item: min(order(tile.pci) for tile in item[1]))
    return tuple(Group(_label(found, members), _beside(found, members)) for _, members in ranked)


def _label(found: Layout, tiles: Sequence[Tile]) -> str:
    """What the devices of a group share."""
    above = [(tile.device if isinstance(tile.device, Gpu) else tile.device.nic).above for tile in tiles]
    deepest = max(above, key=len)
    bridges = deepest[1:]
    if not deepest:
        return "place not known"
    if not found.addressed:
        return "PCIe switches" if len(bridges) >= _NESTED - 1 else "PCIe switch" if len(bridges) > 1 else "root port"
    if len(bridges) >= _SWITCH:
        return f"PCIe switch{'es' if len(bridges) >= _NESTED else ''} {bridges[1].removeprefix('0000:')}"
    return f"root port {bridges[0].removeprefix('0000:')}" if bridges else f"root bus {deepest[0].removeprefix('pci')}"


def _beside(found: Layout, tiles: Sequence[Tile]) -> tuple[Tile, ...]:
    """GPUs in order, each port right of the last of its GPUs."""
    gpus = [tile for tile in tiles if isinstance(tile.device, Gpu)]
    rest = [tile for tile in tiles if not isinstance(tile.device, Gpu)]
    placed: list[Tile] = []
    for gpu in gpus:
        placed.append(gpu)
        for port in list(rest):
            own = [pci for pci in found.rails.pairing.gpus_of(port.pci) if pci in {tile.pci for tile in gpus}]
            if own and own[-1] == gpu.pci:
                placed.append(port)
                rest.remove(port)
    return (*placed, *rest)
