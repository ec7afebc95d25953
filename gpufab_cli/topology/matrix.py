"""A matrix as ``nvidia-smi topo -m`` prints it, pasted from anywhere: read, and made into a node's topology.

The matrix does not name PCI addresses or bridges, but its relations are those of a tree: one that gives the same matrix
is built. Releases differ in their columns, in the names of NICs, and in what follows; what is pasted may have lost its
tabs, its colours or its last lines.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from gpufab_cli.errors import GpufabError
from gpufab_cli.module_utils.change import ABSENT
from gpufab_cli.module_utils.devices import Devices, Gpu, Nic, RdmaDevice
from gpufab_cli.module_utils.texts import natural
from gpufab_cli.module_utils.topology.cpus import format_cpus, parse_cpus
from gpufab_cli.module_utils.topology.numa import Numa, NumaNode
from gpufab_cli.module_utils.topology.relation import Relation
from gpufab_cli.topology.layout import INVENTED, Layout, layout
from gpufab_cli.topology.roles import Role

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_HEAD = re.compile(r"CPU Affinity|NUMA Affinity|GPU NUMA ID|\S+")
_CELL = re.compile(r"X|NV[0-9]{1,3}|PIX|PXB|PHB|NODE|SYS|SOC")
_LEGEND = re.compile(r"\s*(NIC[0-9]{1,4}): (\S+)\s*")
_AFFINITY = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
NOT_SAID = "?"
"""Stands for the CPUs of a node that the matrix does not list."""

_LIMIT = 200  # devices; no machine has as many, and the tree is built in the square of their number


@dataclass(frozen=True)
class Matrix:
    """What was read. Names are those of the matrix: GPU0, NIC3; of releases that named them so, mlx5_3.

    Attributes:
        names: the devices, in order.
        cells: the connection of two of them, in both orders; one that is not there was not pasted.
        cpus: CPU affinity of GPUs, as it was written.
        numa: NUMA affinity of GPUs.
        memory: the node that a GPU's memory is.
        rdma: the RDMA device of a NIC, by the legend.
    """

    names: tuple[str, ...]
    cells: Mapping[tuple[str, str], str]
    cpus: Mapping[str, str] = field(default_factory=dict)
    numa: Mapping[str, str] = field(default_factory=dict)
    memory: Mapping[str, str] = field(default_factory=dict)
    rdma: Mapping[str, str] = field(default_factory=dict)

    @property
    def gpus(self) -> tuple[str, ...]:
        """The GPUs among the devices."""
        return tuple(name for name in self.names if name.startswith("GPU"))

    @property
    def nics(self) -> tuple[str, ...]:
        """The others."""
        return tuple(name for name in self.names if not name.startswith("GPU"))


def is_matrix(text: str) -> bool:
    """Whether a text looks like a pasted matrix."""
    return _head(_lines(text)) is not None


def parse(text: str) -> Matrix:
    """Read a matrix.

    Raises:
        GpufabError: there is none in the text, or a row of it is garbage.
    """
    lines = _lines(text)
    start = _head(lines)
    if start is None:
        raise GpufabError("no matrix in it", "paste what nvidia-smi topo -m prints, its first line with GPU0 included")
    columns = _HEAD.findall(lines[start])
    names = tuple(column for column in columns if column not in _AFFINITY)
    if len(names) > _LIMIT or len(set(names)) < len(names):
        raise GpufabError("the first line of the matrix names a device twice, or too many")
    found = Matrix(names, {}, {}, {}, {}, dict(_legend(lines[start + 1 :])))
    for line in _rows(lines[start + 1 :], names):
        found = _with_row(found, line, [column for column in columns if column in _AFFINITY])
    if not found.cells:
        raise GpufabError("no row below the first line of the matrix", "paste the whole of it")
    mirrored = {(other, one): cell for (one, other), cell in found.cells.items()}
    return replace(found, cells={**mirrored, **found.cells})


def _lines(text: str) -> list[str]:
    return [_ESCAPES.sub("", line).rstrip() for line in text.splitlines()]


def _head(lines: Sequence[str]) -> int | None:
    """The line that names the columns: it starts with GPU0, and no cell of a matrix is in it."""
    for number, line in enumerate(lines):
        words = line.split()
        if words[:1] == ["GPU0"] and not any(_CELL.fullmatch(word) for word in words):
            return number
    return None


def _rows(lines: Sequence[str], names: Sequence[str]) -> Iterator[str]:
    """The lines that start with a device's name, each once; what follows, prose about GPU0 included, is no row."""
    seen: set[str] = set()
    for line in filter(str.strip, lines):
        name = line.split()[0]
        if name not in names or name in seen:
            return
        seen.add(name)
        yield line


