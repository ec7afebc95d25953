"""The gpu_stack feature: the GPU software is looked at, and nothing is ever installed, loaded or started."""

from typing import Iterator, Optional

from ..change import Absent, Finding, Impact, Pending, Plan, Step, Unknown
from ..devices import Devices
from ..dvfs.seen import Service
from ..dvfs.services import FABRIC_MANAGER, PERSISTENCED
from ..host import Host, HostError, Reader
from ..snapshot import Snapshot
from . import gpudirect
from .gather import gather
from .seen import DriverSeen, GpuStackSeen, PeermemSeen
from .want import GpuStackWant

FEATURE = "gpu_stack"
DRIVER = ("driver",)
REGISTERED = "Completed, Success"
NO_FABRIC = ("[N/A]", "N/A", "[Not Supported]")


class GpuStack:
    """Findings only, and a reboot that is due."""

    name = FEATURE
    want_type = GpuStackWant
    seen_type = GpuStackSeen
    restored = False

    def gather(self, host: Reader, devices: Devices, want: GpuStackWant) -> GpuStackSeen:
        """Look at driver, services and modules."""
        return gather(host, devices, want)

    def plan(self, snapshot: Snapshot, want: GpuStackWant) -> Plan:
        """What is wrong; a driver that only waits for a reboot is pending."""
        seen: GpuStackSeen = snapshot.seen[FEATURE]
        due = _due(seen.driver)
        found = [*_driver(seen.driver, want, due), *_fabric_manager(seen, due), *_persistenced(seen)]
        if want.gpudirect is not None and isinstance(seen.gpudirect, PeermemSeen):
            found += gpudirect.findings(want.gpudirect, seen.driver, seen.gpudirect, snapshot.kernel)
        words = "nvidia_peermem has replaced nv_peer_mem since driver 470"
        found += [Finding("gpu.nv-peer-mem", (where,), words) for where in seen.old_peermem]
        return Plan((), (due,) if due is not None else (), tuple(found))

    def only(self, want: GpuStackWant, device: str) -> GpuStackWant:  # noqa: ARG002
        """The wish as a whole: it concerns no device."""
        return want

    def apply(self, step: Step, host: Host) -> None:  # noqa: ARG002
        """Refuse: the plan has no steps."""
        raise HostError(f"{step.name}: the GPU software is only looked at")


def _due(driver: DriverSeen) -> Optional[Pending]:
    """The driver that a reboot brings: programs load the new libraries already, and fail against the old module."""
    new, old = driver.libraries, driver.running
    if not (isinstance(new, str) and isinstance(old, str)) or new == old or new != driver.on_disk:
        return None
    return Pending(DRIVER, old, new, Impact.REBOOT, "gpu.driver-mismatch")


def _driver(driver: DriverSeen, want: GpuStackWant, due: Optional[Pending]) -> Iterator[Finding]:
    running, libraries = driver.running, driver.libraries
    if not isinstance(running, str):
        words = running.reason if isinstance(running, Unknown) else "the kernel module nvidia is not loaded"
        yield Finding("gpu.driver-missing", DRIVER, words, unknown=isinstance(running, Unknown))
        return
    if want.driver is not None and want.driver != (due.next_boot if due is not None else running):
        yield Finding("gpu.driver-version", DRIVER, f"driver {running}, {want.driver} is declared")
    if isinstance(libraries, Absent):
        yield Finding("gpu.driver-missing", DRIVER, "there is no libnvidia-ml.so.1")
    elif isinstance(libraries, Unknown):
        yield Finding("gpu.driver-mismatch", DRIVER, libraries.reason, unknown=True)
    elif due is None:
        yield from _mismatch(driver)


def _mismatch(driver: DriverSeen) -> Iterator[Finding]:
    """Versions that no reboot alone brings together."""
    known = driver.on_disk if isinstance(driver.on_disk, str) else driver.running
    if len({driver.running, driver.libraries, known}) > 1:
        on_disk = driver.on_disk if isinstance(driver.on_disk, str) else "another or none"
        words = f"module {driver.running} runs, {on_disk} is on disk, libraries are {driver.libraries}"
        yield Finding("gpu.driver-mismatch", DRIVER, words)


def _service(seen: GpuStackSeen, unit: str) -> Optional[Service]:
    found = seen.services.get(unit) if isinstance(seen.services, dict) else None
    return found if found is not None and found.loaded else None


def _fabric_manager(seen: GpuStackSeen, due: Optional[Pending]) -> Iterator[Finding]:
    """Only where there are NVSwitches: without it their GPUs do not even initialise."""
    path = (FABRIC_MANAGER,)
    if isinstance(seen.nvswitches, Unknown):
        yield Finding("gpu.fabric-manager", path, seen.nvswitches.reason, unknown=True)
    elif seen.nvswitches:
        yield from _state(seen)
        yield from _version(seen, due)
        yield from _registrations(seen, due)


def _state(seen: GpuStackSeen) -> Iterator[Finding]:
    service, path = _service(seen, FABRIC_MANAGER), (FABRIC_MANAGER,)
    if isinstance(seen.services, Unknown):
        yield Finding("gpu.fabric-manager", path, seen.services.reason, unknown=True)
    elif service is None:
        yield Finding("gpu.fabric-manager", path, f"not installed, and there are {seen.nvswitches} NVSwitches")
    elif service.active != "active":
        yield Finding("gpu.fabric-manager", path, f"it is {service.active}", unknown=service.starting)


def _version(seen: GpuStackSeen, due: Optional[Pending]) -> Iterator[Finding]:
    """Equal to the driver's, to the last digit; with a reboot due, equal to that of the driver to come."""
    version, driver = seen.fabric_manager, due.next_boot if due is not None else seen.driver.running
    path = (FABRIC_MANAGER,)
    if isinstance(version, Unknown):
        yield Finding("gpu.fabric-manager-version", path, version.reason, unknown=True)
    elif isinstance(version, Absent) and _service(seen, FABRIC_MANAGER) is not None:
        yield Finding("gpu.fabric-manager-version", path, "there is no nv-fabricmanager to ask", unknown=True)
    elif isinstance(version, str) and isinstance(driver, str) and version != driver:
        yield Finding("gpu.fabric-manager-version", path, f"version {version}, the driver is {driver}")


def _registrations(seen: GpuStackSeen, due: Optional[Pending]) -> Iterator[Finding]:
    """Until a reboot that is due nvidia-smi cannot tell."""
    if isinstance(seen.fabric, Unknown) and due is None:
        yield Finding("gpu.fabric-state", ("NVLink fabric",), seen.fabric.reason, unknown=True)
    for pci, state in seen.fabric.items() if isinstance(seen.fabric, dict) else ():
        if state != REGISTERED and state.partition(",")[0] not in NO_FABRIC:
            yield Finding("gpu.fabric-state", (pci,), f"registration with the NVLink fabric: {state}")


def _persistenced(seen: GpuStackSeen) -> Iterator[Finding]:
    service, path = _service(seen, PERSISTENCED), (PERSISTENCED,)
    if isinstance(seen.services, Unknown):
        yield Finding("gpu.persistenced", path, seen.services.reason, unknown=True)
    elif service is None:
        yield Finding("gpu.no-persistenced", path, "not installed")
    elif service.active != "active":
        yield Finding("gpu.persistenced", path, f"it is {service.active}", unknown=service.starting)
