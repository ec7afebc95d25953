"""The checks of the GPU software and of locked memory, each on a node as declared and where just that is wrong."""

import inspect

import pytest

from gpufab_cli.reach.target import Target
from gpufab_cli.verify import test_gpu_stack, test_limits
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, Section, UnreadableError, _asked

V = "570.86.15"
PROC = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {V}  Release Build\nGCC version: gcc 12.3.0"
GPU = '<gpu id="00000000:1B:00.0"><fabric><state>{}</state><status>{}</status></fabric></gpu>'
LOG = "<nvidia_smi_log><driver_version>{}</driver_version>{}</nvidia_smi_log>"
SMI = LOG.format(V, GPU.format("Completed", "Success"))
WISHES = {
    "gpu_stack": {"driver": V, "gpudirect": "any"},
    "limits": {"memlock": "unlimited", "services": ["ssh", "docker", "slurmd"]},
}
HEALTHY = {
    "driver": PROC,
    "smi": SMI,
    "uevents": "0000:07:00.0\t68000\t10DE:22A3\n0000:1b:00.0\t30200\t10DE:2330",
    "fabric-manager": "active",
    "fabric-manager-version": f"Fabric Manager version is : {V}",
    "users": "ib_core rdma_cm\nib_core nvidia_peermem\nnvidia nvidia_peermem",
    "peermem": V,
    "symbols": "ib_register_peer_memory_client\nib_umem_dmabuf_get",
    "release": "5.15.0-1039-nvidia",
    "memlock/login": "unlimited unlimited",
    "memlock/unit/ssh": "LoadState=loaded\nMainPID=7\nLimitMEMLOCK=infinity",
    "memlock/now/ssh": "unlimited unlimited",
    "memlock/unit/docker": "LoadState=not-found\nMainPID=0\nLimitMEMLOCK=8388608",
    "memlock/unit/slurmd": "LoadState=loaded\nMainPID=0\nLimitMEMLOCK=infinity",
}
CHECKS = {
    name.removeprefix("test_"): check
    for module in (test_gpu_stack, test_limits)
    for name, check in vars(module).items()
    if name.startswith("test_") and inspect.isfunction(check)
}


def node(**changed):
    target = Target("gpu01", "gpu01", None, None, None, "none", "/usr/bin/python3", "active")
    return Node(target, {name: {**wish, **changed.get(name, {})} for name, wish in WISHES.items()}, (), (), ())


def reading(changed):
    """A text stands for a section that succeeded, a pair for (code, text), None for none."""
    found = {name: ("0", said) if isinstance(said, str) else said for name, said in {**HEALTHY, **changed}.items()}
    return Reading({name: Section(name, *said) for name, said in found.items() if said is not None})


def outcomes(changed, **wishes):
    """What each check that has something to say says."""
    said = {}
    for name, check in CHECKS.items():
        arguments = {"node": node(**wishes), "reading": reading(changed)}
        try:
            check(**{argument: arguments[argument] for argument in inspect.signature(check).parameters})
        except AssertionError as error:
            said[name] = str(error).splitlines()[0]
        except UnreadableError as error:
            said[name] = f"unknown: {error}"
    return said


def test_a_node_as_declared_passes_every_check():
    assert outcomes({}) == {}


def test_a_node_without_nvswitches_needs_no_fabric_manager():
    assert (
        outcomes(
            {"uevents": "0000:1b:00.0\t30200\t10DE:2330", "fabric-manager": ("3", "inactive"), "smi": LOG.format(V, "")}
        )
        == {}
    )


NO_DRIVER = ("1", "cat: /proc/driver/nvidia/version: No such file or directory")
LOW = "LoadState=loaded\nMainPID=0\nLimitMEMLOCK=65536"
MISMATCH = ("18", "Failed to initialize NVML: Driver/library version mismatch")


