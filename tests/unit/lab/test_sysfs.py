"""The /sys tree: what is there, what it reads, what writing does."""

import errno
import json
import os
import posixpath

import pytest

from gpufab_cli.lab.hardware.state import Fault
from gpufab_cli.lab.hardware.sysfs import system
from gpufab_cli.lab.hardware.sysfs.mount import Sysfs, build
from gpufab_cli.lab.hardware.sysfs.tree import Binary, Directory, File, Link
from tests.unit.lab.conftest import PORT, whole

CPUIDLE = "/devices/system/cpu/cpu7/cpuidle"


def names(sysfs, path):
    entries = list(sysfs.readdir(path, 0))
    assert all(attributes["st_ino"] for _, attributes, _ in entries)
    return [name for name, *_ in entries]


@pytest.fixture
def sysfs(running, monkeypatch):
    monkeypatch.setattr("gpufab_cli.lab.hardware.sysfs.mount._writer_lives", lambda: lambda: True)
    return Sysfs(running)


def _resolve(tree, path):
    """Follows links as the kernel would."""
    done = "/"
    for name in path.strip("/").split("/"):
        done = posixpath.normpath(posixpath.join(done, name))
        while isinstance(entry := tree.get(done), Link):
            done = _resolve(tree, posixpath.normpath(posixpath.join(posixpath.dirname(done), entry.target)))
    return done


def _read(sysfs, path):
    return sysfs.read(_resolve(sysfs._fresh(live=True), path), 4096, 0, 0).decode()


def _write(sysfs, path, text):
    path = _resolve(sysfs._fresh(live=True), path)
    sysfs.open(path, os.O_WRONLY | os.O_TRUNC)
    sysfs.truncate(path, 0)
    return sysfs.write(path, text.encode(), 0, 0)


def test_every_link_leads_somewhere(running):
    tree = build(running)
    # subsystem links of classes end in directories, all others in devices
    for path, entry in whole(tree).items():
        if isinstance(entry, Link) and not path.endswith("/module"):
            assert isinstance(tree.get(_resolve(tree, path)), Directory), path


def test_every_name_in_a_directory_is_an_entry_and_of_one_kind(running):
    entries = whole(build(running))  # which gets each name
    assert {type(entry) for entry in entries.values()} == {Directory, File, Binary, Link}


def test_what_is_filled_later_is_there_whatever_is_asked_first(running):
    for path in (f"{CPUIDLE}/state0/name", f"{CPUIDLE}/state0", CPUIDLE):
        assert build(running).find(path)
    assert build(running).get(CPUIDLE).names == ["state0", "state1", "state2", "state3"]
    assert build(running).get(f"{CPUIDLE}/state1").names == ["name", "latency", "disable"]
    assert build(running).find(f"{CPUIDLE}/state9") is None


def test_what_reads_reads(running):
    for path, entry in whole(build(running)).items():
        if isinstance(entry, File) and "/gid_attrs/" not in path:
            assert isinstance(entry.read(), str), path


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (f"/class/net/{PORT}/mtu", "9000\n"),
        (f"/class/net/{PORT}/operstate", "up\n"),
        (f"/class/net/{PORT}/carrier", "1\n"),
        (f"/class/net/{PORT}/speed", "400000\n"),
        (f"/class/net/{PORT}/device/numa_node", "0\n"),
        (f"/class/net/{PORT}/device/vendor", "0x15b3\n"),
        (f"/class/net/{PORT}/ecn/roce_np/cnp_dscp", "48\n"),
        (f"/class/net/{PORT}/ecn/roce_rp/enable/3", "1\n"),
        ("/class/net/lo/operstate", "unknown\n"),
        ("/bus/pci/devices/0000:df:00.0/device", "0x2330\n"),
        ("/class/infiniband/mlx5_0/ports/1/gids/0", "fe80:0000:0000:0000:0000:0000:0000:0001\n"),
        ("/class/infiniband/mlx5_0/ports/1/gids/3", "0000:0000:0000:0000:0000:ffff:0a0a:0001\n"),
        ("/class/infiniband/mlx5_0/ports/1/gid_attrs/types/2", "IB/RoCE v1\n"),
        ("/class/infiniband/mlx5_0/ports/1/gid_attrs/types/3", "RoCE v2\n"),
        ("/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/3", f"{PORT}\n"),
        ("/class/infiniband/mlx5_0/tc/1/traffic_class", ""),
        ("/devices/system/node/node1/cpulist", "56-111,168-223\n"),
    ],
)
def test_readings(sysfs, path, text):
    assert _read(sysfs, path) == text


