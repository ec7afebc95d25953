"""Storage, file systems and sockets of the kernel that use RDMA devices, and over which ports."""

import pytest

from gpufab_cli.module_utils import idle
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.kernel_users import find
from tests.fakes import FakeHost, ok

PCI, OTHER = "0000:18:00.0", "0000:9a:00.0"
MODULES = "/sys/module"
NVMET = "/sys/kernel/config/nvmet/ports/1"
TCP = "head\n   0: 01000A0A:9C40 09000A0A:0016 01 00000000:00000000 00:00000000 00000000     0        0 500 1\n"


def machine(files=None, links=None):
    """A port with an address and the modules of an RDMA stack that nobody uses."""
    quiet = {f"{MODULES}/{name}/refcnt": "1\n" for name in ("ib_core", "mlx5_ib", "ib_uverbs")}
    host = FakeHost({**quiet, "/proc/self/mounts": "/dev/sda / ext4 rw 0 0\n", **(files or {})}, links)
    host.links |= {
        "/sys/class/net/rail0/device": f"../../../{PCI}",
        "/sys/class/infiniband/mlx5_0": f"../{PCI}/x/mlx5_0",
    }
    host.files |= {"/sys/module/ib_core/holders/mlx5_ib/x": "", "/sys/module/rdma_cm/holders/ib_uverbs/x": ""}
    addresses = [
        {"ifname": "lo", "addr_info": []},
        {"ifname": "rail0", "addr_info": [{"local": "10.10.0.1", "prefixlen": 24}]},
    ]
    host.answers["ip", "-j", "addr", "show"] = ok(addresses)
    host.answers["ip", "-j", "route", "get", "10.10.0.9"] = ok([{"dst": "10.10.0.9", "dev": "rail0"}])
    return host


def test_a_quiet_stack_has_no_users():
    assert find(machine()) == ()
    assert find(FakeHost()) == ()


def uses(name, count="1"):
    return {f"{MODULES}/{name}/refcnt": f"{count}\n", f"{MODULES}/ib_core/holders/{name}/x": ""}


NFS = "10.10.0.9:/x /data nfs4 rw,vers=4.2,proto=rdma,port=20049,addr=10.10.0.9 0 0\n"


@pytest.mark.parametrize(
    ("files", "links", "words", "here"),
    [
        pytest.param({"/sys/class/scsi_host/host3/local_ib_device": "mlx5_0\n"}, {}, "SRP over mlx5_0", True, id="SRP"),
        pytest.param(
            {},
            {"/sys/class/iscsi_session/session1": f"../../devices/pci0000:17/{PCI}/host5/session1"},
            "an iSER session (session1)",
            True,
            id="iSER",
        ),
        pytest.param(
            {
                "/sys/class/nvme/nvme0/transport": "rdma\n",
                "/sys/class/nvme/nvme0/address": "traddr=10.10.0.9,trsvcid=4420\n",
            },
            {},
            "NVMe over RDMA (nvme0)",
            True,
            id="NVMe",
        ),
        pytest.param(
            {f"{NVMET}/addr_trtype": "rdma\n", f"{NVMET}/addr_traddr": "10.10.0.1\n", f"{NVMET}/subsystems/a": ""},
            {},
            "an NVMe target over RDMA (port 1)",
            True,
            id="NVMe target",
        ),
        pytest.param(
            {f"{NVMET}/addr_trtype": "rdma\n", f"{NVMET}/addr_traddr": "0.0.0.0\n", f"{NVMET}/subsystems/a": ""},
            {},
            "an NVMe target over RDMA (port 1)",
            False,
            id="NVMe target on all",
        ),
        pytest.param({"/proc/self/mounts": NFS}, {}, "/data is mounted over RDMA", True, id="NFS"),
        pytest.param(
            {"/proc/9/comm": "pod\n", "/proc/9/mounts": NFS},
            {"/proc/9/ns/mnt": "mnt:[7]", "/proc/self/ns/mnt": "mnt:[1]"},
            "/data is mounted over RDMA",
            True,
            id="NFS in a container",
        ),
        pytest.param(
            {"/proc/fs/nfsd/portlist": "rdma 20049\ntcp 2049\n"},
            {},
            "the NFS server listens over RDMA",
            False,
            id="nfsd",
        ),
        pytest.param(
            {"/sys/kernel/debug/lnet/nis": "nid status\n10.10.0.1@o2ib up -1\n", **uses("ko2iblnd", "2")},
            {},
            "Lustre at 10.10.0.1@o2ib",
            True,
            id="Lustre",
        ),
        pytest.param(uses("ko2iblnd", "2"), {}, "Lustre (o2iblnd) is in use (2)", False, id="Lustre, untold"),
        pytest.param(uses("smc"), {}, "SMC is in use (1)", False, id="SMC"),
        pytest.param(uses("rds_rdma", "3"), {}, "RDS is in use (3)", False, id="RDS"),
        pytest.param(uses("ib_isert"), {}, "an iSER target is in use (1)", False, id="iSER target"),
        pytest.param(uses("beegfs"), {}, "kernel module beegfs is in use (1)", False, id="any other"),
        pytest.param(
            {"/sys/class/net/rail0/type": "32\n", "/proc/net/tcp": TCP},
            {},
            "connections over rail0 (IPoIB)",
            True,
            id="IPoIB",
        ),
    ],
)
def test_a_user_is_named_and_its_port_where_that_can_be_told(files, links, words, here):
    host = machine(files, links)
    (user,) = find(host)
    assert user.words == words
    assert user.functions == (frozenset({PCI}) if here else None)
    assert idle.device_users(host, PCI) == (words,)
    assert idle.device_users(host, OTHER) == (() if here else (words,))


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({**uses("smc"), f"{MODULES}/smc/holders/smc_diag": ""}, id="a module that builds on it"),
        pytest.param({**uses("irdma"), f"{MODULES}/irdma/drivers/auxiliary:x": ""}, id="a driver"),
        pytest.param({"/sys/class/nvme/nvme0/transport": "pcie\n"}, id="a local disk"),
        pytest.param({f"{NVMET}/addr_trtype": "rdma\n"}, id="a target's port without a subsystem"),
        pytest.param({"/proc/self/mounts": NFS.replace("rdma", "tcp")}, id="NFS over TCP"),
        pytest.param({"/sys/class/net/rail0/type": "32\n"}, id="IPoIB that nobody uses"),
        pytest.param({"/proc/net/tcp": TCP}, id="connections over Ethernet"),
    ],
)
def test_what_uses_no_rdma_device_is_not_named(files):
    assert find(machine(files)) == ()


@pytest.mark.parametrize("path", ["/sys/module/ib_core/holders", "/proc/self/mounts", "/proc/fs/nfsd/portlist"])
def test_what_cannot_be_read_is_not_idle(path):
    host = machine()
    host.unreadable[path] = "Permission denied"
    assert isinstance(find(host), Unknown)
    assert isinstance(idle.device_users(host, PCI), Unknown)
