"""Over random nodes: a clean plan means that all is in order; what is not known is never clean, and never a crash."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.dvfs.seen import Service
from gpufab_cli.module_utils.dvfs.services import FABRIC_MANAGER, PERSISTENCED
from gpufab_cli.module_utils.features import FEATURES, SEEN_TYPES
from gpufab_cli.module_utils.gpu_stack.seen import DriverSeen, GpuStackSeen, PeermemSeen
from gpufab_cli.module_utils.gpu_stack.want import GpuStackWant
from gpufab_cli.module_utils.snapshot import Snapshot, dumps, loads

unknown = st.builds(Unknown, st.sampled_from(["hangs", "é"]))
flag = st.booleans() | unknown
version = st.sampled_from(["570.86.15", "570.124.06", "470.57.02"]) | st.just(ABSENT) | unknown
service = st.builds(
    Service,
    loaded=st.booleans(),
    active=st.sampled_from(["active", "inactive", "failed", "activating"]),
    starting=st.booleans(),
    enabled=st.just("enabled"),
)
drivers = st.builds(DriverSeen, running=version, on_disk=version, libraries=version, open_modules=flag)
peermems = st.builds(
    PeermemSeen,
    version=version,
    registered=st.booleans(),
    peer_memory=flag,
    dmabuf=flag,
    refused=st.sampled_from([(), ("nvidia_peermem: Unknown symbol x (err 0)",), ("disagrees about version",)]),
)
sights = st.builds(
    GpuStackSeen,
    driver=drivers,
    nvswitches=st.sampled_from([0, 4]) | unknown,
    fabric_manager=version,
    fabric=st.dictionaries(st.just("0000:1b:00.0"), st.sampled_from(["Completed, Success", "In Progress, N/A"]))
    | st.just(ABSENT)
    | unknown,
    services=st.fixed_dictionaries({}, optional={FABRIC_MANAGER: service, PERSISTENCED: service}) | unknown,
    gpudirect=peermems,
    old_peermem=st.sampled_from([(), ("/etc/modules",)]),
)
wishes = st.builds(
    GpuStackWant,
    driver=st.none() | st.just("570.86.15"),
    gpudirect=st.none() | st.sampled_from(["any", "peermem", "dmabuf"]),
)
kernels = st.sampled_from(["5.15.0-1039-nvidia", "5.4.0-1-generic", "", "6.8.0"])


def plan(found, want, kernel):
    snapshot = Snapshot("boot", 0, Devices(), {"gpu_stack": found}, kernel=kernel)
    assert loads(dumps(snapshot), SEEN_TYPES) == snapshot
    return FEATURES["gpu_stack"].plan(snapshot, want)


def peermem_works(found):
    return found.gpudirect.version == found.driver.running and found.gpudirect.registered


def dmabuf_works(found, kernel):
    new = kernel in ("5.15.0-1039-nvidia", "6.8.0") and found.driver.running in ("570.86.15", "570.124.06")
    return new and found.driver.open_modules is True and found.gpudirect.dmabuf is True


@settings(max_examples=1000)
@given(sights, wishes, kernels)
def test_nothing_to_be_said_means_that_all_is_in_order(found, want, kernel):
    result = plan(found, want, kernel)
    assert result.steps == ()
    codes = {finding.code for finding in result.findings} - {"gpu.no-persistenced", "gpu.peermem-unneeded"}
    if codes or result.pending:
        return
    driver = found.driver
    assert isinstance(driver.running, str)
    assert driver.running == driver.libraries
    assert want.driver in (None, driver.running)
    if found.nvswitches != 0:
        assert found.services[FABRIC_MANAGER].active == "active"
        assert found.fabric_manager == driver.running
        assert found.fabric is ABSENT or set(found.fabric.values()) <= {"Completed, Success"}
    works = {"any": peermem_works(found) or dmabuf_works(found, kernel), "peermem": peermem_works(found)}
    assert want.gpudirect is None or {**works, "dmabuf": dmabuf_works(found, kernel)}[want.gpudirect]


@settings(max_examples=300)
@given(sights, wishes, kernels)
def test_a_reboot_is_due_only_for_what_it_brings(found, want, kernel):
    for pending in plan(found, want, kernel).pending:
        assert (pending.running, pending.next_boot) == (found.driver.running, found.driver.libraries)
        assert pending.next_boot == found.driver.on_disk != pending.running
