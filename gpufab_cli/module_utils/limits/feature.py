"""The limits feature: locked memory of logins and of the services that start jobs, on disk and as it runs.

A service has the limit that it was started with, whatever its files say by now: that is pending its restart.
"""

from typing import Dict, Iterator, List

from ..change import ABSENT, Absent, Change, Finding, Impact, Pending, Plan, Step, Unknown, Where
from ..devices import Devices
from ..host import Host, Reader
from ..snapshot import Snapshot
from .files import LOGINS, content, is_, limit
from .gather import SYSTEMD, gather, running
from .seen import LimitsSeen, ServiceSeen
from .want import LimitsWant

FEATURE = "limits"
FILES = "limits files"
RESTART = "restart"
RESTART_SECONDS = 120.0
START_SECONDS = 5


class Limits:
    """Files, which disturb nobody; restarts, which take consent."""

    name = FEATURE
    want_type = LimitsWant
    seen_type = LimitsSeen
    restored = False

    def gather(self, host: Reader, devices: Devices, want: LimitsWant) -> LimitsSeen:  # noqa: ARG002
        """Look at files, services and this login."""
        return gather(host, want)

    def plan(self, snapshot: Snapshot, want: LimitsWant) -> Plan:
        """One step for the files, and one for each service that runs with another limit."""
        seen: LimitsSeen = snapshot.seen[FEATURE]
        files = Step(FILES, tuple(_files(seen, want)))
        steps = [*([files] if files.changes else []), *_restarts(seen, want)]
        findings = [*_entries(seen, want), *_logins(seen, want)]
        return Plan(tuple(steps), tuple(_pending(seen, want)), tuple(findings))

    def only(self, want: LimitsWant, device: str) -> LimitsWant:  # noqa: ARG002
        """The wish as a whole: it concerns no device."""
        return want

    def apply(self, step: Step, host: Host) -> None:
        """Restart the service, or write the files and have systemd read them."""
        if step.name.startswith(RESTART):
            _restart(host, step.changes[0])
            return
        for change in step.changes:
            if change.where is Where.PERSISTED:
                _write(host, change)
        if host.exists(SYSTEMD):
            host.run("systemctl", "daemon-reload")


def _restart(host: Host, change: Change) -> None:
    """Restart a service, and wait for its limit: systemd may be content with a process that is forked but still has
    systemd's own limits (systemd.service(5), Type=simple). Whether it came is read back by who asked for the step.
    """
    unit = change.path[0]
    host.run("systemctl", RESTART, unit, seconds=RESTART_SECONDS)
    for _ in range(START_SECONDS * 5):
        if is_(running(host, unit), change.desired):
            return
        host.sleep(0.2)


def _write(host: Host, change: Change) -> None:
    if isinstance(change.desired, Absent):
        host.remove(change.path[0])
    else:
        host.put(change.path[0], (change.desired + "\n").encode())


def _running(seen: LimitsSeen) -> Dict[str, ServiceSeen]:
    return seen.services if isinstance(seen.services, dict) else {}


def _files(seen: LimitsSeen, want: LimitsWant) -> Iterator[Change]:
    if isinstance(seen.services, Unknown):
        yield Change(("services",), seen.services, want.memlock, "limits.service")
    for path, found in seen.files.items():
        wanted = content(path, want.memlock)
        if found != wanted:
            yield Change((path,), found, wanted, "limits.files", Where.PERSISTED)
    for path, found in seen.strays.items():
        yield Change((path,), found, ABSENT, "limits.files", Where.PERSISTED)
    for unit, service in _running(seen).items():
        if not is_(service.configured, limit(want.memlock)):
            yield Change((unit, "LimitMEMLOCK"), service.configured, limit(want.memlock), "limits.service")


def _restarts(seen: LimitsSeen, want: LimitsWant) -> List[Step]:
    """A restart ends nothing that a well-behaved service has started, but that is its own affair."""
    return [
        Step(
            f"{RESTART} {unit}",
            (Change((unit, "memlock"), service.running, limit(want.memlock), "limits.running"),),
            frozenset({Impact.SERVICE_RESTART}),
            undoable=False,
        )
        for unit, service in _running(seen).items()
        if not is_(service.running, limit(want.memlock))
    ]


def _pending(seen: LimitsSeen, want: LimitsWant) -> Iterator[Pending]:
    """What will run once the service is started anew."""
    wanted = limit(want.memlock)
    for unit, service in _running(seen).items():
        if not is_(service.running, wanted) and not isinstance(service.running, Unknown):
            yield Pending((unit, "memlock"), service.running, wanted, Impact.SERVICE_RESTART, "limits.running")


def _entries(seen: LimitsSeen, want: LimitsWant) -> Iterator[Finding]:
    for path, whom, value in seen.entries:
        if value != limit(want.memlock):
            yield Finding("limits.other-entry", (path,), f"{whom} may lock {value}")


def _logins(seen: LimitsSeen, want: LimitsWant) -> Iterator[Finding]:
    """What this login has, which began before anything is written, and what files cannot mend."""
    if seen.pam is not True and seen.pam is not ABSENT:
        words = seen.pam.reason if isinstance(seen.pam, Unknown) else "its session has no pam_limits.so"
        yield Finding("limits.pam", ("/etc/pam.d/sshd",), words, unknown=isinstance(seen.pam, Unknown))
    if not is_(seen.login, limit(want.memlock)):
        unknown = isinstance(seen.login, Unknown)
        words = str(seen.login) if unknown else f"it may lock {seen.login}, {limit(want.memlock)} is wanted"
        yield Finding("limits.login", ("this login",), words, unknown=unknown)
    if seen.slurm_propagates and "slurmd.service" in _running(seen):
        words = "PropagateResourceLimits is ALL: a job may lock what the shell that submits it may"
        yield Finding("limits.slurm-propagates", (LOGINS,), words)
