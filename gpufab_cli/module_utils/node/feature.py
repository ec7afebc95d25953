"""The node feature: gpufab's own program, units and udev rule, and no wish left of what is no longer managed."""

import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Tuple

from ..change import ABSENT, Absent, Change, Finding, Plan, Step, Unknown, Where
from ..desired import DESIRED_D, desired_path
from ..devices import Devices
from ..host import Host, Reader, sha256
from ..place import AWAITED, PROGRAM
from ..snapshot import Snapshot
from ..units import show
from . import order
from .files import EARLY, LATE, digests, links, paths, texts
from .program import NOTHING, Program
from .seen import NodeSeen
from .want import NodeWant

FEATURE = "node"
SYSTEMD = "/run/systemd/system"
"""Is there while systemd is (sd_booted(3))."""
DISABLED = "gpufab.restore=0"


@dataclass(frozen=True)
class Node:
    """What a node needs so that every other feature survives a reboot.

    Attributes:
        program: gpufab's own; who only gathers needs none.
    """

    program: Program = NOTHING

    name = FEATURE
    want_type = NodeWant
    seen_type = NodeSeen
    restored = False

    def gather(self, host: Reader, devices: Devices, want: NodeWant) -> NodeSeen:  # noqa: ARG002
        """Digest the files and look at the restore units."""
        python = want.python or sys.executable
        return NodeSeen(
            files={path: _digest(host, path) for path in paths()},
            links={path: host.link(path) for path in links(python)},
            python=python,
            # Who looks runs by an interpreter that is there.
            python_missing=python != sys.executable and not host.exists(python),
            order=order.read(host),
            strays=_strays(host, want),
            restore_disabled=_restore_disabled(host),
            **_units(host, want),
        )

    def plan(self, snapshot: Snapshot, want: NodeWant) -> Plan:
        """One step for the files, one for what comes after them at boot, one for strays; none touches traffic."""
        seen: NodeSeen = snapshot.seen[FEATURE]
        missing = f"{seen.python} is not there: connection.python in fabric.yml" if seen.python_missing else ""
        steps = [
            Step("node files", tuple(_file_changes(seen, self.program.digest())), blocked=missing),
            Step("node order", _order_changes(seen, want)),
            Step("node strays", tuple(_stray_changes(seen))),
        ]
        return Plan(tuple(step for step in steps if step.changes), findings=tuple(_findings(seen)))

    def only(self, want: NodeWant, device: str) -> NodeWant:  # noqa: ARG002
        """The wish as a whole: it concerns no device."""
        return want

    def apply(self, step: Step, host: Host) -> None:
        """Write files and links, then have systemd and udev read their configuration again.

        A file is replaced as a whole or not at all, so undoing a step has no old content to bring back; of the order
        the change holds it.
        """
        for change in step.changes:
            self._write(host, change)
        if step.name == "node files":
            # From now on udev events start restores, as after the first boot with these files.
            host.put(AWAITED, b"")
        if step.name != "node strays":
            _reload(host)

    def _write(self, host: Host, change: Change) -> None:
        (path,) = change.path
        if isinstance(change.desired, Absent):
            host.remove(path)
        elif path == order.ORDER:
            order.write(host, change.desired)
        elif path in links(""):
            host.symlink(path, change.desired)
        elif change.desired == digests(self.program.digest()).get(path):
            host.put(path, self.program.build() if path == PROGRAM else texts()[path])


def _digest(host: Reader, path: str) -> Any:
    content = host.read_bytes(path)
    return sha256(content) if isinstance(content, bytes) else content


def _strays(host: Reader, want: NodeWant) -> Any:
    names = host.names(DESIRED_D)
    if isinstance(names, Unknown):
        return names
    managed = {desired_path(feature) for feature in want.features}
    return tuple(name for name in (names if names is not ABSENT else ()) if f"{DESIRED_D}/{name}" not in managed)


def _restore_disabled(host: Reader) -> bool:
    """Whether the kernel command line turns restore off. The line itself may hold secrets and stays on the node."""
    line = host.read("/proc/cmdline")
    return isinstance(line, str) and DISABLED in line.split()


def _units(host: Reader, want: NodeWant) -> Dict[str, Any]:
    """How the restore units last ended, whether systemd has read them as they are, and what is ordered before them.

    Without systemd, none of it.
    """
    if not host.exists(SYSTEMD):
        return {"failed_units": (), "stale_units": (), "loops": {}}
    loops = order.loops(host, want.jobs)
    blocks = show(host, ("Id", "ActiveState", "Result", "NeedDaemonReload"), (EARLY, LATE))
    if isinstance(blocks, Unknown):
        return {"failed_units": (), "stale_units": blocks, "loops": loops}
    failed = (f"{b['Id']}: {b['Result']}" for b in blocks if b["ActiveState"] == "failed")
    stale = (b["Id"] for b in blocks if b["NeedDaemonReload"] == "yes")
    return {"failed_units": tuple(failed), "stale_units": tuple(stale), "loops": loops}


def _file_changes(seen: NodeSeen, program: str) -> List[Change]:
    wanted = {**digests(program), **links(seen.python)}
    found = {**seen.files, **seen.links}
    changes = [
        Change((path,), found[path], value, "node.files", Where.PERSISTED)
        for path, value in wanted.items()
        if found[path] != value
    ]
    return changes + _stale_changes(seen)


def _order_changes(seen: NodeSeen, want: NodeWant) -> Tuple[Change, ...]:
    if isinstance(seen.loops, Unknown):
        return (Change((order.ORDER,), seen.loops, "as the node's own order allows", "node.files", Where.PERSISTED),)
    wanted = order.wanted(want.wait_s, want.jobs, seen.loops)
    if seen.order == wanted:
        return ()
    return (Change((order.ORDER,), seen.order, wanted, "node.files", Where.PERSISTED),)


def _stale_changes(seen: NodeSeen) -> List[Change]:
    """What a run that was killed before it had systemd read its files again leaves behind."""
    if isinstance(seen.stale_units, Unknown):
        return [Change(("systemd",), seen.stale_units, "as on disk", "node.files")]
    return [Change((unit,), "as before", "as on disk", "node.files") for unit in seen.stale_units]


def _stray_changes(seen: NodeSeen) -> List[Change]:
    if isinstance(seen.strays, Unknown):
        return [Change((DESIRED_D,), seen.strays, ABSENT, "node.strays", Where.PERSISTED)]
    return [Change((f"{DESIRED_D}/{name}",), "present", ABSENT, "node.strays", Where.PERSISTED) for name in seen.strays]


def _findings(seen: NodeSeen) -> List[Finding]:
    findings = [Finding("node.restore-failed", (unit.partition(":")[0],), unit) for unit in seen.failed_units]
    if seen.python_missing:
        findings.append(Finding("node.python", (seen.python,), "not there"))
    if not isinstance(seen.loops, Unknown):
        findings += [Finding("node.order", (unit,), way) for unit, way in sorted(seen.loops.items())]
    if seen.restore_disabled:
        findings.append(Finding("node.restore-disabled", ("kernel command line",), DISABLED))
    return findings


def _reload(host: Host) -> None:
    """Neither starts, stops or restarts anything; a container without udev has nothing to reload there."""
    if host.exists(SYSTEMD):
        host.run("systemctl", "daemon-reload")
    if host.exists("/run/udev/control"):
        host.run("udevadm", "control", "--reload")
