"""NVML: a library of plain functions stands for libnvidia-ml; what it writes through pointers is real ctypes."""

import ctypes
import os
from pathlib import Path

import pytest

from gpufab_cli.module_utils import nvml
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.dvfs import gpus
from gpufab_cli.module_utils.dvfs import nvml as backend
from gpufab_cli.module_utils.host import HostError
from tests.fakes import FakeHost

from .dvfs_node import GPU0, GPU1

ERRORS = {3: b"Not Supported", 9: b"Driver Not Loaded", 13: b"Function Not Found", 15: b"GPU is lost"}


class _ErrorString:
    def __call__(self, code):
        return ERRORS.get(code, b"Unknown Error")


VALUES = {
    "PersistenceMode": (1,),
    "PowerManagementLimit": (650_000,),
    "EnforcedPowerLimit": (650_000,),
    "PowerManagementDefaultLimit": (700_000,),
    "PowerManagementLimitConstraints": (200_000, 700_000),
    "ClockInfo": (345,),
    "EccMode": (1, 1),
    "MigMode": (0, 1),
    "CurrentClocksThrottleReasons": (0x44,),
}


class Library:
    """One GPU's values by getter; ``codes`` by function make it fail. Setters are noted."""

    def __init__(self, **codes):
        self.codes = codes
        self.calls = []
        self.nvmlErrorString = _ErrorString()

    def __getattr__(self, name):
        if name in self.codes and self.codes[name] is None:
            raise AttributeError(name)
        return lambda *arguments: self._call(name, arguments)

    def _call(self, name, arguments):
        if self.codes.get(name):
            return self.codes[name]
        if name.startswith("nvmlDeviceGetHandle"):
            return self.codes.get(arguments[0].decode(), 0)
        getter = name.removeprefix("nvmlDeviceGet")
        if name == "nvmlDeviceGetName":
            arguments[1].value = b"NVIDIA H100 80GB HBM3"
        elif getter == "SupportedMemoryClocks":
            _fill(arguments, (2619, 1593))
        elif getter == "SupportedGraphicsClocks":
            _fill(arguments, (1980, 1965) if arguments[1].value == 2619 else (1965, 1950))
        elif getter in VALUES:
            for pointer, value in zip(arguments[-len(VALUES[getter]) :], VALUES[getter], strict=True):
                pointer._obj.value = value
        elif name != "nvmlInit_v2":
            self.calls.append((name, [getattr(argument, "value", None) for argument in arguments[1:]]))
        return 0


def _fill(arguments, clocks):
    size, array = arguments[-2]._obj, arguments[-1]
    assert size.value >= len(clocks)
    size.value = len(clocks)
    for index, clock in enumerate(clocks):
        array[index] = clock


def host(**codes):
    fake = FakeHost()
    fake.library = Library(**codes)
    return fake


def test_an_h100():
    found, lost = backend.read(host(), [GPU0], clocks=True)
    gpu = found[GPU0]
    assert lost == {}
    assert (gpu.name, gpu.persistence, gpu.power_limit_w, gpu.power_enforced_w) == (
        "NVIDIA H100 80GB HBM3", True, 650.0, 650.0
    )  # fmt: skip
    assert (gpu.power_min_w, gpu.power_max_w, gpu.power_default_w) == (200.0, 700.0, 700.0)
    assert (gpu.ecc, gpu.ecc_pending, gpu.mig, gpu.mig_pending) == (True, True, False, True)
    assert (gpu.throttle, gpu.graphics_now_mhz) == (0x44, 345)
    assert (gpu.memory_clocks_mhz, gpu.graphics_clocks_mhz) == ((1593, 2619), (1950, 1965, 1980))


def test_clocks_are_asked_for_only_where_wanted():
    assert backend.read(host(), [GPU0], clocks=False)[0][GPU0].memory_clocks_mhz is ABSENT


@pytest.mark.parametrize(
    ("codes", "name", "value"),
    [
        ({"nvmlDeviceGetMigMode": 3}, "mig", ABSENT),
        ({"nvmlDeviceGetMigMode": None}, "mig", ABSENT),
        ({"nvmlDeviceGetPowerManagementLimitConstraints": 3}, "power_max_w", ABSENT),
        (
            {"nvmlDeviceGetPowerManagementLimit": 999},
            "power_limit_w",
            Unknown("NVML: nvmlDeviceGetPowerManagementLimit: Unknown Error"),
        ),
    ],
)
def test_not_supported_is_absent_and_failed_is_unknown(codes, name, value):
    assert getattr(backend.read(host(**codes), [GPU0], clocks=False)[0][GPU0], name) == value


