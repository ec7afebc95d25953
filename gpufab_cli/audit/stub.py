"""The command that turns a node's own Python into the collector: nothing is installed and nothing is written there.

The zip of the node core comes on stdin, compressed and behind its length, is put into memory (memfd_create(2)) and
imported from there; the wishes follow it. Everything is one argv, quoted once for whatever login shell the user has;
the sources are wrapped so that they hold no newline, which csh would not take.
"""

import functools
import zlib

from gpufab_cli.module_utils import archive

# The empty line tells at once that the connection stands, and that the jump host on its way is free for others.
_LOADER = """\
import sys
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

# Root by sudo if sudo gives it without asking, else as who we are: the snapshot's uid then shows it.
_AS_ROOT = """\
import os, shutil, subprocess, sys
python = [sys.executable, "-I", "-c"]
sudo = [shutil.which("sudo"), "-n", "--"]
def refusal():
    if sudo[0] is None:
        return b"sudo is not installed"
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    done = subprocess.run(sudo + python + [""], **pipes)
    return (done.stderr.strip() or b"sudo failed") if done.returncode else None
reason = refusal() if os.geteuid() else b""
if reason:
    sys.stderr.buffer.write(REFUSED + reason.replace(b"\\n", b" ") + b"\\n")
    sys.stderr.flush()
argv = (sudo if reason is None else []) + python + [sys.argv[1]]
os.execv(argv[0], argv)
"""

_LEVEL = 4
"""zlib's own, 6, takes more than twice the time for a twentieth less to send."""

REFUSED = "gpufab: no root: "
"""What a line on stderr starts with that says why there is no root."""


def command(python: str, verb: str = "collect", *, root: bool) -> list[str]:
    """The argv of the collector, or of another verb of the core's program that only looks."""
    loader = _one_line(_LOADER.replace("PACKAGE", archive.PACKAGE).replace("VERB", repr(verb)))
    if not root:
        return [python, "-I", "-c", loader]
    return [python, "-I", "-c", _one_line(f"REFUSED = {REFUSED.encode()!r}\n{_AS_ROOT}"), loader]


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
