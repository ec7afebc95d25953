"""The packages of each repository. Versions are of the form the vendors use; which goes with which is made up."""

from tests.standins.package import MARKS, Package, mark

# DOCA-Host release: revision of its metapackages, OFED, rdma-core.
_DOCA = {
    "3.1.0": ("091000", "25.07-0.9.7.0", "2507mlnx58-1.2507097"),
    "3.2.0": ("125000", "25.10-1.2.2.0", "2510mlnx60-1.2510122"),
    "3.3.0": ("001000", "26.01-0.8.9.0", "2601mlnx62-1.2601089"),
}
_BROKEN_DOCA = "3.3.0"
_MLNX_OFED = ("24.10-2.1.8.0", "2410mlnx54-1.2410218")
_NCCL = {"2.27.5-1": ("12.9", "13.0"), "2.28.3-1": ("12.9", "13.0")}
_TOO_BIG_KIB = 900 << 20  # of 900 GiB

_RESTARTS = """systemctl daemon-reload || :
[ ! -x /usr/sbin/invoke-rc.d ] || invoke-rc.d openibd restart || :
systemctl restart openibd.service || :
"""
_UNLOADS = """modprobe -r mlx5_core 2>/dev/null || echo "modprobe: FATAL: Module mlx5_core is in use." >&2
! command -v update-initramfs >/dev/null || update-initramfs -u || echo "the initramfs could not be made" >&2
"""
_OPENIBD = f"""[Unit]
Description=A stand-in for openibd: leaves a mark when it is started
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'date >>{MARKS}/openibd-started'
"""
_USERLAND = ("rdma-core", "libibverbs1", "librdmacm1", "ibverbs-utils", "rdmacm-utils", "infiniband-diags")
_TOOLS = ("perftest", "mstflint")


_BOOKS = "/var/lib/dkms/mlnx-ofed-kernel /var/lib/dkms/mlnx-ofa_kernel"  # as it is called in either format


def _builds(ofed: str) -> str:
    """What a DKMS package does when it is installed: puts a module where DKMS would, notes it, and tries to load it."""
    return f"""modules=/lib/modules/$(uname -r)/updates/dkms
mkdir -p "$modules" {_BOOKS}
echo "stand-in of {ofed}" >"$modules/mlx5_core.ko"
for books in {_BOOKS}; do
    ln -sfn "{ofed}" "$books/kernel-$(uname -r)-$(uname -m)"
done
{mark("modules-built")}{_UNLOADS}"""


def _unbuilds(ofed: str) -> str:
    """What it does when it goes, or after another version has come: takes away what is this version's."""
    return f"""for books in {_BOOKS}; do
    link=$books/kernel-$(uname -r)-$(uname -m)
    [ "$(readlink "$link")" != "{ofed}" ] || rm -f "$link" "/lib/modules/$(uname -r)/updates/dkms/mlx5_core.ko"
done
"""


def _userland(rdma: str) -> list[Package]:
    return [
        Package("libibverbs1", rdma),
        Package("librdmacm1", rdma, ("libibverbs1=",)),
        Package("rdma-core", rdma, ("libibverbs1=",), after=mark("rdma-core-configured")),
        Package("ibverbs-utils", rdma, ("libibverbs1=",)),
        Package("rdmacm-utils", rdma, ("librdmacm1=",)),
        Package("infiniband-diags", rdma, ("libibverbs1=",)),
    ]


def _ofed(ofed: str, rdma: str, prints: str, *, broken: bool = False) -> list[Package]:
    """What all stacks of the vendor have in common."""
    line, dotted = ofed.split("-", maxsplit=1)[0], ofed.replace("-", ".")
    kernel = f"{line}.OFED.{dotted}-1"
    info = f'#!/bin/sh\n[ "$1" = -s ] && echo "{prints}" && exit 0\necho "{prints}"\n'
    fails = "echo 'dkms: the module does not build' >&2\nexit 1\n" if broken else ""
    return [
        *_userland(rdma),
        *(Package(name, f"{line}-0.{dotted}", ("libibverbs1",)) for name in _TOOLS),
        Package(
            "mlnx-ofed-kernel-dkms",
            kernel,
            after=fails or _builds(ofed),
            gone=_unbuilds(ofed),
        ),
        Package(
            "mlnx-ofed-kernel-utils",
            kernel,
            after=_RESTARTS,
            files={"/usr/lib/systemd/system/openibd.service": _OPENIBD},
        ),
        Package("mlnx-tools", f"{line}-0.{dotted}"),
        Package("ofed-scripts", f"{line}-OFED.{dotted}", files={"/usr/bin/ofed_info": info}),
        Package("mlnx-fw-updater", ofed, after=mark("firmware-burnt")),
    ]


_KERNEL = ("mlnx-ofed-kernel-dkms", "mlnx-ofed-kernel-utils", "mlnx-tools", "ofed-scripts")


def doca() -> dict[str, list[Package]]:
    """DOCA-Host, a repository a release. The last one's modules do not build, and no disk holds a doca-all."""
    return {release: _doca(release, *parts) for release, parts in _DOCA.items()}


def _doca(release: str, revision: str, ofed: str, rdma: str) -> list[Package]:
    version = f"{release}-{revision}"
    firmware = ("mlnx-fw-updater",)
    return [
        *_ofed(ofed, rdma, f"OFED-internal-{ofed.rsplit('.', 1)[0]}:", broken=release == _BROKEN_DOCA),
        Package("doca-ofed", version, (*_KERNEL, *_USERLAND, *_TOOLS), firmware),
        Package("doca-roce", version, (*_KERNEL, *_USERLAND), firmware),
        Package("doca-networking", version, ("doca-ofed=",)),
        Package("doca-all", version, ("doca-networking=",), installed_kib=_TOO_BIG_KIB),
        Package("doca-extra", version),
        Package("doca-kernel-support", version, ("doca-extra=",)),
    ]


def mlnx_ofed() -> dict[str, list[Package]]:
    """The last line of MLNX_OFED."""
    ofed, rdma = _MLNX_OFED
    everything = Package("mlnx-ofed-all", ofed, (*_KERNEL, *_USERLAND, *_TOOLS), ("mlnx-fw-updater",))
    return {ofed: [*_ofed(ofed, rdma, f"MLNX_OFED_LINUX-{ofed}:"), everything]}


def cuda() -> list[Package]:
    """NVIDIA's repository for CUDA: NCCL in several versions, each built for several CUDA releases."""
    versions = [f"{nccl}+cuda{release}" for nccl, releases in _NCCL.items() for release in releases]
    return [
        Package("cuda-keyring", "1.1-1"),
        Package("nccl-tests", "2.17.1-1", ("libnccl2",)),
        *(Package("libnccl2", version) for version in versions),
        *(Package("libnccl-dev", version, ("libnccl2=",)) for version in versions),
    ]


def distribution(rdma: str) -> list[Package]:
    """What a distribution itself has: the same names, other versions."""
    plain = [Package(name, "4.26.0-1", ("libibverbs1",)) for name in _TOOLS]
    nccl = Package("libnccl2", "2.18.5-1"), Package("libnccl-dev", "2.18.5-1", ("libnccl2=",))
    return [*_userland(rdma), *plain, *nccl, Package("iproute2", "6.1.0-2")]