@pytest.mark.parametrize(
    ("changed", "check", "words"),
    [
        ({"driver": NO_DRIVER}, "driver_version", "the kernel module nvidia is not loaded"),
        ({"smi": MISMATCH}, "driver_version", "libraries are not of the module's version"),
        ({"smi": LOG.format("570.124.06", "")}, "driver_version", f"module {V}, libraries 570.124.06"),
        ({"smi": ("hung", "")}, "driver_version", "unknown: nvidia-smi -q -x: no answer in time"),
        ({"smi": "garbage"}, "driver_version", "unknown: "),
        ({"driver": "NVRM version: none"}, "driver_version", "unknown: "),
        ({"fabric-manager": ("3", "failed")}, "fabric_manager", "nvidia-fabricmanager is failed"),
        ({"fabric-manager": ("hung", "")}, "fabric_manager", "unknown: "),
        ({"fabric-manager-version": "version is : 570.1.2"}, "fabric_manager", f"Fabric Manager 570.1.2, driver {V}"),
        ({"smi": LOG.format(V, GPU.format("In Progress", "N/A"))}, "fabric_state", "1B:00.0: In Progress, N/A"),
        ({"memlock/login": "64 64"}, "login", "65536"),
        ({"memlock/login": "64 unlimited"}, "login", "a login may lock 65536 of unlimited"),
        ({"memlock/login": None}, "login", "unknown: "),
        ({"memlock/now/ssh": "65536 65536"}, "services_now", "ssh may lock 65536"),
        ({"memlock/now/ssh": ("absent", "")}, "services_now", "unknown: prlimit: not there"),
        ({"memlock/unit/slurmd": LOW}, "services_next", "slurmd would start with 65536, wanted unlimited"),
        ({"memlock/unit/slurmd": ("hung", "")}, "services_next", "unknown: systemctl show"),
        ({"memlock/unit/slurmd": "\x7fELF"}, "services_now", "unknown: systemctl show slurmd"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_by_its_check(changed, check, words):
    assert words in outcomes(changed)[check]


def test_another_driver_than_declared_fails():
    assert outcomes({}, gpu_stack={"driver": "570.124.06"}) == {"driver_version": f"driver {V}, wanted 570.124.06"}


CLOSED = PROC.replace("Open Kernel", "x86_64 Kernel")


@pytest.mark.parametrize(
    ("way", "changed", "words"),
    [
        ("any", {"peermem": ("absent", "")}, None),
        ("any", {"driver": CLOSED}, None),
        ("any", {"driver": CLOSED, "peermem": ("absent", "")}, "not loaded; the kernel modules are not the open ones"),
        ("any", {"peermem": ("hung", "")}, None),  # it may be, and the other is there
        ("any", {"driver": CLOSED, "peermem": ("hung", "")}, "unknown: "),
        ("peermem", {"users": "ib_core rdma_cm\nnvidia nvidia_peermem"}, "ib_core has no user nvidia_peermem"),
        ("peermem", {"peermem": "570.1.2"}, f"nvidia_peermem is of 570.1.2, the driver {V}"),
        ("dmabuf", {"driver": CLOSED}, "the kernel modules are not the open ones"),
        ("dmabuf", {"release": "5.4.0-1-generic"}, "kernel 5.4.0-1-generic is older than 5.12"),
        ("dmabuf", {"symbols": ("1", "")}, "the RDMA stack has no ib_umem_dmabuf_get"),
        ("dmabuf", {"symbols": ("2", "grep: /proc/kallsyms: Permission denied")}, "unknown: "),
    ],
)
def test_gpudirect_by_each_way(way, changed, words):
    said = outcomes(changed, gpu_stack={"gpudirect": way}).get("gpudirect")
    assert (said is None) if words is None else words in said


def test_a_size_is_told_by_the_shell_in_kib_and_by_others_in_bytes():
    small = {"memlock/login": "65536 65536", "memlock/now/ssh": "67108864 67108864"}
    units = {f"memlock/unit/{name}": "LoadState=loaded\nMainPID=7\nLimitMEMLOCK=67108864" for name in ("ssh", "slurmd")}
    units["memlock/now/slurmd"] = "67108864 67108864"
    assert outcomes({**small, **units}, limits={"memlock": "64M"}) == {}


def test_the_script_is_asked_for_just_what_is_wanted():
    assert list(_asked(node())) == ["stack", "limits:ssh,docker,slurmd"]
