"""Who in the kernel uses RDMA devices: storage, file systems and sockets that no process holds a device open for.

Where it can be told over which ports one works, only these are in use; else any port of the node may be. The count of
a module's users (/sys/module/NAME/refcnt) finds those that nothing else shows, in every namespace.
"""

import re
from dataclasses import dataclass
from typing import Dict, FrozenSet, Iterator, List, Optional, Tuple, Union

from .change import Unknown
from .device_files import last_function
from .host import Reader
from .management import addresses, canonical, lower_netdevs, routed
from .processes import Connection, connections
from .texts import natural

MODULES = "/sys/module"
INFINIBAND = "/sys/class/infiniband"
NET = "/sys/class/net"
IPOIB = "32"  # ARPHRD_INFINIBAND of linux/if_arp.h
WORDS = {
    "rds_rdma": "RDS",
    "smc": "SMC",
    "rpcrdma": "NFS over RDMA",
    "xprtrdma": "NFS over RDMA",
    "svcrdma": "the NFS server over RDMA",
    "ko2iblnd": "Lustre (o2iblnd)",
    "ib_isert": "an iSER target",
    "ib_srpt": "an SRP target",
    "nvmet_rdma": "an NVMe target over RDMA",
}
_CORE = ("ib_core", "ib_uverbs", "ib_umad", "ib_ucm", "rdma_ucm", "rdma_cm", "iw_cm", "ib_cm", "ib_sa", "ib_addr")
_AROUND = (
    "ib_ipoib",
    "mlx_compat",
    "smc_diag",
    "nvidia_peermem",
    "nv_peer_mem",
    "ib_peer_mem",
    "gdrdrv",
    "knem",
    "xpmem",
)
_DRIVERS = ("mlx4_ib", "mlx5_ib", "bnxt_re", "rdma_rxe", "siw", "rdmavt", "hfi1", "iw_cxgb4", "ocrdma", "ib_mthca")
_SHOWN = ("ib_srp", "ib_iser", "nvme_rdma", "cifs")
NO_USERS = frozenset((*_CORE, *_AROUND, *_DRIVERS, *_SHOWN))
"""Modules on ib_core and rdma_cm whose count says nothing: its own parts, drivers, and those whose sessions show."""


@dataclass(frozen=True)
class KernelUser:
    """One of them, in words; the PCI functions it works over, None where that cannot be told.

    ``module`` is the one whose count it accounts for.
    """

    words: str
    functions: Optional[FrozenSet[str]] = None
    module: str = ""


class _BlindError(Exception):
    """Something could not be looked at."""

    def __init__(self, unknown: Unknown) -> None:
        super().__init__(unknown.reason)
        self.unknown = unknown


def find(host: Reader) -> Union[Tuple[KernelUser, ...], Unknown]:
    """All of them; Unknown where one could hide in what cannot be read."""
    if not host.exists(f"{MODULES}/ib_core"):
        return ()
    try:
        found = tuple(_Look(host).all())
    except _BlindError as error:
        return error.unknown
    return tuple(dict.fromkeys(found))


