"""What only several snapshots show."""

from gpufab_cli.audit.fabric import Facts
from gpufab_cli.module_utils.change import Unknown
from tests.snapshots import HOSTS, in_sync

OTHER_MAP = tuple((dscp, 3 if dscp == 24 else 0) for dscp in range(64))


def findings(**ports):
    facts = Facts()
    for host in HOSTS:
        facts.note(host, in_sync(host, ports=ports.get(host)))
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
    facts.note("gpu01", in_sync("gpu01", ports={0: {"pfc": ()}, 1: {"pfc": ()}}))
    facts.note("gpu02", in_sync("gpu02"))
    assert [finding.hosts for finding in facts.findings()] == [("gpu01",)]


def test_what_is_unknown_says_nothing():
    hidden = {"pfc": Unknown("dcb is not installed")}
    assert findings(gpu02={0: hidden, 1: hidden}) == ()


def test_a_known_port_speaks_for_a_host_with_an_unknown_one():
    (finding,) = findings(gpu02={0: {"pfc": Unknown("dcb hangs")}, 1: {"pfc": (4,)}})
    assert finding.hosts == ("gpu02",)
