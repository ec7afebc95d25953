"""What only several snapshots show."""

from dataclasses import replace

from gpufab_cli.audit.fabric import Facts
from gpufab_cli.module_utils.change import Unknown
from tests.snapshots import HOSTS, WANTS, in_sync

OTHER_MAP = tuple((dscp, 3 if dscp == 24 else 0) for dscp in range(64))


def findings(**ports):
    facts = Facts()
    for host in HOSTS:
        facts.note(host, in_sync(host, ports=ports.get(host)), WANTS[host])
    return facts.findings()


def test_hosts_that_agree():
    assert findings() == ()


def test_the_one_that_differs_is_named():
    (finding,) = findings(gpu02={0: {"dscp_priority": OTHER_MAP}, 1: {"dscp_priority": OTHER_MAP}})
    assert (finding.code, finding.hosts) == ("fabric.lossless-disagree", ("gpu02",))
    assert finding.evidence == "gpu[01,03]: priority 3 from DSCP 26; gpu02: priority 3 from DSCP 24"


def test_one_port_is_enough():
    (finding,) = findings(gpu03={1: {"pfc": ()}})
    assert finding.hosts == ("gpu03",)
    assert finding.evidence.endswith("gpu03: nothing lossless or priority 3 from DSCP 26")


def test_hosts_that_agree_on_something_else_than_the_fabric_wants_do_agree():
    assert findings(**{host: {0: {"pfc": (4,)}, 1: {"pfc": (4,)}} for host in HOSTS}) == ()


def test_of_equal_camps_the_one_without_a_lossless_class_stands_out():
    facts = Facts()
    facts.note("gpu01", in_sync("gpu01", ports={0: {"pfc": ()}, 1: {"pfc": ()}}), WANTS["gpu01"])
    facts.note("gpu02", in_sync("gpu02"), WANTS["gpu02"])
    assert [finding.hosts for finding in facts.findings()] == [("gpu01",)]


def test_what_is_unknown_says_nothing():
    hidden = {"pfc": Unknown("dcb is not installed")}
    assert findings(gpu02={0: hidden, 1: hidden}) == ()


def test_a_known_port_speaks_for_a_host_with_an_unknown_one():
    (finding,) = findings(gpu02={0: {"pfc": Unknown("dcb hangs")}, 1: {"pfc": (4,)}})
    assert finding.hosts == ("gpu02",)


def following(host, *names):
    """What is wanted of a host whose ports follow these QoS profiles."""
    want = WANTS[host]["roce"]
    ports = tuple(replace(port, qos=name) for port, name in zip(want.ports, names, strict=True))
    return {"roce": replace(want, ports=ports)}


def test_ports_of_different_profiles_are_not_compared():
    facts = Facts()
    for host in HOSTS:
        facts.note(host, in_sync(host, ports={1: {"pfc": (5,)}}), following(host, "compute", "storage"))
    facts.note(
        "nfs1", in_sync("gpu01", ports={0: {"pfc": (5,)}, 1: {"pfc": (5,)}}), following("gpu01", "storage", "storage")
    )
    assert "fabric.lossless-disagree" not in {finding.code for finding in facts.findings()}


def test_the_profile_in_which_a_host_stands_out_is_named():
    facts = Facts()
    for host in HOSTS:
        pfc = () if host == "gpu02" else (5,)
        facts.note(host, in_sync(host, ports={1: {"pfc": pfc}}), following(host, "compute", "storage"))
    (finding,) = facts.findings()
    assert finding.hosts == ("gpu02",)
    assert finding.evidence.startswith("storage: gpu[01,03]: priority 5 from DSCP none; gpu02: nothing lossless")
