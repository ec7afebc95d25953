"""VFs, firmware and kernel arguments of one host: what its profile wants."""

from typing import Any

from gpufab_cli.errors import GpufabError, NotLockedError
from gpufab_cli.fabric.model import Resolved, ResolvedHost, ResolvedPort
from gpufab_cli.intent.addresses import vf_guid, vf_mac
from gpufab_cli.intent.numa import acs_want
from gpufab_cli.module_utils.firmware import want as firmware
from gpufab_cli.module_utils.firmware.cards import cards, locked_serial
from gpufab_cli.module_utils.kernel.want import KernelWant
from gpufab_cli.module_utils.sriov.want import PortWant, SriovWant, VfWant
from gpufab_cli.spec.lock import FILE_NAME
from gpufab_cli.spec.model import Qos
from gpufab_cli.spec.sriov import Firmware, Kernel, Sriov, VfSettings


def sriov_want(_: Resolved, host: ResolvedHost) -> SriovWant | None:
    """What the sriov feature is told about one host; None where its profile says nothing of VFs.

    Raises:
        NotLockedError: the lock has no address of a port that those of its VFs could be derived from.
    """
    profile = host.profile
    if not profile.sriov:
        return None
    ports = [
        _port(vfs, host, host.port(rail)) for vfs in profile.sriov for rail in profile.rails_of(vfs.network, vfs.rail)
    ]
    asked = [vfs.unmanaged for vfs in profile.sriov if vfs.unmanaged is not None]
    return SriovWant(tuple(sorted(ports, key=lambda port: port.pci)), any(asked) if asked else None)


def _port(vfs: Sriov, host: ResolvedHost, port: ResolvedPort) -> PortWant:
    infiniband = port.transport == "infiniband"
    own = port.pin.guid if infiniband else port.pin.mac
    if own is None and vfs.addresses == "derived" and vfs.vfs:
        kind = "GUID" if infiniband else "MAC"
        message = f"{FILE_NAME}: no {kind} of {host.name} {port.name}, of which its VFs' would be made"
        raise NotLockedError(message, f"run gpufab lock --update {host.name}")
    seed = own if vfs.addresses == "derived" else None
    return PortWant(
        rail=port.name,
        pci=port.pin.pci,
        vfs=tuple(_vf(vfs, index, seed, infiniband=infiniband) for index in range(vfs.vfs)),
        autoprobe=vfs.autoprobe,
        mac=None if infiniband else port.pin.mac,
        guid=port.pin.plain_guid,
        serial=port.pin.serial,
        psid=port.pin.psid,
    )


def _vf(vfs: Sriov, index: int, seed: str | None, *, infiniband: bool) -> VfWant:
    found: dict[str, Any] = {"link_state": "auto"} if infiniband else {}
    if seed is not None and infiniband:
        found |= {"node_guid": vf_guid("node", seed, index), "port_guid": vf_guid("port", seed, index)}
    elif seed is not None:
        found["mac"] = vf_mac(seed, index)
    own = vfs.each.get(index)
    for settings in (vfs, own) if own is not None else (vfs,):
        found |= _given(settings)
    return VfWant(**found)


def _given(settings: VfSettings) -> dict[str, Any]:
    names = [*VfSettings.model_fields, "mac"]
    return {name: value for name in names if (value := getattr(settings, name, None)) is not None}


def firmware_want(fabric: Resolved, host: ResolvedHost) -> firmware.FirmwareWant | None:
    """What the firmware feature is told about one host; None where its profile says nothing of firmware.

    Raises:
        GpufabError: two ports of a card want different values.
    """
    profile = host.profile
    if not profile.firmware:
        return None
    ports: list[firmware.PortWant] = []
    versions: dict[str, str] = {}
    for item in profile.firmware:
        versions |= item.versions
        rails = profile.rails_of(item.network, item.rail)
        ports += [_firmware_port(fabric, item, host.port(rail)) for rail in rails]
    for card in cards(ports, locked_serial):
        for name, wishes in card.conflicts.items():
            hint = "the ports of a card share its firmware: give both the same value"
            raise GpufabError(f"{host.name}: {name} of the card at {card.pci}: {wishes}", hint)
    return firmware.FirmwareWant(tuple(sorted(ports, key=lambda port: port.pci)), versions or None)


def _firmware_port(fabric: Resolved, item: Firmware, port: ResolvedPort) -> firmware.PortWant:
    own = dict(item.port_parameters)
    if item.link_type is not None:
        own["LINK_TYPE"] = {"ethernet": "ETH", "infiniband": "IB"}[item.link_type]
    if item.qos and port.qos is not None:
        own |= _qos_parameters(fabric.spec.qos[port.qos])
    number = int(port.pin.pci.rpartition(".")[2]) + 1  # functions of a card are its ports, in order
    parameters = {**item.parameters, **_vf_parameters(item), **{f"{name}_P{number}": v for name, v in own.items()}}
    return firmware.PortWant(
        rail=port.name,
        pci=port.pin.pci,
        parameters=dict(sorted(parameters.items())),
        mac=port.pin.mac,
        guid=port.pin.plain_guid,
        serial=port.pin.serial,
        psid=port.pin.psid,
    )


def _vf_parameters(item: Firmware) -> dict[str, str]:
    if item.num_of_vfs is None:
        return {}
    return {"SRIOV_EN": "True" if item.num_of_vfs else "False", "NUM_OF_VFS": str(item.num_of_vfs)}


def _qos_parameters(qos: Qos) -> dict[str, str]:
    """The classes of a QoS profile in the words of the firmware; the mask has one bit a priority."""
    mask = sum(1 << item.priority for item in qos.lossless) if qos.ecn else 0
    found = {"ROCE_CC_PRIO_MASK": str(mask)}
    if qos.cnp is not None:
        found |= {"CNP_DSCP": str(qos.cnp.dscp), "CNP_802P_PRIO": str(qos.cnp.priority)}
    return found


def kernel_want(_: Resolved, host: ResolvedHost) -> KernelWant | None:
    """What the kernel feature is told about one host; None where its profile says nothing of the kernel nor of ACS."""
    profile = host.profile
    kernel = profile.kernel or Kernel()
    if profile.kernel is None and (profile.numa is None or profile.numa.acs is None):
        return None
    return KernelWant(kernel.iommu, kernel.arguments, acs_want(host))
