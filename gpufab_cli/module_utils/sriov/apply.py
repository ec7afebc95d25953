"""Make one port's step: the count by way of 0, then each VF's settings, and only then drivers.

VFs are made with sriov_drivers_autoprobe off: a driver that is bound before MAC or GUID are set keeps the old ones, or
an RDMA GUID of zero. The kernel binds nothing by hand either while it is off (pci_device_can_probe), so it is turned
on for the binding and then left as wanted.
"""

from contextlib import contextmanager, suppress
from typing import Any, Dict, Iterator, List, Mapping, Set

from .. import before, named, vfs
from ..change import ABSENT, Absent, Change, Step, Unknown
from ..devices import PCI_DEVICES
from ..host import Host, HostError
from . import vfinfo
from .files import contents
from .gather import is_up
from .plan import REBOUND, UNMANAGED_STEP
from .seen import ATTRIBUTES

DRIVERS = "/sys/bus/pci/drivers"
PROBE = "/sys/bus/pci/drivers_probe"
VF_SECONDS = 30
"""How long the kernel may take to show all VFs and the netdev of the port after a count was written."""
DRIVER_SECONDS = 15
"""How long the VFs' driver may take: where it is a module of its own, such as iavf, udev loads it when it sees a VF."""
UP_SECONDS = 5
"""How long a driver may take to show that its netdev is up; all known ones have done it when ip returns."""
DMESG_LINES = 3

Settings = Dict[int, Dict[str, Any]]
"""Settings by VF index."""


def apply(step: Step, host: Host) -> None:
    """Make every change of the step; the same function undoes one, given the changes turned round.

    Raises:
        HostError: at the first change that fails, with what the kernel log says of the device.
    """
    if step.name == UNMANAGED_STEP:
        _apply_files(step, host)
        return
    changes = {change.path[1:]: change for change in step.changes}
    count, autoprobe, up = (changes.get((name,)) for name in ("numvfs", "autoprobe", "admin_up"))
    wanted = _settings(step.changes)
    if up is not None and up.desired is True:
        _set_up(host, step.device, up=True)
    if autoprobe is not None:
        host.set(_path(step.device, "sriov_drivers_autoprobe"), "1" if autoprobe.desired else "0")
    if count is not None:
        _recount(host, step.device, count, wanted)
    else:
        _set(host, step.device, wanted)
        _rebind(host, step, {index for index, values in wanted.items() if REBOUND & set(values)})
    if up is not None and up.desired is False:
        _set_up(host, step.device, up=False)


def _set_up(host: Host, pci: str, *, up: bool) -> None:
    """Set the port up, or down again in an undo, and see that it is."""
    word = "up" if up else "down"
    named.by_name(lambda: named.netdev(host, pci), lambda name: host.run("ip", "link", "set", "dev", name, word))
    for _ in range(UP_SECONDS * 5):
        if is_up(host, named.netdev(host, pci)) is up:
            return
        host.sleep(0.2)
    raise HostError(f"{pci} was set {word} and is not after {UP_SECONDS} s{_kernel_log(host, pci)}")


def _apply_files(step: Step, host: Host) -> None:
    """Replace or remove whole files, then have udev read its rules again; nothing is restarted."""
    new = contents()
    for change in step.changes:
        (path,) = change.path
        if isinstance(change.desired, Absent):
            host.remove(path)
        else:
            host.put(path, new[path])
    if host.exists("/run/udev/control"):
        host.run("udevadm", "control", "--reload")


def _path(pci: str, name: str) -> str:
    return f"{PCI_DEVICES}/{pci}/{name}"


def _settings(changes: "tuple[Change, ...]") -> Settings:
    found: Settings = {}
    for change in changes:
        if change.path[1].startswith("vf") and change.desired is not ABSENT:
            found.setdefault(int(change.path[1][2:]), {})[change.path[2]] = change.desired
    return found


def _infos(host: Host, pci: str) -> List[vfinfo.Info]:
    return named.by_name(lambda: named.netdev(host, pci), lambda netdev: _infos_of(host, netdev))


def _infos_of(host: Host, netdev: str) -> List[vfinfo.Info]:
    found = vfinfo.read(host, netdev)
    if isinstance(found, Unknown):
        raise HostError(found.reason)
    return list(found)


def _recount(host: Host, pci: str, count: Change, wanted: Settings) -> None:
    """Take all VFs away and make as many as wanted; those that stay keep what the step does not change."""
    kept = {} if count.current in (0, ABSENT) else {i: _known(info) for i, info in enumerate(_infos(host, pci))}
    desired = 0 if count.desired is ABSENT else int(count.desired)
    try:
        _remake(host, pci, desired, {i: {**kept.get(i, {}), **wanted.get(i, {})} for i in range(desired)})
    except HostError:
        with suppress(HostError):  # what is not back then is told when the step is read back
            _remake(host, pci, len(kept), kept)
        raise


def _remake(host: Host, pci: str, count: int, settings: Settings) -> None:
    with _no_driver(host, pci):
        if vfs.any_enabled(host, pci):
            _write_count(host, pci, 0)
        if count:
            _write_count(host, pci, count)
            _set(host, pci, settings)
    _bind(host, pci)


def _known(info: Mapping[str, Any]) -> Dict[str, Any]:
    return {name: value for name, value in info.items() if not isinstance(value, (Absent, Unknown))}


