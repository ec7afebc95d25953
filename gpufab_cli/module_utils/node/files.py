"""The files gpufab keeps on a node: the program that restores at boot, its systemd units, and a udev rule.

Ordering: docs of systemd.special(7) (network-pre.target), of rdma-core (rdma-load-modules@.service,
rdma-hw.target) and of NVIDIA (nvidia-persistenced.service, nvidia-fabricmanager.service).
"""

import functools
from typing import Dict, Mapping, Tuple

from ..host import sha256

PROGRAM = "/usr/local/lib/gpufab/gpufab.pyz"
UNITS = "/etc/systemd/system"
EARLY = "gpufab-restore@early.service"
LATE = "gpufab-restore@late.service"
DEVICE = "gpufab-restore-device@.service"
GPUS = "gpufab-restore-gpus.service"
UDEV_RULE = "/etc/udev/rules.d/90-gpufab-restore.rules"
HEADER = "# Kept by gpufab: changes made here are reverted.\n"

_UNIT = """\
[Unit]
Description={description}
Documentation=https://github.com/gpufab/gpufab
ConditionKernelCommandLine=!gpufab.restore=0
ConditionPathExists={program}
{ordering}
[Service]
Type=oneshot
{before}ExecStart=/usr/bin/env python3 -I {program} restore {arguments}
TimeoutStartSec={seconds}
{install}"""

# No RemainAfterExit: a unit that stays "active" could not be started again and would hide drift.
_EARLY_ORDER = """\
DefaultDependencies=no
Conflicts=shutdown.target
Wants=network-pre.target
After=local-fs.target systemd-modules-load.service systemd-sysctl.service systemd-udev-settle.service
After=rdma-load-modules@rdma.service rdma-load-modules@roce.service rdma-hw.target openibd.service
Before=network-pre.target shutdown.target
"""
_LATE_ORDER = """\
After=gpufab-restore@early.service network.target rdma-hw.target openibd.service irqbalance.service tuned.service
After=nvidia-persistenced.service nvidia-fabricmanager.service
"""
_DEVICE_ORDER = """\
After=gpufab-restore@early.service
StartLimitIntervalSec=60
StartLimitBurst=10
"""

_GPUS_ORDER = """\
After=gpufab-restore@late.service nvidia-persistenced.service nvidia-fabricmanager.service
StartLimitIntervalSec=60
StartLimitBurst=10
"""

_RULE = """\
# The driver of the GPUs starts with their factory settings.
ACTION=="add", SUBSYSTEM=="module", KERNEL=="nvidia", TAG+="systemd", ENV{SYSTEMD_WANTS}+="gpufab-restore-gpus.service"
# A driver reload, a firmware reset or a hot plug brings the port up with factory settings and no other sign.
# VFs have no DCB of their own.
# $id is the PCI address of the device that has the driver: unlike the name, it does not change under the rule.
ACTION=="add", SUBSYSTEM=="net", DRIVERS=="mlx5_core|bnxt_en", TEST!="device/physfn", TAG+="systemd", \
  ENV{SYSTEMD_WANTS}+="gpufab-restore-device@$id.service"
"""


def _unit(
    description: str, ordering: str, arguments: str, seconds: int, *, wanted_by: str = "", wait: int = 0
) -> bytes:
    install = f"\n[Install]\nWantedBy={wanted_by}\n" if wanted_by else ""
    before = f"ExecStartPre=/bin/sleep {wait}\n" if wait else ""
    text = _UNIT.format(
        description=description,
        ordering=ordering,
        arguments=arguments,
        seconds=seconds,
        install=install,
        before=before,
        program=PROGRAM,
    )
    return (HEADER + text).encode()


@functools.lru_cache(maxsize=1)
def digests(program: str) -> Mapping[str, str]:
    """What each file's content is known by, ``program`` that of the program; the same for every host."""
    return {PROGRAM: program, **{path: sha256(content) for path, content in texts().items()}}


def paths() -> Tuple[str, ...]:
    """Where they are. Who only looks does not pay for building the program."""
    return (PROGRAM, *texts())


def texts() -> Dict[str, bytes]:
    """Every file but the program by path, as this version of gpufab wants it."""
    early = _unit("gpufab: restore before the network", _EARLY_ORDER, "early", 120, wanted_by="sysinit.target")
    late = _unit("gpufab: restore after the drivers", _LATE_ORDER, "late", 180, wanted_by="multi-user.target")
    # Ten seconds: the driver binds to eight GPUs, and nvidia-persistenced is started by whoever reloaded it.
    gpus = _unit("gpufab: restore after the driver of the GPUs was loaded", _GPUS_ORDER, "late", 180, wait=10)
    # Two seconds: names and RDMA devices settle after a driver has added the netdev.
    device = _unit("gpufab: restore the port at %i", _DEVICE_ORDER, "device %i", 120, wait=2)
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
