"""The files gpufab keeps on a node: the program that restores at boot, its systemd units, and a udev rule.

Ordering: docs of systemd.special(7) (network-pre.target), of rdma-core (rdma-load-modules@.service,
rdma-hw.target) and of NVIDIA (nvidia-persistenced.service, nvidia-fabricmanager.service).
"""

import functools
from typing import Dict, Mapping, Tuple

from ..host import sha256
from ..place import AWAITED, COMMAND, PROGRAM, PYTHON

UNITS = "/etc/systemd/system"
EARLY = "gpufab-restore@early.service"
LATE = "gpufab-restore@late.service"
DEVICE = "gpufab-restore-device@.service"
GPUS = "gpufab-restore-gpus.service"
UDEV_RULE = "/etc/udev/rules.d/90-gpufab-restore.rules"
HEADER = "# Kept by gpufab: changes made here are reverted.\n"

EARLY_SECONDS, LATE_SECONDS, DEVICE_SECONDS = 120, 180, 300
"""How long the work itself may take, waits aside. Eight ports with eight VFs each take one and a half minutes."""
STOP_SECONDS = 5
"""From SIGTERM to SIGKILL. A program that hangs in the kernel is given up after four times that (systemd's service.c:
stop-sigterm, stop-sigkill, final-sigterm, final-sigkill)."""

WAIT = "GPUFAB_WAIT_S"
"""The variable with the seconds that the early restore waits for ports; see ``order.py``."""

EARLY_AFTER = (
    "local-fs.target",
    "systemd-modules-load.service",
    "systemd-sysctl.service",
    "systemd-udev-trigger.service",
    "rdma-load-modules@rdma.service",
    "rdma-load-modules@roce.service",
    "rdma-hw.target",
    "openibd.service",
)
"""The early restore begins after these. What it comes before is a file of its own, see ``order.py``."""

_UNIT = """\
[Unit]
Description={description}
Documentation=https://github.com/gpufab/gpufab
ConditionKernelCommandLine=!gpufab.restore=0
ConditionPathExists={program}
{ordering}
[Service]
Type=oneshot
{service}ExecStart={command} restore {arguments}
TimeoutStartSec={seconds}
TimeoutStopSec={stop}
{install}"""

# No RemainAfterExit: a unit that stays "active" could not be started again and would hide drift.
_EARLY_ORDER = f"""\
DefaultDependencies=no
Conflicts=shutdown.target
Before=shutdown.target
After={" ".join(EARLY_AFTER)}
"""
_LATE_ORDER = """\
After=gpufab-restore@early.service network.target rdma-hw.target openibd.service irqbalance.service tuned.service
After=nvidia-persistenced.service nvidia-fabricmanager.service
"""
# No start limit: it would refuse the last event of a flurry, and nothing would restore that port. Each start waits
# first, and events that come meanwhile or while it works are one with it.
_DEVICE_ORDER = """\
After=gpufab-restore@early.service
StartLimitIntervalSec=0
"""

_GPUS_ORDER = """\
After=gpufab-restore@late.service nvidia-persistenced.service nvidia-fabricmanager.service
StartLimitIntervalSec=0
"""

_RULE = f"""\
# The driver of the GPUs starts with their factory settings, and so does a GPU that it is given later.
ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia", TAG+="systemd", \\
  ENV{{SYSTEMD_WANTS}}+="gpufab-restore-gpus.service"
ACTION=="bind", SUBSYSTEM=="pci", DRIVER=="nvidia", TAG+="systemd", \\
  ENV{{SYSTEMD_WANTS}}+="gpufab-restore-gpus.service"
# A driver reload, a firmware reset or a hot plug brings the port up with factory settings and no other sign.
# systemd passes over the add event of an interface that is being renamed: for that one, move is the event.
# A port of InfiniBand may have no interface, and the RDMA device of any port may come later than the interface.
# VFs (physfn) and sub-functions (no PCI function of their own) have no DCB of their own.
# Until the early restore has waited for the ports it restores them itself.
# $id is the PCI address of the function that has the driver: unlike the name, it does not change under the rule.
ACTION=="add|move", SUBSYSTEM=="net|infiniband", SUBSYSTEMS=="pci", DRIVERS=="mlx5_core|bnxt_en", \\
  TEST!="device/physfn", TEST=="device/vendor", TEST=="{AWAITED}", TAG+="systemd", \\
  ENV{{SYSTEMD_WANTS}}+="gpufab-restore-device@$id.service"
"""


def _unit(
    description: str, ordering: str, arguments: str, seconds: int, *, wanted_by: str = "", service: str = ""
) -> bytes:
    install = f"\n[Install]\nWantedBy={wanted_by}\n" if wanted_by else ""
    text = _UNIT.format(
        description=description,
        ordering=ordering,
        arguments=arguments,
        seconds=seconds,
        stop=STOP_SECONDS,
        install=install,
        service=service,
        program=PROGRAM,
        command=COMMAND,
    )
    return (HEADER + text).encode()


def _sleep(seconds: int) -> str:
    return f"ExecStartPre=/bin/sleep {seconds}\n"


@functools.lru_cache(maxsize=1)
def digests(program: str) -> Mapping[str, str]:
    """What each file's content is known by, ``program`` that of the program; the same for every host."""
    return {PROGRAM: program, **{path: sha256(content) for path, content in texts().items()}}


def paths() -> Tuple[str, ...]:
    """Where they are. Who only looks does not pay for building the program."""
    return (PROGRAM, *texts())


def texts() -> Dict[str, bytes]:
    """Every file but the program by path, as this version of gpufab wants it."""
    early = _unit(
        "gpufab: restore before the network",
        _EARLY_ORDER,
        f"early --wait ${{{WAIT}}}",
        EARLY_SECONDS,
        wanted_by="sysinit.target",
        service=f"Environment={WAIT}=0\n",
    )
    late = _unit("gpufab: restore after the drivers", _LATE_ORDER, "late", LATE_SECONDS, wanted_by="multi-user.target")
    # Ten seconds: the driver binds to eight GPUs, and nvidia-persistenced is started by whoever reloaded it.
    gpus = _unit(
        "gpufab: restore after the driver of the GPUs was loaded", _GPUS_ORDER, "late", LATE_SECONDS, service=_sleep(10)
    )
    # Two seconds make one start of a flurry of events.
    device = _unit("gpufab: restore the port at %i", _DEVICE_ORDER, "device %i", DEVICE_SECONDS, service=_sleep(2))
    return {
        f"{UNITS}/{EARLY}": early,
        f"{UNITS}/{LATE}": late,
        f"{UNITS}/{DEVICE}": device,
        f"{UNITS}/{GPUS}": gpus,
        UDEV_RULE: (HEADER + _RULE).encode(),
    }


LINKS: Tuple[Tuple[str, str], ...] = (
    (f"{UNITS}/sysinit.target.wants/{EARLY}", f"{UNITS}/{EARLY}"),
    (f"{UNITS}/multi-user.target.wants/{LATE}", f"{UNITS}/{LATE}"),
)
"""What ``systemctl enable`` would make: (link, target)."""


def links(python: str) -> Dict[str, str]:
    """Every link and its target; ``python`` is the interpreter that starts the program."""
    return {PYTHON: python, **dict(LINKS)}
