"""gpufab's own footprint on a node: files, and what systemd knows of them."""

from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.converge import Order, converge
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.node.feature import SYSTEMD
from gpufab_cli.module_utils.node.files import EARLY, LATE, UDEV_RULE, texts
from gpufab_cli.module_utils.node.want import NodeWant
from gpufab_cli.module_utils.roce.probe import BNXT_DRIVER
from tests.fakes import FakeHost, failed, ok

FEATURE, WANT = FEATURES["node"], NodeWant(())
SHOW = ("systemctl", "show", "--property=Id,ActiveState,Result,NeedDaemonReload", EARLY, LATE)


ORDERS = ("systemd-analyze", "dot", "--order")


def shown(active="inactive", result="success", stale="no"):
    units = (f"Id={unit}\nActiveState={active}\nResult={result}\nNeedDaemonReload={stale}\n" for unit in (EARLY, LATE))
    return ok("\n".join(units))


def node(answer):
    """A node that has all files, and systemd."""
    orders = ok('digraph systemd {\n\t"sshd.service"->"network.target" [color="green"];\n}\n')
    answers = {SHOW: shown(), ORDERS: orders, ("systemctl", "daemon-reload"): ok("")}
    host = FakeHost({f"{SYSTEMD}/x": ""}, answers=answers)
    converge(host, FEATURE, WANT, Order())
    host.answers[SHOW] = answer
    return host


def plan(host):
    return planning.plan(FEATURE, planning.take(host, {"node": FEATURE}, {"node": WANT}), WANT)


def test_all_is_there_and_systemd_has_read_it():
    assert plan(node(shown())).clean


def test_a_restore_that_failed_is_found():
    found = plan(node(shown("failed", "exit-code"))).findings
    assert [(finding.code, finding.path) for finding in found] == [("node.restore-failed", (u,)) for u in (EARLY, LATE)]


def test_systemd_that_does_not_answer_is_not_one_without_failed_units():
    for answer in (Unknown("systemctl did not answer within 10 s"), failed("Failed to connect to bus")):
        (step,) = plan(node(answer)).steps
        assert [isinstance(change.current, Unknown) for change in step.changes] == [True]


def test_units_that_systemd_has_not_read_again_are_work_and_reading_them_is_all_of_it():
    host = node(shown(stale="yes"))
    host.writes.clear()
    host.answers["systemctl", "daemon-reload"] = lambda: host.answers.update({SHOW: shown()}) or ok("")
    outcome = converge(host, FEATURE, WANT, Order())
    assert [result.status.value for result in outcome.steps] == ["made"]
    assert [write for write in host.writes if write[0] == "systemctl"] == [("systemctl", "daemon-reload")]
    assert plan(host).clean


def test_the_rule_knows_every_driver_that_a_port_is_set_through():
    rule = texts()[UDEV_RULE].decode()
    assert f'DRIVERS=="mlx5_core|{BNXT_DRIVER}"' in rule