@contextmanager
def _no_driver(host: Host, pci: str) -> Iterator[None]:
    """Keep the kernel from binding drivers to the VFs made meanwhile."""
    path = _path(pci, "sriov_drivers_autoprobe")
    before = host.read(path)
    if before == "1":
        host.set(path, "0")
    try:
        yield
    finally:
        if before == "1":
            host.set(path, "1")


def _write_count(host: Host, pci: str, count: int) -> None:
    """Write the count and see that as many VFs have come: some drivers take it and make none."""
    try:
        host.set(_path(pci, "sriov_numvfs"), str(count))
    except HostError as error:
        raise HostError(f"{error}{_kernel_log(host, pci)}") from error
    for _ in range(VF_SECONDS * 5):
        if len(vfs.read(host, pci)) == count:
            return
        host.sleep(0.2)
    made = len(vfs.read(host, pci))
    raise HostError(f"{pci}: {count} VFs were written, {made} are there{_kernel_log(host, pci)}")


def _kernel_log(host: Host, pci: str) -> str:
    """The last lines of the kernel log about a device: they say why, the errno does not."""
    output = host.query("dmesg", "--notime")
    lines = [] if isinstance(output, Unknown) else [line for line in output.stdout.splitlines() if pci in line]
    return "; kernel: " + " | ".join(lines[-DMESG_LINES:]) if lines else ""


def _set(host: Host, pci: str, wanted: Settings) -> None:
    """Set what is not as wanted. VFs come with a wait, in which udev may rename their port: its name is looked up now,
    and again if it does not hold any more."""
    if any(wanted.values()):
        named.wait_for_netdev(host, pci, VF_SECONDS)
        named.by_name(lambda: named.netdev(host, pci), lambda netdev: _set_by_name(host, pci, netdev, wanted))


def _set_by_name(host: Host, pci: str, netdev: str, wanted: Settings) -> None:
    """Set what is not as wanted; a driver that cannot set what it has anyway is not asked to."""
    infos = _infos_of(host, netdev)
    for index, values in sorted(wanted.items()):
        if index >= len(infos):
            raise HostError(f"{pci}: VF {index} is gone")
        now = infos[index]
        differing = {name: v for name, v in values.items() if name in ATTRIBUTES and now[name] != v}
        if "rdma_guid" in values:  # the driver derives it whenever the MAC is set
            differing.setdefault("mac", now["mac"])
        vfinfo.write(host, netdev, index, differing, now)


@contextmanager
def _probing(host: Host, pci: str) -> Iterator[None]:
    """Let the kernel bind drivers to VFs meanwhile."""
    path = _path(pci, "sriov_drivers_autoprobe")
    before = host.read(path)
    if before == "0":
        host.set(path, "1")
    try:
        yield
    finally:
        if before == "0":
            host.set(path, "0")


def _bind(host: Host, pci: str) -> None:
    """Give each VF without a driver its own, unless the node is set to leave them alone.

    A driver that is loaded later takes the VFs by itself, as it is allowed to (pci_device_can_probe).

    Raises:
        HostError: a driver refuses a VF, or none has come for it in time.
    """
    if host.read(_path(pci, "sriov_drivers_autoprobe")) == "0":
        return
    for vf in vfs.read(host, pci):
        if not vf.driver:
            _probe(host, vf.pci)
    for _ in range(DRIVER_SECONDS * 5):
        if all(vf.driver for vf in vfs.read(host, pci)):
            return
        host.sleep(0.2)
    bare = [vf.pci for vf in vfs.read(host, pci) if not vf.driver]
    if bare:
        words = f"still no driver for {', '.join(bare)} after {DRIVER_SECONDS} s: is the module of the VFs installed?"
        raise HostError(words + _kernel_log(host, pci))


def _probe(host: Host, vf: str) -> None:
    try:
        host.set(PROBE, vf)
    except HostError as error:
        raise HostError(f"a driver refuses {vf}: {error}{_kernel_log(host, vf)}") from error


def _rebind(host: Host, step: Step, indexes: Set[int]) -> None:
    """Have the kernel's driver take over a new address; a VF in user space takes it over when it is opened.

    Raises:
        HostError: a VF is left without its driver. No further one is unbound then, but for an undo, which gives every
            VF of the step its driver again.
    """
    bound = {vf.pci: vf.driver for vf in vfs.read(host, step.device) if vf.index in indexes and _in_kernel(vf)}
    if step.undoes:
        bound = {**(before.kept(host, step) or {}), **bound}
    elif bound:
        before.keep(host, step, bound)
    problems: List[str] = []
    with _probing(host, step.device):
        for pci, driver in bound.items():
            problems += _bind_anew(host, pci, driver)
            if problems and not step.undoes:
                break
    if problems:
        raise HostError("; ".join(problems))


def _in_kernel(vf: vfs.Vf) -> bool:
    return bool(vf.driver) and not vf.driver.startswith(vfs.VFIO)


def _bind_anew(host: Host, pci: str, driver: str) -> List[str]:
    """Unbind one VF and bind it again; what is wrong if it has no driver then."""
    if host.exists(_path(pci, "driver")):
        host.set(f"{DRIVERS}/{driver}/unbind", pci)
    try:
        host.set(f"{DRIVERS}/{driver}/bind", pci)
    except HostError as error:
        with suppress(HostError):
            host.set(PROBE, pci)
        if not host.exists(_path(pci, "driver")):
            return [f"{pci} is left without its driver {driver}: {error}{_kernel_log(host, pci)}"]
    return []
