"""Consent, reading back, undoing, and the journal, on a feature of two values a device."""

import json
from dataclasses import dataclass, replace
from typing import Any, Dict

import pytest

from gpufab_cli.module_utils import desired, journal, record
from gpufab_cli.module_utils.change import ABSENT, Change, Finding, Impact, Pending, Plan, Step, Unknown
from gpufab_cli.module_utils.claim import Question, settle
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.host import ForbiddenQueryError, HostError
from gpufab_cli.module_utils.journal import Run
from tests.fakes import FakeHost, ok, start

from .roce_node import nic

FLAP = frozenset({Impact.LINK_FLAP})
ALL = Order(allow=FLAP)


@dataclass(frozen=True)
class ToyWant:
    values: Dict[str, int]


class Toy:
    """Two files a device, /toy/DEVICE/a and b; b cannot be written on devices in ``broken``."""

    name = "toy"
    want_type = ToyWant
    seen_type = dict
    restored = True
    impact = FLAP
    blocked = ""
    broken: tuple = ()
    deaf: tuple = ()
    pending: tuple = ()

    def gather(self, host, devices, want):
        return {(device, part): self._value(host, device, part) for device in want.values for part in "ab"}

    @staticmethod
    def _value(host, device, part):
        text = host.read(f"/toy/{device}/{part}")
        return int(text) if isinstance(text, str) else text

    def plan(self, snapshot, want):
        steps = []
        for device, value in want.values.items():
            seen = snapshot.seen["toy"]
            changes = tuple(
                Change((device, part), seen[device, part], value, "toy.value")
                for part in "ab"
                if seen[device, part] != value
            )
            if changes:
                steps.append(Step(f"toy {device}", changes, self.impact, device, self.blocked))
        return Plan(tuple(steps), self.pending, (Finding("toy.finding", ("x",), "y"),))

    def only(self, want, device):
        return ToyWant({name: value for name, value in want.values.items() if name == device})

    def apply(self, step, host):
        for change in step.changes:
            device, part = change.path
            if part == "b" and device in self.broken:
                raise HostError("write refused")
            if device not in self.deaf:
                host.set(f"/toy/{device}/{part}", str(change.desired))


def node(**values: Any):
    files = {f"/toy/{device}/{part}": f"{value}\n" for device, value in values.items() for part in "ab"}
    files["/proc/sys/kernel/random/boot_id"] = "boot-1"
    idle = {("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader"): ok("")}
    return FakeHost(files, answers=idle)


def statuses(outcome):
    return {result.step.name: result.status.value for result in outcome.steps}


def values(host):
    return {path[5:]: host.files[path].strip() for path in sorted(host.files) if path.startswith("/toy/")}


def events(host):
    text = host.files.get(journal.FILE, b"")
    return [(entry["step"], entry["event"]) for entry in map(json.loads, text.splitlines())]


def test_made_kept_and_journalled():
    host = node(p=1)
    outcome = converge(host, Toy(), ToyWant({"p": 2}), ALL)
    assert statuses(outcome) == {"persist toy": "made", "toy p": "made"}
    assert outcome.changed
    assert values(host) == {"p/a": "2", "p/b": "2"}
    assert json.loads(host.files[desired.desired_path("toy")])["want"] == {"values": {"p": 2}}
    assert events(host) == [("persist toy", "begin"), ("persist toy", "made"), ("toy p", "begin"), ("toy p", "made")]
    assert host.locked == 1


def test_a_second_run_does_nothing():
    host = node(p=1)
    converge(host, Toy(), ToyWant({"p": 2}), ALL)
    before = (dict(host.files), len(host.writes))
    outcome = converge(host, Toy(), ToyWant({"p": 2}), ALL)
    assert outcome.steps == ()
    assert not outcome.changed
    assert (dict(host.files), len(host.writes)) == before


