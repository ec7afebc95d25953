"""The packages of one host: what its profile says, as the node core takes it. What they are called the node decides."""

from gpufab_cli.fabric.model import Resolved, ResolvedHost
from gpufab_cli.module_utils.packages.want import NcclWant, OfedWant, RepositoryWant
from gpufab_cli.spec.packages import Repository


def ofed_want(_: Resolved, host: ResolvedHost) -> OfedWant | None:
    """The RDMA stack of a host; None where its profile says nothing of one."""
    rdma = host.profile.rdma
    if rdma is None:
        return None
    return OfedWant(
        stack=rdma.stack,
        version=rdma.version,
        profile=(rdma.profile or "doca-ofed") if rdma.stack == "doca-ofed" else None,
        modules=rdma.modules or "dkms",
        kernel_support=rdma.kernel_support,
        firmware_updater=rdma.firmware_updater,
        repository=_repository(rdma.repository, rdma.version),
    )


def nccl_want(_: Resolved, host: ResolvedHost) -> NcclWant | None:
    """NCCL on a host; None where its profile says nothing of it."""
    nccl = host.profile.nccl
    if nccl is None:
        return None
    repository = _repository(nccl.repository, nccl.version)
    return NcclWant(nccl.source, nccl.version, nccl.cuda, nccl.dev, nccl.tests, repository)


def _repository(repository: Repository | None, version: str | None) -> RepositoryWant | None:
    if repository is None:
        return None
    return RepositoryWant(
        url=repository.url.replace("{version}", version or ""),
        key=repository.key.strip(),
        fingerprint=repository.fingerprint,
        suite=repository.suite,
        components=repository.components,
        proxy=repository.proxy,
    )
