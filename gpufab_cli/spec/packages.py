"""What a profile may say of installed packages: its RDMA stack, and NCCL."""

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from gpufab_cli.module_utils.packages.want import (
    ArmouredKey,
    Component,
    Cuda,
    Fingerprint,
    Modules,
    Proxy,
    Source,
    Stack,
    Suite,
    Url,
    Version,
)
from gpufab_cli.module_utils.packages.want import Profile as DocaProfile
from gpufab_cli.spec.base import Model
from gpufab_cli.spec.faults import Fault, raise_any
from gpufab_cli.spec.openpgp import KeyFormatError, fingerprints


def _bare(value: Any) -> Any:
    """A fingerprint as tools print it, in groups and perhaps in lower case."""
    return "".join(value.split()).upper() if isinstance(value, str) else value


class Repository(Model):
    """Where packages come from. Its key is the only one that is trusted for it, and it for nothing else."""

    url: Url
    """Where it is. {version} is the declared one, {platform} ubuntu2404, {release} ubuntu24.04, {arch} x86_64, sbsa."""
    key: ArmouredKey
    """The public key that it is signed with, ASCII-armoured, as a block of text."""
    fingerprint: Annotated[Fingerprint, BeforeValidator(_bare)]
    """The key's fingerprint, from a source that you trust."""
    suite: Suite = "./"
    """Suite of an APT repository; ./ for a flat one, as vendors have."""
    components: tuple[Component, ...] = ()
    """Components of an APT repository; none of a flat one."""
    proxy: Proxy | None = None
    """Proxy that it is reached through."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(_repository_faults(self))
        return self


class Rdma(Model):
    """The RDMA stack. A vendor's is installed in one version, pinned and held with all that comes with it."""

    stack: Stack
    """doca-ofed, mlnx-ofed (24.10 LTS was its last line), or inbox, the distribution's own."""
    version: Version | None = None
    """Version of a vendor's stack: 3.2.0 is package version 3.2.0 in any revision, one with a dash just that."""
    profile: DocaProfile | None = None
    """How much of doca-ofed; doca-ofed if left out."""
    modules: Modules | None = None
    """How a vendor's kernel modules come: dkms, built on the node, which needs its kernel's headers, or prebuilt; dkms
    if left out."""
    kernel_support: bool = False
    """Install doca-kernel-support too, which builds packages for kernels that the repository has no modules for."""
    firmware_updater: bool = False
    """Let mlnx-fw-updater in, which burns the firmware of every card while it is installed."""
    repository: Repository | None = None
    """Where a vendor's stack comes from; the node's own sources offer it if left out."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(_rdma_faults(self))
        return self


class Nccl(Model):
    """NCCL as the system has it: library and headers, always of one version and one CUDA."""

    source: Source = "vendor"
    """vendor, or distribution for the distribution's own libnccl2."""
    version: Version | None = None
    """Its version, such as 2.27.5; the distribution's may be left to the distribution."""
    cuda: Cuda | None = None
    """The CUDA version that the vendor's is built for, such as "12.9"."""
    dev: bool = True
    """Install the headers too."""
    tests: bool = False
    """Install the package nccl-tests too."""
    repository: Repository | None = None
    """Where the vendor's comes from; the node's own sources offer it if left out."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(_nccl_faults(self))
        return self


def _repository_faults(repository: Repository) -> Iterator[Fault]:
    try:
        found = fingerprints(repository.key)
    except KeyFormatError as error:
        yield Fault(("key",), f"not a public key: {error}", "gpg --armor --export FINGERPRINT prints one")
        return
    if len(found) != 1:
        yield Fault(("key",), f"{len(found)} keys, one is wanted", "export the one that the repository is signed with")
    elif found[0] != repository.fingerprint:
        yield Fault(
            ("fingerprint",), f"the key's is {found[0]}", "either the key or the fingerprint is not the vendor's"
        )
    if (repository.suite.endswith("/")) == bool(repository.components):
        flat = repository.suite.endswith("/")
        yield Fault(
            ("components",), "a flat repository has none" if flat else f"none of suite {repository.suite} is named"
        )


_VENDOR_ONLY = ("version", "profile", "modules", "repository", "kernel_support", "firmware_updater")


def _rdma_faults(rdma: Rdma) -> Iterator[Fault]:
    if rdma.stack == "inbox":
        for key in _VENDOR_ONLY:
            if getattr(rdma, key):
                yield Fault((key,), "inbox is the distribution's own, in its own version", "leave it out")
        return
    if rdma.version is None:
        yield Fault(("version",), f"{rdma.stack} needs one", "an unpinned stack changes under a running cluster")
    if rdma.stack != "doca-ofed":
        for key in ("profile", "kernel_support"):
            if getattr(rdma, key):
                yield Fault((key,), f"{rdma.stack} has none", "it is doca-ofed's; leave it out")


def _nccl_faults(nccl: Nccl) -> Iterator[Fault]:
    if nccl.source == "distribution":
        for key in ("cuda", "repository"):
            if getattr(nccl, key) is not None:
                yield Fault((key,), "the distribution's NCCL has none", "leave it out, or say source: vendor")
        return
    for key in ("version", "cuda"):
        if getattr(nccl, key) is None:
            hint = "one repository holds builds for several CUDAs, and the newest is rarely the driver's"
            yield Fault((key,), "the vendor's NCCL needs one", hint)
