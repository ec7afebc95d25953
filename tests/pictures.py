"""The pictures in docs/: three machine types of the lab. ``python -m tests.pictures`` draws them."""

import tempfile
from pathlib import Path

from gpufab_cli.topology.picture import picture
from tests.unit.topology.machines import drawn

DRAWN = ("hgx-h100-ib-eth", "hgx-a100-nps4", "l40s-one-socket")
FOLDER = Path(__file__).parents[1] / "docs" / "pictures"


def pictures():
    """Each file and what is to stand in it."""
    for kind in DRAWN:
        with tempfile.TemporaryDirectory() as folder:
            yield FOLDER / f"{kind}.svg", picture(drawn(Path(folder), kind))


def main():
    FOLDER.mkdir(exist_ok=True)
    for path, text in pictures():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
