"""Which kernel runs and which is to come, whether modules can be built for it, and which driver is in use."""

from typing import Iterable, Iterator, Optional, Union

from ..change import ABSENT, Absent, Unknown
from ..devices import PCI_DEVICES
from ..host import Reader
from .next_kernel import next_kernel
from .seen import KernelState, Module

DRIVER = "mlx5_core"
MELLANOX = "0x15b3"
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
MOKS = ("/var/lib/dkms/mok.pub", "/var/lib/shim-signed/mok/MOK.der")
"""Where DKMS (dkms(8), mok_certificate) and Ubuntu keep the certificate that they sign with."""
DKMS = "/var/lib/dkms"


def look(host: Reader) -> KernelState:
    """The state of the kernels."""
    release = running(host)
    secure = _secure_boot(host)
    return KernelState(
        running=release,
        next_boot=next_kernel(host),
        headers=host.exists(f"/lib/modules/{release}/build/Makefile"),
        secure_boot=secure,
        signing_key=_signing_key(host) if secure is True else False,
    )


def running(host: Reader) -> str:
    """The release of the kernel that runs; "" where that cannot be read."""
    text = host.read("/proc/sys/kernel/osrelease")
    return text if isinstance(text, str) else ""


def _secure_boot(host: Reader) -> Union[bool, Unknown]:
    """The variable has four bytes of attributes and one of value (UEFI, section 3.3)."""
    content = host.read_bytes(SECURE_BOOT)
    if isinstance(content, Unknown):
        return content
    if isinstance(content, bytes) and len(content) < 5:  # noqa: PLR2004 (four bytes and one)
        return Unknown(f"{SECURE_BOOT}: cut short")
    return isinstance(content, bytes) and content[4:5] == b"\x01"


def _signing_key(host: Reader) -> Union[bool, Unknown]:
    """Whether one of the certificates that modules are signed with is enrolled."""
    there = [path for path in MOKS if host.exists(path)]
    answers = [_enrolled(host, path) for path in there]
    return next((a for a in answers if isinstance(a, Unknown)), any(answer is True for answer in answers))


def _enrolled(host: Reader, path: str) -> Union[bool, Unknown]:
    output = host.query("mokutil", "--test-key", path)
    if isinstance(output, Unknown):
        return output
    return "is already enrolled" in output.stdout


def built(host: Reader, packages: Iterable[str], release: str) -> Iterator["tuple[str, bool]"]:
    """Of each DKMS package whether its module is built and installed for the running kernel (dkms(8): kernel-…)."""
    for package in packages:
        if package.endswith("-dkms"):
            # A few, such as kernel-mft-dkms, call their module as the package is called.
            folders = [host.names(f"{DKMS}/{name}") for name in (package[: -len("-dkms")], package)]
            links = [name for names in folders if isinstance(names, tuple) for name in names]
            yield package, any(name.startswith(f"kernel-{release}-") for name in links)


def module(host: Reader) -> Optional[Module]:
    """The driver; None where it is neither loaded nor needed, or where nothing tells which it is."""
    loaded = host.read(f"/sys/module/{DRIVER}/srcversion")
    silent = loaded is ABSENT and host.exists(f"/sys/module/{DRIVER}")
    if loaded is ABSENT and not silent and not _needed(host):
        return None
    installed, path = _modinfo(host, "srcversion"), _modinfo(host, "filename")
    if silent:  # a kernel without CONFIG_MODULE_SRCVERSION_ALL tells it only of modules that have a version
        if not isinstance(installed, str) or not installed:
            return None
        loaded = ""
    return Module(loaded, installed, path if isinstance(path, str) else "")


def _needed(host: Reader) -> bool:
    """Whether there are network functions of the vendor's, which no driver shows as a NIC while none is loaded."""
    return any(str(host.read(f"{folder}/class")).startswith("0x02") for folder in _functions(host))


def has_vfs(host: Reader) -> bool:
    """Whether one of the vendor's NICs has VFs, whoever uses these; a count that cannot be read is as good as one."""
    return any(host.read(f"{folder}/sriov_numvfs") not in (ABSENT, "0") for folder in _functions(host))


def _functions(host: Reader) -> Iterator[str]:
    names = host.names(PCI_DEVICES)
    for pci in names if isinstance(names, tuple) else ():
        if host.read(f"{PCI_DEVICES}/{pci}/vendor") == MELLANOX:
            yield f"{PCI_DEVICES}/{pci}"


def _modinfo(host: Reader, field: str) -> Union[str, Absent, Unknown]:
    output = host.query("modinfo", "-F", field, DRIVER)
    if isinstance(output, Unknown):
        return output
    return output.stdout.strip() if output.rc == 0 else ABSENT
