"""The stand-ins hang together: what a repository's packages depend on is there, once at each version."""

import pytest

from tests.standins import catalogue
from tests.standins.package import MARKS, rpm_name

_VENDOR = {**catalogue.doca(), **catalogue.mlnx_ofed()}
_ALL = {**_VENDOR, "cuda": catalogue.cuda(), "distribution": catalogue.distribution("50.0-2")}


@pytest.mark.parametrize("repository", _ALL)
def test_dependencies_are_in_the_repository(repository):
    offered = {(package.name, package.version) for package in _ALL[repository]}
    assert len(offered) == len(_ALL[repository])
    for package in _ALL[repository]:
        for depended in (*package.depends, *package.recommends):
            versions = {version for name, version in offered if name == depended.removesuffix("=")}
            assert package.version in versions if depended.endswith("=") else versions


@pytest.mark.parametrize("release", _VENDOR)
def test_the_firmware_burner_comes_along_unless_it_is_unwanted_and_leaves_a_mark(release):
    packages = {package.name: package for package in _VENDOR[release]}
    assert f"{MARKS}/firmware-burnt" in packages["mlnx-fw-updater"].after
    roots = packages.keys() & {"doca-ofed", "doca-roce", "mlnx-ofed-all"}
    assert roots
    assert all("mlnx-fw-updater" in packages[root].recommends for root in roots)


def test_each_nccl_is_there_for_two_cuda_releases():
    versions = {package.version for package in catalogue.cuda() if package.name == "libnccl2"}
    assert {"2.27.5-1+cuda12.9", "2.27.5-1+cuda13.0", "2.28.3-1+cuda12.9"} <= versions


def test_the_rhel_family_has_other_names():
    assert (rpm_name("libnccl-dev"), rpm_name("rdma-core")) == ("libnccl-devel", "rdma-core")
