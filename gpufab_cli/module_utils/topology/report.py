"""What ``gpufab topo`` asks of a node: its devices, and the NVLinks that sysfs does not show."""

import json
from typing import Any, Dict, TextIO

from ..change import Unknown
from ..devices import gather
from ..host import Reader
from ..schema import encode

MATRIX = ("nvidia-smi", "topo", "-m")


def answer(host: Reader, stdout: TextIO, marker: str) -> None:
    """Print the devices and what ``nvidia-smi topo -m`` prints, or why that is not known."""
    printed = host.query(*MATRIX)
    if isinstance(printed, Unknown):
        matrix: Any = encode(printed)
    else:
        matrix = printed.stdout if printed.rc == 0 else encode(Unknown(f"{' '.join(MATRIX)}: {printed.error}"))
    found: Dict[str, Any] = {"devices": encode(gather(host)), "matrix": matrix}
    stdout.write(f"{marker}\n{json.dumps(found, sort_keys=True)}\n")