class _Look:
    """One look at a node."""

    def __init__(self, host: Reader) -> None:
        self._host = host
        self._own: Optional[Dict[str, str]] = None

    def all(self) -> Iterator[KernelUser]:
        """What shows by itself, then what only its module's count shows."""
        told: List[KernelUser] = []
        for look in (
            self._srp,
            self._iser,
            self._nvme,
            self._nvmet,
            self._mounts,
            self._nfsd,
            self._lustre,
            self._ipoib,
        ):
            told += look()
        yield from told
        accounted = {user.module for user in told}
        for module in self._modules():
            count = self._count(module) if module not in accounted else 0
            if count:
                yield KernelUser(f"{WORDS.get(module, f'kernel module {module}')} is in use ({count})")

    def _names(self, path: str) -> Tuple[str, ...]:
        names = self._host.names(path)
        if isinstance(names, Unknown):
            raise _BlindError(names)
        return names if isinstance(names, tuple) else ()

    def _read(self, path: str) -> str:
        text = self._host.read(path)
        if isinstance(text, Unknown):
            raise _BlindError(text)
        return text if isinstance(text, str) else ""

    def _modules(self) -> Tuple[str, ...]:
        """The modules that use ib_core or rdma_cm and may have users of their own; a driver has none."""
        both = {*self._names(f"{MODULES}/ib_core/holders"), *self._names(f"{MODULES}/rdma_cm/holders")}
        loaded = {name for name in WORDS if self._host.exists(f"{MODULES}/{name}")}
        maybe = sorted((both | loaded) - NO_USERS)
        return tuple(name for name in maybe if not self._names(f"{MODULES}/{name}/drivers"))

    def _count(self, module: str) -> int:
        """How many use a module, the modules that build on it aside. A kernel that unloads none does not count."""
        count = natural(self._read(f"{MODULES}/{module}/refcnt") or "0")
        if count is None:
            raise _BlindError(Unknown(f"{MODULES}/{module}/refcnt: no number"))
        return max(0, count - len(self._names(f"{MODULES}/{module}/holders")))

    def _srp(self) -> Iterator[KernelUser]:
        """A SCSI host of ib_srp names its RDMA device (drivers/infiniband/ulp/srp)."""
        for name in self._names("/sys/class/scsi_host"):
            device = self._read(f"/sys/class/scsi_host/{name}/local_ib_device")
            if device:
                link = self._host.link(f"{INFINIBAND}/{device}")
                yield KernelUser(f"SRP over {device}", last_function(link) or None)

    def _iser(self) -> Iterator[KernelUser]:
        """iSER makes its SCSI host below the RDMA device's function; one of iSCSI over TCP is below none."""
        for name in self._names("/sys/class/iscsi_session"):
            functions = last_function(self._host.link(f"/sys/class/iscsi_session/{name}"))
            if functions:
                yield KernelUser(f"an iSER session ({name})", functions)

    def _nvme(self) -> Iterator[KernelUser]:
        for name in self._names("/sys/class/nvme"):
            if self._read(f"/sys/class/nvme/{name}/transport") == "rdma":
                said = dict(re.findall(r"(\w+)=([^,]+)", self._read(f"/sys/class/nvme/{name}/address")))
                own = said.get("src_addr") or said.get("host_traddr")
                functions = self._at(own) if own else self._to(said.get("traddr", ""))
                yield KernelUser(f"NVMe over RDMA ({name})", functions)

    def _nvmet(self) -> Iterator[KernelUser]:
        """A port of the target works once a subsystem is linked to it (drivers/nvme/target/configfs.c)."""
        for port in self._names("/sys/kernel/config/nvmet/ports"):
            folder = f"/sys/kernel/config/nvmet/ports/{port}"
            if self._read(f"{folder}/addr_trtype") == "rdma" and self._names(f"{folder}/subsystems"):
                functions = self._at(self._read(f"{folder}/addr_traddr"))
                yield KernelUser(f"an NVMe target over RDMA (port {port})", functions, "nvmet_rdma")

    def _mounts(self) -> Iterator[KernelUser]:
        """NFS and SMB mounts over RDMA, in every mount namespace."""
        for text in self._mount_tables():
            for line in text.splitlines():
                _, target, kind, options = [*line.split(" "), "", "", "", ""][:4]
                words = options.split(",")
                if (kind in ("nfs", "nfs4") and "proto=rdma" in words) or (
                    kind in ("cifs", "smb3") and "rdma" in words
                ):
                    address = next((word[5:] for word in words if word.startswith("addr=")), "")
                    module = "rpcrdma" if kind.startswith("nfs") else ""
                    yield KernelUser(f"{target} is mounted over RDMA", self._to(address), module)

    def _mount_tables(self) -> Iterator[str]:
        seen = {self._host.link("/proc/self/ns/mnt")}
        yield self._read("/proc/self/mounts")
        for pid in filter(str.isdigit, self._names("/proc")):
            namespace = self._host.link(f"/proc/{pid}/ns/mnt")
            if isinstance(namespace, Unknown):
                raise _BlindError(namespace)
            if isinstance(namespace, str) and namespace not in seen:
                seen.add(namespace)
                table = self._host.read(f"/proc/{pid}/mounts")  # EINVAL: a process on its way out has none
                yield table if isinstance(table, str) else ""

    def _nfsd(self) -> Iterator[KernelUser]:
        if re.search(r"^rdma\d? ", self._read("/proc/fs/nfsd/portlist"), re.MULTILINE):
            yield KernelUser("the NFS server listens over RDMA", None, "rpcrdma")

    def _lustre(self) -> Iterator[KernelUser]:
        """LNet's own identifiers, such as 10.0.0.1@o2ib. Where they cannot be read the module's count tells."""
        tables = (self._host.read(f"{folder}/nis") for folder in ("/sys/kernel/debug/lnet", "/proc/sys/lnet"))
        table = next((text for text in tables if isinstance(text, str)), "")
        for address, net in re.findall(r"^([0-9a-fA-F.:]+)@(o2ib\d*)\s", table, re.MULTILINE):
            yield KernelUser(f"Lustre at {address}@{net}", self._at(address), "ko2iblnd")

    def _ipoib(self) -> Iterator[KernelUser]:
        """Connections over IPoIB. Its interfaces are up with an address on every InfiniBand node, used or not."""
        netdevs = [name for name in self._names(NET) if self._host.read(f"{NET}/{name}/type") == IPOIB]
        local = {canonical(found.local) for found in self._connections()} if netdevs else set()
        busy = {netdev for address, netdev in self._addresses().items() if address in local} if netdevs else set()
        for netdev in sorted(busy & set(netdevs)):
            yield KernelUser(f"connections over {netdev} (IPoIB)", self._below(netdev))

    def _connections(self) -> Tuple[Connection, ...]:
        found = connections(self._host)
        if isinstance(found, Unknown):
            raise _BlindError(found)
        return found

    def _addresses(self) -> Dict[str, str]:
        """The netdev of each of the node's own addresses."""
        if self._own is None:
            found = addresses(self._host)
            if isinstance(found, Unknown):
                raise _BlindError(found)
            self._own = {canonical(text.partition("/")[0]): netdev for netdev, texts in found.items() for text in texts}
        return self._own

    def _at(self, address: str) -> Optional[FrozenSet[str]]:
        """The functions below the netdev that has an address."""
        netdev = self._addresses().get(canonical(address))
        return self._below(netdev) if netdev else None

    def _to(self, address: str) -> Optional[FrozenSet[str]]:
        """The functions below the netdev on the way to an address."""
        if not re.fullmatch(r"[0-9a-fA-F.:]{2,45}", address):
            return None
        netdevs = routed(self._host, address)
        found = [] if isinstance(netdevs, Unknown) else [self._below(netdev) for netdev in netdevs]
        known = frozenset(pci for functions in found if functions for pci in functions)
        return known if found and all(found) else None

    def _below(self, netdev: str) -> Optional[FrozenSet[str]]:
        """The functions at the bottom of a netdev; None of one that has none, such as lo."""
        queue, seen = [netdev], {netdev}
        found: FrozenSet[str] = frozenset()
        while queue:
            name = queue.pop()
            # A subfunction's device is no PCI function; the interface's own place in sysfs is below one.
            found |= last_function(self._host.link(f"{NET}/{name}/device")) or last_function(
                self._host.link(f"{NET}/{name}")
            )
            for below in lower_netdevs(self._host, name):
                if below not in seen:
                    seen.add(below)
                    queue.append(below)
        return frozenset(found) or None
