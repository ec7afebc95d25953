"""Look at the wanted physical functions and their VFs."""

from typing import Any, Tuple, Union

from .. import vfs
from ..change import ABSENT, Absent, Unknown
from ..devices import INFINIBAND, NET, PCI_DEVICES, Devices, Nic
from ..host import Reader, sha256
from ..identity import plain_guid
from ..texts import parse_json
from . import vfinfo
from .files import contents
from .seen import PortSeen, SriovSeen, VfSeen
from .want import SriovWant

IFF_UP = 0x1


def gather(host: Reader, devices: Devices, want: SriovWant) -> SriovSeen:
    """Read every wanted port that is there; what is wrong with the others is the plan's to say."""
    held = vfs.holders(host) if want.ports else vfs.Held({}, {})
    found = {port.pci: devices.nic(port.pci) for port in want.ports}
    ports = {pci: _port(host, nic, held) for pci, nic in found.items() if nic is not None and not nic.is_vf}
    files = {} if want.unmanaged is None else {path: _digest(host, path) for path in contents()}
    return SriovSeen(ports, files)


def _digest(host: Reader, path: str) -> Union[str, Absent, Unknown]:
    content = host.read_bytes(path)
    return sha256(content) if isinstance(content, bytes) else content


def _port(host: Reader, nic: Nic, held: vfs.Holders) -> PortSeen:
    numvfs = vfs.read_count(host, nic.pci)
    return PortSeen(
        numvfs=numvfs,
        totalvfs=vfs.read_count(host, nic.pci, "sriov_totalvfs"),
        autoprobe=_autoprobe(host, nic.pci),
        eswitch=read_eswitch(host, nic.pci),
        admin_up=is_up(host, nic.netdev.name) if nic.netdev is not None else ABSENT,
        vfs=_vfs(host, nic, held) if isinstance(numvfs, int) and numvfs else (),
    )


def _autoprobe(host: Reader, pci: str) -> Union[bool, Absent, Unknown]:
    text = host.read(f"{PCI_DEVICES}/{pci}/sriov_drivers_autoprobe")
    if not isinstance(text, str):
        return text
    return text == "1" if text in ("0", "1") else Unknown(f"{pci} sriov_drivers_autoprobe: {text!r} is neither 0 nor 1")


def read_eswitch(host: Reader, pci: str) -> Union[str, Absent, Unknown]:
    """The e-switch mode; ABSENT when the kernel says that the driver has none."""
    output = host.query("devlink", "-j", "dev", "eswitch", "show", f"pci/{pci}")
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        absent = "Operation not supported" in output.error or "No such device" in output.error
        return ABSENT if absent else Unknown(f"devlink dev eswitch show: {output.error}")
    try:
        return str(parse_json(output.stdout)["dev"][f"pci/{pci}"]["mode"])
    except (ValueError, KeyError, TypeError):
        return Unknown("devlink dev eswitch show: printed what no known release prints")


def is_up(host: Reader, netdev: str) -> Union[bool, Absent, Unknown]:
    """Whether somebody has set a netdev up; ABSENT where there is none of that name."""
    flags = host.read(f"{NET}/{netdev}/flags")
    if not isinstance(flags, str):
        return flags
    try:
        return bool(int(flags, 16) & IFF_UP)
    except ValueError:
        return Unknown(f"{NET}/{netdev}/flags: {flags!r} is no hexadecimal number")


def _vfs(host: Reader, nic: Nic, held: vfs.Holders) -> Tuple[VfSeen, ...]:
    functions = vfs.read(host, nic.pci)
    infos: Any = Unknown(f"{nic.pci} does not have exactly one netdev")
    if nic.netdev is not None:
        infos = vfinfo.read(host, nic.netdev.name)
    if isinstance(infos, tuple) and len(infos) < len(functions):
        infos = Unknown(f"ip shows {len(infos)} VFs of {nic.pci}, sysfs {len(functions)}")
    return tuple(
        _vf(host, vf, vfinfo.unknown(infos) if isinstance(infos, Unknown) else infos[vf.index], held)
        for vf in functions
    )


def _vf(host: Reader, vf: vfs.Vf, info: vfinfo.Info, held: vfs.Holders) -> VfSeen:
    guid = vfs.rdma_guid(host, vf)
    state = host.read(f"{INFINIBAND}/{vf.rdma[0]}/ports/1/state") if vf.rdma else ABSENT
    return VfSeen(
        **info,
        pci=vf.pci,
        driver=vf.driver,
        rdma_guid=plain_guid(guid) if isinstance(guid, str) else guid,
        rdma_state=state.partition(": ")[2] if isinstance(state, str) else "",
        users=vfs.users(host, vf, held),
    )
