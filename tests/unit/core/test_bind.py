"""gpufab-bind: which rank, which GPU, which CPUs and memory; the kernel's calls on a process of their own."""

import os
import subprocess
import sys

import pytest

from gpufab_cli.module_utils.archive import build
from gpufab_cli.module_utils.bind import command, machine
from gpufab_cli.module_utils.bind.binding import BindError, Machine, Place, choose, chosen
from gpufab_cli.module_utils.bind.ranks import local_rank
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.devices import gather
from gpufab_cli.module_utils.topology.numa import Numa, NumaNode
from tests.machine import LabHost

TWO = Numa((NumaNode(0, "0-3,8-11", distances=((0, 10), (1, 21))), NumaNode(1, "4-7", distances=((0, 21), (1, 10)))))
NO_MEMORY = Numa((TWO.nodes[0], NumaNode(1, "4-7", memory=False, distances=((0, 21), (1, 10)))))
GPU_MEMORY = Numa((NumaNode(0, "0-71", distances=((0, 10), (1, 80))), NumaNode(1, "", distances=((0, 80), (1, 10)))))


def gpus(*nodes):
    return tuple(Place(str(n), f"0000:{n + 16:02x}:00.0", node) for n, node in enumerate(nodes))


def bound(numa, nodes, rank, visible=None):
    found = choose(Machine(gpus(*nodes), (), numa), rank, visible)
    return found.gpu.name, found.cpus, found.memory


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "3"}, 3),
        ({"SLURM_LOCALID": "2"}, 2),
        ({"MPI_LOCALRANKID": "1"}, 1),
        ({"LOCAL_RANK": "5"}, 5),
        ({"SLURM_LOCALID": "0", "LOCAL_RANK": "5", "TORCHELASTIC_RUN_ID": "x"}, 5),  # srun torchrun
        ({"OMPI_COMM_WORLD_LOCAL_RANK": "3", "LOCAL_RANK": "0"}, 3),
        ({"SLURM_LOCALID": "x"}, None),
        ({"SLURM_LOCALID": "9" * 5000}, None),
        ({}, None),
    ],
)
def test_the_launcher_tells_the_rank(environment, rank):
    assert local_rank(environment)[0] == rank


@pytest.mark.parametrize(
    ("numa", "nodes", "rank", "visible", "wanted"),
    [
        (TWO, (0, 0, 1, 1), 0, None, ("0", (0, 1, 2, 3, 8, 9, 10, 11), (0,))),
        (TWO, (0, 0, 1, 1), 3, None, ("3", (4, 5, 6, 7), (1,))),
        (TWO, (0, 0, 1, 1), 1, "2,3", ("3", (4, 5, 6, 7), (1,))),
        (TWO, (0, 0, 1, 1), 1, "3", ("3", (4, 5, 6, 7), (1,))),  # each rank has its own from the scheduler
        (NO_MEMORY, (0, 1), 1, None, ("1", (4, 5, 6, 7), (0,))),
        (GPU_MEMORY, (1,), 0, None, ("0", tuple(range(72)), (0,))),  # never bound to the GPU's own memory
        (TWO, (-1,), 0, None, ("0", (), ())),
    ],
)
def test_a_rank_is_next_to_its_gpu(numa, nodes, rank, visible, wanted):
    assert bound(numa, nodes, rank, visible) == wanted


@pytest.mark.parametrize(
    ("rank", "visible", "said"),
    [
        (2, None, "local rank 2, and there are 2 GPUs"),
        (-1, None, "local rank -1, and there are 2 GPUs"),
        (0, "GPU-3f2a", "which GPU GPU-3f2a is, is not known; give --gpu NUMBER"),
        (0, "MIG-3f2a", "which GPU MIG-3f2a is, is not known"),
        (0, "7", "CUDA_VISIBLE_DEVICES=7, and there are 2 GPUs"),
        (0, "", "CUDA_VISIBLE_DEVICES="),
    ],
)
def test_what_cannot_be_bound_is_told(rank, visible, said):
    with pytest.raises(BindError, match=said):
        choose(Machine(gpus(0, 1), (), TWO), rank, visible)


# ---- GPUs that a scheduler or a container hides --------------------------------------------------------------------

INFORMATION = """\
Model: \t\t NVIDIA H100 80GB HBM3
GPU UUID: \t GPU-{0}aa-{0}
Bus Location: \t {1}
Device Minor: \t {0}
GPU Excluded:\t No
"""
EXCLUDED = INFORMATION.replace("No", "Yes")


