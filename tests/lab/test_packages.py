"""Packages by real apt and real dnf, from stand-ins in signed repositories: what cannot be done whole is refused in a
line, and the node still has what it had.
"""

import pytest
import yaml

from tests.standins.__main__ import build
from tests.standins.place import ON_NODE, place

from .fabric import Fabric

pytestmark = pytest.mark.lab

UBUNTU, ROCKY = "ubuntu2404-01", "rocky9-01"
PLATFORMS = {UBUNTU: "ubuntu2404", ROCKY: "rocky9"}
# All that a node has of packages: what is installed and on hold, how package managers are told, what scripts have done.
STATE = r"""
{ dpkg-query -W -f '${Package} ${Version} ${Status}\n' || rpm -qa | sort; } 2>/dev/null
find /etc/apt /etc/yum.repos.d /etc/pki/rpm-gpg /etc/dnf /var/lib/gpufab-standins /run/gpufab -type f 2>/dev/null |
    sort | xargs md5sum
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
        build(self.repositories)
        place(self.lab, self.names, self.repositories)
        self.declare()
        self.cli("lock")
        self.cli("render")
        return self

    def declare(self, release="3.1.0", version="", key="vendor", profile="doca-ofed"):
        """Says which stack is wanted, out of the repository of a release."""
        keys = self.repositories / "keys"
        repository = {
            "url": f"file://{ON_NODE}/doca/{release}/{{platform}}",
            "fingerprint": (keys / f"{key}.fingerprint").read_text(),
            "key": (keys / f"{key}.asc").read_text(),
        }
        rdma = {"stack": "doca-ofed", "version": version or release, "profile": profile, "repository": repository}
        fabric = {
            "name": "stacks",
            "rollout": {"canary": 0, "batch": "100%", "soak_s": 0, "verify": False},
            "networks": {"management": {"transport": "ethernet", "speed_gbps": 10}},
            "profiles": {"vendor": {"rdma": rdma}},
            "hosts": [{"name": name, "profile": "vendor"} for name in self.names],
            "connection": {"user": "ops", "become": "sudo", "ssh_config": ".lab/ssh_config"},
        }
        (self.folder / "fabric.yml").write_text(yaml.safe_dump(fabric))

    def want(self, **wish):
        self.declare(**wish)
        self.cli("render")

    def state(self):
        return {name: self.sh(name, STATE) for name in self.names}

    def codes(self, name):
        """What the audit finds of a node."""
        return {row["code"] for row in self.json("audit")["hosts"][name]["rows"]}


@pytest.fixture(scope="module")
def stacks(tmp_path_factory):
    made = Stacks(tmp_path_factory.mktemp("packages"))
    try:
        made.up()
        made.cli("apply")
        yield made
    finally:
        made.lab.down()


@pytest.mark.parametrize(
    ("wish", "apt", "dnf"),
    [
        ({"release": "3.2.0", "key": "stranger"}, "NO_PUBKEY", "Bad GPG signature"),
        (
            {"release": "3.2.0", "version": "3.9.9"},
            "no source offers doca-ofed 3.9.9",
            "no source offers doca-ofed 3.9.9",
        ),
        ({"release": "9.9.9"}, "does not have a Release file", "Cannot download"),
    ],
)
def test_what_cannot_be_had_changes_nothing(stacks, wish, apt, dnf):
    before = stacks.state()
    stacks.want(**wish)
    _refused(stacks, {UBUNTU: apt, ROCKY: dnf}, before)


def test_a_package_that_was_tampered_with_changes_nothing(stacks):
    before = stacks.state()
    stacks.want(release="3.2.0")
    for name in stacks.names:
        _flip(stacks, name)
    try:
        _refused(stacks, {UBUNTU: "Hash Sum mismatch", ROCKY: "incorrect checksum"}, before)
    finally:
        for name in stacks.names:
            _flip(stacks, name)


def _flip(stacks, name):
    pattern = f"{ON_NODE}/doca/3.2.0/*/mlnx-tools[_-]*"
    stacks.sh(name, f"python3 - <<'END'\n{FLIP.format(pattern=pattern)}END\n")


def _refused(stacks, reasons, before):
    """A run fails on each node with its reason, and the nodes are as they were."""
    said = stacks.site(allow="").stdout
    for name, reason in reasons.items():
        line = next(line for line in said.splitlines() if line.startswith(f"fatal: [{name}]"))
        assert reason in line
        assert "nothing was changed" in line
    assert stacks.state() == before


@pytest.mark.parametrize(
    ("node", "code", "break_", "mend"),
    [
        (
            ROCKY,
            "packages.headers",
            "mv /lib/modules/$(uname -r)/build /root/",
            "mv /root/build /lib/modules/$(uname -r)/",
        ),
        (
            ROCKY,
            "packages.foreign-hold",
            "echo doca-ofed-0:3.1.0-091000.* >>/etc/dnf/plugins/versionlock.list",
            "sed -i '$d' /etc/dnf/plugins/versionlock.list",
        ),
        (
            UBUNTU,
            "packages.half-configured",
            f"dpkg --unpack {ON_NODE}/doca/3.1.0/ubuntu2404/doca-extra_*.deb",
            "dpkg --purge doca-extra",
        ),
        (
            UBUNTU,
            "packages.locked",
            f"systemd-run --unit=holder python3 -c '{LOCK}'; sleep 1",
            "systemctl stop holder",
        ),
    ],
)
def test_trouble_is_told_before_anything_is_touched(stacks, node, code, break_, mend):
    stacks.want(release="3.2.0")
    stacks.sh(node, break_)
    try:
        assert code in stacks.codes(node)
        before = stacks.state()
        assert code in str(stacks.json("apply", "--limit", node, rc=1))
        assert stacks.state() == before
    finally:
        stacks.sh(node, mend)


def test_a_full_disk_is_told_before_anything_is_touched(stacks):
    before = stacks.state()
    stacks.want(release="3.2.0", profile="doca-all")
    assert "are needed in /usr" in stacks.site("--limit", UBUNTU, allow="").stdout
    assert stacks.state() == before


def test_what_a_failed_run_leaves_the_next_one_finishes(stacks):
    stacks.want(release="3.3.0")  # its kernel modules do not build: apt fails half way, dnf says nothing
    stacks.cli("apply", rc=1)
    assert "packages.dkms" in stacks.codes(ROCKY)
    assert stacks.sh(UBUNTU, "dpkg --audit")
    stacks.want(release="3.2.0")
    stacks.cli("apply")
    assert not stacks.sh(UBUNTU, "dpkg --audit")
    marks = stacks.sh(UBUNTU, "ls /var/lib/gpufab-standins").split()
    assert marks == ["modules-built", "rdma-core-configured"]
