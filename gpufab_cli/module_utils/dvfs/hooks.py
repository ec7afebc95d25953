"""The files that let Slurm jobs have their own clocks: a prolog, an epilog, and a timer for jobs that end otherwise.

Slurm runs every script of its prolog and epilog directories as root on the node, with the job's id, comment and GPUs
in the environment and without a PATH (slurm.conf(5), prolog_epilog.shtml). A prolog that fails drains the node, so
these never do.
"""

from typing import Dict, Tuple

from ..place import COMMAND, PROGRAM
from .want import JobsWant

UNITS = "/etc/systemd/system"
TIMER = "gpufab-jobs.timer"
SERVICE = "gpufab-jobs.service"
PROLOG = "50-gpufab-prolog.sh"
EPILOG = "50-gpufab-epilog.sh"

_SCRIPT = """\
#!/bin/sh
# Kept by gpufab: changes made here are reverted.
# {text}
[ -r {program} ] && {command} job {verb} | /usr/bin/logger -t gpufab
exit 0
"""
_SERVICE = """\
# Kept by gpufab: changes made here are reverted.
[Unit]
Description=gpufab: end the clocks of jobs that are gone
ConditionPathExists={program}
ConditionDirectoryNotEmpty=/var/lib/gpufab/jobs

[Service]
Type=oneshot
ExecStart={command} job sweep
TimeoutStartSec=180
"""
_TIMER = """\
# Kept by gpufab: changes made here are reverted.
[Unit]
Description=gpufab: end the clocks of jobs that are gone

[Timer]
OnBootSec=2min
OnUnitInactiveSec=1min

[Install]
WantedBy=timers.target
"""

LINKS: Tuple[Tuple[str, str], ...] = ((f"{UNITS}/timers.target.wants/{TIMER}", f"{UNITS}/{TIMER}"),)
"""What ``systemctl enable`` would make: (link, target)."""


def _script(text: str, verb: str) -> bytes:
    return _SCRIPT.format(text=text, program=PROGRAM, command=COMMAND, verb=verb).encode()


CONTENTS: Dict[str, bytes] = {
    PROLOG: _script("Sets what the job's comment asks for.", "begin"),
    EPILOG: _script("Sets the node's own policy again.", "end"),
    SERVICE: _SERVICE.format(program=PROGRAM, command=COMMAND).encode(),
    TIMER: _TIMER.encode(),
}
"""Every file by name."""


def paths(want: JobsWant) -> Tuple[str, ...]:
    """Where the files belong."""
    scripts = (f"{want.prolog_dir}/{PROLOG}", f"{want.epilog_dir}/{EPILOG}")
    return (*scripts, f"{UNITS}/{SERVICE}", f"{UNITS}/{TIMER}")


def content(path: str) -> bytes:
    """What belongs into the file at a path."""
    return CONTENTS[path.rpartition("/")[2]]


def mode(path: str) -> int:
    """Scripts are run, units are read."""
    return 0o755 if path.endswith(".sh") else 0o644
