"""Kernel arguments and firmware, right and with one thing wrong a node; and features that no check is of."""

import importlib
import json
import shutil
import stat

import pytest

from gpufab_cli.intent.compile import FEATURES
from gpufab_cli.spec.lock import dump
from gpufab_cli.verify import run as suite
from gpufab_cli.verify.expected import expected
from gpufab_cli.verify.results import exit_code
from gpufab_cli.verify.test_boot import means
from tests.fabrics import changed, lock

from .nodes import healthy, printed
from .test_suite import SSH, verify

PCI = "0000:18:00.0"
CMDLINE = "BOOT_IMAGE=/vmlinuz secret=hunter2 intel_iommu=on iommu=pt hugepages=4"
TABLE = """
Device #1:
----------

Device type:        ConnectX7

Configurations:                          Default         Current         Next Boot
*       NUM_OF_VFS                       0               8               8
        SRIOV_EN                         True(1)         True(1)         True(1)
RO      CNP_DSCP_P1                      48              {}              {}
The '*' shows parameters with next value different from default/current value.
"""
VERSIONS = f"{PCI}\tMT_0000000838\t28.43.2026"
GOOD = {
    "cmdline": ("0", CMDLINE),
    "vendor": ("0", "vendor_id\t: GenuineIntel"),
    f"firmware/{PCI}": ("0", TABLE.format(48, 48)),
    "versions": ("0", VERSIONS),
}
NO_CNP = TABLE.format(48, 48).replace("CNP_DSCP_P1", "CNP_DSCP_P2")
# What is wrong on a node, and the one check that must say so, how, and in which words.
FAULTS = [
    ({}, None),
    ({"cmdline": ("0", CMDLINE.replace("iommu=pt", "iommu=off"))}, ("kernel", "fail", "without iommu=pt")),
    ({"cmdline": ("0", CMDLINE.replace("hugepages=4", "hugepages=40"))}, ("kernel", "fail", "without hugepages=4")),
    ({"cmdline": ("absent", "")}, ("kernel", "unknown", "/proc/cmdline: not there")),
    ({"vendor": ("hung", "")}, ("kernel", "unknown", "no answer in time")),
    ({"vendor": ("hung", ""), "cmdline": ("0", "quiet")}, ("kernel", "fail", "without hugepages=4")),
    ({"vendor": ("1", ""), "cmdline": ("0", "hugepages=4")}, None),  # an architecture that names no vendor
    ({f"firmware/{PCI}": ("0", TABLE.format(48, 40))}, ("firmware", "fail", "CNP_DSCP_P1 is 40 from the next boot on")),
    ({f"firmware/{PCI}": ("0", TABLE.format(40, 48))}, ("firmware", "fail", "as 40: 48 is pending a reset or reboot")),
    ({f"firmware/{PCI}": ("absent", "")}, ("firmware", "unknown", "mlxconfig or mstconfig: not there")),
    ({f"firmware/{PCI}": ("3", "-E- Failed to open the device")}, ("firmware", "unknown", "Failed to open")),
    ({f"firmware/{PCI}": ("0", TABLE.format(48, ""))}, ("firmware", "unknown", "no known release")),
    ({f"firmware/{PCI}": ("0", NO_CNP)}, ("firmware", "unknown", "CNP_DSCP_P1: printed")),
    ({f"firmware/{PCI}": ("0", NO_CNP.replace("True(1)", "False(0)"))}, ("firmware", "fail", "SRIOV_EN is False")),
    ({f"firmware/{PCI}": ("0", TABLE.format(48, 48).replace("Current", ""))}, ("firmware", "unknown", "no known rel")),
    (
        {"versions": ("0", VERSIONS.replace("2026", "1000"))},
        ("firmware-version", "fail", "28.43.1000, wanted 28.43.2026"),
    ),
    ({"versions": ("0", VERSIONS.replace("838", "111"))}, None),  # of this PSID nothing is wanted
    ({"versions": ("0", VERSIONS.replace("00.0", "00.1"))}, None),  # another port of the card has the RDMA device
    ({"versions": ("0", "none")}, ("firmware-version", "unknown", "no RDMA device at 0000:18:00.0")),
    ({"versions": ("0", "")}, ("firmware-version", "unknown", "printed nothing")),
    ({"versions": ("0", VERSIONS.replace("28.43.2026", "?"))}, ("firmware-version", "unknown", "could not be read")),
    ({"vendor": ("0", "vendor_id")}, ("kernel", "unknown", "/proc/cpuinfo: no vendor")),
    ({"cmdline": ("0", "")}, ("kernel", "unknown", "/proc/cmdline: printed nothing")),
]
WISHES = """\
    ports: [{network: compute, rail: 0-1}]
    kernel: {iommu: passthrough, arguments: [hugepages=4]}
    firmware:
      network: compute
      rail: 0
      num_of_vfs: 8
      port_parameters: {CNP_DSCP: 48}
      versions: {MT_0000000838: 28.43.2026}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A fabric of a node a fault, and the ssh to them."""
    folder = tmp_path_factory.mktemp("boot")
    for name in ("bin", "nodes"):
        (folder / name).mkdir()
    ssh = folder / "bin" / "ssh"
    ssh.write_text(SSH.format(folder=folder / "nodes"))
    ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
    (folder / "fabric.yml").write_text(
        changed(
            ("    ports: [{network: compute, rail: 0-1}]\n", WISHES),
            ("gpu[01-03]", f"gpu[01-{len(FAULTS)}]"),
            (', address: "10.0.0.[11-13]"', ""),
        )
    )
    (folder / "fabric.lock.yml").write_text(dump(lock(hosts=range(1, len(FAULTS) + 1))))
    for number, node in enumerate(expected(folder / "fabric.yml"), 1):
        sections = {**healthy(number, node.wishes["roce"]), **GOOD, **FAULTS[number - 1][0]}
        (folder / "nodes" / node.host).write_text(printed(sections))
    return folder


