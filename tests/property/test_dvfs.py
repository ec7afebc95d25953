"""Over random nodes: as wanted plans nothing; what is planned is all there is to plan; unknown never passes."""

import json
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from gpufab_cli.module_utils import record
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.dvfs.plan import plan
from gpufab_cli.module_utils.dvfs.seen import CpuSeen, DvfsSeen, GpuSeen, spread
from gpufab_cli.module_utils.dvfs.want import CpuWant, DvfsWant, GpuPolicy, GpuWant
from gpufab_cli.module_utils.features import SEEN_TYPES, WANT_TYPES
from gpufab_cli.module_utils.schema import decode, encode
from gpufab_cli.module_utils.snapshot import dumps, loads
from tests.property.octets import octets
from tests.unit.core.dvfs_node import BOOT, GPU0, GPU1, snapshot

PCIS = (GPU0, GPU1)
CLOCKS = (210, 1200, 1500, 1980)
unknown = st.builds(Unknown, st.sampled_from(["", "hangs", "é"]))
absent = st.just(ABSENT)
flag = st.sampled_from([True, False, ABSENT])
watts = st.sampled_from([60.0, 70.0, 200.0, 650.0, 700.0, ABSENT])
LOCKS = ((), (210, 1980), (1200, 1500), (1500, 3201))
locks, limits = st.sampled_from(LOCKS), st.sampled_from((None, *LOCKS))

known_gpus = st.builds(
    GpuSeen,
    name=st.just("NVIDIA H100"),
    persistence=flag,
    power_limit_w=watts,
    power_enforced_w=watts,
    power_default_w=watts,
    power_min_w=st.sampled_from([60.0, ABSENT]),
    power_max_w=st.sampled_from([700.0, ABSENT]),
    graphics_now_mhz=st.sampled_from([210, 1980, 2100, ABSENT]),
    ecc=flag,
    ecc_pending=flag,
    mig=flag,
    mig_pending=flag,
    throttle=st.integers(0, 0x1FF) | absent,
    memory_clocks_mhz=st.sampled_from([CLOCKS, ABSENT]),
    graphics_clocks_mhz=st.sampled_from([CLOCKS, ABSENT]),
    load=st.integers(1, 3),
)
policies = st.builds(
    GpuPolicy,
    persistence=st.sampled_from([None, True, False]),
    power_limit_w=st.sampled_from([None, 60, 650, 700, 900]),
    graphics_mhz=limits,
    memory_mhz=limits,
    ecc=st.sampled_from([None, True, False]),
    mig=st.sampled_from([None, True, False]),
    reason=st.sampled_from([None, "hot"]),
)
records = st.lists(
    st.builds(
        record.Entry,
        path=st.tuples(st.sampled_from(PCIS), st.sampled_from(["graphics_mhz", "memory_mhz", "power_limit_w"])),
        value=locks,
        boot_id=st.sampled_from([BOOT, "boot-0"]),
        load=st.sampled_from(["1", "2", "3"]),
    ),
    unique_by=lambda entry: entry.path,
).map(tuple)


def values(*words):
    """What four CPUs have, if they have it."""
    rows = octets(4, lambda drawn: words[drawn % len(words)])
    return rows.map(lambda found: spread(dict(enumerate(found)))) | absent


cpus = st.builds(
    CpuSeen,
    driver=st.sampled_from(["intel_pstate", "acpi-cpufreq", "amd-pstate-epp", ABSENT]),
    mode=st.sampled_from(["active", "passive", ABSENT]),
    governor=values("performance", "powersave", "schedutil"),
    governors=st.just(("performance", "powersave")),
    epp=values("performance", "power", "128"),
    epps=st.just(("performance", "power")),
    min_khz=values("800000", "1200000"),
    max_khz=values("2000000", "3800000"),
    range_khz=st.sampled_from([(800000, 3800000), ABSENT]),
    boost=flag,
    latency_us=values("any", "0", "2"),
    idle_states=values("POLL C1", "POLL C1 C6", ""),
    state_latency_us=st.just((("POLL", 0), ("C1", 2), ("C6", 190))),
)
cpu_wishes = st.builds(
    CpuWant,
    governor=st.sampled_from([None, "performance", "powersave", "ondemand"]),
    epp=st.sampled_from([None, "performance", "power", "128", "turbo"]),
    min_mhz=st.sampled_from([None, 800, 1200, 5000]),
    max_mhz=st.sampled_from([None, 2000, 3800, 5000]),
    boost=st.sampled_from([None, True, False]),
    max_cstate_us=st.sampled_from([None, 0, 2, 200]),
    takeover=st.booleans(),
)


