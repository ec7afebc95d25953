"""Who uses a device: by its number, over all threads, in virtual machines and containers; daemons do not."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from gpufab_cli.module_utils import idle
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.converge import converge
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.host import Reader
from gpufab_cli.module_utils.processes import DeviceFile, holders
from gpufab_cli.module_utils.roce import gather
from gpufab_cli.module_utils.stats import FileStat
from tests.fakes import FakeHost, start
from tests.unit.core.roce_node import nic
from tests.unit.core.test_converge import ALL, Toy, ToyWant, node, statuses

PF, VF, GPU = "0000:18:00.0", "0000:18:00.4", "0000:19:00.0"
PLACE = "../../devices/pci0000:17/{}/infiniband_verbs/{}"
UVERBS = "/sys/class/infiniband_verbs/uverbs0"


def machine():
    """A port with a verbs device and a VF in group 26, and a GPU in group 40 with a VFIO device of its own."""
    host = FakeHost(
        {
            f"{PLACE.format(PF, 'uverbs0')}/dev": "231:192\n",
            "/etc/passwd": "root:x:0:0::/:\nnvidia-dcgm:x:990:990::/:\n",
        }
    )
    host.links[UVERBS] = PLACE.format(PF, "uverbs0")
    for pci, kind, group in ((PF, "0x020000", 10), (VF, "0x020000", 26), (GPU, "0x030200", 40)):
        host.files[f"/sys/bus/pci/devices/{pci}/class"] = f"{kind}\n"
        host.links[f"/sys/bus/pci/devices/{pci}/iommu_group"] = f"../../../kernel/iommu_groups/{group}"
        host.files[f"/sys/class/vfio/{group}/dev"] = f"511:{group}\n"
    host.links[f"/sys/bus/pci/devices/{PF}/virtfn2"] = f"../{VF}"
    host.files[f"/sys/bus/pci/devices/{GPU}/vfio-dev/vfio3/dev"] = "510:3\n"
    return host


def opened(host, pid, number, name="/somewhere/else"):
    """A process holds a device under a name that says nothing."""
    start(host, pid, "qemu-system-x86_64", name)
    host.stats[f"/proc/{pid}/fd/3"] = FileStat(0, 0o20666, (0, 5, pid), number)


def on_node(host):
    return idle.users(host, Devices((nic(),)), PF)


def test_nobody_is_there():
    host = machine()
    start(host, 7, "bash", "/dev/null", "socket:[5]")
    assert (on_node(host), idle.device_users(host, PF)) == ((), ())


@pytest.mark.parametrize(
    ("number", "words", "of_port"),
    [
        ("231:192", "holds an RDMA device", True),
        ("511:10", f"holds {PF} through VFIO", True),
        ("511:26", f"holds VF 2 ({VF})", True),
        ("511:40", f"holds {GPU} through VFIO", False),
        ("510:3", f"holds {GPU} through VFIO", False),
        ("1:3", "", False),
    ],
)
def test_a_device_is_known_by_its_number_whatever_its_file_is_called(number, words, of_port):
    host = machine()
    opened(host, 42, number)
    said = (f"qemu-system-x86 (process 42) {words}",) if words else ()
    assert on_node(host) == said
    assert idle.device_users(host, PF) == (said if of_port else ())
    assert idle.device_users(host, "0000:99:00.0") == ()


def test_a_virtual_machine_that_has_a_vf_keeps_its_port_from_a_restore():
    host = machine()
    start(host, 42, "qemu-system-x86_64", "/dev/vfio/26")
    assert idle.device_users(host, PF) == (f"qemu-system-x86 (process 42) holds VF 2 ({VF})",)


def test_a_vf_in_a_container_s_network_namespace_keeps_its_port():
    class Moved(FakeHost):
        def names(self, path):
            return () if path.endswith(f"{VF}/net") else super().names(path)

    host = machine()
    host.__class__ = Moved
    host.links[f"/sys/bus/pci/devices/{VF}/driver"] = "../../../bus/pci/drivers/mlx5_core"
    said = (f"the netdev of VF 2 ({VF}) is in another network namespace",)
    assert (on_node(host), idle.device_users(host, PF)) == (said, said)


def test_every_thread_with_a_table_of_its_own_is_looked_at():
    host = machine()
    start(host, 42, "python")
    for thread in (42, 43, 44):
        host.files[f"/proc/42/task/{thread}/fd/x"] = ""
    host.links["/proc/42/task/44/fd/5"] = "/dev/infiniband/uverbs0"
    assert on_node(host) == ()  # 44 has the first one's table, and there is no such file in it
    host.own_tables = {"44"}
    assert on_node(host) == ("python (process 42) holds an RDMA device",)


def test_what_cannot_be_looked_at_is_not_idle():
    for path in ("/proc/42/fd", "/proc/42/fd/3", "/sys/class/infiniband_verbs"):
        host = machine()
        opened(host, 42, "1:3")
        host.unreadable[path] = "Permission denied"
        assert isinstance(on_node(host), Unknown)
        assert isinstance(idle.device_users(host, PF), Unknown)


def test_of_many_holders_some_are_named():
    host = machine()
    for pid in range(100, 120):
        start(host, pid, "python", "/dev/infiniband/uverbs0")
    assert len(on_node(host)) == 13
    assert on_node(host)[-1] == "and 8 more"


OPENSM = FileStat(0, 0o100755, (0, 0, 9))


@pytest.mark.parametrize(
    ("name", "more", "stats", "excused"),
    [
        pytest.param("opensm", {}, {}, True, id="the daemon"),
        pytest.param("opensm", {"uid": 1000}, {}, False, id="a user's"),
        pytest.param("opensm", {"exe": "/tmp/opensm"}, {}, False, id="elsewhere"),
        pytest.param("opensm", {"exe": "/usr/bin/sleep"}, {}, False, id="another program that calls itself so"),
        pytest.param("opensm", {"exe": "/usr/bin/opensm (deleted)"}, {}, False, id="replaced"),
        pytest.param("opensm", {}, {"/proc/9/exe": OPENSM}, False, id="another one lies there now"),
        pytest.param("opensm", {}, {"/usr/bin/opensm": replace(OPENSM, uid=7)}, False, id="a user's program"),
        pytest.param("opensm", {}, {"/usr/bin/opensm": replace(OPENSM, mode=0o100777)}, False, id="anybody may write"),
        pytest.param("opensm", {}, {"/usr/bin": FileStat(0, 0o40775, (0, 0, 3))}, False, id="a group may put another"),
        pytest.param("nv-hostengine", {"uid": 990}, {}, True, id="a service user's"),
        pytest.param("opensm", {"uid": 990}, {}, False, id="another service's user"),
    ],
)
def test_a_daemon_is_known_by_its_program_and_owner(name, more, stats, excused):
    host = machine()
    start(host, 9, name, "/dev/infiniband/uverbs0", **more)
    host.stats.update(stats)
    assert (on_node(host) == ()) is excused


def test_no_user_is_lldpad():
    host = machine()
    start(host, 9, "lldpad", uid=1000)
    assert gather._lldpad(host) is None
    start(host, 10, "lldpad", exe="/usr/sbin/lldpad (deleted)")  # it was updated, and runs on
    assert gather._lldpad(host) == "10"
    host.unreadable["/proc/9/status"] = "Permission denied"
    assert gather._lldpad(host) == "10"
    del host.files["/proc/10/comm"]
    assert gather._lldpad(host) == "9"  # not to be ruled out


def test_a_job_that_begins_during_a_run_is_left_alone():
    host = node(p=1, q=1)

    class Slow(Toy):
        def apply(self, step, host):
            super().apply(step, host)
            start(host, 77, "python3", "/dev/infiniband/uverbs0", uid=1000)

    host.links[UVERBS] = PLACE.format(PF, "uverbs0")
    outcome = converge(host, Slow(), ToyWant({"p": 2, "q": 2}), ALL)
    assert statuses(outcome) == {"persist toy": "made", "toy p": "made", "toy q": "busy"}


FULL = DeviceFile("1:7", "/nowhere")  # /dev/full, which nobody has open
ANOTHER_NAME = """
import os, sys
os.mknod(sys.argv[1], 0o20666, os.makedev(1, 7))
held = os.open(sys.argv[1], os.O_RDONLY)
os.unlink(sys.argv[1])
print("ready", flush=True)
sys.stdin.read()
"""
OWN_TABLE = """
import ctypes, os, sys, threading
def hold():
    assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES
    os.open("/dev/full", os.O_RDONLY)
    print("ready", flush=True)
    threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
