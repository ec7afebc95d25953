"""The command that turns a node's own Python into the collector: nothing is installed and nothing is written there.

The zip of the node core comes on stdin, compressed and behind its length, is put into memory (memfd_create(2)) and
imported from there; the wishes follow it. Everything is one argv, quoted once for whatever login shell the user has;
the sources are wrapped so that they hold no newline, which csh would not take, nor a backslash before a quote, which
ends no string of fish's.
"""

import functools
import zlib

from gpufab_cli.module_utils import archive

# What it is called with it says on stderr: that it has begun. The empty line then tells at once that the connection
# stands, and that the jump host on its way is free for others.
_LOADER = """\
import sys
for word in sys.argv[1:]:
    sys.stderr.write("gpufab: %s;" % word)
    sys.stderr.flush()
if sys.version_info < (3, 9):
    sys.exit("gpufab: needs Python 3.9 on the node, this is " + sys.version.split()[0])
import os, zlib
print(flush=True)
stdin = sys.stdin.buffer
handle = os.memfd_create("gpufab")
with open(handle, "wb", closefd=False) as memory:
    memory.write(zlib.decompress(stdin.read(int(stdin.readline()))))
sys.path.insert(0, "/proc/self/fd/%d" % handle)
from PACKAGE.program import main
sys.exit(main([VERB]))
"""

REFUSED = "gpufab: no root: "
"""What a line on stderr starts with that says why there is no root."""

# Root by sudo if sudo gives it without asking, else as who we are: the snapshot's uid then shows it. sudo is started
# once: where it refuses, the loader has not begun, and stdin is unread. Its refusal may repeat the command line, in
# which the loader's words are not as they are said.
_AS_ROOT = (
    'if [ "$(id -u)" -eq 0 ]; then exec "$@"; fi',
    "exec 3>&1",
    'if command -v sudo >/dev/null; then said=$(sudo -n -- "$@" root 2>&1 >&3); code=$?',
    'else said="sudo is not installed"; fi',
    'case $said in *"gpufab: root;"*) printf "%s\\n" "${said#*gpufab: root;}" >&2; exit $code;; esac',
    "set -f",
    f'{{ printf "{REFUSED.strip()}"; printf " %s" ${{said:-sudo failed}}; echo; }} >&2',
    'exec "$@" 3>&-',
)

_LEVEL = 4
"""zlib's own, 6, takes more than twice the time for a twentieth less to send."""


def command(python: str, verb: str = "collect", *, root: bool) -> list[str]:
    """The argv of the collector, or of another verb of the core's program that only looks."""
    loader = _one_line(_LOADER.replace("PACKAGE", archive.PACKAGE).replace("VERB", f'"{verb}"'))
    argv = [python, "-I", "-c", loader]
    return ["/bin/sh", "-c", "; ".join(_AS_ROOT), "sh", *argv] if root else argv


def stdin(wishes: str) -> bytes:
    """What the collector reads: the program behind its length, the wishes."""
    return program() + wishes.encode()


@functools.cache
def program() -> bytes:
    """The zip as it is sent: its entries are stored, and a third of it is as much to encrypt for each host."""
    packed = zlib.compress(archive.build(), _LEVEL)
    return b"%d\n" % len(packed) + packed


def _one_line(source: str) -> str:
    return f"exec({source!r})"
