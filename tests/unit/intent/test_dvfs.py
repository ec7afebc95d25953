"""From a profile to what the dvfs feature is told about a host."""

from dataclasses import replace

import pytest

from gpufab_cli.errors import GpufabError
from gpufab_cli.fabric.resolve import resolve
from gpufab_cli.intent.dvfs import dvfs_want
from gpufab_cli.module_utils.dvfs.want import CpuWant, GpuPolicy, GpuWant, JobsWant
from gpufab_cli.spec.lock import Lock, LockedGpu
from tests.fabrics import compiled, lock, spec

BOX = "ports: [{network: compute, rail: 0-1}]"
PCIS = ("0000:1b:00.0", "0000:43:00.0")


def fabric(text):
    return spec((BOX, f"{BOX}\n    {text}"))


def locked(pcis=PCIS):
    """The fabric's lock with so many GPUs a host."""
    gpus = tuple(LockedGpu(pci=pci) for pci in pcis)
    return Lock(hosts={name: host.model_copy(update={"gpus": gpus}) for name, host in lock().hosts.items()})


def of_first(found, pinned):
    fabric = resolve(found, pinned)
    return dvfs_want(fabric, fabric.hosts["gpu01"])


def want(text):
    return of_first(fabric(text), locked())


def test_a_profile_that_says_nothing_tells_nothing():
    found = spec()
    assert of_first(found, locked()) is None
    assert set(compiled(found, locked())["gpu01"]) == {"node", "roce"}


def test_gpus_follow_one_policy_at_the_locks_addresses():
    found = want("gpus: {model: H100-SXM5-80GB, count: 2, persistence: true, power_limit_w: 650}")
    assert found.gpus == tuple(GpuWant(pci, "default") for pci in PCIS)
    assert found.policies == {"default": GpuPolicy(persistence=True, power_limit_w=650)}
    assert (found.device, found.cpu, found.jobs) == ("0x2330", None, None)


def test_clocks_locked_unlocked_and_left_alone_are_three_things():
    policy = want("gpus: {persistence: true, clocks_mhz: {graphics: [1200, 1980], memory: 2619}}").policies["default"]
    assert (policy.graphics_mhz, policy.memory_mhz) == ((1200, 1980), (2619, 2619))
    policy = want("gpus: {persistence: true, clocks_mhz: {graphics: unlocked}}").policies["default"]
    assert (policy.graphics_mhz, policy.memory_mhz) == ((), None)


def test_a_gpu_that_is_not_like_the_others_has_a_policy_and_a_reason():
    found = want('gpus: {persistence: true, power_limit_w: 650, overrides: {1: {power_limit_w: 600, reason: "hot"}}}')
    assert found.gpus == (GpuWant(PCIS[0], "default"), GpuWant(PCIS[1], "gpu1"))
    default = GpuPolicy(persistence=True, power_limit_w=650)
    assert found.policies == {"default": default, "gpu1": replace(default, power_limit_w=600, reason="hot")}


def test_cpus_and_jobs():
    found = want(
        "gpus: {persistence: true, power_limit_w: 650}\n"
        "    cpu: {governor: powersave, epp: 128, max_cstate_us: 0, owner: gpufab}\n"
        "    jobs: {scheduler: slurm, prolog_dir: /opt/p}"
    )
    assert found.cpu == CpuWant(governor="powersave", epp="128", max_cstate_us=0, takeover=True)
    assert found.jobs == JobsWant("/opt/p", "/etc/slurm/epilog.d")


def test_cpus_alone_need_no_gpu_in_the_lock():
    found = fabric("cpu: {governor: performance}")
    assert of_first(found, locked(())).gpus == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpus: {count: 8, ecc: true}", "2 GPUs of gpu01, its profile has 8"),
        ("gpus: {overrides: {5: {ecc: true, reason: x}}}", "2 GPUs of gpu01, its profile overrides GPU 5"),
    ],
)
def test_a_lock_of_other_gpus_is_refused(text, message):
    with pytest.raises(GpufabError, match=message):
        want(text)
    found = fabric("gpus: {ecc: true}")
    with pytest.raises(GpufabError, match="0 GPUs of gpu01, its profile has GPUs"):
        of_first(found, locked(()))
