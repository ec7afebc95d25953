"""ip: the real one, as the rails are real; what it is told to change is logged like any other write.

Of VFs a veth knows nothing, nor of a PCI function: those are answered here.
"""

import errno

from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools import ip_link
from gpufab_cli.lab.hardware.tools.answer import Answer, Request
from gpufab_cli.lab.hardware.tools.ip_vf import REAL

_CHANGES = {"add", "append", "change", "del", "delete", "flush", "replace", "set"}


def answer(hw: Hardware, request: Request) -> Answer:
    """Sends the caller to the real program, unless it is about the link of rails."""
    about_rails = ip_link.answer(hw, request)
    if about_rails is not None:
        return about_rails
    if not _CHANGES.intersection(request.argv):
        return Answer(program=REAL)
    try:
        with hw.writes.write("ip", " ".join(request.argv), alive=request.alive):
            return Answer(program=REAL)
    except OSError as error:
        return Answer(stderr=f"RTNETLINK answers: {error.strerror}\n", rc=2 if error.errno == errno.EIO else 1)
