"""Over random nodes and wishes: what is planned is all there is to plan, and a run holds to its plan."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import ABSENT, Impact, Unknown
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.limits.files import LOGINS, drop_in, limit
from gpufab_cli.module_utils.limits.seen import LimitsSeen, ServiceSeen
from gpufab_cli.module_utils.limits.want import LimitsWant
from gpufab_cli.module_utils.snapshot import Snapshot
from tests.unit.core.limits_node import UNITS, SystemdHost, limits

LIMITS = FEATURES["limits"]
ALL = Order(allow=frozenset(Impact))
sizes = st.sampled_from(["unlimited", "8M", "64G"])
wishes = st.builds(LimitsWant, sizes, st.just(("slurmd", "ssh", "docker")))
values = st.sampled_from(["unlimited", "65536", str(8 * 2**20), "65536:unlimited"])
texts = st.sampled_from(["", "[Service]\nLimitMEMLOCK=infinity"]) | st.just(ABSENT)
seen = st.builds(
    LimitsSeen,
    files=st.fixed_dictionaries(dict.fromkeys([LOGINS, *map(drop_in, UNITS)], texts)),
    strays=st.dictionaries(st.just(drop_in("docker.service")), texts.filter(lambda text: text is not ABSENT)),
    services=st.fixed_dictionaries(
        dict.fromkeys(UNITS, st.builds(ServiceSeen, configured=values, running=values | st.just(ABSENT)))
    ),
    login=values,
    pam=st.booleans() | st.just(ABSENT),
)


def snapshot(found):
    return Snapshot("boot", 0, Devices(), {"limits": found})


def changes(found, want):
    return [change for step in LIMITS.plan(snapshot(found), want).steps for change in step.changes]


def predicted(found, made):
    """The node as it is when the changes are made."""
    files, strays, services = dict(found.files), dict(found.strays), dict(found.services)
    for change in made:
        where, *name = change.path
        if not name and change.desired is ABSENT:
            del strays[where]
        elif not name:
            files[where] = change.desired
        else:
            field = {"LimitMEMLOCK": "configured", "memlock": "running"}[name[0]]
            services[where] = replace(services[where], **{field: change.desired})
    return replace(found, files=files, strays=strays, services=services)


@settings(max_examples=300)
@given(seen, wishes)
def test_what_is_planned_is_all_there_is_to_plan(found, want):
    made = changes(found, want)
    assert all(change.current != change.desired for change in made)
    after = predicted(found, made)
    assert (changes(after, want), LIMITS.plan(snapshot(after), want).pending) == ([], ())


@settings(max_examples=200)
@given(seen, wishes, st.sampled_from(["configured", "running"]))
def test_unknown_never_passes(found, want, name):
    blind = replace(found.services["ssh.service"], **{name: Unknown("hangs")})
    told = changes(replace(found, services={**found.services, "ssh.service": blind}), want)
    assert any(change.path[0] == "ssh.service" and isinstance(change.current, Unknown) for change in told)


@settings(max_examples=100)
@given(want=wishes, own=values.filter(str.isdigit), running=st.lists(values, min_size=2, max_size=2), first=wishes)
def test_audit_check_mode_and_run_agree_and_a_second_run_changes_nothing(want, own, running, first):
    host = SystemdHost(own=own, login=limit(want.memlock))
    converge(host, LIMITS, first, Order())
    for unit, value in zip(UNITS, running, strict=True):
        host.files[f"/proc/{host.pid(unit)}/limits"] = limits(*value.split(":"))
    taken = planning.take(host, {"limits": LIMITS}, {"limits": want})
    audited = [step.changes for step in planning.plan(LIMITS, taken, want).steps]
    writes = len(host.writes)
    checked = converge(host, LIMITS, want, replace(ALL, check=True))
    assert len(host.writes) == writes
    made = converge(host, LIMITS, want, ALL)
    assert {result.status for result in made.steps} <= {Status.MADE}
    assert audited == [r.step.changes for r in checked.steps] == [r.step.changes for r in made.steps]
    again = converge(host, LIMITS, want, ALL)
    assert (again.steps, again.pending, again.findings) == ((), (), ())
