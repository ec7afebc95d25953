"""A picture of a node: sockets, NUMA nodes, switches, GPUs and NICs where they are, rails, NVLink, and what is odd.

Two sockets face each other, so that their GPUs meet at the NVLink in the middle: the lower one is drawn upside down.
"""

from dataclasses import dataclass

from gpufab_cli.module_utils.devices import Gpu
from gpufab_cli.module_utils.topology.pairing import Pair
from gpufab_cli.module_utils.topology.relation import Relation
from gpufab_cli.topology.findings import TopoFinding, findings
from gpufab_cli.topology.layout import INVENTED, Layout, Port
from gpufab_cli.topology.roles import Role
from gpufab_cli.topology.scene import Group, Node, Row, Tile, rows
from gpufab_cli.topology.svg import Box, Canvas, Font, Style

_MARGIN, _TITLE, _NARROW = 40, 58, 640
_TILE_W, _TILE_H, _TILE_GAP = 94, 52, 10
_PAD, _GAP = 12, 16
_TOP, _HEAD, _SWITCH_H, _STEM = 26, 32, 26, 20  # a socket's words, a node's, its switches, the lines to the devices
_PILL, _LANE, _LANES = 20, 10, 3  # what a port is for, and the ways of the lines between partners
_OUT = _LANE * (_LANES + 1)  # from a device to its pill
_NVLINK, _BETWEEN = 30, 18
_LINE = 20  # of the legend and the findings
_CHARACTER = 6.6  # mean width of one at 12 pixels
_ROW = _TOP + _HEAD + _SWITCH_H + _STEM + _TILE_H + _OUT + _PILL + 2 * _PAD
_FACING = 2  # rows that face each other

_GREY, _GREEN, _BLUE, _AMBER, _RED = "#7b8794", "#2f8a4c", "#2b6cb0", "#c77d0a", "#c62828"
_WIRE = Style("none", "#829ab1", 1.5)
_GPU = Style("#e3f4e6", _GREEN, 1.5)
_ROLES = {
    Role.RAIL: Style("#e1edfc", _BLUE, 1.5),
    Role.STORAGE: Style("#fdf1d4", "#b7791f", 1.5),
    Role.MANAGEMENT: Style("#eceff3", "#627d98", 1.5),
    Role.NVSWITCH: Style("#efe5fa", "#7c4dbd", 1.5),
    Role.UNUSED: Style("#ffffff", "#9aa5b1", 1.5, "4 3"),
    None: Style("#f5f7fa", "#9aa5b1", 1.5),
}
_PAIRS = {
    "same switch": Style("none", _BLUE, 2),
    "over the CPU": Style("none", _AMBER, 2),
    "between sockets": Style("none", _RED, 2, "5 4"),
}
_SEVERITIES = {"critical": _RED, "warning": _AMBER, "info": "#627d98"}


def picture(found: Layout) -> str:
    """The picture as SVG."""
    return _Drawing(found).drawn()


@dataclass(frozen=True)
class _Spot:
    """Where a device is, and whether its row is upside down."""

    box: Box
    flipped: bool

    def edge(self, out: float) -> float:
        """A height that far outside the edge that faces the middle of the picture."""
        return self.box.y - out if self.flipped else self.box.bottom + out


