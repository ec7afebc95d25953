"""ip: the real one, as the rails are real; what it is told to change is logged like any other write.

Of VFs a veth knows nothing: those are answered here.
"""

import errno

from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools import ip_vf
from gpufab_cli.lab.hardware.tools.answer import Answer, Request

REAL = "/usr/bin/ip.real"
_CHANGES = {"add", "append", "change", "del", "delete", "flush", "replace", "set"}


def answer(hw: Hardware, request: Request) -> Answer:
    """Sends the caller to the real program, unless it is about VFs."""
    about_vfs = ip_vf.answer(hw, request)
    if about_vfs is not None:
        return about_vfs
    if not _CHANGES.intersection(request.argv):
        return Answer(program=REAL)
    try:
        with hw.writes.write("ip", " ".join(request.argv), alive=request.alive):
            return Answer(program=REAL)
    except OSError as error:
        return Answer(stderr=f"RTNETLINK answers: {error.strerror}\n", rc=2 if error.errno == errno.EIO else 1)
