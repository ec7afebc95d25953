"""What a profile may say of virtual functions, NIC firmware and kernel arguments."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, model_validator

from gpufab_cli.errors import did_you_mean
from gpufab_cli.module_utils.firmware.want import ParameterName, ParameterValue
from gpufab_cli.module_utils.kernel.want import Argument
from gpufab_cli.module_utils.schema import MacAddress, Pattern, Priority, Range
from gpufab_cli.module_utils.sriov.want import LinkState, Mbps
from gpufab_cli.spec.base import Model, Rails
from gpufab_cli.spec.faults import Fault, raise_any
from gpufab_cli.spec.types import Name, SerialNumber

if TYPE_CHECKING:
    from gpufab_cli.spec.model import FabricSpec, Profile

T = TypeVar("T")
MOST_VFS = 127  # what NUM_OF_VFS takes on a ConnectX
_ETHERNET_ONLY = ("vlan", "vlan_qos", "spoofchk", "trust", "mac")


def _one_or_many(value: Any) -> Any:
    return (value,) if isinstance(value, Mapping) else value


class VfSettings(Model):
    """What a physical port keeps of its VFs. What is left out is not managed."""

    vlan: Annotated[int, Range(0, 4094)] | None = None
    """VLAN that a VF is in; 0 for none."""
    vlan_qos: Priority | None = None
    """802.1p priority of the VLAN tag."""
    max_tx_mbps: Mbps | None = None
    """Highest transmit rate in Mb/s; 0 for no limit."""
    min_tx_mbps: Mbps | None = None
    """Guaranteed transmit rate in Mb/s; 0 for none."""
    spoofchk: bool | None = None
    """Whether frames with a foreign source MAC are dropped."""
    trust: bool | None = None
    """Whether a VF may change its MAC and turn on promiscuous mode."""
    link_state: LinkState | None = None
    """auto follows the port, enable and disable force the link. On InfiniBand auto if left out: VFs start disabled."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(_rate_faults(self))
        return self


class OneVf(VfSettings):
    """What one VF has otherwise."""

    mac: MacAddress | None = None
    """A fixed MAC address, in place of the derived one."""


class Sriov(VfSettings):
    """Virtual functions of ports of one network."""

    network: Name
    """The network."""
    rail: Rails | None = None
    """Numbers of rails, such as 0-3; all that the profile has of the network if left out."""
    vfs: Annotated[int, Range(0, MOST_VFS)]
    """How many VFs each port has; 0 for none."""
    addresses: Literal["derived", "none"] = "derived"
    """derived: MACs or GUIDs made of the port's own and the VF's number, the same after every reboot; none: not set."""
    autoprobe: bool | None = None
    """Whether the kernel binds drivers to new VFs; false for VFs that only guests use."""
    unmanaged: bool | None = None
    """Keep the netdevs of all VFs of the host out of NetworkManager and systemd-networkd; false: take that back."""
    each: dict[Annotated[int, Range(0, MOST_VFS - 1)], OneVf] = Field(default_factory=dict)
    """What single VFs have otherwise, by their number."""

    @model_validator(mode="after")
    def _numbers(self) -> Self:
        beyond = [number for number in self.each if number >= self.vfs]
        raise_any(Fault(("each", number), f"there is no VF {number}", f"vfs is {self.vfs}") for number in beyond)
        return self


def _text(value: Any) -> Any:
    """Firmware parameters are named values or numbers; both are text from here on."""
    return str(value) if isinstance(value, bool | int) else value


Value = Annotated[ParameterValue, BeforeValidator(_text, json_schema_input_type=bool | int | str)]
FirmwareVersion = Annotated[str, Pattern(r"[0-9]+(?:\.[0-9]+){1,3}", "a firmware version such as 28.43.2026")]
Parameters = dict[ParameterName, Value]


class Firmware(Model):
    """Non-volatile settings of the cards of one network's ports. They come with a firmware reset or a cold boot."""

    network: Name
    """The network."""
    rail: Rails | None = None
    """Numbers of rails, such as 0-3; all that the profile has of the network if left out."""
    num_of_vfs: Annotated[int, Range(0, MOST_VFS)] | None = None
    """How many VFs each port may have (SRIOV_EN and NUM_OF_VFS); 0 turns SR-IOV off."""
    link_type: Literal["ethernet", "infiniband"] | None = None
    """What the ports are (LINK_TYPE_Pn)."""
    qos: bool = False
    """Also keep the network's classes in firmware: ROCE_CC_PRIO_MASK_Pn, CNP_DSCP_Pn and CNP_802P_PRIO_Pn."""
    parameters: Parameters = Field(default_factory=dict)
    """Further parameters by the name mlxconfig has for them."""
    port_parameters: Parameters = Field(default_factory=dict)
    """Further parameters of each port by their name without _P1 or _P2."""
    versions: dict[SerialNumber, FirmwareVersion] = Field(default_factory=dict)
    """Firmware version that cards of a PSID are to have; gpufab reports another and never burns any."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(_parameter_faults(self))
        return self


class Kernel(Model):
    """Arguments that the kernel is to be started with. gpufab never reboots: what is not running yet is pending."""

    iommu: Literal["passthrough"] | None = None
    """passthrough: the IOMMU on and in passthrough mode, in the words of the CPU's vendor. For VFs in guests."""
    arguments: tuple[Argument, ...] = ()
    """Further arguments."""


