"""The node feature: gpufab's own program, units and udev rule, and no wish left of what is no longer managed."""

from dataclasses import dataclass
from typing import Any, Dict, List

from ..change import ABSENT, Absent, Change, Finding, Plan, Step, Unknown, Where
from ..desired import DESIRED_D, desired_path
from ..devices import Devices
from ..host import Host, Reader, sha256
from ..snapshot import Snapshot
from ..units import show
from .files import EARLY, LATE, LINKS, PROGRAM, digests, paths, texts
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
        return NodeSeen(
            files={path: _digest(host, path) for path in paths()},
            links={path: host.link(path) for path, _ in LINKS},
            strays=_strays(host, want),
            restore_disabled=_restore_disabled(host),
            **_units(host),
        )

    def plan(self, snapshot: Snapshot, want: NodeWant) -> Plan:  # noqa: ARG002
        """One step for the files, one for strays; neither touches traffic."""
        seen: NodeSeen = snapshot.seen[FEATURE]
        files = _file_changes(seen, self.program.digest())
        steps = [Step("node files", tuple(files)), Step("node strays", tuple(_stray_changes(seen)))]
        return Plan(tuple(step for step in steps if step.changes), findings=tuple(_findings(seen)))

    def only(self, want: NodeWant, device: str) -> NodeWant:  # noqa: ARG002
        """The wish as a whole: it concerns no device."""
        return want

    def apply(self, step: Step, host: Host) -> None:
        """Write files and links, then have systemd and udev read their configuration again.

        A file is replaced as a whole or not at all, so undoing a step has no old content to bring back.
        """
        for change in step.changes:
            self._write(host, change)
        if step.name == "node files":
            _reload(host)

    def _write(self, host: Host, change: Change) -> None:
        (path,) = change.path
        if isinstance(change.desired, Absent):
            host.remove(path)
        elif path in dict(LINKS):
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


def _units(host: Reader) -> Dict[str, Any]:
    """How the restore units last ended and whether systemd has read them as they are; without systemd, neither."""
    if not host.exists(SYSTEMD):
        return {"failed_units": (), "stale_units": ()}
    blocks = show(host, ("Id", "ActiveState", "Result", "NeedDaemonReload"), (EARLY, LATE))
    if isinstance(blocks, Unknown):
        return {"failed_units": (), "stale_units": blocks}
    failed = (f"{b['Id']}: {b['Result']}" for b in blocks if b["ActiveState"] == "failed")
    stale = (b["Id"] for b in blocks if b["NeedDaemonReload"] == "yes")
    return {"failed_units": tuple(failed), "stale_units": tuple(stale)}


def _file_changes(seen: NodeSeen, program: str) -> List[Change]:
    wanted = {**digests(program), **dict(LINKS)}
    found = {**seen.files, **seen.links}
    changes = [
        Change((path,), found[path], value, "node.files", Where.PERSISTED)
        for path, value in wanted.items()
        if found[path] != value
    ]
    return changes + _stale_changes(seen)


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
    if seen.restore_disabled:
        findings.append(Finding("node.restore-disabled", ("kernel command line",), DISABLED))
    return findings


def _reload(host: Host) -> None:
    """Neither starts, stops or restarts anything; a container without udev has nothing to reload there."""
    if host.exists(SYSTEMD):
        host.run("systemctl", "daemon-reload")
    if host.exists("/run/udev/control"):
        host.run("udevadm", "control", "--reload")
