"""The checks of packages, each on a node as declared and on one where just that is wrong."""

import pytest

from gpufab_cli.reach.target import Target
from gpufab_cli.verify import test_packages
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, Section, UnreadableError

KEY = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nabc\n-----END PGP PUBLIC KEY BLOCK-----"
OFED = {
    "stack": "doca-ofed",
    "version": "3.2.0",
    "profile": "doca-ofed",
    "firmware_updater": False,
    "repository": {"key": KEY},
}
NCCL = {"source": "vendor", "version": "2.27.5", "cuda": "12.9", "dev": True, "repository": {"key": KEY}}
PACKAGES = """\
ii  dpkg 1.22.6
hi  doca-ofed 3.2.0-125000
hi  libnccl2 2.27.5-1+cuda12.9
hi  libnccl-dev 2.27.5-1+cuda12.9
ii  rdma-core 50.0-2
ii  perftest 24.01-1
ii  mstflint 4.26-1
ii  infiniband-diags 50.0-2
rc  mlnx-fw-updater 25.10-1
"""
HEALTHY = {
    "packages": PACKAGES,
    "held": "doca-ofed\nlibnccl2\nlibnccl-dev",
    "key/ofed": KEY,
    "key/nccl": KEY + "\n",
    "nccl-library": "/usr/lib/x86_64-linux-gnu/libnccl.so.2.27.5",
    "kernel-release": "6.8.0-45-generic",
    "ofed-info": "OFED-internal-25.10-1.2.2:",
    "drivers": "0000:18:00.0\tmlx5_core\t25.10-1.2.2\n0000:18:00.1\tmlx5_core\t\n0000:18:00.2\tvfio-pci\t",
}
OWN = "0000:18:00.0\tmlx5_core\t6.8.0-45-generic"
INBOX = {"stack": "inbox"}
TWINS = """\
ii  dpkg 1.22.6 amd64
ii  libnccl2 2.18.5-1 i386
hi  libnccl2 2.27.5-1+cuda12.9 amd64
hi  libnccl-dev 2.27.5-1+cuda12.9 all
ii  mlnx-fw-updater 25.10 i386
"""
SNIWT = "\n".join(reversed(TWINS.splitlines()))


def said(check, kind, wish, sections):
    """How a check ends: "" where it is content."""
    target = Target("gpu01", "gpu01", None, None, None, "none", "/usr/bin/python3", "active")
    node = Node(target, {kind: wish}, (), (), ())
    pairs = {
        name: text if isinstance(text, tuple) else ("0", text) for name, text in sections.items() if text is not None
    }
    reading = Reading({name: Section(name, *pair) for name, pair in pairs.items()})
    try:
        check(node, reading)
    except AssertionError as error:
        return str(error).splitlines()[0]
    except UnreadableError as error:
        return f"unknown: {error}"
    return ""


