"""Hosts of one kind that are put together differently."""

from dataclasses import replace

from gpufab_cli.audit.fabric import Facts
from gpufab_cli.audit.layouts import differing, traits
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.topology.numa import NOT_KNOWN, Numa, NumaNode
from tests.snapshots import in_sync
from tests.unit.core.test_topology import TWO, gpu, nic

ABOVE = ("pci0000:15", "0000:15:01.0")
FAR = ("pci0000:97", "0000:97:01.0")
WHOLE = Devices((nic("0000:18:00.0", ABOVE),), (gpu("0000:1b:00.0", ABOVE),), TWO)


def found(*devices):
    snapshots = (replace(in_sync("gpu01"), devices=item) for item in devices)
    facts = {f"gpu{number:02d}": traits(snapshot) for number, snapshot in enumerate(snapshots, 1)}
    known = {host: fact for host, fact in facts.items() if fact is not None}
    return [(item.code, item.hosts, item.evidence) for item in differing(known)]


def test_hosts_that_agree():
    assert found(WHOLE, WHOLE, WHOLE) == []


def test_another_numa_setting_of_the_firmware():
    one = replace(WHOLE, numa=Numa((NumaNode(0, "0-7"),)))
    assert found(WHOLE, one, WHOLE) == [
        (
            "fabric.topology",
            ("gpu02",),
            "NUMA nodes: gpu[01,03]: 0: 0-3; 1: 4-7; gpu02: 0: 0-7",
        )
    ]


def test_a_nic_in_another_slot():
    moved = replace(WHOLE, nics=(nic("0000:98:00.0", FAR, 1),))
    assert [item[2] for item in found(WHOLE, WHOLE, moved)] == ["nearest NICs of the GPUs: gpu[01-02]: PIX; gpu03: SYS"]


def test_a_vf_or_a_manager_of_nvswitches_is_no_nic():
    none = replace(WHOLE, nics=(replace(WHOLE.nics[0], is_vf=True), replace(WHOLE.nics[0], nvswitch=True)))
    (finding,) = found(WHOLE, none, WHOLE)
    assert finding[2].endswith("gpu02: none")


def test_hosts_without_gpus_or_of_an_older_gpufab_are_not_compared():
    assert found(WHOLE, WHOLE, replace(WHOLE, numa=NOT_KNOWN), Devices()) == []


def test_only_hosts_of_one_profile_are_compared():
    one = replace(WHOLE, numa=Numa((NumaNode(0, "0-7"),)))

    def codes(*profiles):
        facts = Facts()
        for number, (devices, profile) in enumerate(zip((WHOLE, WHOLE, one), profiles, strict=True), 1):
            facts.note(f"gpu{number:02d}", replace(in_sync("gpu01"), devices=devices), {}, profile)
        both = Facts().updated((), facts)
        return [(item.code, item.hosts) for item in both.findings() if item.code == "fabric.topology"]

    assert codes("a", "a", "b") == []
    assert codes("a", "a", "a") == [("fabric.topology", ("gpu03",))]