sys.stdin.read()
"""
ENDED_MAIN = """
import ctypes, os, sys, threading, time
held = os.open("/dev/full", os.O_RDONLY)
def say():
    while "Z" not in open(f"/proc/self/task/{os.getpid()}/stat").read().rpartition(")")[2]:
        time.sleep(0.01)
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Thread(target=say).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)  # exit(2): this thread alone
"""


class Only(Reader):
    """Sees one process: a sandbox does not let even root look at all of them."""

    def __init__(self, pid):
        super().__init__()
        self.pid = str(pid)

    def names(self, path):
        return (self.pid,) if path == "/proc" else super().names(path)


@pytest.mark.process
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device files")
@pytest.mark.parametrize("program", [ANOTHER_NAME, OWN_TABLE, ENDED_MAIN], ids=["name", "table", "ended"])
def test_real_processes_are_seen(program, tmp_path):
    argv = [sys.executable, "-c", program, str(tmp_path / "node")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            found = holders(Only(process.pid), [FULL])
            assert [held.pid for held in found[FULL]] == [str(process.pid)]
        finally:
            process.kill()


def test_a_real_file_s_number_and_owner():
    reader = Reader()
    assert reader.stat("/dev/null").number == "1:3"
    assert reader.stat("/").number == ""
    assert reader.stat("/nothing/there") is ABSENT
    assert reader.same_files(str(os.getpid()), str(os.getpid()))