def test_check_mode_says_the_same_and_writes_nothing():
    host = node(p=1)
    before = dict(host.files)
    outcome = converge(host, Toy(), ToyWant({"p": 2}), replace(ALL, check=True))
    assert statuses(outcome) == {"persist toy": "would-make", "toy p": "would-make"}
    assert (host.files, host.writes, host.locked) == (before, [], 0)


def test_without_consent_the_wish_is_kept_and_the_device_is_as_it_was():
    host = node(p=1)
    outcome = converge(host, Toy(), ToyWant({"p": 2}), Order())
    assert statuses(outcome) == {"persist toy": "made", "toy p": "refused"}
    assert outcome.steps[1].reason == "needs --allow link-flap"
    assert values(host) == {"p/a": "1", "p/b": "1"}
    assert outcome.failures(check=False) == ()


def test_check_mode_predicts_a_refusal():
    outcome = converge(node(p=1), Toy(), ToyWant({"p": 2}), Order(check=True))
    assert statuses(outcome) == {"persist toy": "would-make", "toy p": "refused"}


def busy_node():
    host = node(p=1)
    host.links["/sys/class/infiniband_verbs/uverbs0"] = "../../devices/pci0000:17/0000:18:00.0/infiniband_verbs/uverbs0"
    start(host, 77, "python3", "/dev/infiniband/uverbs0", uid=1000)
    return host


def test_a_busy_node_is_left_alone_and_its_user_named():
    outcome = converge(busy_node(), Toy(), ToyWant({"p": 2}), ALL)
    assert statuses(outcome)["toy p"] == "busy"
    assert outcome.steps[1].reason == "python3 (process 77) holds an RDMA device"
    assert statuses(converge(busy_node(), Toy(), ToyWant({"p": 2}), replace(ALL, busy_ok=True)))["toy p"] == "made"


TAKE = Question("take", "run-1", "kim", "ctl1", 180.0, drained=True)


@pytest.mark.parametrize("run", [Run(), Run(id="run-2")])
def test_no_other_run_disturbs_a_claimed_node(run):
    """Plain Ansible has no run id: it is another one."""
    host = node(p=1)
    settle(host, TAKE)
    outcome = converge(host, Toy(), ToyWant({"p": 2}), replace(ALL, busy_ok=True, run=run))
    held = next(result for result in outcome.steps if result.step.name == "toy p")
    assert held.status is Status.BUSY
    assert held.reason.startswith("claimed by kim on ctl1 (run run-1) since ")


@pytest.mark.parametrize("order", [replace(ALL, run=Run(id="run-1"), claimed=True), replace(ALL, restore=True)])
def test_the_run_that_has_the_node_and_a_restore_go_on(order):
    host = node(p=1)
    host.files[record.MANAGEMENT] = "[]"
    settle(host, TAKE)
    assert statuses(converge(host, Toy(), ToyWant({"p": 2}), replace(order, busy_ok=True)))["toy p"] == "made"


def test_a_run_whose_claim_is_over_disturbs_nobody():
    host = node(p=1)
    settle(host, TAKE)
    host.up_seconds += 180
    order = replace(ALL, busy_ok=True, run=Run(id="run-1"), claimed=True)
    assert statuses(converge(host, Toy(), ToyWant({"p": 2}), order))["toy p"] == "busy"


def test_a_step_without_impact_needs_no_claim():
    host, toy = node(p=1), Toy()
    toy.impact = frozenset()
    settle(host, TAKE)
    assert statuses(converge(host, toy, ToyWant({"p": 2}), Order()))["toy p"] == "made"


def test_a_restore_asks_only_who_uses_the_device_that_lost_its_settings():
    host = busy_node()
    host.files[record.MANAGEMENT] = "[]\n"
    restore = replace(ALL, restore=True)
    assert statuses(converge(host, Toy(), ToyWant({"p": 2}), replace(restore, check=True))) == {"toy p": "would-make"}
    mine = "0000:18:00.0"
    host.files |= {f"/toy/{mine}/{part}": "1\n" for part in "ab"}
    assert statuses(converge(host, Toy(), ToyWant({mine: 2}), restore)) == {f"toy {mine}": "busy"}
    start(host, 77, "opensm", "/dev/infiniband/uverbs0")
    assert statuses(converge(host, Toy(), ToyWant({mine: 2}), restore)) == {f"toy {mine}": "made"}


