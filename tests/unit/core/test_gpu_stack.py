"""The GPU software: what is found of it, and what is said of that. Nothing is ever planned, but for a reboot."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import ABSENT, Finding, Impact, Pending, Unknown
from gpufab_cli.module_utils.features import FEATURES, SEEN_TYPES
from gpufab_cli.module_utils.gpu_stack.seen import DriverSeen
from gpufab_cli.module_utils.gpu_stack.want import GpuStackWant
from gpufab_cli.module_utils.schema import decode, encode
from gpufab_cli.module_utils.snapshot import dumps, loads
from tests.fakes import FakeHost, failed, ok

NOW, NEXT = "570.86.15", "570.124.06"
LIB = "/usr/lib/x86_64-linux-gnu"
SWITCH, GPU = "/sys/bus/pci/devices/0000:07:00.0", "0000:1b:00.0"
PEERMEM = "/sys/module/nvidia_peermem"
HOLDERS = [f"/sys/module/{module}/holders/nvidia_peermem" for module in ("ib_core", "nvidia")]
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\nGCC version: 12.3.0\n"
CLOSED = OPEN.replace("Open Kernel", "x86_64 Kernel")
REGISTER = "ffffffffc0a1b2c0 T ib_register_peer_memory_client\t[ib_core]\n"
DMABUF = "ffffffffc0a1c2c0 T ib_umem_dmabuf_get\t[ib_uverbs]\n"
DMESG = ("dmesg", "--notime")
SERVICES = ("systemctl", "show", "--property=Id,LoadState,ActiveState,UnitFileState,Job", "nvidia-persistenced.service",
            "nvidia-fabricmanager.service", "tuned.service", "power-profiles-daemon.service",
            "cpupower.service")  # fmt: skip
FABRIC = ("nvidia-smi", "--query-gpu=gpu_bus_id,fabric.state,fabric.status", "--format=csv,noheader,nounits")
MODINFO, MANAGER = ("modinfo", "-F", "version", "nvidia"), ("nv-fabricmanager", "--version")
ANY, BY_MODULE, BY_DMABUF = (GpuStackWant(gpudirect=way) for way in ("any", "peermem", "dmabuf"))
REFUSED = "nvidia_peermem: Unknown symbol ib_register_peer_memory_client (err {})\n"
DISAGREES = "nvidia_peermem: disagrees about version of symbol ib_register_peer_memory_client\n"


def services(fabric_manager="active", persistenced="active", load="loaded"):
    states = {"nvidia-persistenced": (load, persistenced), "nvidia-fabricmanager": (load, fabric_manager)}
    states |= dict.fromkeys(("tuned", "power-profiles-daemon", "cpupower"), ("not-found", "inactive"))
    blocks = [
        f"Id={name}.service\nLoadState={loaded}\nActiveState={state}\nUnitFileState=\nJob=0\n"
        for name, (loaded, state) in states.items()
    ]
    return ok("\n".join(blocks))


def node(files=None, links=None, answers=None, without=()):
    """An HGX machine with driver 570.86.15, all of it in order."""
    found = FakeHost(
        {
            "/sys/module/nvidia/version": NOW,
            "/proc/driver/nvidia/version": OPEN,
            "/proc/sys/kernel/osrelease": "5.15.0-1039-nvidia\n",
            "/proc/kallsyms": "ffffffff81000000 T _text\n" + REGISTER + DMABUF,
            f"{SWITCH}/class": "0x068000",
            f"{SWITCH}/vendor": "0x10de",
            f"{PEERMEM}/version": NOW,
            "/run/systemd/system": "",
            **dict.fromkeys(HOLDERS, ""),
            **(files or {}),
        },
        {f"{LIB}/libnvidia-ml.so.1": f"libnvidia-ml.so.{NOW}", **(links or {})},
        {
            MODINFO: ok(f"{NOW}\n"),
            MANAGER: ok(f"Fabric Manager version is : {NOW}\n"),
            SERVICES: services(),
            FABRIC: ok("00000000:1B:00.0, Completed, Success\n"),
            DMESG: ok(""),
            **(answers or {}),
        },
    )
    for path in without:
        del found.files[path]
    return found


def plan(host, want=ANY):
    snapshot = planning.take(host, {"gpu_stack": FEATURES["gpu_stack"]}, {"gpu_stack": want})
    assert loads(dumps(snapshot), SEEN_TYPES) == snapshot
    found = planning.plan(FEATURES["gpu_stack"], snapshot, want)
    assert found.steps == ()
    return found


def codes(host, want=ANY):
    return {(finding.code, finding.unknown) for finding in plan(host, want).findings}


@pytest.mark.parametrize("want", [ANY, BY_MODULE, BY_DMABUF, GpuStackWant(), GpuStackWant(driver=NOW)])
def test_a_node_in_order_has_nothing_to_be_said_of_it(want):
    assert plan(node(), want).clean


def test_a_node_without_nvswitches_needs_no_fabric_manager():
    host = node(without=(f"{SWITCH}/class",), answers={SERVICES: services(fabric_manager="inactive")})
    assert plan(host).clean


def test_gpudirect_is_not_looked_at_where_it_is_not_asked_for():
    host = node(files={"/proc/driver/nvidia/version": CLOSED}, without=(f"{PEERMEM}/version",))
    host.unreadable["/proc/kallsyms"] = "Permission denied"
    assert plan(host, GpuStackWant()).clean


# ---- driver and Fabric Manager ---------------------------------------------------------------------------------------


def upgraded(**answers):
    """The packages are of the next driver; its module is not loaded yet."""
    new = {MODINFO: ok(NEXT), MANAGER: ok(f"Fabric Manager version is : {NEXT}"), **answers}
    return node(links={f"{LIB}/libnvidia-ml.so.1": f"libnvidia-ml.so.{NEXT}"}, answers=new)


def test_a_driver_that_was_upgraded_under_its_module_is_a_pending_reboot():
    found = plan(upgraded(), GpuStackWant(driver=NEXT))
    assert found.pending == (Pending(("driver",), NOW, NEXT, Impact.REBOOT, "gpu.driver-mismatch"),)
    assert found.findings == ()


def test_after_it_the_fabric_manager_of_the_old_driver_does_not_fit():
    host = upgraded()
    host.answers[MANAGER] = ok(f"Fabric Manager version is : {NOW}")
    (finding,) = plan(host).findings
    assert (finding.code, finding.evidence) == (
        "gpu.fabric-manager-version", f"version {NOW}, the driver is {NEXT}"
    )  # fmt: skip


def test_the_library_is_found_behind_alternatives():
    links = {f"{LIB}/libnvidia-ml.so.1": "/etc/alternatives/ml",
             "/etc/alternatives/ml": "/usr/lib/nvidia/libnvidia-ml.so.1",
             "/usr/lib/nvidia/libnvidia-ml.so.1": f"libnvidia-ml.so.{NOW}"}  # fmt: skip
    assert plan(node(links=links)).clean


@pytest.mark.parametrize(
    ("host", "want", "code", "unknown"),
    [
        (node(answers={MODINFO: ok(NEXT)}), ANY, "gpu.driver-mismatch", False),
        (node(links={f"{LIB}/libnvidia-ml.so.1": f"libnvidia-ml.so.{NEXT}"}), ANY, "gpu.driver-mismatch", False),
        (upgraded(), GpuStackWant(driver="535.1.2"), "gpu.driver-version", False),
        (node(links={f"{LIB}/libnvidia-ml.so.1": "ml.so"}), ANY, "gpu.driver-mismatch", True),
        (node(), GpuStackWant(driver=NEXT), "gpu.driver-version", False),
        (node(answers={SERVICES: services("failed")}), ANY, "gpu.fabric-manager", False),
        (node(answers={SERVICES: services("activating")}), ANY, "gpu.fabric-manager", True),
        (node(answers={MANAGER: ok(f"Fabric Manager version is : {NEXT}")}), ANY, "gpu.fabric-manager-version", False),
        (node(answers={MANAGER: failed("Segmentation fault", 139)}), ANY, "gpu.fabric-manager-version", True),
        (node(answers={FABRIC: ok("00000000:1B:00.0, In Progress, N/A\n")}), ANY, "gpu.fabric-state", False),
        (node(answers={FABRIC: ok("one, two\n")}), ANY, "gpu.fabric-state", True),
        (node(answers={FABRIC: Unknown("hangs")}), ANY, "gpu.fabric-state", True),
        (node(answers={SERVICES: services(persistenced="failed")}), ANY, "gpu.persistenced", False),
    ],
)
def test_what_is_wrong_with_driver_and_services_is_one_finding(host, want, code, unknown):
    assert codes(host, want) == {(code, unknown)}


def test_a_fabric_manager_that_cannot_be_asked_for_its_version_is_not_one_of_the_right_version():
    host = node()
    del host.answers[MANAGER]
    assert codes(host) == {("gpu.fabric-manager-version", True)}


def test_an_unloaded_module_is_all_there_is_to_say():
    host = node(without=["/sys/module/nvidia/version", *HOLDERS, f"{PEERMEM}/version"])
    assert plan(host, GpuStackWant()).findings == (
        Finding("gpu.driver-missing", ("driver",), "the kernel module nvidia is not loaded"),
    )


def test_no_libraries_are_missing_and_not_another_version():
    host = node()
    host.links.clear()
    assert codes(host) == {("gpu.driver-missing", False)}


@pytest.mark.parametrize(
    "on_disk", [Unknown("modinfo is not installed"), failed("modinfo: ERROR: Module nvidia not found.")]
)
def test_a_module_that_is_not_found_on_disk_does_not_make_a_mismatch(on_disk):
    assert plan(node(answers={MODINFO: on_disk})).clean


@pytest.mark.parametrize(
    ("answer", "said"),
    [(ok("00000000:1B:00.0, [N/A], [N/A]"), set()), (failed(""), {("gpu.fabric-state", True)})],
)
def test_a_driver_that_tells_of_no_fabric_is_not_one_that_fails(answer, said):
    assert codes(node(answers={FABRIC: answer})) == said
    older = replace(failed("", 2), stdout='Field "fabric.state" is not a valid field to query.\n')
    assert plan(node(answers={FABRIC: older})).clean


def test_services_that_cannot_be_asked_are_unknown_and_those_that_are_not_there_are_missing():
    host = node(answers={SERVICES: Unknown("systemctl hangs")})
    assert codes(host) == {("gpu.fabric-manager", True), ("gpu.persistenced", True)}
    host = node(answers={SERVICES: services(load="not-found")})
    assert codes(host) == {("gpu.fabric-manager", False), ("gpu.no-persistenced", False)}


# ---- GPUDirect RDMA --------------------------------------------------------------------------------------------------


def without_peermem(said="", symbols=REGISTER + DMABUF, proc=CLOSED):
    files = {"/proc/kallsyms": symbols, "/proc/driver/nvidia/version": proc}
    return node(files, answers={DMESG: ok(said)}, without=[f"{PEERMEM}/version", *HOLDERS])


@pytest.mark.parametrize(
    ("host", "code"),
    [
        (without_peermem(), "gpu.peermem-not-loaded"),
        (without_peermem(DISAGREES + REFUSED.format(-22)), "gpu.peermem-rebuild"),
        (without_peermem(REFUSED.format(-22)), "gpu.peermem-rebuild"),
        (without_peermem(REFUSED.format(0), symbols=DMABUF), "gpu.peermem-no-api"),
        (without_peermem(REFUSED.format(-2), symbols=DMABUF), "gpu.peermem-no-api"),
        # The vendor's RDMA stack came after the kernel's own had refused it.
        (without_peermem(REFUSED.format(0)), "gpu.peermem-not-loaded"),
        (without_peermem(REFUSED.format(0) + DISAGREES), "gpu.peermem-rebuild"),
        (without_peermem(symbols=DMABUF), "gpu.peermem-no-api"),
        (node({f"{PEERMEM}/version": NEXT}), "gpu.peermem-rebuild"),
        (node(without=HOLDERS[:1]), "gpu.peermem-not-registered"),
    ],
    ids=[
        "not loaded",
        "another ib_core",
        "err -22",
        "err 0",
        "err -2",
        "mended",
        "then -22",
        "inbox",
        "another driver",
        "listed only",
    ],
)
def test_why_peermem_does_not_work(host, code):
    assert codes(host, BY_MODULE) == {(code, False)}


def test_by_either_way_it_takes_both_to_fail():
    assert plan(without_peermem(proc=OPEN)).clean
    assert plan(node({"/proc/driver/nvidia/version": CLOSED})).clean
    assert codes(without_peermem()) == {("gpu.peermem-not-loaded", False), ("gpu.dmabuf", False)}


def test_with_dmabuf_a_refused_peermem_is_worth_knowing_and_no_more():
    (finding,) = plan(without_peermem(DISAGREES, proc=OPEN)).findings
    assert (finding.code, finding.evidence) == ("gpu.peermem-unneeded", f"{DISAGREES.strip()}; DMA-BUF is there")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"/proc/driver/nvidia/version": CLOSED}, "no DMA-BUF: the driver's kernel modules are not the open ones"),
        ({"/proc/sys/kernel/osrelease": "5.4.0-1-nvidia"}, "no DMA-BUF: the kernel 5.4.0-1-nvidia is older than 5.12"),
        ({"/proc/kallsyms": REGISTER}, "no DMA-BUF: the RDMA stack has no ib_umem_dmabuf_get"),
    ],
)
def test_why_dmabuf_does_not_work(files, words):
    assert plan(node(files), BY_DMABUF).findings == (Finding("gpu.dmabuf", ("GPUDirect RDMA",), words),)


@pytest.mark.parametrize("path", ["/proc/kallsyms", "/proc/driver/nvidia/version"])
def test_what_cannot_be_read_leaves_both_ways_unknown(path):
    host = without_peermem(proc=OPEN)
    host.unreadable[path] = "Permission denied"
    assert {unknown for _, unknown in codes(host)} == {True}


def test_the_module_of_old_is_named_wherever_it_is_asked_for():
    files = {"/etc/modules": "loop\nnv_peer_mem\n", "/etc/modules-load.d/rdma.conf": "# nv_peer_mem\nib_uverbs\n"}
    (finding,) = plan(node(files)).findings
    assert (finding.code, finding.path) == ("gpu.nv-peer-mem", ("/etc/modules",))


def test_a_baseboard_whose_nvswitches_show_only_by_their_managing_functions_needs_fabric_manager():
    hca = "/sys/bus/pci/devices/0000:05:00.0"
    files = {f"{hca}/vpd": b"\x82\x0aSW_MNG\x78", "/sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand\n"}
    host = node({**files, f"{hca}/infiniband/mlx5_0": "", f"{hca}/class": "0x020700"}, without=(f"{SWITCH}/class",))
    host.answers[SERVICES] = services("inactive")
    assert codes(host) == {("gpu.fabric-manager", False)}


def test_wish_and_sight_survive_json():
    want = GpuStackWant("570.86.15", "peermem")
    assert decode(GpuStackWant, encode(want)) == want
    seen = DriverSeen(ABSENT, Unknown("x"), NOW, Unknown("y"))
    assert decode(DriverSeen, encode(seen)) == seen
