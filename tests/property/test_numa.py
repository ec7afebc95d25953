"""Over random drift on emulated machines: audit, dry run and run agree, a second run changes nothing, nor a reboot."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufab_cli.lab.hardware import interrupts
from gpufab_cli.lab.hardware.sysfs.numa import THP
from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.numa import irq_plan
from gpufab_cli.module_utils.numa.seen import BridgeSeen, NumaSeen, PortSeen
from gpufab_cli.module_utils.numa.want import NumaWant, PortWant, SharedSubnet
from gpufab_cli.module_utils.restore import EARLY, LATE, restore
from gpufab_cli.report.values import difference
from tests.machine import LabHost
from tests.property.test_machine import drift, holds, relaxed

PCI = "0000:18:00.0"
MACHINES = ("hgx-h100", "hgx-a100-nps4", "gb200", "guest-h100")

subnets = st.builds(
    SharedSubnet,
    arp_ignore=st.none() | st.integers(0, 2),
    arp_announce=st.none() | st.integers(0, 2),
    rp_filter=st.none() | st.integers(0, 2),
)


def want(data, host):
    ports = host.hardware.machine.ports
    return data.draw(
        st.builds(
            NumaWant,
            ports=st.just(tuple(PortWant(f"compute/{n}", port.pci, n) for n, port in enumerate(ports))),
            irq=st.none() | st.just("local"),
            irqbalance=st.booleans(),
            balancing=st.none() | st.booleans(),
            zone_reclaim=st.none() | st.integers(0, 7),
            transparent_hugepages=st.none() | st.sampled_from(["always", "madvise", "never"]),
            hugepages=st.none() | st.dictionaries(st.sampled_from(["2M", "1G", "64K"]), st.integers(0, 8)),
            shared_subnet=st.none() | subnets,
            max_read_request=st.none() | st.sampled_from([128, 512, 4096]),
            use=st.none() | st.sampled_from(["bare-metal", "vms"]),
            set_acs=st.booleans(),
        ),
        "wanted",
    )


def disturb(data, host):
    """Whatever others may have left."""
    hw = host.hardware
    state, every = hw.state.numa, [str(cpu) for cpu in range(4)]
    for interrupt in interrupts.interrupts(hw):
        state.irqs[str(interrupt.number)] = data.draw(st.sampled_from([interrupts.every_cpu(hw), *every]))
    state.settings = data.draw(
        st.fixed_dictionaries(
            {},
            optional={
                "sys/kernel/numa_balancing": st.sampled_from("012"),
                "sys/vm/zone_reclaim_mode": st.sampled_from("017"),
                THP: st.sampled_from(["always", "madvise", "never"]),
            },
        )
    )
    bridges = sorted({bridge for port in hw.machine.ports for bridge in port.behind})
    state.acs = data.draw(st.dictionaries(st.sampled_from(bridges), st.integers(0, 0x5F))) if bridges else {}
    state.domain = data.draw(st.sampled_from(["", "identity", "DMA-FQ"]))
    hw.restructure()
    host.give(**{port.netdev: f"10.0.{n // 2}.{n + 1}/24" for n, port in enumerate(hw.machine.ports)})
    if data.draw(st.booleans(), "irqbalance is installed"):
        host.answers[("irqbalance",)] = None
        host.files["/etc/default/irqbalance"] = data.draw(
            st.sampled_from(["", 'IRQBALANCE_ARGS="--hintpolicy=ignore"'])
        )


@pytest.mark.parametrize("kind", MACHINES)
@relaxed
@given(st.data())
def test_nodes(tmp_path_factory, kind, data):
    host = LabHost(tmp_path_factory.mktemp("lab"), kind, rails=2, cpus=2)
    disturb(data, host)
    wish = want(data, host)
    holds(host, "numa", wish)
    host.boot()
    assert restore(host, EARLY)
    assert restore(host, LATE)
    assert drift(host, "numa", wish) == set()


cores = st.integers(1, 8).flatmap(
    lambda threads: st.integers(1, 12).map(
        lambda count: tuple(tuple(core + thread * count for thread in range(threads)) for core in range(count))
    )
)


@settings(max_examples=200)
@given(cores, st.integers(0, 64), st.integers(1, 100))
def test_interrupts_are_spread_evenly_and_cores_first(found, position, count):
    cpus = irq_plan.ring(found, position)
    assert sorted(cpus) == sorted(cpu for core in found for cpu in core)
    placed = [int(cpu) for _, cpu in irq_plan.spread(tuple((str(n), "0") for n in range(count)), (), cpus)]
    loads = [placed.count(cpu) for cpu in cpus]
    assert max(loads) - min(loads) <= 1
    by_core = [sum(placed.count(cpu) for cpu in core) for core in found]
    assert count > len(found) or max(by_core) == 1


@given(st.integers(0, 7), st.sampled_from([2, 4, 8]))
def test_neighbours_start_evenly_apart(first, ports):
    found = tuple((cpu,) for cpu in range(64))
    starts = sorted(irq_plan.ring(found, first * ports + number)[0] for number in range(ports))
    assert {later - sooner for sooner, later in pairwise(starts)} == {64 // ports}


words = st.text("0123456789-,²x/.", max_size=6)
values = words | st.just(ABSENT) | st.builds(Unknown, words)
hostile = st.builds(
    NumaSeen,
    ports=st.fixed_dictionaries(
        {
            PCI: st.builds(
                PortSeen,
                irqs=st.lists(st.tuples(words, words)).map(tuple) | st.just(ABSENT),
                managed=st.lists(words).map(tuple),
                sysctls=st.dictionaries(words, values),
                max_read_request=st.integers() | st.just(ABSENT),
            )
        }
    ),
    cores=st.just({"0": ((0, 2), (1, 3))}) | st.dictionaries(words, st.builds(Unknown, words)),
    settings=st.dictionaries(words | st.sampled_from(["balancing", "zone_reclaim"]), values),
    hugepages=st.dictionaries(words | st.just("node0/2M"), values),
    every=st.dictionaries(st.sampled_from(["rp_filter", "arp_ignore"]), values),
    bridges=st.dictionaries(
        words, st.builds(BridgeSeen, words, st.lists(words).map(tuple), st.lists(words).map(tuple))
    ),
    domains=st.dictionaries(words, values),
)


@settings(max_examples=100)
@given(hostile)
def test_whatever_a_node_says_of_itself_is_judged(tmp_path_factory, seen):
    host = LabHost(tmp_path_factory.mktemp("lab"), rails=1)
    wish = NumaWant(
        (PortWant("compute/0", PCI, 0),),
        irq="local",
        balancing=False,
        hugepages={"2M": 1},
        shared_subnet=SharedSubnet(1, 2, 2),
        max_read_request=4096,
        use="bare-metal",
        set_acs=True,
    )
    found = planning.take(host, {"numa": FEATURES["numa"]}, {"numa": wish})
    plan = FEATURES["numa"].plan(replace(found, seen={"numa": seen}), wish)
    assert all(change.current != change.desired for step in plan.steps for change in step.changes)
    assert all(
        difference(change.path[-1], change.current, change.desired) for step in plan.steps for change in step.changes
    )
