"""A job in the words of each launcher."""

import pytest

from gpufab_cli.errors import GpufabError
from gpufab_cli.fabric.resolve import resolve
from gpufab_cli.launch import run
from gpufab_cli.launch.job import BIND, Request, make
from gpufab_cli.launch.words import Options, hostfile, lines
from tests.fabrics import lock, spec

BOX = "ports: [{network: compute, rail: 0-1}]"
HOSTS = '{name: "gpu[01-03]", profile: box, address: "10.0.0.[11-13]"}'
MPI = f"{BOX}\n    mpi: {{implementation: openmpi, socket_interfaces: [eno1]}}"


def fabric(profile=MPI, hosts=HOSTS):
    return spec((BOX, profile), (HOSTS, hosts))


def job(given=None, **more):
    return make(resolve(given or fabric(), lock()), Request(**{"program": ("prog", "-n"), **more}))


def argv(made, launcher="mpirun", **options):
    (line,) = lines(made, launcher, Options(**options))
    return " ".join(line.argv)


def test_one_rank_a_gpu_next_to_it_in_the_words_of_open_mpi_4():
    assert argv(job(ranks=8, environment={"NCCL_DEBUG": "INFO"}), release=4) == (
        "mpirun --np 24 --host 10.0.0.11:8,10.0.0.12:8,10.0.0.13:8 --map-by slot --bind-to none"
        " --mca pml ucx --mca btl ^openib --mca btl_tcp_if_include eno1 --mca oob_tcp_if_include eno1"
        f" -x GLOO_SOCKET_IFNAME=eno1 -x TP_SOCKET_IFNAME=eno1 -x NCCL_DEBUG=INFO {BIND} prog -n"
    )


def test_report_48_open_mpi_5_binds_nothing_itself_and_has_a_run_time_of_its_own():
    found = argv(job(), release=5)
    assert "--map-by slot --bind-to none" in found  # -N and ppr:8:node bind all ranks to the first package
    assert "--np 3 " in found  # the lock has one GPU a host
    assert "--prtemca prte_if_include eno1 --mca pml ucx --mca btl_tcp_if_include eno1 -x" in found


@pytest.mark.parametrize(("release", "shared"), [(4, "vader"), (5, "sm")])
def test_without_rdma_messages_go_over_tcp(release, shared):
    assert f"--mca pml ob1 --mca btl tcp,{shared},self" in argv(job(), release=release, transport="tcp")


def test_report_46_a_site_s_own_class_and_mpi_over_the_management_port():
    site = {"NCCL_IB_TC": "41", "UCX_TLS": "tcp", "UCX_NET_DEVICES": "eth0"}
    found = argv(job(environment=site), release=4, transport="ucx")
    assert "--bind-to none" in found
    assert found.index("--mca pml ucx") < found.index("-x NCCL_IB_TC=41 -x UCX_TLS=tcp -x UCX_NET_DEVICES=eth0")
    assert "106" not in found


def test_parameters_that_are_given_have_the_last_word():
    found = argv(job(), parameters={"pml": "cm", "plm_rsh_agent": "ssh -p 7"})
    assert "--mca pml cm" in found
    assert "--mca pml ucx" not in found


def test_an_ipv6_address_is_told_from_its_slots():
    made = job(fabric(hosts='{name: "gpu[01-03]", profile: box, address: "fd00::[11-13]"}'))
    with pytest.raises(GpufabError, match="gpu01: --host cannot tell fd00::11 from its slots"):
        argv(made)
    assert "--hostfile h" in argv(made, hostfile="h")
    assert hostfile(made).startswith("fd00::11 slots=1\n")


def test_hosts_of_one_leaf_are_together():
    hosts = "\n  - ".join(
        f"{{name: gpu0{n}, profile: box{leaf}}}" for n, leaf in ((1, ""), (2, ", leaf: b"), (3, ", leaf: a"))
    )
    more = f"{hosts}\n  - {{name: gpu04, profile: box, leaf: b}}"
    made = job(fabric(hosts=more), ranks=2)
    assert hostfile(made) == "gpu02 slots=2\ngpu04 slots=2\ngpu03 slots=2\ngpu01 slots=2\n"
    assert "--hostfile hosts --map-by" in argv(made, hostfile="hosts")


def test_srun_binds_nothing_itself():
    assert argv(job(ranks=8), "srun") == (
        "env GLOO_SOCKET_IFNAME=eno1 TP_SOCKET_IFNAME=eno1 srun --nodes=3 --ntasks=24 --ntasks-per-node=8"
        " --distribution=block:block --nodelist=gpu01,gpu02,gpu03 --gpus-per-node=8 --gpu-bind=none --cpu-bind=none"
        f" --mem-bind=none --export=ALL --mpi=pmix {BIND} prog -n"
    )


def test_torchrun_has_a_line_a_host_with_its_own_rank():
    found = lines(job(ranks=8, bind=("--gpus",)), "torchrun", Options())
    assert [line.host for line in found] == ["gpu01", "gpu02", "gpu03"]
    assert " ".join(found[1].argv).endswith(
        "torchrun --nnodes=3 --node-rank=1 --nproc-per-node=8 --master-addr=10.0.0.11 --master-port=29500 --no-python"
        f" {BIND} --gpus prog -n"
    )


def test_hosts_with_other_numbers_of_gpus_are_mpirun_s_alone():
    locked = lock()
    host = locked.hosts["gpu02"]
    hosts = {**locked.hosts, "gpu02": host.model_copy(update={"gpus": ()})}
    with pytest.raises(GpufabError, match="no GPU of gpu02"):
        make(resolve(fabric(), locked.model_copy(update={"hosts": hosts})), Request(("x",)))
    hosts["gpu02"] = host.model_copy(update={"gpus": (*host.gpus, *host.gpus)})
    made = make(resolve(fabric(), locked.model_copy(update={"hosts": hosts})), Request(("x",)))
    assert "--host 10.0.0.11:1,10.0.0.12:2,10.0.0.13:1" in argv(made)
    with pytest.raises(GpufabError, match="srun starts as many ranks on each host"):
        lines(made, "srun", Options())


def test_a_host_without_the_program_that_binds_is_named():
    with pytest.raises(GpufabError, match="is not kept on gpu01, gpu02, gpu03"):
        job(fabric(BOX))
    assert BIND not in argv(job(fabric(BOX), bind=None))


@pytest.mark.parametrize(("said", "major"), [("mpirun (Open MPI) 4.1.4", 4), ("mpirun (Open MPI) 5.0.7", 5)])
def test_the_host_s_open_mpi_is_asked(monkeypatch, said, major):
    monkeypatch.setattr(run, "ssh_argv", lambda target, argv, seconds: ["echo", said])
    assert run.release(None, "mpirun") == major


def test_a_host_without_open_mpi_is_one_line(monkeypatch):
    from types import SimpleNamespace

    monkeypatch.setattr(run, "ssh_argv", lambda target, argv, seconds: ["sh", "-c", "echo not found >&2; exit 127"])
    with pytest.raises(GpufabError, match="gpu01: mpirun --version: not found"):
        run.release(SimpleNamespace(host="gpu01"), "mpirun")
    assert run.run(SimpleNamespace(host="gpu01"), ["x"]) == 127
    monkeypatch.setattr(run, "ssh_argv", lambda target, argv, seconds: ["sh", "-c", "exit 255"])
    with pytest.raises(GpufabError, match="ssh ended with 255"):
        run.run(SimpleNamespace(host="gpu01"), ["x"])
