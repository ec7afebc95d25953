"""Emulated interrupts, huge pages and configuration space: what the kernel and the hardware take and refuse."""

import errno
import os

import pytest

from gpufab_cli.lab.hardware import drift_numa, interrupts
from gpufab_cli.lab.hardware.state import Fault, State
from gpufab_cli.lab.hardware.sysfs.mount import Sysfs
from gpufab_cli.lab.hardware.sysfs.numa import PROC, THP
from tests.unit.lab.conftest import PORT

CONFIG = "/devices/pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/config"
PAGES = "/devices/system/node/node0/hugepages/hugepages-{}kB/nr_hugepages"
ACS_CONTROL = 0x148 + 6


@pytest.fixture
def sysfs(running, monkeypatch):
    monkeypatch.setattr("gpufab_cli.lab.hardware.sysfs.mount._writer_lives", lambda: lambda: True)
    monkeypatch.setattr("mfusepy.fuse_get_context", lambda: (0, 0, 1))
    return Sysfs(running)


def read(sysfs, path):
    return sysfs.read(path, 65536, 0, 0).decode().rstrip("\n")


def write(sysfs, path, text):
    sysfs.open(path, os.O_WRONLY | os.O_TRUNC)
    return sysfs.write(path, text.encode(), 0, 0)


def irq(running, index=1):
    return f"{PROC}/irq/{list(interrupts.interrupts(running))[index].number}"


def test_an_interrupt_goes_where_it_is_sent(sysfs, running):
    path = irq(running)
    assert read(sysfs, f"{path}/smp_affinity_list") == interrupts.every_cpu(running)
    write(sysfs, f"{path}/smp_affinity_list", "2,4-5\n")
    assert read(sysfs, f"{path}/smp_affinity") == "00000034"
    assert read(sysfs, f"{path}/effective_affinity_list") == "2"
    write(sysfs, f"{path}/smp_affinity", "00000001,00000000\n")
    assert read(sysfs, f"{path}/smp_affinity_list") == "32"
    number = int(path.rsplit("/", 1)[1])
    row = next(line for line in read(sysfs, f"{PROC}/interrupts").splitlines() if line.startswith(f"{number:>4}:"))
    assert row.split()[1 + 32] == "1"
    assert row.endswith("mlx5_comp0@pci:0000:18:00.0")


@pytest.mark.parametrize(("text", "code"), [("x", errno.EINVAL), ("9999", errno.EINVAL), ("", errno.EINVAL)])
def test_what_is_no_list_of_cpus_that_are_there_is_refused(sysfs, running, text, code):
    with pytest.raises(OSError, match=os.strerror(code)):
        write(sysfs, f"{irq(running)}/smp_affinity_list", text)


def test_a_managed_interrupt_cannot_be_moved(sysfs, running):
    running.set_fault(Fault(interrupts.MANAGED, PORT))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write(sysfs, f"{irq(running, 0)}/smp_affinity_list", "1")
    write(sysfs, f"{irq(running, 1)}/smp_affinity_list", "1")


def test_numbers_differ_from_boot_to_boot_and_all_else_is_forgotten(sysfs, running):
    before = irq(running)
    write(sysfs, THP, "never")
    running.reboot()
    assert irq(running) != before
    assert read(sysfs, THP) == "[always] madvise never"


def test_huge_pages_are_as_many_as_there_is_memory_for(sysfs):
    write(sysfs, PAGES.format(1048576), "900")
    assert read(sysfs, PAGES.format(1048576)) == "900"
    write(sysfs, PAGES.format(2048), "99999")
    assert 0 < int(read(sysfs, PAGES.format(2048))) < 99999
    with pytest.raises(OSError, match=os.strerror(errno.EINVAL)):
        write(sysfs, PAGES.format(2048), "many")


def test_a_register_takes_the_bits_that_it_has_and_loses_the_others(sysfs):
    before = sysfs.read(CONFIG, 4096, 0, 0)
    sysfs.write(CONFIG, b"\xff\xff", ACS_CONTROL, 0)
    after = sysfs.read(CONFIG, 4096, 0, 0)
    assert after[ACS_CONTROL : ACS_CONTROL + 2] == b"\x5f\x00"
    sysfs.write(CONFIG, b"\0" * 64, 0, 0)
    sysfs.write(CONFIG, before[ACS_CONTROL : ACS_CONTROL + 2], ACS_CONTROL, 0)
    assert sysfs.read(CONFIG, 4096, 0, 0) == before


def test_who_is_not_root_sees_a_header(sysfs, monkeypatch):
    monkeypatch.setattr("mfusepy.fuse_get_context", lambda: (1000, 1000, 1))
    assert len(sysfs.read(CONFIG, 4096, 0, 0)) == 64
    assert sysfs.getattr(CONFIG)["st_size"] == 4096


def test_the_iommu_puts_each_device_into_a_group(sysfs, running):
    assert "iommu_group" not in [name for name, *_ in sysfs.readdir(CONFIG.replace("/config", "/0000:18:00.0"), 0)]
    running.state.numa.domain = "DMA-FQ"
    running.restructure()
    assert sysfs.readlink(CONFIG.replace("/config", "/0000:18:00.0/iommu_group")).endswith("/iommu_groups/0")
    assert read(sysfs, "/kernel/iommu_groups/0/type") == "DMA-FQ"


@pytest.mark.parametrize("name", sorted(drift_numa.DRIFTS))
def test_every_drift_changes_something_and_survives_the_process(running, name):
    state = running.state.numa
    state.settings = {"sys/kernel/numa_balancing": "0", THP: "madvise"}
    state.acs, state.read_request = {"0000:17:00.0": 0}, {"0000:18:00.0": 5}
    running.save()
    before = State.load(running._path)
    drift_numa.DRIFTS[name](running, PORT)
    after = State.load(running._path)
    assert after.numa != before.numa
    assert after.numa == running.state.numa