@pytest.mark.parametrize(
    ("check", "kind", "wish", "changed", "words"),
    [
        ("stack", "ofed", OFED, {}, ""),
        ("stack", "ofed", {"stack": "inbox"}, {}, ""),
        ("firmware_updater", "ofed", OFED, {}, ""),  # its configuration is left, not it
        ("nccl", "nccl", NCCL, {}, ""),
        ("nccl", "nccl", NCCL, {"nccl-library": "none"}, ""),
        ("stack", "ofed", OFED, {"packages": PACKAGES.replace("3.2.0", "3.2.0.1")}, "doca-ofed is 3.2.0.1-125000"),
        ("stack", "ofed", OFED, {"packages": PACKAGES.replace("hi  doca", "hU  doca")}, "doca-ofed is not installed"),
        ("stack", "ofed", OFED, {"held": "libnccl2"}, "doca-ofed is not held"),
        ("stack", "ofed", OFED, {"key/ofed": "another"}, "the repository's key is not the declared one"),
        ("stack", "ofed", OFED, {"key/ofed": None}, "the repository's key is not there"),
        ("stack", "ofed", OFED, {"packages": None}, "unknown: packages: not looked at"),
        (
            "stack",
            "ofed",
            {"stack": "inbox"},
            {"packages": PACKAGES.replace("rdma-core 50.0-2", "rdma-core 2510mlnx60-1")},
            "rdma-core 2510mlnx60-1 is a vendor's",
        ),
        (
            "firmware_updater",
            "ofed",
            OFED,
            {"packages": PACKAGES.replace("rc  mlnx", "ii  mlnx")},
            "mlnx-fw-updater is installed",
        ),
        (
            "firmware_updater",
            "ofed",
            OFED,
            {"packages": PACKAGES.replace("rc  mlnx", "iF  mlnx")},
            "mlnx-fw-updater is installed",
        ),
        ("firmware_updater", "ofed", {**OFED, "firmware_updater": True}, {}, "mlnx-fw-updater is not installed"),
        # a twin of another architecture is not what is looked for, whichever is listed last
        ("nccl", "nccl", NCCL, {"packages": TWINS, "architecture": "amd64"}, ""),
        (
            "nccl",
            "nccl",
            NCCL,
            {"packages": "".join(reversed(TWINS.splitlines(keepends=True))), "architecture": "amd64"},
            "",
        ),
        ("nccl", "nccl", NCCL, {"packages": TWINS}, "unknown: dpkg: not looked at"),
        ("firmware_updater", "ofed", OFED, {"packages": TWINS, "architecture": "amd64"}, ""),
        # which driver runs
        ("driver", "ofed", OFED, {}, ""),
        ("driver", "ofed", OFED, {"ofed-info": "MLNX_OFED_LINUX-25.10-1.2.2.0:"}, ""),
        ("driver", "ofed", INBOX, {"drivers": OWN, "ofed-info": None}, ""),
        ("driver", "ofed", OFED, {"drivers": "none"}, ""),
        ("driver", "ofed", OFED, {"drivers": OWN}, "the distribution's mlx5_core runs"),
        ("driver", "ofed", INBOX, {}, "mlx5_core 25.10-1.2.2 runs, a vendor's"),
        (
            "driver",
            "ofed",
            OFED,
            {"ofed-info": "OFED-internal-25.10-1.2.20:"},
            "mlx5_core 25.10-1.2.2 runs, and 25.10-1.2.20 is installed",
        ),
        ("driver", "ofed", OFED, {"drivers": "0000:18:00.0\t\t"}, "0000:18:00.0 has no driver"),
        (
            "driver",
            "ofed",
            OFED,
            {"drivers": "0000:18:00.0\tmlx5_core\t"},
            "unknown: ethtool: no port tells the version of its driver",
        ),
        # an IPoIB interface may have a version of its own
        ("driver", "ofed", OFED, {"drivers": HEALTHY["drivers"] + "\n0000:3a:00.0\tmlx5_core\t1.0.0"}, ""),
        ("driver", "ofed", OFED, {"ofed-info": None}, "unknown: ofed_info: not looked at"),
        ("driver", "ofed", OFED, {"ofed-info": "?"}, "unknown: ofed_info: printed '?', which no known release prints"),
        ("nccl", "nccl", {**NCCL, "version": "2.27.5-1"}, {}, ""),
        ("nccl", "nccl", {**NCCL, "version": "2.27.5-2"}, {}, "libnccl2 is 2.27.5-1+cuda12.9"),
        ("nccl", "nccl", {"source": "distribution", "dev": True}, {}, "libnccl2 2.27.5-1+cuda12.9 is the vendor's"),
        (
            "nccl",
            "nccl",
            NCCL,
            {"packages": PACKAGES.replace("cuda12.9", "cuda13.0")},
            "libnccl2 is 2.27.5-1+cuda13.0",
        ),
        (
            "nccl",
            "nccl",
            NCCL,
            {"packages": PACKAGES.replace("dev 2.27.5-1+cuda12.9", "dev 2.28.3-1+cuda13.0")},
            "libnccl-dev is 2.28.3-1+cuda13.0, libnccl2 is 2.27.5-1+cuda12.9",
        ),
        (
            "nccl",
            "nccl",
            NCCL,
            {"nccl-library": "/opt/libnccl.so.2.18.5"},
            "libnccl.so.2 is /opt/libnccl.so.2.18.5, the package is 2.27.5-1+cuda12.9",
        ),
    ],
)
def test_a_check_says_what_is_wrong(check, kind, wish, changed, words):
    assert said(getattr(test_packages, f"test_{check}"), kind, wish, {**HEALTHY, **changed}) == words


def test_locks_of_dnf_are_holds():
    sections = {"packages": PACKAGES, "held": "doca-ofed-0:3.2.0-125000.*", "key/ofed": KEY}
    assert said(test_packages.test_stack, "ofed", OFED, sections) == ""
    for held in ("doca-ofed-0:3.1.0-091000.*", "#doca-ofed-0:3.2.0-125000.*", ("absent", "")):
        assert said(test_packages.test_stack, "ofed", OFED, {**sections, "held": held}) == "doca-ofed is not held"
