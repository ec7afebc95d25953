"""Every machine type: who is whose rail, what the others are for, and the matrix that nvidia-smi prints."""

import pytest

from gpufab_cli.lab.hardware.tools import nvidia_smi_topo
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.spec.draft import by_gpu
from gpufab_cli.topology import matrix
from gpufab_cli.topology.layout import layout
from gpufab_cli.topology.roles import Role
from tests.machine import LabHost
from tests.unit.topology.machines import ANSWERS, MATRICES, devices, drawn, pairs, without

RECORDED = sorted(path.stem for path in MATRICES.glob("*.txt"))


def names(found):
    return {nic.pci: nic.rdma[0].name for nic in found.nics}


@pytest.mark.parametrize("kind", ANSWERS)
def test_rails_and_roles(tmp_path, kind):
    found, answer = layout(kind, devices(tmp_path, kind)), ANSWERS[kind]
    known = names(found.devices)
    own = [tuple(known[i.nic] for i in found.rails.pairing.pairs if i.gpu == gpu.pci) for gpu in found.gpus]
    assert tuple(own) == answer.rails
    assert {item.relation.value for item in found.rails.pairing.pairs} == {answer.distance}
    remote = [
        (found.gpus.index(next(g for g in found.gpus if g.pci == i.gpu)), known[i.nic], i.relation.value)
        for i in found.rails.pairing.remote
    ]
    assert tuple((gpu, nic) for gpu, nic, _ in remote) == answer.remote
    roles = {}
    for port in found.ports:
        roles.setdefault(port.role, []).append(port.name)
    rails = {name for own in answer.rails for name in own}
    assert {role.value: tuple(sorted(them)) for role, them in roles.items() if role is not Role.RAIL} == answer.roles
    assert set(roles[Role.RAIL]) == rails


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_lock_numbers_rails_by_their_gpus(tmp_path, kind):
    found, answer = layout(kind, devices(tmp_path, kind)), ANSWERS[kind]
    rails = [nic for nic in found.devices.nics if nic.pci in found.rails.ports]
    wanted = answer.order or tuple(name for own in answer.rails for name in own)
    assert tuple(nic.rdma[0].name for nic in by_gpu(found.devices, rails)) == wanted


@pytest.mark.parametrize("kind", ANSWERS)
def test_no_pair_moves_when_another_device_is_missing(tmp_path, kind):
    whole = devices(tmp_path, kind)
    known = pairs(whole)
    for device in (*whole.gpus, *whole.nics):
        others = {item for item in known if device.pci not in item}
        assert others <= pairs(without(whole, device.pci)), device.pci


@pytest.mark.parametrize("kind", RECORDED)
def test_the_matrix_is_the_one_that_nvidia_smi_prints(tmp_path, kind):
    recorded = matrix.parse((MATRICES / f"{kind}.txt").read_text())
    found = drawn(tmp_path, kind)
    assert tuple(found.columns) == recorded.names
    assert {(a, b): found.cell(a, b) for a in found.columns for b in found.columns} == recorded.cells
    assert {name: port.name for name, port in found.columns.items() if name in recorded.rdma} == recorded.rdma


@pytest.mark.parametrize("kind", RECORDED)
def test_the_lab_prints_what_was_recorded(tmp_path, kind):
    host = LabHost(tmp_path, kind, rails=None, cpus=None)
    assert nvidia_smi_topo.text(host.hardware) == (MATRICES / f"{kind}.txt").read_text()
    assert host.query("nvidia-smi", "topo", "-m").stdout == (MATRICES / f"{kind}.txt").read_text()


@pytest.mark.parametrize("kind", RECORDED)
def test_a_matrix_alone_gives_a_tree_with_the_same_matrix(kind):
    recorded = matrix.parse((MATRICES / f"{kind}.txt").read_text())
    rebuilt = matrix.rebuilt(kind, recorded)
    again = layout(kind, rebuilt.devices, links=rebuilt.links)
    assert {(a, b): again.cell(a, b) for a in again.columns for b in again.columns} == recorded.cells


def test_report_30_gpu_memory_that_is_a_numa_node_binds_nothing(tmp_path):
    found = devices(tmp_path, "gb200")
    assert [node.id for node in found.numa.nodes] == [0, 1, 2, 10, 18, 26]
    assert [found.numa.local(node).id for node in (2, 10, 18, 26)] == [0, 0, 1, 1]
    assert [found.numa.local(gpu.numa_node).cpus for gpu in found.gpus] == ["0-71", "0-71", "72-143", "72-143"]


def test_report_33_what_manages_nvswitches_is_in_no_draft(tmp_path):
    found = layout("hgx-b200", devices(tmp_path, "hgx-b200"))
    managers = {nic.pci for nic in found.devices.nics if nic.nvswitch}
    assert len(managers) == 4
    assert not managers & found.rails.ports
    assert {port.role for port in found.ports if port.nic.pci in managers} == {Role.NVSWITCH}


def test_report_37_a_guest_without_proximity_binds_to_the_node_that_there_is(tmp_path):
    found = devices(tmp_path, "guest-h100")
    assert {gpu.numa_node for gpu in found.gpus} == {-1}
    assert {found.numa.local(gpu.numa_node).id for gpu in found.gpus} == {0}


def test_a_node_without_anything_has_no_rails():
    assert layout("x", Devices()).rails.ports == frozenset()
