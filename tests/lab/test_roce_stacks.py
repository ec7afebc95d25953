"""One node of each NIC stack: the same class is read, made, kept and restored by each stack's own means.

More faults of single machines: tests/unit/audit/test_stacks_machine.py.
"""

import json

import pytest

from tests.operator import ALLOW

from .fabric import ALL_AT_ONCE, Fabric

pytestmark = pytest.mark.lab

MACHINES = {
    "n1": "l40s-ofed",
    "n2": "l40s-inbox",
    "n3": "l40s-broadcom",
    "n4": "l40s-bond",
    "n5": "hgx-h100-ib-eth",
}
SPEC = (
    f"name: stacks\nrollout: {ALL_AT_ONCE}\n"
    + """\
networks:
  compute: {transport: roce, mtu: 9000, rails: 10, qos: dcqcn, addressing: {ipv4: "10.10.{rail}.{host}/24"}}
  bonded: {transport: roce, mtu: 9000, rails: 2, qos: dcqcn}
  infiniband: {transport: infiniband, rails: 8}
qos:
  dcqcn:
    lossless: [{priority: 3, dscp: [26]}]
    cnp: {priority: 6, dscp: 48}
    other_dscp: {priority: 0}
    ets: {3: 50, 0: 50}
    cable_m: 5
    dcqcn: {min_time_between_cnps: 2}
profiles:
  plain: {ports: [{network: compute, rail: 0-1}]}
  inbox: {ports: [{network: compute, rail: 0-1}]}
  broadcom: {ports: [{network: compute, rail: 0-1}]}
  bond: {ports: [{network: bonded, rail: 0-1, bond: {name: bond0, mode: 802.3ad}}]}
  mixed: {ports: [{network: infiniband, rail: 0-7}, {network: compute, rail: 8-9}]}
hosts:
  - {name: n1, profile: plain}
  - {name: n2, profile: inbox}
  - {name: n3, profile: broadcom}
  - {name: n4, profile: bond}
  - {name: n5, profile: mixed}
connection: {user: ops, become: sudo, ssh_config: .lab/ssh_config}
"""
)


def rows(report):
    """What an audit says of ports, as {(host, kind, code, device, setting)}."""
    return {
        (host, row["kind"], row["code"], row.get("device", ""), row.get("name", ""))
        for host, found in report["hosts"].items()
        for row in found["rows"]
        if row["feature"] == "roce"
    }


class Stacks(Fabric):
    """A fabric of five hosts, each of another machine type."""

    def __init__(self, folder):
        super().__init__(folder, 1)
        self.names = list(MACHINES)
        self.applied = False
        (folder / "fabric.yml").write_text(SPEC)

    def up(self):
        for name, machine in MACHINES.items():
            self.lab.up([name], machine)
        self.cli("lock")
        self.cli("render")
        return self

    def rows(self, *argv):
        """What an audit now says of ports."""
        return rows(self.json("audit", *argv))


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    made = Stacks(tmp_path_factory.mktemp("stacks"))
    try:
        yield made.up()
    finally:
        made.lab.down()


@pytest.fixture
def sound(fabric):
    """All in sync."""
    if not fabric.applied:
        fabric.cli("apply", "--allow", ALLOW)
        fabric.applied = True
    return fabric


def hardware(fabric):
    """Who wrote to the hardware of any host since the last call."""
    return {host for host in MACHINES if fabric.lab.writes(host, clear=True)}


def steps(report, status):
    """The changes of ports in all steps that ended so, as {(host, device, setting)}."""
    return {
        (host, *change["path"])
        for host, found in report["hosts"].items()
        for step in found["steps"]
        if step["status"] == status and step["device"]
        for change in step["changes"]
    }


def port(host, rail):
    return {"n1": ("0000:18:00.0", "0000:9a:00.0"), "n5": ("0000:1d:00.0", "0000:9f:00.0")}[host][rail]


def test_audits_drift_is_check_modes_changes_is_what_apply_changes(fabric):
    hardware(fabric)
    drift = fabric.rows()
    checked = fabric.json("apply", "--check", "--allow", ALLOW)
    assert hardware(fabric) == set()
    made = fabric.json("apply", "--allow", ALLOW, rc=0)
    fabric.applied = True
    assert {kind for _, kind, *_ in drift} == {"drift"}
    assert steps(checked, "would-make") == steps(made, "made")
    assert {(host, device, name) for host, _, _, device, name in drift if device} == steps(made, "made")
    assert hardware(fabric) == set(MACHINES)
    assert rows(made["audit"]) == set()


def test_a_second_run_changes_nothing(sound):
    hardware(sound)
    assert sound.site().returncode == 0
    assert hardware(sound) == set()


def test_verify_reads_every_stack_by_means_of_its_own(sound):
    results = sound.json("verify", rc=0)["results"]
    assert {result["status"] for result in results} == {"pass"}, results
    for host in ("n1", "n2", "n3", "n4"):
        proven = {result["check"] for result in results if result["host"] == host}
        assert {"dscp-map", "pfc", "ets", "cable", "dcqcn", "ecn", "cnp", "rdma-cm"} <= proven


def test_a_reboot_and_a_reload_of_the_driver_bring_it_back_by_themselves_or_by_an_apply(sound):
    sound.lab.reboot(list(MACHINES))
    assert sound.rows() == set()
    for host in MACHINES:
        assert sound.sh(host, "systemctl --failed --no-legend --plain").strip() == ""
        sound.lab.break_(host, "driver-reload")
    assert {host for host, *_ in sound.rows()} == set(MACHINES)
    assert rows(sound.json("apply", "--allow", ALLOW, rc=0)["audit"]) == set()


def test_what_infiniband_ports_have_nobody_touches(sound):
    kept = json.loads(sound.sh("n5", "cat /etc/gpufab/desired.d/roce.json"))["want"]["ports"]
    assert {item["pci"] for item in kept} == {port("n5", 0), port("n5", 1)}


def test_a_bond_has_pfc_on_both_ports_and_tos_on_its_one_device(sound):
    pfc = "prio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:off 7:off"
    shown = sound.sh("n4", "for d in ens1f0np0 ens1f1np1; do dcb pfc show dev $d prio-pfc; done")
    assert [line.strip() for line in shown.splitlines()] == [pfc, pfc]
    assert sound.sh("n4", "cma_roce_tos -d mlx5_bond_0") == "106\n"


FAULTS = {
    ("n1", "trust-pcp", "0"): {"roce.trust", "roce.dscp-map"},
    ("n2", "firmware-mask-off", "1"): {"roce.cc-mask"},
    ("n2", "mtu-mismatch", "0"): {"roce.mtu"},
    ("n4", "mtu-mismatch", "1"): {"roce.mtu", "roce.bond-mtu"},
    ("n4", "link-down", "1"): {"roce.link", "roce.bond"},
    ("n5", "nic-dead", "8"): {"device.missing"},
    ("n5", "nic-swapped", "9"): {"device.replaced"},
}


def test_each_fault_is_named(sound):
    """The last, as it leaves them in force."""
    for host, fault, rail in FAULTS:
        sound.lab.break_(host, fault, port=rail)
    named = {}
    for host, _, code, *_ in sound.rows():
        named[host] = named.get(host, set()) | {code}
    assert named == {
        host: set().union(*(codes for (name, *_), codes in FAULTS.items() if name == host))
        for host in ("n1", "n2", "n4", "n5")
    }