@st.composite
def nodes(draw, gpus=known_gpus):
    found = {pci: draw(gpus) for pci in PCIS}
    return snapshot(found, draw(records), cpu=draw(cpus))


@st.composite
def wishes(draw):
    default, other = draw(policies), draw(policies)
    wanted = (GpuWant(GPU0, "default"), GpuWant(GPU1, draw(st.sampled_from(["default", "other"]))))
    return DvfsWant({"default": default, "other": other}, wanted, cpu=draw(st.none() | cpu_wishes))


def predicted(found, changes):
    """The node as it is when the changes are made, none of which shows in another value."""
    seen = found.seen["dvfs"]
    gpus, cpu = dict(seen.gpus), seen.cpu
    for change in changes:
        where, name = change.path
        if where == "cpu":
            cpu = replace(cpu, **{name: change.desired})
        elif name in ("ecc", "mig"):
            gpus[where] = replace(gpus[where], **{f"{name}_pending": change.desired})
        elif name in ("graphics_mhz", "memory_mhz"):
            top = min(change.desired[1:] or (1980,))
            gpus[where] = replace(gpus[where], **({"graphics_now_mhz": top} if name == "graphics_mhz" else {}))
        else:
            value = float(change.desired) if name == "power_limit_w" else change.desired
            gpus[where] = replace(gpus[where], **{name: value})
    after = replace(seen, gpus=gpus, cpu=cpu)
    made = record.with_made(found.records["dvfs"], changes, found.boot_id)
    return replace(found, seen={"dvfs": after}, records={"dvfs": made})


def changes_of(found, wish):
    return [change for step in plan(found, wish).steps for change in step.changes]


@settings(max_examples=400)
@given(nodes(), wishes())
def test_what_is_planned_is_all_there_is_to_plan(found, wish):
    after = predicted(found, changes_of(found, wish))
    assert plan(after, wish).steps == ()


@settings(max_examples=300)
@given(nodes(), wishes())
def test_every_change_is_a_change_and_a_refused_wish_is_none(found, wish):
    result = plan(found, wish)
    changes = [change for step in result.steps for change in step.changes]
    assert all(change.current != change.desired for change in changes)
    refusals = {
        "dvfs.unsupported",
        "dvfs.power-range",
        "dvfs.clock-range",
        "dvfs.needs-persistence",
        "dvfs.cpu-refused",
    }
    refused = {finding.path for finding in result.findings if finding.code in refusals}
    assert not refused & {change.path for change in changes}


@settings(max_examples=300)
@given(nodes(), wishes(), st.data())
def test_unknown_never_passes(found, wish, data):
    name = data.draw(st.sampled_from(["persistence", "power_limit_w"]))
    seen = found.seen["dvfs"]
    gpus = {**seen.gpus, GPU0: replace(seen.gpus[GPU0], **{name: Unknown("hangs")})}
    blind = replace(found, seen={"dvfs": replace(seen, gpus=gpus)})
    result = plan(blind, wish)
    told = {change.path for step in result.steps for change in step.changes} | {f.path for f in result.findings}
    if getattr(wish.policies["default"], name) is not None:
        assert (GPU0, name) in told


@settings(max_examples=200)
@given(nodes(known_gpus | known_gpus.map(lambda gpu: replace(gpu, power_limit_w=Unknown("x")))), wishes())
def test_snapshot_and_wish_survive_json(found, wish):
    assert loads(dumps(found), SEEN_TYPES) == found
    assert decode(WANT_TYPES["dvfs"], json.loads(json.dumps(encode(wish)))) == wish


@settings(max_examples=100)
@given(unknown, wishes())
def test_without_the_driver_nothing_of_a_gpu_is_known(reason, wish):
    found = replace(snapshot(), seen={"dvfs": DvfsSeen(gpus=reason)})
    for change in changes_of(found, replace(wish, cpu=None)):
        assert change.current == reason
