"""Packages by real apt and real dnf, from stand-ins in signed repositories: what is not consented to or cannot be done
whole is refused in a line, and the node still has what it had.
"""

import pytest
import yaml

from tests.standins.__main__ import provide
from tests.standins.place import ON_NODE, place

from .fabric import Fabric

pytestmark = pytest.mark.lab

UBUNTU, ROCKY = "ubuntu2404-01", "rocky9-01"
ALLOW = "driver-reload,link-flap,service-restart,traffic"
PLATFORMS = {UBUNTU: "ubuntu2404", ROCKY: "rocky9"}
# All that a node has of packages: what is installed and on hold, how package managers are told, what scripts have done.
STATE = r"""
{ dpkg-query -W -f '${Package} ${Version} ${Status}\n' || rpm -qa | sort; } 2>/dev/null
find /etc/apt /etc/yum.repos.d /etc/pki/rpm-gpg /etc/dnf /var/lib/gpufab-standins /run/gpufab \
    -type f ! -path /run/gpufab/awaited 2>/dev/null | sort | xargs md5sum
"""
FLIP = """import glob
for path in glob.glob("{pattern}"):
    with open(path, "r+b") as file:
        file.seek(-600, 2)
        byte = file.read(1)
        file.seek(-600, 2)
        file.write(bytes([byte[0] ^ 1]))
"""
LOCK = """import fcntl, sys, time
file = open("/var/lib/dpkg/lock-frontend", "w")
fcntl.lockf(file, fcntl.LOCK_EX)
time.sleep(600)
"""


class Stacks(Fabric):
    """A node of each package manager, with the vendor's stack."""

    def __init__(self, folder):
        super().__init__(folder, 1)
        self.names = [UBUNTU, ROCKY]
        self.repositories = folder / "repositories"

    def up(self):
        for name, platform in PLATFORMS.items():
            self.lab.up([name], "l40s-inbox", platform)
        provide(self.repositories)
        place(self.lab, self.names, self.repositories)
        self.declare()
        self.cli("lock")
        self.cli("render")
        return self

    def declare(self, **wishes):
        """Says which stack each node is to have: by its wish, else the older release."""
        fabric = {
            "name": "stacks",
            "rollout": {"canary": 0, "batch": "100%", "soak_s": 0, "verify": False},
            "networks": {"management": {"transport": "ethernet", "speed_gbps": 10}},
            "profiles": {name: {"rdma": self.rdma(**wishes.get(PLATFORMS[name], {}))} for name in self.names},
            "hosts": [{"name": name, "profile": name} for name in self.names],
            "connection": {"user": "ops", "become": "sudo", "ssh_config": ".lab/ssh_config"},
        }
        (self.folder / "fabric.yml").write_text(yaml.safe_dump(fabric))

    def rdma(self, release="3.1.0", version="", key="vendor", profile="doca-ofed"):
        """A stack out of the repository of a release."""
        keys = self.repositories / "keys"
        repository = {
            "url": f"file://{ON_NODE}/doca/{release}/{{platform}}",
            "fingerprint": (keys / f"{key}.fingerprint").read_text(),
            "key": (keys / f"{key}.asc").read_text(),
        }
        return {"stack": "doca-ofed", "version": version or release, "profile": profile, "repository": repository}

    def want(self, **wishes):
        self.declare(**wishes)
        self.cli("render")

    def state(self):
        return {name: self.sh(name, STATE) for name in self.names}


@pytest.fixture(scope="module")
def stacks(tmp_path_factory):
    made = Stacks(tmp_path_factory.mktemp("packages"))
    try:
        made.up()
        made.bare = made.state()
        made.refused = made.json("apply", rc=1)
        made.after_refusal = made.state()
        made.cli("apply", "--allow", ALLOW)
        yield made
    finally:
        made.lab.down()


def test_without_consent_a_vendor_s_stack_is_not_begun(stacks):
    for host in stacks.names:
        (step,) = (step for step in stacks.refused["hosts"][host]["steps"] if step["feature"] == "ofed")
        assert (step["status"], step["reason"]) == ("refused", f"needs --allow {ALLOW}")
    assert stacks.after_refusal == stacks.bare
    assert "doca-ofed 3.1.0" in stacks.state()[UBUNTU]  # and with it, it is


NEWER = {"release": "3.2.0"}
STRANGER = {**NEWER, "key": "stranger"}
MISSING, NO_SUCH = {**NEWER, "version": "3.9.9"}, "no source offers doca-ofed 3.9.9"


