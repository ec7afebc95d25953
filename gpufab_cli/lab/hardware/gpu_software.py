"""The software of the GPUs: the driver as installed and as it runs, Fabric Manager, nvidia_peermem.

An upgrade of the packages changes what is installed; what runs follows at the next boot.
"""

from gpufab_cli.lab.hardware.model import Hardware

LIBRARY = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"
"""A link, by whose end the version of the libraries shows; there is no library."""
NEXT = "570.124.06"
_OTHER = "570.86.10"  # the version of a Fabric Manager that nobody upgraded with the driver
REGISTER, DMABUF = "ib_register_peer_memory_client", "ib_umem_dmabuf_get"
_SYMBOLS = "ffffffff81000000 T _text\nffffffff81000000 T _stext\n"


def running(hw: Hardware) -> str:
    """The version of the loaded module."""
    return hw.state.driver or hw.machine.gpu.driver_version


def installed(hw: Hardware) -> str:
    """The version of the packages: of the module on disk and of the libraries."""
    return hw.state.driver_installed or running(hw)


def upgrade(hw: Hardware) -> None:
    """The packages of the driver, Fabric Manager's with them, are upgraded; nothing is loaded anew."""
    hw.edit(lambda: setattr(hw.state, "driver_installed", NEXT))


def fabric_manager(hw: Hardware) -> str:
    """The version of the installed Fabric Manager."""
    return _OTHER if hw.state.fault("fabricmanager-mismatch") else installed(hw)


def fabric(hw: Hardware) -> tuple[str, str]:
    """State and status of every GPU's registration with the NVLink fabric."""
    if not hw.machine.has_fabric:
        return "N/A", "N/A"
    return ("In Progress", "N/A") if hw.state.fault("fabricmanager-mismatch") else ("Completed", "Success")


def peer_memory(hw: Hardware) -> bool:
    """Whether ib_core is the vendor's, which nvidia_peermem registers with."""
    return hw.machine.stack.control == "vendor"


def peermem(hw: Hardware) -> bool:
    """Whether nvidia_peermem is loaded."""
    away = hw.state.fault("peermem-unloaded") or hw.state.fault("peermem-refused")
    return peer_memory(hw) and not away


def refusals(hw: Hardware) -> list[str]:
    """What the kernel says of a module that was built against another ib_core."""
    if not hw.state.fault("peermem-refused"):
        return []
    return [
        f"nvidia_peermem: disagrees about version of symbol {REGISTER}",
        f"nvidia_peermem: Unknown symbol {REGISTER} (err -22)",
    ]


def proc_files(hw: Hardware) -> dict[str, str]:
    """The files below /proc that tell of it, as they are from a boot on."""
    kind = "Open Kernel Module for x86_64" if hw.machine.gpu.open_modules else "x86_64 Kernel Module"
    names = [f"{REGISTER}\t[ib_core]"] if peer_memory(hw) else []
    symbols = [f"ffffffffc0a0{n:04x} T {name}\n" for n, name in enumerate([*names, f"{DMABUF}\t[ib_uverbs]"])]
    return {
        "driver/nvidia/version": f"NVRM version: NVIDIA UNIX {kind}  {running(hw)}  Release Build  (lab)\n",
        "kallsyms": _SYMBOLS + "".join(symbols),
    }
