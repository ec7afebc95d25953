"""gpufab's own program as the node feature is given it: built from the sources, or announced and sent to the node."""

import base64
import zlib
from dataclasses import dataclass
from typing import Protocol

from ..host import HostError, sha256

ANNOUNCED, PACKED = "_program_digest", "_program"
"""Arguments of the module that its action plugin alone gives."""


class Program(Protocol):
    """The zip of ``archive.py``. The plan asks for its digest alone."""

    def digest(self) -> str:
        """What it is known by."""

    def build(self) -> bytes:
        """The zip itself."""


@dataclass(frozen=True)
class Sent:
    """What came to a node of it; each may be "".

    Attributes:
        announced: its digest.
        packed: the zip as :func:`pack` made it; it does not come in check mode.
    """

    announced: str = ""
    packed: str = ""

    def digest(self) -> str:
        """What it is known by.

        Raises:
            HostError: it was not announced.
        """
        if not self.announced:
            raise HostError("nothing says which program gpufab wants; run gpufab.fabric.node with its action plugin")
        return self.announced

    def build(self) -> bytes:
        """The zip itself.

        Raises:
            HostError: it did not come, or is not what was announced.
        """
        content = zlib.decompress(base64.b64decode(self.packed)) if self.packed else b""
        if sha256(content) != self.announced:
            raise HostError("what came is not the program that was announced; run again")
        return content


NOTHING = Sent()
"""Enough for who only gathers."""


def pack(content: bytes) -> str:
    """The zip as an argument of a module. That is done anew in each run, so no long search for the shortest form."""
    return base64.b64encode(zlib.compress(content, 3)).decode()
