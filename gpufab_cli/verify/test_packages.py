"""Installed packages: the declared versions are there and held, the repository's key is the declared one, and the
drivers that run are the stack's.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

import pytest

from gpufab_cli.verify.compare import compare, settled
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, UnreadableError, release

INBOX = ("rdma-core", "perftest", "mstflint", "infiniband-diags")  # called the same on every platform
NCCL = ("libnccl2", "libnccl")
NCCL_DEV = ("libnccl-dev", "libnccl-devel")
OFED = r"\d+\.\d+-\d+(?:\.\d+)+"  # versions of the vendor's stack, such as 24.10-0.7.0.0; of its driver 24.10-0.7.0


def rows(reading: Reading) -> Iterator[list[str]]:
    """State, name and version of each package, of dpkg's those of the node's own architecture: twins may differ."""
    lines = [line.split() for line in reading.section("packages").words("packages").splitlines()]
    if not all(re.fullmatch("[a-z][a-zA-Z][A-Z]?", words[0]) and words[1:] for words in lines):
        raise UnreadableError("packages: cut short or garbled")
    if not any(words[1] == "dpkg" or words[1].endswith("-release") for words in lines):
        raise UnreadableError("packages: the list does not even have dpkg, or the package of the release")
    for words in lines:
        if words[3:] in ([], ["all"]) or words[3] == reading.section("architecture").words("dpkg"):
            yield words[:3]


def installed(reading: Reading) -> dict[str, str]:
    """Versions by name; a package that is not wholly installed counts as none."""
    return {row[1]: row[2] for row in rows(reading) if len(row) == 3 and row[0][1:] == "i"}  # noqa: PLR2004


def present(reading: Reading) -> set[str]:
    """Names of packages that are there, wholly or half; those are not of which nothing is left but configuration."""
    return {row[1] for row in rows(reading) if len(row) > 1 and row[0][1:2] not in ("n", "c")}


def one_of(names: tuple[str, ...], reading: Reading) -> tuple[str, str]:
    """The name, of those that the platforms have for a package, under which it is installed, and its version."""
    there = installed(reading)
    found = [name for name in names if name in there]
    compare(bool(found), f"{' or '.join(names)} is not installed")
    return found[0], there[found[0]]


def assert_held(name: str, version: str, reading: Reading) -> None:
    """The package is on hold (apt), or locked at its version (dnf, which has no file of locks before the first)."""
    section = reading.section("held")
    lines = [] if section.code == "absent" else section.require("held packages").splitlines()
    compare(bool({name, f"{name}-0:{version}.*"} & set(lines)), f"{name} is not held")


def assert_key(kind: str, node: Node, reading: Reading) -> None:
    """The file of the repository's key holds the declared one."""
    repository = node.wishes[kind].get("repository")
    if repository is not None:
        section = reading.section(f"key/{kind}")
        compare(section.there, "the repository's key is not there")
        text = section.require("the repository's key")
        compare(text.split() == repository["key"].split(), "the repository's key is not the declared one")


@pytest.mark.wishes("ofed")
def test_stack(node: Node, reading: Reading) -> None:
    """The stack is there, a vendor's in its version and held."""
    wish = node.wishes["ofed"]
    if wish["stack"] == "inbox":
        for name in INBOX:
            version = one_of((name,), reading)[1]
            compare("mlnx" not in version.lower(), f"{name} {version} is a vendor's")
        return
    main = "mlnx-ofed-all" if wish["stack"] == "mlnx-ofed" else wish["profile"]
    name, version = one_of((main,), reading)
    compare(version == wish["version"] or version.startswith(wish["version"] + "-"), f"{name} is {version}")
    assert_held(name, version, reading)
    assert_key("ofed", node, reading)


@pytest.mark.wishes("ofed")
def test_firmware_updater(node: Node, reading: Reading) -> None:
    """Nothing burns firmware that was not asked to."""
    there = "mlnx-fw-updater" in present(reading)
    if node.wishes["ofed"]["firmware_updater"]:
        compare(there, "mlnx-fw-updater is not installed")
    else:
        compare(not there, "mlnx-fw-updater is installed")


@pytest.mark.wishes("ofed")
def test_driver(node: Node, reading: Reading) -> None:
    """Each NIC of the vendor's runs with the stack's driver; the version of the distribution's is the kernel's."""
    running = release(reading.section("kernel-release"))
    stack, versions = node.wishes["ofed"]["stack"], []
    for pci, driver, version in reading.section("drivers").fields("drivers", 3):
        compare(bool(driver) or stack == "inbox", f"{pci} has no driver")
        versions += [version] if driver == "mlx5_core" else []
    if not versions:
        settled("mlx5_core drives no device here")
    told = {version for version in versions if version == running or re.fullmatch(OFED, version)}
    if versions and not told:
        raise UnreadableError("ethtool: no port tells the version of its driver")
    for version in sorted(told):
        assert_driver(version, running, stack, reading)


def assert_driver(version: str, running: str, stack: str, reading: Reading) -> None:
    """The driver that runs is the distribution's, or that of the vendor's stack as ofed_info calls it."""
    if stack == "inbox":
        compare(version == running, f"mlx5_core {version} runs, a vendor's")
        return
    compare(version != running, "the distribution's mlx5_core runs")
    said = reading.section("ofed-info").require("ofed_info").strip()
    found = re.search(rf"({OFED}):?$", said)
    if found is None:
        raise UnreadableError(f"ofed_info: printed {said!r}, which no known release prints")
    same = f"{found[1]}.".startswith(f"{version}.") or f"{version}.".startswith(f"{found[1]}.")
    compare(same, f"mlx5_core {version} runs, and {found[1]} is installed")


@pytest.mark.wishes("nccl")
def test_nccl(node: Node, reading: Reading) -> None:
    """NCCL is there in its version for its CUDA, its headers are of the same, and both are held."""
    wish = node.wishes["nccl"]
    name, version = one_of(NCCL, reading)
    compare(wish["source"] == "vendor" or "+cuda" not in version, f"{name} {version} is the vendor's")
    if "version" in wish:
        revision = "" if "-" in wish["version"] else "-*"
        wanted = wish["version"] + revision + (f"+cuda{wish['cuda']}" if "cuda" in wish else "")
        compare(fnmatchcase(version, wanted), f"{name} is {version}")
        assert_held(name, version, reading)
    if wish["dev"]:
        headers, other = one_of(NCCL_DEV, reading)
        compare(other == version, f"{headers} is {other}, {name} is {version}")
    assert_key("nccl", node, reading)
    assert_loaded(version, reading)


def assert_loaded(version: str, reading: Reading) -> None:
    """Where the dynamic linker's cache knows the library, it is of the package's version."""
    for path in reading.section("nccl-library").lines("ldconfig"):
        found = re.search(r"libnccl\.so\.(\d+(?:\.\d+)+)$", path)
        if found is None:
            raise UnreadableError(f"libnccl.so.2 is {path!r}, which does not tell its version")
        compare(version.startswith(f"{found[1]}-"), f"libnccl.so.2 is {path}, the package is {version}")