@pytest.mark.process
def test_each_fault_is_told_by_its_own_check_and_by_no_other(folder, capfd):
    report = folder / "junit.xml"
    assert verify(folder, "--format", "json", "--junit", str(report)) == 1
    out = capfd.readouterr().out
    results = json.loads(out)["results"]
    for number, (_, wanted) in enumerate(FAULTS, 1):
        odd = [r for r in results if r["host"] == f"gpu{number:02d}" and r["status"] != "pass"]
        assert [(r["check"], r["status"]) for r in odd] == ([wanted[:2]] if wanted else []), (number, odd)
        assert all(wanted[2] in result["detail"] for result in odd), odd
    assert {"kernel", "firmware", "firmware-version", "complete"} <= {result["check"] for result in results}
    assert "hunter2" not in out + report.read_text()


@pytest.mark.process
def test_a_feature_without_a_check_is_one_unknown_row(folder, capfd, tmp_path, monkeypatch):
    shutil.copytree(suite.SUITE, tmp_path / "suite", ignore=shutil.ignore_patterns("test_boot.py", "__pycache__"))
    monkeypatch.setattr(suite, "SUITE", tmp_path / "suite")
    assert verify(folder, "--limit", "gpu01", "--format", "json") == 3
    (odd,) = [r for r in json.loads(capfd.readouterr().out)["results"] if r["status"] != "pass"]
    assert (odd["check"], odd["status"], odd["detail"]) == ("complete", "unknown", "not verified: kernel, firmware")


@pytest.mark.process
def test_a_fabric_with_no_active_host_is_not_proven(folder, capfd, tmp_path):
    text = (folder / "fabric.yml").read_text().replace("profile: box}", "profile: box, state: maintenance}")
    (tmp_path / "fabric.yml").write_text(text)
    (tmp_path / "fabric.lock.yml").write_text((folder / "fabric.lock.yml").read_text())
    assert verify(tmp_path) == 2
    assert "no host of small is active" in capfd.readouterr().err


def test_the_suite_has_a_check_of_every_feature():
    modules = [importlib.import_module(f"gpufab_cli.verify.{path.stem}") for path in suite.SUITE.glob("test_*.py")]
    found = [value for module in modules for value in vars(module).values()]
    marks = [mark for value in found for mark in marks_of(value)]
    assert {mark.args[0] for mark in marks if mark.name == "wishes"} == set(FEATURES)


def marks_of(value):
    own = getattr(value, "pytestmark", [])
    return [*(own if isinstance(own, list) else []), *([value.mark] if isinstance(value, pytest.MarkDecorator) else [])]


@pytest.mark.parametrize(
    ("printed_value", "wish", "same"),
    [
        ("8", "8", True),
        ("8", "0x8", True),
        ("80", "8", False),
        ("True(1)", "True", True),
        ("True(1)", "1", True),
        ("True(1)", "False", False),
        ("ETH(2)", "eth", True),
        ("ETH(2)", "IB", False),
        ("_8_TCs(0)", "8_TCs", True),
        ("Array[0..7]", "8", False),
    ],
)
def test_a_value_is_known_by_name_or_number(printed_value, wish, same):
    assert means(printed_value, wish) is same


def test_no_result_at_all_is_a_failure():
    assert exit_code([]) == 1