class _Drawing:
    """Places and draws; heights count from the top of the picture."""

    def __init__(self, found: Layout) -> None:
        self._found = found
        self._rows = rows(found)
        self._canvas = Canvas()
        self._spots: dict[tuple[str, str], _Spot] = {}  # by address and title: two devices may share a function
        self._lanes: list[tuple[bool, int, float, float]] = []  # taken: upside down, which, from, to
        self._findings = findings(found)
        self._width = max([_row_width(row) for row in self._rows] + [_NARROW])

    def drawn(self) -> str:
        """The whole picture."""
        self._title()
        facing = len(self._rows) == _FACING
        top, bar = float(_TITLE), None
        for number, row in enumerate(self._rows):
            self._row(row, top, flipped=facing and number == 1)
            top += _ROW + _BETWEEN
            if number == 0 and self._found.links and len(self._rows) <= _FACING:
                bar = Box(_MARGIN, top, self._width, _NVLINK)
                top = bar.bottom + _BETWEEN
        if bar is not None:
            self._nvlink(bar)
        for item in (*self._found.rails.pairing.remote, *self._found.rails.pairing.pairs):
            self._pair(item)
        self._pills()
        self._badges()
        bottom = self._told(self._legend(top + 8))
        return self._canvas.drawing(self._width + 2 * _MARGIN, bottom + 12, f"Topology of {self._found.name}")

    def _title(self) -> None:
        counted = f"{len(self._found.gpus)} GPUs · {len(self._found.ports)} NIC ports"
        if len(self._rows) > _FACING and self._found.links:  # there is no middle to draw it in
            counted += f" · NVLink {_linked(self._found)}"
        self._canvas.text(_MARGIN, 34, self._found.name, Font(20, bold=True))
        self._canvas.text(_MARGIN + self._width, 34, counted, Font(13, _GREY, at="end"))

    def _row(self, row: Row, top: float, *, flipped: bool) -> None:
        self._canvas.box(Box(_MARGIN, top, self._width, _ROW), Style("#f8fafc", "#cbd2d9"), 10)
        words = " · ".join(filter(None, (row.title, row.note)))
        base = top + _ROW - 9 if flipped else top + 18
        self._canvas.text(_MARGIN + _PAD, base, words, Font(12, _GREY, bold=True))
        x, spare = _MARGIN + float(_PAD), (self._width - _row_width(row)) / len(row.nodes)
        for node in row.nodes:
            box = Box(x, top + (_PAD if flipped else _TOP), _node_width(node) + spare, _ROW - _TOP - _PAD)
            self._node(node, box, flipped=flipped)
            x = box.right + _GAP

    def _node(self, node: Node, box: Box, *, flipped: bool) -> None:
        self._canvas.box(box, Style("#ffffff", "#9fb3c8"), 8)
        known = node.node is not None and node.node.id < INVENTED
        name = f"NUMA node {node.node.id}" if node.node and known else "NUMA node not told"
        base = box.bottom - 12 if flipped else box.y + 21
        self._canvas.text(box.x + _PAD, base, name, Font(13, bold=True))
        if node.node:
            words = _fitted(f"CPUs {node.node.cpus}", box.width - 2 * _PAD - len(name) * 9)
            self._canvas.text(box.right - _PAD, base, words, Font(12, _GREY, at="end"))
        used = sum(map(_group_width, node.groups)) + _GAP * (len(node.groups) - 1)
        x, spread = box.x + _PAD, (box.width - 2 * _PAD - used) / len(node.groups)
        for group in node.groups:
            width = _group_width(group)
            self._group(group, x + spread / 2, width, box, flipped=flipped)
            x += width + spread + _GAP

    def _group(self, group: Group, x: float, width: float, node: Box, *, flipped: bool) -> None:
        """What is shared, and the devices below it; above it where the row is upside down."""
        y = node.bottom - _HEAD - _SWITCH_H if flipped else node.y + _HEAD
        shared = Box(x, y, width, _SWITCH_H)
        self._canvas.box(shared, Style("#edf2f7", "#829ab1"), 5)
        words = _fitted(group.label, width)
        self._canvas.text(shared.middle, shared.y + 17, words, Font(11, "#486581", at="middle"))
        top = shared.y - _STEM - _TILE_H if flipped else shared.bottom + _STEM
        left = x + (width - _tiles_width(group)) / 2
        for tile in group.tiles:
            box = Box(left, top, _TILE_W, _TILE_H)
            ends = (box.bottom, shared.y) if flipped else (shared.bottom, box.y)
            self._canvas.line([(box.middle, ends[0]), (box.middle, ends[1])], _WIRE)
            self._tile(tile, _Spot(box, flipped))
            left = box.right + _TILE_GAP

    def _tile(self, tile: Tile, spot: _Spot) -> None:
        self._spots[tile.pci, tile.title] = spot
        gpu, box = isinstance(tile.device, Gpu), spot.box
        self._canvas.box(box, _style(tile.device))
        words = _fitted(tile.title, _TILE_W)
        self._canvas.text(box.middle, box.y + (23 if tile.detail else 31), words, Font(13, bold=gpu, at="middle"))
        self._canvas.text(box.middle, box.y + 40, tile.detail, Font(10.5, _GREY, at="middle"))

    def _nvlink(self, bar: Box) -> None:
        """The links between GPUs, and a wire from each GPU that has some."""
        links = self._found.links or {}
        for pci in dict.fromkeys(one for one, _ in links):
            spot = self._spots[pci, self._found.gpu_name(pci)]
            wire = [(spot.box.middle, spot.edge(0)), (spot.box.middle, bar.bottom if spot.flipped else bar.y)]
            self._canvas.line(wire, Style("none", _GREEN, 2.5))
        words = f"NVLink · {_linked(self._found)}"
        self._canvas.box(bar, Style("#c9ebd1", _GREEN, 1.5), 8)
        self._canvas.text(bar.middle, bar.y + 20, words, Font(12, "#1c5c33", bold=True, at="middle"))

    def _pair(self, item: Pair) -> None:
        """A line between partners, on a way of its own where others are on theirs."""
        gpu = self._spots[item.gpu, self._found.gpu_name(item.gpu)]
        nic = self._spots[item.nic, self._found.port_of(item.nic).name]
        style = _PAIRS[_kind(item.relation)]
        side = 14 if nic.box.x > gpu.box.x else -14
        ends = gpu.box.middle + side, nic.box.middle - side
        out = _LANE * (1 + self._lane(gpu.flipped, *sorted(ends)))
        here, there = gpu.edge(out), nic.edge(out)
        way = [(ends[0], gpu.edge(0)), (ends[0], here), (ends[1], there), (ends[1], nic.edge(0))]
        self._canvas.line(way, style)
        self._label(sum(ends) / 2, (here + there) / 2, item.relation.value, style.stroke)

    def _lane(self, flipped: bool, left: float, right: float) -> int:
        """The way nearest to the devices that is free from left to right; the last where none is."""
        taken = {lane for side, lane, a, b in self._lanes if side == flipped and a < right and left < b}
        lane = next((lane for lane in range(_LANES) if lane not in taken), _LANES - 1)
        self._lanes.append((flipped, lane, left, right))
        return lane

    def _label(self, x: float, y: float, word: str, colour: str) -> None:
        width = len(word) * 7 + 8
        self._canvas.box(Box(x - width / 2, y - 7, width, 14), Style("#ffffff", colour), 7)
        self._canvas.text(x, y + 3.5, word, Font(9.5, colour, bold=True, at="middle"))

    def _pills(self) -> None:
        """What each port is for, between it and the middle."""
        for port in self._found.ports:
            spot = self._spots[port.nic.pci, port.name]
            words = port.rail or ("?" if port.role is None else _words(port.role))
            y = spot.edge(_OUT + (_PILL if spot.flipped else 0))
            pill = Box(spot.box.x + 4, y, _TILE_W - 8, _PILL)
            self._canvas.box(pill, Style(_style(port).stroke), _PILL / 2)
            self._canvas.text(pill.middle, y + 14, _fitted(words, pill.width), Font(11, "#ffffff", at="middle"))

    def _badges(self) -> None:
        """A number at each device that a finding is about."""
        for (_, title), spot in self._spots.items():
            own = [(number, item) for number, item in enumerate(self._findings, 1) if item.device == title]
            for place, (number, item) in enumerate(own):
                y = spot.box.bottom if spot.flipped else spot.box.y
                self._badge(spot.box.right - 2 - 18 * place, y, number, item)

    def _badge(self, x: float, y: float, number: int, item: TopoFinding) -> None:
        self._canvas.circle(x, y, 8.5, Style(_SEVERITIES[item.severity.value], "#ffffff", 1.5))
        self._canvas.text(x, y + 4, str(number), Font(11, "#ffffff", bold=True, at="middle"))

    def _legend(self, top: float) -> float:
        boxes = {"GPU": _GPU} | {_words(port.role): _style(port) for port in self._found.ports}
        x: float = _MARGIN
        for words, style in boxes.items():
            self._canvas.box(Box(x, top, 16, 12), style, 3)
            self._canvas.text(x + 22, top + 10.5, words, Font(11.5, "#52606d"))
            x += 44 + len(words) * _CHARACTER
        pairing = self._found.rails.pairing
        used = {_kind(item.relation) for item in (*pairing.pairs, *pairing.remote)}
        for words, style in ((words, style) for words, style in _PAIRS.items() if words in used):
            self._canvas.line([(x, top + 6), (x + 22, top + 6)], style)
            self._canvas.text(x + 28, top + 10.5, f"GPU and rail: {words}", Font(11.5, "#52606d"))
            x += 50 + (len(words) + 13) * _CHARACTER
        return top + 32

    def _told(self, top: float) -> float:
        for number, item in enumerate(self._findings, 1):
            self._badge(_MARGIN + 9, top + 2, number, item)
            words = f"{item.device}: {item.evidence} ({item.code})"
            self._canvas.text(_MARGIN + 26, top + 6, words, Font())
            top += _LINE
        return top


