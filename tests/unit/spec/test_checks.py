"""Contradictions are refused when the file is loaded, each at its place."""

import pytest

from gpufab_cli.spec.addressing import port_address
from gpufab_cli.spec.model import Rail
from tests.fabrics import SMALL, refusals, spec, text_refusals

LOSSLESS = "lossless: [{priority: 3, dscp: [26]}]"
CNP = "cnp: {priority: 6, dscp: 48}"
ETS = "ets: {3: 60, 0: 40}"
HOSTS = '{name: "gpu[01-03]", profile: box, address: "10.0.0.[11-13]"}'
QOS = "qos.dcqcn"


def test_the_small_fabric_is_right():
    assert refusals() == []
    assert spec().hosts[2].address == "10.0.0.13"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (CNP, "cnp: {priority: 3, dscp: 48}", f"{QOS}.cnp.priority: priority 3 carries lossless data"),
        (CNP, "cnp: {priority: 6, dscp: 26}", f"{QOS}.cnp.dscp: DSCP 26 is already in lossless[0]"),
        (CNP, "extra_dscp: {46: 5}", f"{QOS}.cnp: missing, and ecn is on"),
        (CNP, f"{CNP}\n    extra_dscp: {{46: 3}}", f"{QOS}.extra_dscp[46]: priority 3 is lossless"),
        (CNP, f"{CNP}\n    extra_dscp: {{26: 0}}", f"{QOS}.extra_dscp[26]: DSCP 26 is already in lossless[0]"),
        (CNP, f"{CNP}\n    other_dscp: {{priority: 3}}", f"{QOS}.other_dscp.priority: priority 3 is lossless"),
        (CNP, f"{CNP}\n    other_dscp: {{priority: 6}}", f"{QOS}.other_dscp.priority: priority 6 is that of the CNPs"),
        (LOSSLESS, "lossless: [{priority: 3, dscp: [26, 26]}]", f"{QOS}.lossless[0].dscp[1]: DSCP 26 is already in"),
        (LOSSLESS, "lossless: []", f"{QOS}.lossless: empty, at least one is wanted"),
        (LOSSLESS, "lossless: [{priority: 3, dscp: []}]", f"{QOS}.lossless[0].dscp: empty, at least one is wanted"),
        (LOSSLESS, "lossless: [{priority: 8, dscp: [26]}]", f"{QOS}.lossless[0].priority: 8 is not in 0..7"),
        (LOSSLESS, "lossless: [{priority: 3, dscp: [64]}]", f"{QOS}.lossless[0].dscp[0]: 64 is not in 0..63"),
        (ETS, "ets: {3: 50, 0: 40}", f"{QOS}.ets: sums to 90, must be 100"),
        (ETS, "ets: {3: 50, 0: 40, 5: 10}", f"{QOS}.ets[5]: no class has priority 5"),
        (ETS, "ets: {3: 100}", f"{QOS}.ets: no share for priority 0"),
        (ETS, "ets: {0: 100}", f"{QOS}.ets: no share for priority 3"),
        (ETS, "ets: {3: 100, 0: 0}", f"{QOS}.ets[0]: 0 is not in 1..100"),
        ("mtu: 9000", "mtu: 9979", "networks.compute.mtu: 9979 is not in 576..9978"),
        ("mtu: 9000", "mtu: 575", "networks.compute.mtu: 575 is not in 576..9978"),
        (", qos: dcqcn", "", "networks.compute.qos: missing; a roce network follows a QoS profile"),
        (", qos: dcqcn", ", qos: dcqn", "networks.compute.qos: no QoS profile 'dcqn'"),
        ("speed_gbps: 10}", "qos: dcqcn}", "networks.management.qos: an ethernet network follows no QoS profile"),
        ("network: compute", "network: management", "profiles.box.ports[0].rail: management has no rail 1"),
        ("transport: roce", "transport: infiniband", "networks.compute.qos: an infiniband network follows no QoS"),
        ("network: compute", "network: compte", "profiles.box.ports[0].network: no network 'compte'"),
        ("rail: 0-1", "rail: 0-2", "profiles.box.ports[0].rail: compute has no rail 2"),
        ("rail: 0-1", "rail: 1-0", "profiles.box.ports[0].rail: range '1-0' runs backwards"),
        ("rail: 0-1", "rail: [0, 0]", "profiles.box.ports[0].rail: rail 0 of compute is given twice"),
        ("rail: 0-1}]", "rail: 0-1}]\n    takeover: [lldpad]", "profiles.box.takeover[0]: 'lldpad' is not 'dcbx'"),
        ("profile: box", "profile: bx", "hosts[0].profile: no profile 'bx'"),
        ("[11-13]", "[11-12]", "hosts[0].address: 2 addresses for 3 names"),
        (HOSTS, f"{HOSTS}\n  - {{name: gpu02, profile: box}}", "hosts[1].name: gpu02 is declared twice"),
        (HOSTS, f"{HOSTS}\n  - {{name: GPU02, profile: box}}", "hosts[1].name: GPU02 is declared twice"),
        (
            HOSTS,
            f"{HOSTS}\n  - {{name: x, profile: box, address: 10.0.0.12}}",
            "hosts[1].address: x has the address of gpu02",
        ),
    ],
)
def test_a_contradiction_is_refused(old, new, told):
    found = refusals((old, new))
    assert [message for message in found if message.startswith(told)], found


