"""What the tier needs of the host."""

import os
import shutil

NEEDED = {"mmdebstrap": "mmdebstrap", "ssh": "openssh-client", "ssh-keygen": "openssh-client", "setpriv": "util-linux"}


def missing() -> str:
    """Why the tier cannot run here; nothing where it can."""
    lacking = sorted({package for program, package in NEEDED.items() if not shutil.which(program)})
    if lacking:
        return f"virtual machines need {', '.join(lacking)}: apt-get install {' '.join(lacking)}"
    if os.geteuid() != 0:
        return "virtual machines need root, as mmdebstrap makes their disks"
    return ""