def _linked(found: Layout) -> str:
    return ", ".join(sorted(set((found.links or {}).values())))


def _style(device: Gpu | Port) -> Style:
    return _GPU if isinstance(device, Gpu) else _ROLES[device.role]


def _words(role: Role | None) -> str:
    return "role not known" if role is None else "NVSwitch" if role is Role.NVSWITCH else role.value


def _kind(relation: Relation) -> str:
    return "same switch" if relation.near else "between sockets" if relation is Relation.SYS else "over the CPU"


def _row_width(row: Row) -> float:
    return sum(map(_node_width, row.nodes)) + _GAP * (len(row.nodes) - 1) + 2 * _PAD


def _node_width(node: Node) -> float:
    return max(sum(map(_group_width, node.groups)) + _GAP * (len(node.groups) - 1) + 2 * _PAD, 270)


def _group_width(group: Group) -> float:
    return max(_tiles_width(group), len(group.label) * _CHARACTER + 12)


def _tiles_width(group: Group) -> float:
    return len(group.tiles) * (_TILE_W + _TILE_GAP) - _TILE_GAP


def _fitted(words: str, width: float) -> str:
    """Words that are cut where they would not fit."""
    room = max(int(width / _CHARACTER), 1)
    return words if len(words) <= room else words[: room - 1] + "…"