def test_one_run_tells_faults_of_every_part():
    found = refusals(
        ("mtu: 9000", "mtu: 1"), (ETS, "ets: {3: 1}"), ("rail: 0-1", "rail: x"), ("{user: ops}", "{port: 0}")
    )
    assert len(found) == 5, found


def test_two_lossless_classes_are_not_a_contradiction():
    two = "lossless: [{priority: 3, dscp: [3]}, {priority: 4, dscp: [4, 24]}]"
    assert refusals((LOSSLESS, two), (ETS, "ets: {3: 40, 4: 40, 0: 20}")) == []


def test_without_ecn_no_cnp_is_needed():
    assert refusals((CNP, "ecn: false")) == []


def addressing(template):
    return ("mtu: 9000", f'mtu: 9000, addressing: {{ipv4: "{template}"}}')


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("10.10.0.{host}/24", "gpu01 compute/1 has the address of gpu01 compute/0, 10.10.0.1"),
        ("10.10.{host}.{rail}/16", "gpu01 compute/1 is in the subnet of compute/0, 10.10.0.0/16"),
        ("10.10.{rail}.5/24", "gpu02 compute/0 has the address of gpu01 compute/0, 10.10.0.5"),
        ("10.10.{rail}.{host}", "is not a pattern such as"),
        ("10.10.{rail}.{index}/24", "is not a pattern such as"),
        ("10.10.{rail}.{host}/33", "33"),
        ("999.10.{rail}.{host}/24", "999"),
        ("10.10.{rail}.{host}0/30", "gpu02"),
    ],
)
def test_addresses_that_cannot_be_are_refused_once(template, told):
    found = refusals(addressing(template))
    assert len(found) == 1, found
    assert found[0].startswith("networks.compute.addressing.ipv4: ")
    assert told in found[0]


@pytest.mark.parametrize("template", ["10.10.{rail}.{host}/24", "10.{rail}.{host}.0/31", "10.{rail}.{host}.1/32"])
def test_addresses_of_usual_kinds_are_taken(template):
    assert refusals(addressing(template)) == []


def test_a_host_without_a_number_has_no_address():
    found = refusals(addressing("10.10.{rail}.{host}/24"), ('"gpu[01-03]"', "gpu"), ('"10.0.0.[11-13]"', "10.0.0.1"))
    assert found == ["networks.compute.addressing.ipv4: the name of gpu holds no number for {host}"]


def test_a_rack_is_the_number_before_the_hosts():
    racks = ('"gpu[01-03]"', '"r[10-12]n07"')
    fabric = spec(addressing("10.{rail}.{rack}.{host}/16"), racks)
    assert str(port_address(fabric, fabric.hosts[1], Rail("compute", 1))) == "10.1.11.7/16"
    assert refusals(addressing("10.{rail}.{rack}.{host}/16")) == [
        "networks.compute.addressing.ipv4: the name of gpu01 holds no number for {rack}"
    ]


def test_two_networks_of_one_pattern_are_refused():
    text = SMALL.replace("mtu: 9000", 'mtu: 9000, addressing: {ipv4: "10.1.{rail}.{host}/24"}')
    text = text.replace(
        "  management:",
        '  storage: {transport: roce, qos: dcqcn, addressing: {ipv4: "10.1.0.{host}/24"}}\n  management:',
    )
    text = text.replace("rail: 0-1}", "rail: 0-1}, {network: storage, rail: 0}")
    (told,) = text_refusals(text)
    assert "gpu01 storage/0 has the address of gpu01 compute/0" in told


@pytest.mark.parametrize("state", ["maintenance", "absent"])
def test_hosts_out_of_service_are_told_apart(state):
    fabric = spec(('"10.0.0.[11-13]"}', f'"10.0.0.[11-13]", state: {state}}}'))
    assert fabric.in_state("active") == ()
    assert len(fabric.in_state(state)) == 3
