"""From a profile to what the features gpu_stack and limits are told about a host."""

import pytest

from gpufab_cli.module_utils.gpu_stack.want import GpuStackWant
from gpufab_cli.module_utils.limits.want import LimitsWant
from gpufab_cli.spec.limits import JOB_STARTERS
from tests.fabrics import compiled, lock, refusals, spec

BOX = "ports: [{network: compute, rail: 0-1}]"


def wants(text, ports=BOX):
    return compiled(spec((BOX, f"{ports}\n    {text}")), lock())["gpu01"]


def refused(text):
    return refusals((BOX, f"{BOX}\n    {text}"))


@pytest.mark.parametrize("text", ["gpu_stack: external", "gpu_stack: {}", "gpu_stack: {owner: external}"])
def test_external_is_all_that_needs_to_be_said(text):
    assert wants(text)["gpu_stack"] == GpuStackWant(None, "any")


def test_what_is_said_goes_before_what_is_derived():
    assert wants('gpu_stack: {driver: "570.86.15", gpudirect: peermem}')["gpu_stack"] == GpuStackWant(
        "570.86.15", "peermem"
    )
    assert wants("gpu_stack: {gpudirect: none}")["gpu_stack"] == GpuStackWant()


def test_without_rdma_ports_gpudirect_is_not_looked_at():
    assert wants("gpu_stack: external", "ports: []")["gpu_stack"] == GpuStackWant()


@pytest.mark.parametrize("name", ["nv_peer_mem", "nv-peer-mem", "nvidia-peermem"])
def test_the_module_by_its_own_name_of_old_or_new_is_told_what_to_write(name):
    (told,) = refused(f"gpu_stack: {{gpudirect: {name}}}")
    assert "called peermem here; nvidia_peermem has replaced nv_peer_mem" in told


def test_another_owner_than_the_site_is_refused():
    assert refused("gpu_stack: internal") == ["profiles.box.gpu_stack: 'internal' is neither external nor a mapping"]


def test_a_driver_that_is_no_version_is_refused():
    assert refused("gpu_stack: {driver: latest}")


def test_limits_are_those_of_the_profile():
    assert wants("limits: {memlock: unlimited}")["limits"] == LimitsWant("unlimited", JOB_STARTERS)
    assert wants("limits: {memlock: 64G, services: [slurmd]}")["limits"] == LimitsWant("64G", ("slurmd",))


@pytest.mark.parametrize(
    "text",
    ["memlock: 64", "memlock: 0G", "memlock: -1", "memlock: unlimited, services: [docker.service]", "services: [ssh]"],
)
def test_a_limit_that_is_none_is_refused(text):
    assert refused(f"limits: {{{text}}}")


def test_a_host_may_have_it_otherwise():
    found = spec(
        (BOX, f"{BOX}\n    gpu_stack: external"),
        ("profile: box,", "profile: box, override: {gpu_stack: {gpudirect: dmabuf}},"),
    )
    assert compiled(found, lock())["gpu01"]["gpu_stack"] == GpuStackWant(None, "dmabuf")