@pytest.fixture
def eight(tmp_path, monkeypatch):
    """A machine whose driver tells of eight GPUs, their minors backwards; ``allowed`` are the files one may open."""
    host = LabHost(tmp_path, rails=2, gpus=8)
    host.allowed = {f"/dev/nvidia{minor}" for minor in range(8)}
    for minor, gpu in enumerate(reversed(gather(host).gpus)):
        host.files[f"/proc/driver/nvidia/gpus/{gpu.pci}/information"] = INFORMATION.format(minor, gpu.pci)
        host.files[f"/dev/nvidia{minor}"] = ""
    monkeypatch.setattr(machine.kernel, "may_open", lambda path: path in host.allowed)
    return host


def pcis(host, visible, ranks, **nics):
    seen = machine.gather(host, nics=False)
    return [(choose(seen, rank, visible).gpu.pci, choose(seen, rank, visible).gpu.name) for rank in range(ranks)]


def test_slurm_s_numbers_count_what_a_job_may_open(eight):
    """ConstrainDevices: two of eight GPUs, and CUDA_VISIBLE_DEVICES=0,1, for so CUDA counts them."""
    every = [gpu.pci for gpu in gather(eight).gpus]
    eight.allowed = {"/dev/nvidia2", "/dev/nvidia1"}
    assert pcis(eight, "0,1", 2) == [(every[5], "0"), (every[6], "1")]
    assert pcis(eight, None, 2) == [(every[5], "0"), (every[6], "1")]
    with pytest.raises(BindError, match="CUDA_VISIBLE_DEVICES=0,5, and there are 2 GPUs"):
        pcis(eight, "0,5", 1)


def test_without_constraint_the_same_numbers_count_all(eight):
    every = [gpu.pci for gpu in gather(eight).gpus]
    assert pcis(eight, "5,6", 2) == [(every[5], "5"), (every[6], "6")]


def test_a_container_s_driver_tells_of_its_own_gpus_alone(eight):
    every = [gpu.pci for gpu in gather(eight).gpus]
    for pci in every[:5]:
        del eight.files[f"/proc/driver/nvidia/gpus/{pci}/information"]
    assert pcis(eight, None, 3) == [(pci, str(n)) for n, pci in enumerate(every[5:])]


def test_a_gpu_is_named_by_the_beginning_of_its_uuid(eight):
    every = [gpu.pci for gpu in gather(eight).gpus]
    assert pcis(eight, "GPU-7aa,GPU-0aa-0", 2) == [(every[0], "0"), (every[7], "7")]
    with pytest.raises(BindError, match="which GPU GPU- is"):
        pcis(eight, "GPU-", 1)


def test_a_gpu_by_its_number_of_the_machine_is_told_to_cuda_as_it_counts(eight):
    every = [gpu.pci for gpu in gather(eight).gpus]
    eight.allowed = {"/dev/nvidia2", "/dev/nvidia1"}
    seen = machine.gather(eight, nics=False)
    assert (chosen(seen, 6).gpu.pci, chosen(seen, 6).gpu.name) == (every[6], "1")
    for number, said in ((0, f"GPU 0 .{every[0]}. may not be used"), (8, "GPU 8, and there are 8 GPUs")):
        with pytest.raises(BindError, match=said):
            chosen(seen, number)


def test_what_cannot_be_counted_is_refused_rather_than_miscounted(eight):
    eight.allowed = set()
    with pytest.raises(BindError, match="none of the 8 GPUs may be used by this process"):
        pcis(eight, "0", 1)
    pci = gather(eight).gpus[3].pci
    eight.files[f"/proc/driver/nvidia/gpus/{pci}/information"] = "Model: \t\t NVIDIA H100\n"
    with pytest.raises(BindError, match=f"the driver does not tell the device file of {pci}"):
        machine.gather(eight, nics=False)


def test_what_the_driver_tells_and_cannot_be_read_hides_nothing_in_silence(eight, monkeypatch):
    pci = gather(eight).gpus[3].pci
    read = eight.read
    broken = f"/proc/driver/nvidia/gpus/{pci}/information"
    monkeypatch.setattr(eight, "read", lambda path: Unknown("EIO") if path == broken else read(path))
    with pytest.raises(BindError, match=f"{pci} cannot be read .EIO.: GPUs cannot be counted"):
        machine.gather(eight, nics=False)


