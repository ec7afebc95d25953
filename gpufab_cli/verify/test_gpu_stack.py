"""The GPU software: one version of everything, Fabric Manager where there are NVSwitches, GPUDirect RDMA in use."""

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from gpufab_cli.verify.compare import compare, settled
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, UnreadableError, release

pytestmark = pytest.mark.wishes("gpu_stack")
VERSION = r"\b[0-9]{3,4}(?:\.[0-9]+){1,3}\b"
FIRST_DMABUF_KERNEL = (5, 12)
FIRST_DMABUF_DRIVER = 515


def module(reading: Reading) -> str:
    """The version of the loaded kernel module."""
    section = reading.section("driver")
    if section.there and section.code != "hung":
        compare("No such file" not in section.text, "the kernel module nvidia is not loaded")
    found = re.search(VERSION, section.require("/proc/driver/nvidia/version"))
    if found is None:
        raise UnreadableError("/proc/driver/nvidia/version: no version")
    return found[0]


def smi(reading: Reading) -> ElementTree.Element:
    """What nvidia-smi tells, which it does only with libraries of the module's version."""
    section = reading.section("smi")
    compare("version mismatch" not in section.text, "nvidia-smi: the libraries are not of the module's version")
    try:
        # Of our own nodes; expat bounds the expansion of entities.
        return ElementTree.fromstring(section.require("nvidia-smi -q -x"))  # noqa: S314
    except ElementTree.ParseError as error:
        raise UnreadableError(f"nvidia-smi -q -x: {error}") from error


def has_nvswitches(reading: Reading) -> bool:
    """Whether GPUs need Fabric Manager: NVSwitches are bridges of NVIDIA's that are none of PCI's."""
    functions = reading.section("uevents").fields("sysfs", 3)
    if not functions or not all(kind and identity for _, kind, identity in functions):
        raise UnreadableError("sysfs: some PCI function does not say what it is")
    return any(kind.startswith("680") and identity.startswith("10DE:") for _, kind, identity in functions)


def test_driver_version(node: Node, reading: Reading) -> None:
    """Module and libraries are of one version, and of the declared one."""
    running = module(reading)
    libraries = smi(reading).findtext("driver_version")
    compare(libraries == running, f"module {running}, libraries {libraries}")
    wanted = node.wishes["gpu_stack"].get("driver", running)
    compare(running == wanted, f"driver {running}, wanted {wanted}")


def test_fabric_manager(reading: Reading) -> None:
    """Fabric Manager runs, and is of the driver's version."""
    if not has_nvswitches(reading):
        settled("there is no NVSwitch")
        return
    state = reading.section("fabric-manager")
    if state.code == "hung" or not state.there:
        state.require("systemctl is-active")
    compare(state.text.strip() == "active", f"nvidia-fabricmanager is {state.text.strip()}")
    version = re.search(VERSION, reading.section("fabric-manager-version").require("nv-fabricmanager"))
    running = module(reading)
    if version is None:
        raise UnreadableError("nv-fabricmanager tells no version")
    compare(version[0] == running, f"Fabric Manager {version[0]}, driver {running}")


def test_fabric_state(reading: Reading) -> None:
    """Every GPU is registered with the NVLink fabric, where the driver tells of one."""
    if not has_nvswitches(reading):
        settled("there is no NVSwitch")
        return
    for gpu in smi(reading).iter("gpu"):
        found = gpu.findtext("fabric/state", "N/A"), gpu.findtext("fabric/status", "N/A")
        compare(found[0] == "N/A" or found == ("Completed", "Success"), f"{gpu.get('id')}: {', '.join(found)}")


@pytest.mark.wishes("gpu_stack", "gpudirect")
def test_gpudirect(node: Node, reading: Reading) -> None:
    """NICs reach GPU memory the way that is declared. What is wrong with a way is said of the first that is allowed."""
    wanted = node.wishes["gpu_stack"]["gpudirect"]
    ways = {"peermem": (peermem,), "dmabuf": (dmabuf,), "any": (peermem, dmabuf)}[wanted]
    wrong = [why_not(way, reading) for way in ways]
    for why in wrong if all(wrong) else ():
        if isinstance(why, UnreadableError):
            raise why
    compare(not all(wrong), "; ".join(map(str, wrong)))


def why_not(way: Callable[[Reading], str], reading: Reading) -> str | UnreadableError:
    """What a way says, or why it cannot: either may be enough."""
    try:
        return way(reading)
    except UnreadableError as error:
        return error


def peermem(reading: Reading) -> str:
    """Why nvidia_peermem does not work; "" when it does."""
    section = reading.section("peermem")
    if section.code == "absent":
        return "nvidia_peermem is not loaded"
    version, running = section.words("nvidia_peermem"), module(reading)
    if version != running:
        return f"nvidia_peermem is of {version}, the driver {running}"
    users = reading.section("users").lines("holders")
    idle = [other for other in ("ib_core", "nvidia") if f"{other} nvidia_peermem" not in users]
    return f"{idle[0]} has no user nvidia_peermem" if idle else ""


def dmabuf(reading: Reading) -> str:
    """Why DMA-BUF does not work; "" when it does."""
    if "Open Kernel Module" not in reading.section("driver").require("/proc/driver/nvidia/version"):
        return "the kernel modules are not the open ones"
    if int(module(reading).split(".")[0]) < FIRST_DMABUF_DRIVER:
        return f"driver {module(reading)} is older than {FIRST_DMABUF_DRIVER}"
    running = release(reading.section("release"))
    numbers = tuple(int(number) for number in re.findall("[0-9]+", running)[:2])
    if numbers < FIRST_DMABUF_KERNEL:
        return f"kernel {running} is older than 5.12"
    symbols = reading.section("symbols")
    text = "" if symbols.code == "1" else symbols.words("/proc/kallsyms")
    return "" if "ib_umem_dmabuf_get" in text.split() else "the RDMA stack has no ib_umem_dmabuf_get"