CPUS = ("/devices/system/node/node1/cpulist", "/devices/system/node/node0/cpumap")
CPUS += ("/devices/system/cpu/cpu0/topology/thread_siblings_list",)


@pytest.mark.parametrize("path", CPUS)
def test_a_list_of_cpus_is_at_its_end_for_a_read_of_one_byte(sysfs, path):
    """drivers/base/node.c counts the NUL behind the text: a read gives a byte less than was asked for."""
    whole = _read(sysfs, path).encode()
    assert sysfs.read(path, 1, 0, 0) == b""
    assert sysfs.read(path, 2, 0, 0) == whole[:1]
    assert sysfs.read(path, 2, 1, 0) == whole[1:2]
    assert sysfs.read(path, 4096, len(whole), 0) == b""
    assert sysfs.read("/devices/system/node/online", 1, 0, 0) == b"0"


def test_a_port_without_carrier(sysfs):
    sysfs._hw.node.without_carrier.add(PORT)
    assert _read(sysfs, f"/class/net/{PORT}/operstate") == "down\n"
    assert _read(sysfs, f"/class/net/{PORT}/speed") == "-1\n"
    assert _read(sysfs, "/class/infiniband/mlx5_0/ports/1/state") == "1: DOWN\n"


def test_carrier_of_a_port_set_down_cannot_be_read(sysfs):
    sysfs._hw.node.down.add(PORT)
    with pytest.raises(OSError, match="Invalid"):
        _read(sysfs, f"/class/net/{PORT}/carrier")


ECN = f"/class/net/{PORT}/ecn"
TCLASS = "/class/infiniband/mlx5_0/tc/1/traffic_class"


@pytest.mark.parametrize(
    ("path", "written", "read"),
    [
        (f"{ECN}/roce_np/enable/3", "0\n", "0\n"),
        (f"{ECN}/roce_np/cnp_dscp", "63", "63\n"),
        (f"{ECN}/roce_rp/rpg_max_rate", "0", "0\n"),
        (TCLASS, "106\n", "Global tclass=106\n"),
        (TCLASS, "tclass=0", "Global tclass=0\n"),
        (TCLASS, "-1", ""),
        (f"/class/net/{PORT}/mtu", "1500\n", "1500\n"),
    ],
)
def test_settings(sysfs, path, written, read):
    assert _write(sysfs, path, written) == len(written)
    assert _read(sysfs, path) == read


@pytest.mark.parametrize(
    ("path", "written", "code"),
    [
        (f"{ECN}/roce_np/cnp_dscp", "64", errno.EINVAL),
        (f"{ECN}/roce_np/cnp_802p_prio", "8", errno.EINVAL),
        (f"{ECN}/roce_np/enable/3", "on", errno.EINVAL),
        (f"{ECN}/roce_np/enable/3", "", errno.EINVAL),
        (TCLASS, "256", errno.EINVAL),
        (f"/class/net/{PORT}/address", "1", errno.EACCES),
        (f"/class/net/{PORT}/device/sriov_numvfs", "17", errno.ERANGE),
        (f"/class/net/{PORT}/device/sriov_numvfs", "x", errno.EINVAL),
    ],
)
def test_refusals(sysfs, path, written, code):
    with pytest.raises(OSError, match=os.strerror(code)):
        _write(sysfs, path, written)