@pytest.mark.parametrize("made", [True, False])
def test_a_gpu_that_the_driver_leaves_out_is_not_counted(eight, made):
    """NVreg_ExcludedGpus: the baseboard's broken GPU keeps its device file, and no CUDA program sees it."""
    every = [gpu.pci for gpu in gather(eight).gpus]
    eight.files[f"/proc/driver/nvidia/gpus/{every[0]}/information"] = EXCLUDED.format(7, every[0])
    for minor in range(8) if not made else ():
        del eight.files[f"/dev/nvidia{minor}"]
    assert pcis(eight, "0", 1) == [(every[1], "0")]
    with pytest.raises(BindError, match="local rank 7, and there are 7 GPUs"):
        pcis(eight, None, 8)


def test_device_files_that_are_not_made_yet_hide_nothing(eight):
    for minor in range(8):
        del eight.files[f"/dev/nvidia{minor}"]
    eight.allowed = set()
    assert len(machine.gather(eight, nics=False).open) == 8


def test_the_kernel_is_asked_whether_a_file_may_be_opened(tmp_path):
    (tmp_path / "device").touch()
    assert machine.kernel.may_open(str(tmp_path / "device"))
    assert not machine.kernel.may_open(str(tmp_path / "none"))


def test_a_whole_machine_and_its_own_nics(tmp_path):
    host = LabHost(tmp_path, rails=4)
    host.files["/etc/nccl.conf"] = "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1\n"
    found = [choose(machine.gather(host, nics=True), rank, None) for rank in range(4)]
    assert [binding.nics for binding in found] == [(f"mlx5_{n}",) for n in range(4)]
    assert machine.exported(("mlx5_2",)) == {"NCCL_IB_HCA": "=mlx5_2:1", "UCX_NET_DEVICES": "mlx5_2:1"}
    assert command.words(found[0], "bind").startswith("GPU 0 (0000:")


def test_nothing_is_run_where_there_is_no_rank_or_no_program(tmp_path, capsys, monkeypatch):
    for name in ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK"):
        monkeypatch.delenv(name, raising=False)
    host = LabHost(tmp_path, rails=1)
    assert command.run(host, ["true"]) == command.FAILED
    assert "no launcher tells the local rank" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        command.run(host, ["--show"])


def test_nics_that_nobody_names_are_not_passed_over(tmp_path, capsys, monkeypatch):
    host = LabHost(tmp_path, rails=1)
    monkeypatch.setattr(command.kernel, "bind_cpus", lambda cpus: None)
    arguments = ["--gpu", "0", "--memory", "none", "--nics", "/no/such/program"]
    assert command.run(host, arguments) == command.NOT_FOUND
    assert "/etc/nccl.conf names no device that is near the GPU" in capsys.readouterr().err


def test_the_kernel_s_calls_bind_a_process_and_are_read_back(tmp_path):
    cpu = min(os.sched_getaffinity(0))
    program = (
        "import os\nfrom gpufab_cli.module_utils.bind import kernel\n"
        f"kernel.bind_cpus([{cpu}])\nprint(os.sched_getaffinity(0))\n"
        "kernel.bind_memory((0,), kernel.MPOL_BIND)\nprint(kernel.memory_policy())\n"
        "try:\n    kernel.bind_cpus([1000])\nexcept kernel.BindError as error:\n    print(error)\n"
        "try:\n    kernel.bind_memory((900,), kernel.MPOL_BIND)\nexcept kernel.BindError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert lines[0] == str({cpu}), done.stderr
    if len(lines) == 1 and "Operation not permitted" in done.stderr:
        pytest.skip("a seccomp filter forbids set_mempolicy here")
    assert lines[1] == "(2, (0,))"
    assert "none is online and allowed here" in lines[2]
    assert lines[3].startswith("memory of node 900: Invalid argument")


def test_the_program_on_the_node_has_it(tmp_path):
    path = tmp_path / "gpufab.pyz"
    path.write_bytes(build())
    argv = [sys.executable, "-I", str(path), "bind"]
    done = subprocess.run([*argv, "--help"], capture_output=True, text=True, check=False)
    assert (done.returncode, "--local-rank" in done.stdout) == (0, True)
    done = subprocess.run([*argv, "--local-rank", "0", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == command.FAILED
    assert done.stderr.startswith("gpufab-bind: local rank 0, and there are 0 GPUs")