def _legend(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        match = _LEGEND.fullmatch(line)
        if match:
            yield match[1], match[2]


def _with_row(matrix: Matrix, line: str, columns: Sequence[str]) -> Matrix:
    """The matrix with one more row. Behind its cells stand those affinities that the release prints."""
    if "\t" in line:
        name, *fields = [word.strip() for word in line.split("\t")]
    else:
        name, *fields = line.split()
    row = fields[: len(matrix.names)]
    bad = next((cell for cell in row if not _CELL.fullmatch(cell)), None)
    if bad is not None or len(row) < len(matrix.names):
        what = f"{bad!r:.40} is no connection" if bad is not None else f"{len(row)} of {len(matrix.names)} columns"
        raise GpufabError(f"row {name} of the matrix: {what}", "was the line broken when it was pasted?")
    cells = {(name, other): "SYS" if cell == "SOC" else cell for other, cell in zip(matrix.names, row, strict=True)}
    said = _affinities(fields[len(matrix.names) :], columns, tabs="\t" in line)
    tables = (matrix.cpus, matrix.numa, matrix.memory)
    cpus, numa, memory = (
        {**table, name: said[column]} if said.get(column, "N/A") not in ("", "N/A") else table
        for table, column in zip(tables, _AFFINITY, strict=True)
    )
    return replace(matrix, cells={**matrix.cells, **cells}, cpus=cpus, numa=numa, memory=memory)


def _affinities(behind: list[str], columns: Sequence[str], *, tabs: bool) -> dict[str, str]:
    if tabs and len(behind) > len(columns):  # the node of a GPU's memory is one tab further than its head
        behind = [*behind[: len(columns) - 1], behind[-1]]
    if not tabs and len(behind) < len(columns):  # a guest's CPU affinity is blank: without tabs the others move up
        return dict(zip(reversed(columns), reversed(behind), strict=False))
    return dict(zip(columns, behind, strict=False))


def links(matrix: Matrix, gpus: Sequence[Gpu]) -> dict[tuple[str, str], str]:
    """The NVLinks of a node's own GPUs, which stand in the matrix in the same order."""
    pcis = dict(zip(matrix.gpus, (gpu.pci for gpu in gpus), strict=False))
    return {
        (pcis[one], pcis[other]): cell
        for (one, other), cell in matrix.cells.items()
        if cell.startswith("NV") and one in pcis and other in pcis
    }


def rebuilt(name: str, matrix: Matrix) -> Layout:
    """The topology that a matrix stands for. Roles stay open: it does not say which NIC has a link, or what for."""
    tree = _Tree(matrix)
    gpus = tuple(
        Gpu(_address(index, gpu=True), "0x10de", "", "nvidia", tree.node(gpu), tree.above(gpu))
        for index, gpu in enumerate(matrix.gpus)
    )
    nics = tuple(_nic(index, nic, matrix, tree) for index, nic in enumerate(matrix.nics))
    devices = Devices(nics, gpus, tree.numa)
    own = links(matrix, gpus)
    found = layout(name, devices, links=own)
    names = dict(zip((*matrix.gpus, *matrix.nics), found.columns, strict=True))
    cells = {
        (names[one], names[other]): matrix.cells.get((one, other), Relation.UNKNOWN.value)
        for one in matrix.names
        for other in matrix.names
    }
    ports = tuple(replace(port, role=port.role if port.role is Role.RAIL else None) for port in found.ports)
    return replace(found, ports=ports, cells=cells, addressed=False)


def _nic(index: int, name: str, matrix: Matrix, tree: "_Tree") -> Nic:
    rdma = RdmaDevice(matrix.rdma.get(name, name), "", "InfiniBand", "ACTIVE", "1 Gb/sec")
    return Nic(
        pci=_address(index, gpu=False),
        driver="",
        vendor="",
        device="",
        numa_node=tree.node(name),
        is_vf=False,
        serial=ABSENT,
        psid=ABSENT,
        fw_version=ABSENT,
        rdma=(rdma,),
        above=tree.above(name),
    )


def _address(index: int, *, gpu: bool) -> str:
    """An address that sorts as the matrix does."""
    return f"{index:04x}:{0 if gpu else 1:02x}:00.0"


class _Tree:
    """Devices in nested groups, each level as near as a relation says."""

    _LEVELS = (Relation.PIX, Relation.PXB, Relation.PHB, Relation.NODE)

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._groups = {level: self._grouped(level) for level in self._LEVELS}
        self._ids = self._nodes()
        cpus: dict[int, set[int]] = {}
        for gpu, text in matrix.cpus.items():
            cpus.setdefault(self._ids[self._groups[Relation.NODE][gpu]], set()).update(_cpus(text))
        said = sorted(set(self._ids.values()))
        self.numa = Numa(tuple(NumaNode(number, format_cpus(cpus.get(number, ())) or NOT_SAID) for number in said))

    def _grouped(self, level: Relation) -> dict[str, int]:
        """The number of each device's group at a level."""
        groups = {name: number for number, name in enumerate(self._matrix.names)}
        for (one, other), cell in self._matrix.cells.items():
            pcie = cell in Relation._value2member_map_
            joined = pcie and Relation(cell).rank <= level.rank
            same = level is Relation.NODE and self._same_node(one, other) and not (pcie and cell == "SYS")
            if (joined or same) and groups[one] != groups[other]:
                old, new = groups[other], groups[one]
                groups = {name: new if number == old else number for name, number in groups.items()}
        return groups

    def _same_node(self, one: str, other: str) -> bool:
        numa = self._matrix.numa
        return one in numa and numa[one] == numa.get(other)

    def _nodes(self) -> dict[int, int]:
        """A NUMA node for each group: the one that its GPUs name, else one that nobody does."""
        said: dict[int, int] = {}
        for name, text in self._matrix.numa.items():
            number = natural(text)
            if number is not None:
                said.setdefault(self._groups[Relation.NODE][name], number)
        unsaid = [group for group in dict.fromkeys(self._groups[Relation.NODE].values()) if group not in said]
        return said | {group: INVENTED + number for number, group in enumerate(unsaid)}

    def node(self, name: str) -> int:
        """The NUMA node of a device."""
        return self._ids[self._groups[Relation.NODE][name]]

    def _placed(self, name: str) -> bool:
        """Whether the matrix says how far the device is from one of the other sort: two GPUs may not tell of a NIC."""
        matrix = self._matrix
        others = set((matrix.nics if name in matrix.gpus else matrix.gpus) or matrix.names) - {name}
        return any(matrix.cells.get((name, other)) in Relation._value2member_map_ for other in others)

    def above(self, name: str) -> tuple[str, ...]:
        """Root bus and bridges that put the device where the matrix has it; none where its row was cut off."""
        if not self._placed(name):
            return ()
        pix, pxb, phb = (self._groups[level][name] for level in self._LEVELS[:3])
        inner = [one for one, number in self._groups[Relation.PIX].items() if number == pix]
        outer = [one for one, number in self._groups[Relation.PXB].items() if number == pxb]
        root = (f"pci{phb:04x}:00", f"root port {pxb}")
        if len(outer) == 1:
            return root
        if len(inner) == len(outer):
            return (*root, f"switch {pxb}", f"port of {name}")
        return (*root, f"switch {pxb}", f"port of {pix}", f"switch {pxb}.{pix}", f"port of {name}")


def _cpus(text: str) -> tuple[int, ...]:
    try:
        return parse_cpus(text)
    except ValueError:
        return ()