def test_not_knowing_who_uses_the_node_is_busy():
    host = busy_node()
    host.unreadable["/proc/77/fd"] = "Permission denied"
    outcome = converge(host, Toy(), ToyWant({"p": 2}), ALL)
    assert statuses(outcome)["toy p"] == "busy"
    assert "cannot tell whether the node is idle" in outcome.steps[1].reason


def test_a_step_without_impact_needs_no_idle_node():
    toy = Toy()
    toy.impact = frozenset()
    assert statuses(converge(busy_node(), toy, ToyWant({"p": 2}), Order()))["toy p"] == "made"


def test_one_unknown_withholds_the_step_and_fails_a_real_run_only():
    host = node(p=1)
    host.unreadable["/toy/p/b"] = "Input/output error"
    for check in (True, False):
        outcome = converge(host, Toy(), ToyWant({"p": 2}), replace(ALL, check=check))
        assert statuses(outcome)["toy p"] == "unknown"
        assert [result.step.name for result in outcome.failures(check)] == ([] if check else ["toy p"])
    assert values(host) == {"p/a": "1", "p/b": "1"}


def test_a_write_that_fails_in_the_middle_is_undone_and_the_rest_not_begun():
    host, toy = node(p=1, q=1), Toy()
    toy.broken = ("p",)
    outcome = converge(host, toy, ToyWant({"p": 2, "q": 2}), ALL)
    assert statuses(outcome) == {"persist toy": "made", "toy p": "failed", "toy q": "not-begun"}
    assert outcome.steps[1].reason == "write refused; undone"
    assert values(host) == {"p/a": "1", "p/b": "1", "q/a": "1", "q/b": "1"}
    assert events(host)[2:] == [("toy p", "begin"), ("toy p", "failed"), ("toy p", "undone")]


def test_a_mistake_of_gpufab_s_own_leaves_no_step_half_made():
    host, toy = node(p=1), Toy()
    plain = toy.apply

    def apply(step, node):
        plain(replace(step, changes=step.changes[:1]), node)
        if step.changes[0].desired == 2:
            raise KeyError("names")

    toy.apply = apply
    outcome = converge(host, toy, ToyWant({"p": 2}), ALL)
    assert outcome.steps[1].reason == "unexpected KeyError: 'names'; undone"
    assert values(host) == {"p/a": "1", "p/b": "1"}


def test_exit_0_without_effect_is_a_failure_by_name():
    host, toy = node(p=1), Toy()
    toy.deaf = ("p",)
    outcome = converge(host, toy, ToyWant({"p": 2}), ALL)
    assert statuses(outcome)["toy p"] == "failed"
    assert outcome.steps[1].reason == "did not stick: p/a is 1, not 2, p/b is 1, not 2; undone"


@pytest.mark.parametrize(
    ("error", "said"), [(HostError("gone"), "gone"), (KeyError("names"), "unexpected KeyError: 'names'")]
)
def test_what_cannot_be_undone_is_said(error, said):
    host, toy = node(p=1), Toy()
    toy.broken = ("p",)
    plain = toy.apply

    def apply(step, node):
        if step.changes[-1].desired == 1:
            raise error
        plain(step, node)

    toy.apply = apply
    outcome = converge(host, toy, ToyWant({"p": 2}), ALL)
    assert outcome.steps[1].reason == f"write refused; could not be undone: {said}"
    assert events(host)[-1] == ("toy p", "not-undone")


def test_a_blocked_step_is_not_made_whatever_is_allowed():
    toy = Toy()
    toy.blocked = "lldpad owns it"
    outcome = converge(node(p=1), toy, ToyWant({"p": 2}), replace(ALL, busy_ok=True))
    assert statuses(outcome)["toy p"] == "blocked"