def test_one_lost_gpu_hides_no_other():
    found, lost = backend.read(host(**{GPU1: 15}), [GPU0, GPU1], clocks=False)
    assert list(found) == [GPU0]
    assert lost == {GPU1: "nvmlDeviceGetHandleByPciBusId_v2: GPU is lost"}


def test_without_the_driver_all_is_unknown():
    assert backend.read(host(nvmlInit_v2=9), [GPU0], clocks=False) == (
        Unknown("NVML: nvmlInit_v2: Driver Not Loaded"), {}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("call", "made"),
    [
        (lambda s: s.persistence(GPU0, True), ("nvmlDeviceSetPersistenceMode", [1])),
        (lambda s: s.power_limit(GPU0, 650), ("nvmlDeviceSetPowerManagementLimit", [650_000])),
        (lambda s: s.graphics(GPU0, (1200, 1980)), ("nvmlDeviceSetGpuLockedClocks", [1200, 1980])),
        (lambda s: s.graphics(GPU0, None), ("nvmlDeviceResetGpuLockedClocks", [])),
        (lambda s: s.memory(GPU0, (2619, 2619)), ("nvmlDeviceSetMemoryLockedClocks", [2619, 2619])),
        (lambda s: s.memory(GPU0, None), ("nvmlDeviceResetMemoryLockedClocks", [])),
        (lambda s: s.ecc(GPU0, False), ("nvmlDeviceSetEccMode", [0])),
    ],
)
def test_each_setting_is_its_own_function(call, made):
    fake = host()
    call(gpus.setter(fake))
    assert fake.library.calls == [made]


def test_mig_mode_takes_a_place_for_its_status():
    fake = host()
    gpus.setter(fake).mig(GPU0, True)
    assert fake.library.calls[0][0] == "nvmlDeviceSetMigMode"


def test_a_setter_that_is_refused_raises():
    with pytest.raises(HostError, match="Not Supported"):
        gpus.setter(host(nvmlDeviceSetGpuLockedClocks=3)).graphics(GPU0, (1200, 1980))


def test_unlocking_what_cannot_be_locked_has_nothing_to_do():
    gpus.setter(host(nvmlDeviceResetMemoryLockedClocks=3)).memory(GPU0, None)
    with pytest.raises(HostError, match="Unknown Error"):
        gpus.setter(host(nvmlDeviceResetMemoryLockedClocks=4)).memory(GPU0, None)


def test_getters_cannot_call_a_setter():
    getters = nvml.Getters(Library())
    assert not any(name.startswith("set") for name in vars(nvml.Getters))
    with pytest.raises(ValueError, match="does not only look"):
        getters.number("nvmlDeviceSetPersistenceMode", ctypes.c_void_p(), 1)


# ---- the child process -----------------------------------------------------------------------------------------------


@pytest.fixture
def loaded(monkeypatch):
    monkeypatch.setattr(nvml, "library", Library)


def test_a_node_without_the_library(monkeypatch):
    monkeypatch.setattr(nvml, "library", lambda: None)
    assert nvml.ask(nvml.Getters, lambda getters: 1, 5.0) is ABSENT


@pytest.mark.process
@pytest.mark.usefixtures("loaded")
def test_the_answer_comes_out_of_a_child():
    assert nvml.ask(nvml.Getters, lambda getters: {"pid": os.getpid()}, 5.0)["pid"] != os.getpid()
    assert len(nvml.ask(nvml.Getters, lambda getters: "x" * 300_000, 5.0)) == 300_000


@pytest.mark.process
@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(
    ("question", "seconds", "reason"),
    [
        (lambda getters: os._exit(11), 5.0, "ended the process"),
        (lambda getters: getters.missing, 5.0, "ended the process"),
        (lambda getters: os.read(os.pipe()[0], 1), 0.1, "did not answer"),
    ],
)
def test_a_call_that_crashes_or_hangs_is_unknown(question, seconds, reason):
    assert reason in nvml.ask(nvml.Getters, question, seconds).reason


def test_a_child_holds_none_of_what_the_program_was_started_with(monkeypatch):
    """It may be stuck in the driver for good, and whoever reads the program's output reads to its end."""
    monkeypatch.setattr(nvml, "library", Library)
    opened = nvml.ask(nvml.Getters, lambda _: [str(Path(f"/proc/self/fd/{n}").readlink()) for n in range(3)], 10)
    assert opened == [os.devnull] * 3