@pytest.mark.parametrize(
    ("apt", "dnf"),
    [
        ((STRANGER, "NO_PUBKEY"), (STRANGER, "Bad GPG signature")),
        (({"release": "9.9.9"}, "does not have a Release file"), ({"release": "9.9.9"}, "Cannot download")),
        (({**NEWER, "profile": "doca-all"}, "are needed in /usr"), (MISSING, NO_SUCH)),
    ],
)
def test_what_cannot_be_had_changes_nothing(stacks, apt, dnf):
    stacks.want(ubuntu2404=apt[0], rocky9=dnf[0])
    _refused(stacks, {UBUNTU: apt[1], ROCKY: dnf[1]})


def test_a_package_that_was_tampered_with_changes_nothing(stacks):
    stacks.want(ubuntu2404=NEWER, rocky9=NEWER)
    for name in stacks.names:
        _flip(stacks, name)
    try:
        _refused(stacks, {UBUNTU: "Hash Sum mismatch", ROCKY: "incorrect checksum"})
    finally:
        for name in stacks.names:
            _flip(stacks, name)


def _flip(stacks, name):
    pattern = f"{ON_NODE}/doca/3.2.0/*/mlnx-tools[_-]*"
    stacks.sh(name, f"python3 - <<'END'\n{FLIP.format(pattern=pattern)}END\n")


def _refused(stacks, reasons):
    """A run fails on each node with its reason, and the nodes are as they were."""
    before = stacks.state()
    said = stacks.site("--tags", "ofed", allow=ALLOW).stdout
    for name, reason in reasons.items():
        line = next(line for line in said.splitlines() if line.startswith(f"fatal: [{name}]"))
        assert reason in line
        assert "nothing was changed" in line
    assert stacks.state() == before


# What is broken on each node, how it is broken, and how it is mended.
TROUBLE = {
    ROCKY: [
        (
            "packages.headers",
            "mv /lib/modules/$(uname -r)/build /root/",
            "mv /root/build /lib/modules/$(uname -r)/",
        ),
        (
            "packages.foreign-hold",
            "echo doca-ofed-0:3.1.0-091000.* >>/etc/dnf/plugins/versionlock.list",
            "sed -i '$d' /etc/dnf/plugins/versionlock.list",
        ),
    ],
    UBUNTU: [
        (
            "packages.half-configured",
            f"dpkg --unpack {ON_NODE}/doca/3.1.0/ubuntu2404/doca-extra_*.deb",
            "dpkg --purge doca-extra",
        ),
        (
            "packages.locked",
            f"systemd-run --unit=holder python3 -c '{LOCK}'; sleep 1",
            "systemctl stop holder",
        ),
    ],
}


def test_trouble_is_told_before_anything_is_touched(stacks):
    stacks.want(ubuntu2404=NEWER, rocky9=NEWER)
    for name, troubles in TROUBLE.items():
        stacks.sh(name, "\n".join(line for _, line, _ in troubles))
    try:
        before = stacks.state()
        report = stacks.json("apply", "--allow", ALLOW, rc=1)
        assert stacks.state() == before
    finally:
        for name, troubles in TROUBLE.items():
            stacks.sh(name, "\n".join(line for _, _, line in reversed(troubles)))
    for name, troubles in TROUBLE.items():
        (step,) = report["hosts"][name]["steps"]
        assert step["status"] == "blocked"
        assert {code for code, _, _ in troubles} <= _codes(report, name)


def _codes(report, name):
    """What the audit after an apply finds of a node."""
    return {row["code"] for row in report["audit"]["hosts"][name]["rows"]}


def test_what_a_failed_run_leaves_the_next_one_finishes(stacks):
    broken = {"release": "3.3.0"}  # its kernel modules do not build: apt fails half way, dnf says nothing
    stacks.want(ubuntu2404=broken, rocky9=broken)
    report = stacks.json("apply", "--allow", ALLOW, rc=1)
    assert "dpkg: error processing package mlnx-ofed-kernel-dkms" in report["hosts"][UBUNTU]["problem"]
    assert "packages.dkms" in _codes(report, ROCKY)
    assert stacks.sh(UBUNTU, "dpkg --audit")
    stacks.want(ubuntu2404=NEWER, rocky9=NEWER)
    stacks.cli("apply", "--allow", ALLOW)
    assert not stacks.sh(UBUNTU, "dpkg --audit")
    marks = stacks.sh(UBUNTU, "ls /var/lib/gpufab-standins").split()
    assert marks == ["modules-built", "rdma-core-configured"]
