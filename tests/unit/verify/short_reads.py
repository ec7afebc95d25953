"""A folder shown again by FUSE, with files that count a read as the kernel's CPU lists do.

drivers/base/node.c and topology.c give a byte less than was asked for: they count the NUL behind the text. So a read of
one byte gives none, which is the end of the file; of two bytes it gives one.

    python short_reads.py FOLDER MOUNTPOINT
"""

import os
import sys
from pathlib import Path

import mfusepy


class ShortReads(mfusepy.Operations):
    """Every file is such a one, and none can be written."""

    use_ns = True

    def __init__(self, folder):
        self._folder = folder

    def _path(self, path):
        return self._folder + path

    def getattr(self, path, fh=None):
        found = os.lstat(self._path(path))
        return {name: getattr(found, name) for name in ("st_mode", "st_nlink", "st_size", "st_uid", "st_gid", "st_ino")}

    def readdir(self, path, fh):
        return [".", "..", *(entry.name for entry in Path(self._path(path)).iterdir())]

    def readlink(self, path):
        return str(Path(self._path(path)).readlink())

    def open(self, path, flags):
        return 0

    def read(self, path, size, offset, fh):
        return (Path(self._path(path)).read_bytes() + b"\0")[offset : offset + size][:-1]


if __name__ == "__main__":
    mfusepy.FUSE(ShortReads(sys.argv[1]), sys.argv[2], foreground=True, direct_io=True, ro=True)