def test_findings_and_pending_come_through_and_pending_is_recorded_once():
    host, toy = node(p=2), Toy()
    toy.pending = (Pending(("p", "fw"), 1, 2, Impact.REBOOT, "toy.fw"),)
    outcome = converge(host, toy, ToyWant({"p": 2}), ALL)
    assert [finding.code for finding in outcome.findings] == ["toy.finding"]
    assert outcome.pending == toy.pending
    (entry,) = [item for item in record.read(host, "toy") if item.pending]
    assert (entry.path, entry.value, entry.boot_id) == (("p", "fw"), 2, "boot-1")
    # The reboot came and the value did not: no second reboot for it.
    host.files["/proc/sys/kernel/random/boot_id"] = "boot-2"
    again = converge(host, toy, ToyWant({"p": 2}), ALL)
    assert again.pending == ()
    assert [finding.code for finding in again.findings] == ["toy.finding", "node.reset-without-effect"]


def test_a_restore_keeps_no_wish_and_leaves_a_remembered_management_port_alone():
    host = node(p=1)
    host.files[record.MANAGEMENT] = '["p"]\n'
    outcome = converge(host, Toy(), ToyWant({"p": 2}), replace(ALL, restore=True))
    assert statuses(outcome) == {"toy p": "refused"}
    assert outcome.steps[0].reason == "needs --allow management-port"
    host.files[record.MANAGEMENT] = "[]\n"
    assert statuses(converge(host, Toy(), ToyWant({"p": 2}), replace(ALL, restore=True))) == {"toy p": "made"}


def test_ports_are_remembered_only_when_it_is_known_what_they_carry():
    host = node(p=1)
    host.files[record.MANAGEMENT] = '["0000:18:00.0"]\n'
    record.note_management_ports(host, Devices((nic(carries=Unknown("ip is not installed")),)))
    assert record.management_ports(host) == {"0000:18:00.0"}
    record.note_management_ports(host, Devices((nic(carries=()),)))
    assert record.management_ports(host) == frozenset()
    record.note_management_ports(host, Devices((nic(carries=("ssh",)),)))
    assert record.management_ports(host) == {"0000:18:00.0"}


@pytest.mark.parametrize("kept", [ABSENT, b"{}", Unknown("no")])
def test_a_stale_or_deleted_wish_is_drift(kept):
    host = node(p=1)
    converge(host, Toy(), ToyWant({"p": 2}), ALL)
    path = desired.desired_path("toy")
    if isinstance(kept, Unknown):
        host.unreadable[path] = "Permission denied"
    elif kept is ABSENT:
        del host.files[path]
    else:
        host.files[path] = kept
    outcome = converge(host, Toy(), ToyWant({"p": 2}), ALL)
    assert statuses(outcome) == {"persist toy": Status.UNKNOWN.value if isinstance(kept, Unknown) else "made"}


def test_a_query_outside_the_allow_list_raises():
    for argv in (
        ("dcb", "pfc", "set", "dev", "x"),
        ("mst", "start"),
        ("cma_roce_tos", "-d", "mlx5_0"),
        ("sh", "-c", "x"),
    ):
        with pytest.raises(ForbiddenQueryError):
            FakeHost().query(*argv)


def test_a_restore_touches_no_port_while_no_apply_could_tell_what_the_node_depends_on():
    host = node(p=1)
    outcome = converge(host, Toy(), ToyWant({"p": 2}), replace(ALL, restore=True))
    assert statuses(outcome) == {"toy p": "refused"}
    assert values(host) == {"p/a": "1", "p/b": "1"}


def test_an_apply_that_is_killed_has_remembered_the_ports_before_it_kept_the_wish():
    class Killed(Toy):
        def apply(self, step, host):
            raise KeyboardInterrupt

    host = node(p=1)
    with pytest.raises(KeyboardInterrupt):
        converge(host, Killed(), ToyWant({"p": 2}), ALL)
    kept = [write[0] for write in host.writes]
    assert kept.index(record.MANAGEMENT) < kept.index(desired.desired_path("toy"))
