"""A few shapes as SVG text: boxes, lines and words, nothing that a browser or an editor would not draw alike."""

from dataclasses import dataclass, field
from xml.sax.saxutils import escape, quoteattr

from gpufab_cli.terminal import printable

FONT = "Inter, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"


@dataclass(frozen=True)
class Box:
    """A rectangle by its left upper corner, in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """Its middle from left to right."""
        return self.x + self.width / 2

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height


@dataclass(frozen=True)
class Style:
    """How a shape looks; a dash is as SVG writes it."""

    fill: str = "none"
    stroke: str = "none"
    width: float = 1.0
    dash: str = ""

    @property
    def attributes(self) -> str:
        """As attributes of an element."""
        dash = f' stroke-dasharray="{self.dash}"' if self.dash else ""
        return f'fill="{self.fill}" stroke="{self.stroke}" stroke-width="{self.width:g}"{dash}'


@dataclass(frozen=True)
class Font:
    """How words look; ``at`` says what of them is at their place: start, middle or end."""

    size: float = 12
    fill: str = "#1f2933"
    bold: bool = False
    at: str = "start"

    @property
    def attributes(self) -> str:
        """As attributes of an element."""
        weight = ' font-weight="600"' if self.bold else ""
        return f'font-size="{self.size:g}" fill="{self.fill}" text-anchor="{self.at}"{weight}'


@dataclass
class Canvas:
    """Shapes in the order in which they are drawn."""

    _parts: list[str] = field(default_factory=list)

    def box(self, box: Box, style: Style, radius: float = 6) -> None:
        """A rectangle with round corners."""
        place = f'x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="{radius:g}"'
        self._parts.append(f"<rect {place} {style.attributes}/>")

    def line(self, points: list[tuple[float, float]], style: Style) -> None:
        """A line from point to point."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._parts.append(f'<polyline points="{path}" {style.attributes} stroke-linejoin="round"/>')

    def circle(self, x: float, y: float, radius: float, style: Style) -> None:
        """A circle."""
        self._parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" {style.attributes}/>')

    def text(self, x: float, y: float, words: str, font: Font) -> None:
        """Words on a base line."""
        shown = escape(printable(words))  # XML knows no escape for control characters
        self._parts.append(f'<text x="{x:g}" y="{y:g}" {font.attributes}>{shown}</text>')

    def drawing(self, width: float, height: float, title: str) -> str:
        """The whole as an SVG file on white ground."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" font-family={quoteattr(FONT)} role="img">'
        )
        ground = f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>'
        return "\n".join([head, f"<title>{escape(printable(title))}</title>", ground, *self._parts, "</svg>"]) + "\n"