def test_nothing_is_made_or_removed_in_sysfs(sysfs):
    for act, code in (
        (lambda: sysfs.create("/class/net/new", 0o644), errno.EACCES),
        (lambda: sysfs.mkdir("/class/new", 0o755), errno.EPERM),
        (lambda: sysfs.rmdir("/class/net"), errno.EPERM),
        (lambda: sysfs.unlink("/class/net/lo"), errno.EPERM),
        (lambda: sysfs.getattr("/class/new"), errno.ENOENT),
    ):
        with pytest.raises(OSError, match=os.strerror(code)):
            act()


CM = "/kernel/config/rdma_cm"


def test_configfs_directories_are_views(sysfs):
    sysfs.mkdir(f"{CM}/mlx5_0", 0o755)
    _write(sysfs, f"{CM}/mlx5_0/ports/1/default_roce_tos", "106\n")
    sysfs.rmdir(f"{CM}/mlx5_0")
    assert names(sysfs, CM) == [".", ".."]
    sysfs.mkdir(f"{CM}/mlx5_0", 0o755)
    assert _read(sysfs, f"{CM}/mlx5_0/ports/1/default_roce_tos") == "106\n"
    assert _read(sysfs, f"{CM}/mlx5_0/ports/1/default_roce_mode") == "RoCE v2\n"


def test_configfs_knows_no_other_devices(sysfs):
    with pytest.raises(OSError, match="No such device"):
        sysfs.mkdir(f"{CM}/mlx5_9", 0o755)


@pytest.mark.parametrize(
    ("name", "written", "code"),
    [
        ("default_roce_tos", "256", errno.ERANGE),
        ("default_roce_tos", "x", errno.EINVAL),
        ("default_roce_mode", "RoCE v3", errno.EINVAL),
    ],
)
def test_configfs_refusals(sysfs, name, written, code):
    sysfs.mkdir(f"{CM}/mlx5_0", 0o755)
    with pytest.raises(OSError, match=os.strerror(code)):
        _write(sysfs, f"{CM}/mlx5_0/ports/1/{name}", written)


def test_faults_take_files_away(sysfs):
    sysfs._hw.set_fault(Fault("no-ecn-sysfs"))
    sysfs._hw.set_fault(Fault("no-rdma-cm"))
    for path in (f"{ECN}/roce_np", TCLASS, CM, "/module/rdma_cm"):
        with pytest.raises(OSError, match="No such file"):
            sysfs.getattr(_resolve(sysfs._fresh(live=True), path))


def test_interfaces_come_and_go(sysfs):
    sysfs._hw.node.interfaces["br0"] = (1, "0a:00:00:00:00:02")
    assert "br0" in names(sysfs, "/class/net")
    assert sysfs.readlink("/class/net/br0") == "../../devices/virtual/net/br0"
    del sysfs._hw.node.interfaces["br0"]
    with pytest.raises(OSError, match="No such file"):
        sysfs.getattr("/class/net/br0")


def test_a_node_that_is_down_has_no_interfaces(sysfs):
    sysfs._hw.node = None
    sysfs._hw.restructure()
    assert names(sysfs, "/class/net") == [".", ".."]


def test_writes_are_logged_and_reads_are_not(sysfs):
    _read(sysfs, f"{ECN}/roce_np/cnp_dscp")
    assert not sysfs._hw.writes._path.exists()
    _write(sysfs, f"{ECN}/roce_np/cnp_dscp", "48\n")
    entry = json.loads(sysfs._hw.writes._path.read_text())
    assert entry["target"].endswith(f"/net/{PORT}/ecn/roce_np/cnp_dscp")
    assert entry["value"] == "48"


def test_cpu_lists():
    assert system.cpus("0-2,8") == [0, 1, 2, 8]
    assert system.cpu_mask("0-3,32") == "00000001,0000000f"
