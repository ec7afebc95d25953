"""nvidia-smi: what its words mean."""

import pytest

from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.devices import Devices, Gpu
from gpufab_cli.module_utils.dvfs import gpus, smi
from gpufab_cli.module_utils.host import HostError, Output
from tests.fakes import FakeHost, failed, ok

from .dvfs_node import GPU0, GPU1

QUERY = ("nvidia-smi", f"--query-gpu={','.join(smi.FIELDS)}", smi.CSV)
REASONS = ("nvidia-smi", "--query-gpu=pci.bus_id,clocks_event_reasons.active", smi.CSV)
OLD_REASONS = ("nvidia-smi", "--query-gpu=pci.bus_id,clocks_throttle_reasons.active", smi.CSV)
CLOCKS = ("nvidia-smi", "--query-supported-clocks=gpu_bus_id,memory,graphics", smi.CSV)
H100 = (
    "00000000:1B:00.0, NVIDIA H100 80GB HBM3, Enabled, 500.00, 500.00, 700.00, 200.00, 700.00, 345, "
    "Enabled, Enabled, Disabled, Disabled\n"
)
T4 = "00000000:00:04.0, Tesla T4, Disabled, 70.00, 70.00, 70.00, 60.00, 70.00, 300, Enabled, Disabled, [N/A], [N/A]\n"
LAPTOP = "00000000:01:00.0, NVIDIA GB10, Enabled, [N/A], [N/A], [N/A], [N/A], [N/A], 208, [N/A], [N/A], [N/A], [N/A]\n"


def read(answers, pcis=(GPU0,), clocks=False):
    return smi.read(FakeHost(answers=answers), pcis, clocks=clocks)


def test_an_h100():
    found, lost = read({QUERY: ok(H100), REASONS: ok("00000000:1B:00.0, 0x0000000000000001\n")})
    gpu = found[GPU0]
    assert lost == {}
    assert (gpu.persistence, gpu.power_limit_w, gpu.power_min_w, gpu.power_max_w) == (True, 500.0, 200.0, 700.0)
    assert (gpu.ecc, gpu.mig, gpu.mig_pending, gpu.throttle, gpu.graphics_now_mhz) == (True, False, False, 1, 345)


def test_what_a_gpu_does_not_have_is_absent_and_ecc_may_wait():
    unnamed = dict.fromkeys((REASONS, OLD_REASONS), failed("Field is not a valid field to query."))
    t4 = read({QUERY: ok(T4), **unnamed}, ["0000:00:04.0"])[0]["0000:00:04.0"]
    assert (t4.persistence, t4.ecc, t4.ecc_pending, t4.mig, t4.throttle) == (False, True, False, ABSENT, ABSENT)
    gb10 = read({QUERY: ok(LAPTOP)}, ["0000:01:00.0"])[0]["0000:01:00.0"]
    assert (gb10.power_limit_w, gb10.power_max_w, gb10.ecc) == (ABSENT, ABSENT, ABSENT)


def test_reasons_of_an_older_release():
    refused = failed('Field "clocks_event_reasons.active" is not a valid field to query.', 2)
    old = ok("00000000:1B:00.0, 0x0000000000000004\n")
    assert read({QUERY: ok(H100), REASONS: refused, OLD_REASONS: old})[0][GPU0].throttle == 4


def test_supported_clocks():
    text = "00000000:1B:00.0, 2619, 1980\n00000000:1B:00.0, 2619, 1965\n00000000:1B:00.0, 1593, 1965\n"
    found = read({QUERY: ok(H100), CLOCKS: ok(text)}, clocks=True)[0][GPU0]
    assert (found.memory_clocks_mhz, found.graphics_clocks_mhz) == ((1593, 2619), (1965, 1980))


def test_a_gpu_without_supported_clocks_has_none():
    found = read({QUERY: ok(H100), CLOCKS: ok("[N/A], [N/A], [N/A]\n")}, clocks=True)[0][GPU0]
    assert (found.memory_clocks_mhz, found.graphics_clocks_mhz) == (ABSENT, ABSENT)


def test_one_lost_gpu_hides_no_other():
    lost = failed("Unable to determine the device handle for GPU 0000:43:00.0: GPU is lost.", 15)
    answers = {QUERY: lost, (QUERY[0], "-i", GPU0, *QUERY[1:]): ok(H100), (QUERY[0], "-i", GPU1, *QUERY[1:]): lost}
    found, gone = read(answers, (GPU0, GPU1))
    assert list(found) == [GPU0]
    assert "GPU is lost" in gone[GPU1]


def test_a_gpu_that_is_listed_as_lost():
    row = "00000000:43:00.0" + ", [GPU is lost]" * 12 + "\n"
    found, gone = read({QUERY: ok(H100 + row)}, (GPU0, GPU1))
    assert (list(found), gone) == ([GPU0], {GPU1: "[GPU is lost]"})


