"""lspci -vv of the NIC ports, with the capabilities that only root sees; of all else one line."""

from gpufab_cli.lab.hardware import config_space, sriov
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools.answer import Answer, Request
from gpufab_cli.lab.machine import GpuPlace, Place, PortPlace

_VENDORS = {"0x15b3": "Mellanox Technologies", "0x14e4": "Broadcom Inc. and subsidiaries"}
_DEVICES = {
    "0x1021": "MT2910 Family [ConnectX-7]",
    "0x101d": "MT2892 Family [ConnectX-6 Dx]",
    "0x1760": "BCM57608 25Gb/50Gb/100Gb/200Gb/400Gb Ethernet",
}
_ACS = "\tCapabilities: [148 v1] Access Control Services\n\t\tACSCap:\t{}\n\t\tACSCtl:\t{}\n"
_DENIED = "\tCapabilities: <access denied>\n"


def answer(hw: Hardware, request: Request) -> Answer:
    """Answers one call; ``-s`` picks a function, ``-vv`` shows its capabilities, ``-D`` its domain, ``-n`` numbers."""
    words = list(request.argv)
    wanted = words[words.index("-s") + 1] if "-s" in words[:-1] else ""
    letters = "".join(word[1:] for word in words if word.startswith("-") and word != "-s")
    rows = _bridges(hw, request, letters, wanted)
    for place in sorted((*hw.machine.ports, *hw.machine.gpus, *hw.machine.managers), key=lambda place: place.pci):
        if wanted not in ("", place.pci, place.pci.removeprefix("0000:")):
            continue
        head = _gpu(hw, place.pci, letters) if isinstance(place, GpuPlace) else _head(hw, place, letters)
        rows.append(head + (_details(hw, request, place) if "v" in letters and isinstance(place, PortPlace) else ""))
    return Answer(("\n" if "v" in letters else "").join(rows))


def _bridges(hw: Hardware, request: Request, letters: str, wanted: str) -> list[str]:
    """Root ports and switches; ACS is a capability, which only root is shown."""
    depths = {pci: n for place in (*hw.machine.ports, *hw.machine.gpus) for n, pci in enumerate(place.behind)}
    rows = []
    for pci, depth in sorted(depths.items()):
        if wanted in ("", pci, pci.removeprefix("0000:")):
            name = "Broadcom / LSI PEX890xx PCIe Gen 5 Switch" if depth else "Intel Corporation Device 352a"
            told = "0604: " if "n" in letters else f"PCI bridge: {name}"
            shown = _ACS.format(config_space.flags(config_space.ABLE), config_space.flags(config_space.acs(hw, pci)))
            kind = "Upstream Port" if depth % 2 else "Downstream Port (Slot-)" if depth else "Root Port (Slot+)"
            express = f"\tCapabilities: [60] Express (v2) {kind}, IntMsgNum 0\n"
            details = express + ("" if depth % 2 else shown) if request.is_root else _DENIED
            rows.append(f"{_address(pci, letters)} {told}\n" + (details if "v" in letters else ""))
    return rows


def _address(pci: str, letters: str) -> str:
    return pci if "D" in letters else pci.removeprefix("0000:")


def _head(hw: Hardware, place: Place, letters: str) -> str:
    nic, ethernet = hw.machine.nic, isinstance(place, PortPlace) and hw.machine.is_ethernet(place)
    if "n" in letters:
        return f"{_address(place.pci, letters)} {'0200' if ethernet else '0207'}: {nic.vendor[2:]}:{nic.device[2:]}\n"
    kind = "Ethernet controller" if ethernet else "Infiniband controller"
    vendor = _VENDORS.get(nic.vendor, f"Vendor {nic.vendor[2:]}")
    return f"{_address(place.pci, letters)} {kind}: {vendor} {_DEVICES.get(nic.device, f'Device {nic.device[2:]}')}\n"


def _gpu(hw: Hardware, pci: str, letters: str) -> str:
    if "n" in letters:
        return f"{_address(pci, letters)} 0302: {hw.machine.gpu.vendor[2:]}:{hw.machine.gpu.device[2:]}\n"
    return f"{_address(pci, letters)} 3D controller: NVIDIA Corporation {hw.machine.gpu.name} (rev a1)\n"


def _details(hw: Hardware, request: Request, place: PortPlace) -> str:
    nic = hw.machine.nic
    told = (
        f"\tSubsystem: {_VENDORS.get(nic.vendor, nic.vendor)} Device {nic.subsystem_device[2:]}\n"
        "\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr+ Stepping- SERR+ FastB2B- DisINTx+\n"
        f"\tNUMA node: {place.numa}\n"
    )
    driver = f"\tKernel driver in use: {nic.driver}\n\tKernel modules: {nic.driver}\n"
    return told + (_capabilities(hw, place) if request.is_root else _DENIED) + driver


def _capabilities(hw: Hardware, place: PortPlace) -> str:
    nic, speed = hw.machine.nic, hw.machine.nic.pcie_speed.split()[0].removesuffix(".0")
    link = f"Speed {speed}GT/s, Width x{nic.pcie_width}"
    total, enabled = sriov.total(hw, place) or 0, len(hw.port(place.netdev).sriov.vfs)
    on = "+" if enabled else "-"
    offset = 2 if place.pci.endswith(".0") else 1
    return (
        "\tCapabilities: [60] Express (v2) Endpoint, IntMsgNum 0\n"
        "\t\tDevCtl:\tCorrErr- NonFatalErr+ FatalErr+ UnsupReq-\n"
        "\t\t\tRlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop+ FLReset-\n"
        f"\t\t\tMaxPayload 256 bytes, MaxReadReq {config_space.request(hw, place.pci)} bytes\n"
        f"\t\tLnkCap:\tPort #0, {link}, ASPM not supported\n"
        f"\t\tLnkSta:\t{link}\n"
        "\tCapabilities: [180 v1] Single Root I/O Virtualization (SR-IOV)\n"
        "\t\tIOVCap:\tMigration- 10BitTagReq- IntMsgNum 0\n"
        f"\t\tIOVCtl:\tEnable{on} Migration- Interrupt- MSE{on} ARIHierarchy+ 10BitTagReq-\n"
        "\t\tIOVSta:\tMigration-\n"
        f"\t\tInitial VFs: {total}, Total VFs: {total}, Number of VFs: {enabled}, Function Dependency Link: 00\n"
        f"\t\tVF offset: {offset}, stride: 1, Device ID: 101e\n"
        "\tCapabilities: [230 v1] Access Control Services\n"
        "\t\tACSCap:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
        "\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
    )
