"""What a profile may say of NCCL and MPI, and what it comes to on a host."""

import pytest

from gpufab_cli.module_utils.rails import ClassWant
from gpufab_cli.spec.rails import rails_of
from tests.fabrics import compiled, lock, refusals, spec

BOX = "ports: [{network: compute, rail: 0-1}]"
NETWORKS = "  management: {transport: ethernet, speed_gbps: 10}\n"
STORAGE = f"{NETWORKS}  storage: {{transport: infiniband, rails: 2}}\n"
BOTH = "ports: [{network: compute, rail: 0-1}, {network: storage, rail: 0-1}]"


def wants(text):
    return compiled(spec((BOX, f"{BOX}\n    {text}")), lock())["gpu01"]


def refused(text, ports=BOX):
    return "\n".join(refusals((NETWORKS, STORAGE), (BOX, f"{ports}\n    {text}")))


def test_nothing_said_is_nothing_told():
    assert not {"nccl_env", "mpi"} & set(compiled(spec(), lock())["gpu01"])


def test_what_follows_from_the_fabric_is_derived():
    found = wants("nccl_env: {}\n    mpi: {implementation: openmpi}")
    assert found["nccl_env"].roce == found["mpi"].roce == ClassWant(106, 3, pfc=True)
    assert [(rail.rail, rail.pci) for rail in found["nccl_env"].rails] == [
        ("compute/0", "0000:18:00.0"),
        ("compute/1", "0000:28:00.0"),
    ]
    assert found["nccl_env"].variables is found["nccl_env"].takeover is None


def test_declared_tuning_becomes_nccl_s_variables():
    text = (
        "nccl_env: {rail: 1, relaxed_ordering: true, qps_per_connection: 4, split_data_on_qps: false,"
        " adaptive_routing: true, cross_nic: never, variables: {NCCL_DEBUG: WARN}, socket_interfaces: [eno1],"
        " containers: [enroot, slurm], takeover: true}"
    )
    found = wants(text)["nccl_env"]
    assert found.variables == {
        "NCCL_IB_PCI_RELAXED_ORDERING": "1",
        "NCCL_IB_QPS_PER_CONNECTION": "4",
        "NCCL_IB_SPLIT_DATA_ON_QPS": "0",
        "NCCL_IB_ADAPTIVE_ROUTING": "1",
        "NCCL_CROSS_NIC": "0",
        "NCCL_DEBUG": "WARN",
    }
    assert (found.socket_interfaces, found.containers, found.takeover) == (("eno1",), ("enroot", "slurm"), True)
    assert [rail.rail for rail in found.rails] == ["compute/1"]


def test_two_planes_of_one_class_are_used_by_turns_those_of_two_are_refused():
    planes = "nccl_env: {network: [plane-b, compute]}"
    plane = (NETWORKS, f"{NETWORKS}  plane-b: {{transport: roce, rails: 2, qos: QOS}}\n")
    ports = "ports: [{network: compute, rail: 0-1}, {network: plane-b, rail: 0-1}]"
    same = (plane[0], plane[1].replace("QOS", "dcqcn"))
    found = spec(same, (BOX, f"{ports}\n    {planes}"))
    names = [str(rail) for rail in rails_of(found, found.profiles["box"], found.profiles["box"].nccl_env)]
    assert names == ["plane-b/0", "compute/0", "plane-b/1", "compute/1"]
    other = "qos:\n  dcqcn:", "qos:\n  other:\n    lossless: [{priority: 4, dscp: [32]}]\n    ecn: false\n  dcqcn:"
    said = refusals((plane[0], plane[1].replace("QOS", "other")), other, (BOX, f"{ports}\n    {planes}"))
    assert "the networks carry different classes" in said[0]


def test_a_network_for_sockets_is_told_by_its_ports():
    found = wants("nccl_env: {rail: 0, socket: compute}")["nccl_env"]
    assert found.socket_ports == ("0000:18:00.0", "0000:28:00.0")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nccl_env: {network: compyte}", "the profile has no RDMA port on 'compyte'"),
        ("nccl_env: {network: management}", "the profile has no RDMA port on 'management'"),
        ("nccl_env: {rail: 7}", "the profile has none of these rails"),
        ("nccl_env: {socket: management}", "the profile has no port on 'management'"),
        ("nccl_env: {socket: compute, socket_interfaces: [eno1]}", "socket says it already"),
        ("nccl_env: {variables: {NCCL_IB_TC: '41'}}", "NCCL_IB_TC is not given here"),
        ("nccl_env: {variables: {NCCL_CROSS_NIC: '1'}}", "NCCL_CROSS_NIC is not given here"),
        ("nccl_env: {variables: {NCCL_DEBUG: 'a b'}}", "is not a value of letters"),
        ("nccl_env: {variables: {PATH: x}}", "an NCCL variable such as NCCL_DEBUG"),
        ("nccl_env: {service_level: 1}", "the ports are RoCE"),
        ("mpi: {implementation: mpich}", "mpich"),
        ("mpi: {implementation: openmpi, socket_interfaces: ['eth0 x']}", "the name of a network interface"),
    ],
)
def test_what_does_not_fit_is_refused(text, said):
    assert said in refused(text)


def test_of_two_networks_one_is_to_be_named():
    assert "the profile's ports are on compute, storage" in refused("nccl_env: {}", BOTH)
    assert refused("nccl_env: {network: storage, service_level: 1}", BOTH) == ""
    assert "the ports are InfiniBand" in refused("nccl_env: {network: storage, gid_index: 3}", BOTH)


def test_the_release_is_that_of_the_package_unless_jobs_bring_an_older_one():
    nccl = 'nccl: {version: "2.27.5-1", cuda: "12.9"}\n    '
    assert wants(f"{nccl}nccl_env: {{}}")["nccl_env"].release == "2.27.5"
    assert wants(f'{nccl}nccl_env: {{release: "2.18.3"}}')["nccl_env"].release == "2.18.3"