SriovList = Annotated[
    tuple[Sriov, ...], BeforeValidator(_one_or_many, json_schema_input_type=Sriov | tuple[Sriov, ...]), Field()
]
FirmwareList = Annotated[
    tuple[Firmware, ...], BeforeValidator(_one_or_many, json_schema_input_type=Firmware | tuple[Firmware, ...]), Field()
]


def _rate_faults(settings: VfSettings) -> Iterator[Fault]:
    low, high = settings.min_tx_mbps, settings.max_tx_mbps
    if low and high and low > high:
        yield Fault(("min_tx_mbps",), f"{low} is more than max_tx_mbps, {high}")
    if settings.vlan_qos and settings.vlan == 0:
        yield Fault(("vlan_qos",), "there is no VLAN tag to carry it", "vlan is 0")


def _parameter_faults(firmware: Firmware) -> Iterator[Fault]:
    """One parameter said in two ways."""
    if firmware.num_of_vfs is not None:
        for name in sorted({"NUM_OF_VFS", "SRIOV_EN"} & set(firmware.parameters)):
            yield Fault(("parameters", name), "num_of_vfs says it already")
    for name in firmware.port_parameters:
        for port in (1, 2):
            if f"{name}_P{port}" in firmware.parameters:
                yield Fault(("parameters", f"{name}_P{port}"), "port_parameters says it already")


def sriov_faults(spec: "FabricSpec", profile: "Profile") -> Iterator[Fault]:
    """Where VFs and firmware do not fit the fabric; paths are relative to the profile."""
    parts: tuple[tuple[str, tuple[Sriov | Firmware, ...]], ...] = (
        ("sriov", profile.sriov),
        ("firmware", profile.firmware),
    )
    for key, items in parts:
        taken: dict[Any, int] = {}
        for index, item in enumerate(items):
            yield from _place_faults(spec, profile, (key, index), item)
            for rail in profile.rails_of(item.network, item.rail):
                if taken.setdefault(rail, index) != index:
                    yield Fault((key, index, "network"), f"{rail} is named twice")
    for index, vfs in enumerate(profile.sriov):
        yield from _layer_faults(spec, ("sriov", index), vfs)
        yield from _limit_faults(profile, ("sriov", index), vfs)
    for index, firmware in enumerate(profile.firmware):
        yield from _firmware_faults(spec, ("firmware", index), firmware)


def _place_faults(
    spec: "FabricSpec", profile: "Profile", loc: tuple[Any, ...], item: Sriov | Firmware
) -> Iterator[Fault]:
    networks = {rail.network for rail in profile.rails}
    if item.network not in networks:
        known = networks or set(spec.networks)
        yield Fault(
            (*loc, "network"), f"no port of the profile is on {item.network!r}", did_you_mean(item.network, known)
        )
        return
    numbers = {rail.number for rail in profile.rails if rail.network == item.network}
    for number in sorted(set(item.rail or ()) - numbers):
        yield Fault((*loc, "rail"), f"the profile has no rail {number} of {item.network}")


def _layer_faults(spec: "FabricSpec", loc: tuple[Any, ...], vfs: Sriov) -> Iterator[Fault]:
    """What only Ethernet has."""
    network = spec.networks.get(vfs.network)
    if network is None or network.transport != "infiniband":
        return
    places: list[tuple[tuple[Any, ...], VfSettings]] = [((), vfs)]
    places += [(("each", number), one) for number, one in vfs.each.items()]
    for inner, settings in places:
        for name in _ETHERNET_ONLY:
            if getattr(settings, name, None) is not None:
                yield Fault((*loc, *inner, name), f"{vfs.network} is InfiniBand, whose VFs have no {name}")


def _limit_faults(profile: "Profile", loc: tuple[Any, ...], vfs: Sriov) -> Iterator[Fault]:
    """More VFs than the firmware is told to allow."""
    rails = set(profile.rails_of(vfs.network, vfs.rail))
    for firmware in profile.firmware:
        limit = firmware.num_of_vfs
        if limit is not None and vfs.vfs > limit and rails & set(profile.rails_of(firmware.network, firmware.rail)):
            yield Fault((*loc, "vfs"), f"{vfs.vfs} VFs, and firmware allows {limit}", "raise firmware: num_of_vfs")


def _firmware_faults(spec: "FabricSpec", loc: tuple[Any, ...], firmware: Firmware) -> Iterator[Fault]:
    network = spec.networks.get(firmware.network)
    if network is None:
        return
    layer = "infiniband" if network.transport == "infiniband" else "ethernet"
    if firmware.link_type not in (None, layer):
        yield Fault((*loc, "link_type"), f"{firmware.network} is {network.transport}", f"link_type: {layer}")
    if firmware.qos and network.qos is None:
        yield Fault((*loc, "qos"), f"{firmware.network} follows no QoS profile", "leave qos out")