def test_a_gpu_that_is_not_listed():
    assert read({QUERY: ok(H100)}, (GPU0, GPU1))[1] == {GPU1: "nvidia-smi does not list it"}


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {QUERY: ok("\x00\x7fELF segmentation fault (core dumped)\n")},
        {QUERY: ok("No devices were found\n")},
        {QUERY: failed("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", 9)},
    ],
)
def test_anything_else_is_unknown(answers):
    found, lost = read(answers)
    assert isinstance(found, Unknown)
    assert lost == {}


def test_a_cell_that_makes_no_sense_is_unknown_on_its_own():
    found = read({QUERY: ok(H100.replace("500.00, 500.00", "[Unknown Error], 500.00"))})[0][GPU0]
    assert isinstance(found.power_limit_w, Unknown)
    assert found.power_enforced_w == 500.0


# ---- setting ---------------------------------------------------------------------------------------------------------


def setter(*argv, answer):
    host = FakeHost(answers={("nvidia-smi", "-i", GPU0, *argv): answer})
    return smi.SmiSetter(host)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("Changing power management limit is not supported for GPU: 00000000:1B:00.0.\n"
         "Treating as warning and moving on.\nAll done.\n", "not supported"),
        ("Power limit for GPU 00000000:1B:00.0 was set to 500.00 W from 700.00 W.\n\n"
         "Warning: persistence mode is disabled on device 00000000:1B:00.0.\n\nAll done.\n",
         "persistence mode is disabled"),
    ],
)  # fmt: skip
def test_exit_0_with_nothing_lasting_done_is_an_error(text, part):
    with pytest.raises(HostError, match=part):
        setter("-pl", "500", answer=ok(text)).power_limit(GPU0, 500.0)


def test_a_refusal_is_told_in_the_tools_words():
    text = "Provided power limit 900.00 W is not a valid power limit which should be between 200.00 W and 700.00 W\n"
    with pytest.raises(HostError, match="not a valid power limit"):
        setter("-pl", "900", answer=Output(1, text, "")).power_limit(GPU0, 900)


@pytest.mark.parametrize(
    ("call", "argv"),
    [
        (lambda s: s.persistence(GPU0, True), ("-pm", "1")),
        (lambda s: s.persistence(GPU0, False), ("-pm", "0")),
        (lambda s: s.power_limit(GPU0, 650), ("-pl", "650")),
        (lambda s: s.graphics(GPU0, (1200, 1980)), ("-lgc", "1200,1980")),
        (lambda s: s.graphics(GPU0, None), ("-rgc",)),
        (lambda s: s.memory(GPU0, (2619, 2619)), ("-lmc", "2619,2619")),
        (lambda s: s.memory(GPU0, None), ("-rmc",)),
        (lambda s: s.ecc(GPU0, False), ("-e", "0")),
        (lambda s: s.mig(GPU0, True), ("-mig", "1")),
    ],
)
def test_each_setting_is_its_own_option(call, argv):
    call(setter(*argv, answer=ok("All done.\n")))


# ---- devices ---------------------------------------------------------------------------------------------------------


def devices(**drivers):
    pcis = {"a": GPU0, "b": GPU1}
    return Devices(gpus=tuple(Gpu(pcis[name], "0x10de", "0x2330", driver, 0) for name, driver in drivers.items()))


def test_without_a_driver_no_tool_is_asked():
    found, lost = gpus.read(FakeHost(), devices(a=""), [GPU0], clocks=False)
    assert (found, lost) == (Unknown(gpus.NO_DRIVER), {})


def test_a_gpu_that_is_off_the_bus_is_lost():
    found, lost = gpus.read(FakeHost(answers={QUERY: ok(H100)}), devices(a="nvidia"), [GPU0, GPU1], clocks=False)
    assert list(found) == [GPU0]
    assert lost == {GPU1: "there is no GPU at this address"}


def test_a_gpu_given_to_a_guest_is_told():
    found, lost = gpus.read(
        FakeHost(answers={QUERY: ok(H100)}), devices(a="nvidia", b="vfio-pci"), [GPU0, GPU1], clocks=False
    )
    assert lost == {GPU1: "its driver is vfio-pci"}
    assert list(found) == [GPU0]


def test_the_load_of_the_driver_is_its_links_inode():
    host = FakeHost(answers={QUERY: ok(H100)})
    host.inodes[f"/sys/bus/pci/drivers/nvidia/{GPU0}"] = 4711
    assert gpus.read(host, devices(a="nvidia"), [GPU0], clocks=False)[0][GPU0].load == 4711


@pytest.mark.parametrize("text", ["00000000:1B:00.0", "0000:1b:00.0", " 00000000:1b:00.0 "])
def test_bus_ids(text):
    assert smi.bus_id(text) == GPU0
