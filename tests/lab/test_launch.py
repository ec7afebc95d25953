"""mpirun and gpufab-bind on two nodes: each rank, asked itself, is where the plan puts it.

The kernel's part is real: CPUs 0 and 1 and memory of node 0 are the host's own. Which CPU and memory are next to which
GPU is the emulated machine's word (two-cpu).
"""

import base64
import json
import shlex

import pytest

from gpufab_cli.lab.lab import Lab
from gpufab_cli.launch.bindings import parse
from gpufab_cli.module_utils.archive import build
from gpufab_cli.module_utils.mpi.files import PROGRAM, SCRIPT

from .fabric import Fabric

pytestmark = pytest.mark.lab

FABRIC = """\
name: pair
networks:
  compute: {transport: roce, rails: 2, qos: dcqcn}
qos:
  dcqcn: {lossless: [{priority: 3, dscp: [26]}], cnp: {priority: 6, dscp: 48}}
profiles:
  pair:
    ports: [{network: compute, rail: 0-1}]
    mpi: {implementation: openmpi, socket_interfaces: [eth0]}
hosts:
  - {name: gpu01, profile: pair, leaf: a}
  - {name: gpu02, profile: pair, leaf: b}
connection: {user: ops, ssh_config: .lab/ssh_config}
"""
# What a rank sees of itself: the kernel's word on its CPUs, its memory policy as numa_maps has it, its environment.
RANK = """\
import json, os, socket
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
names = ("OMPI_COMM_WORLD_RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES", "GLOO_SOCKET_IFNAME", "NCCL_IB_HCA")
print(json.dumps({
    "host": socket.gethostname(),
    "cpus": status["Cpus_allowed_list"].strip(),
    "memory": sorted({line.split()[1] for line in open("/proc/self/numa_maps")} - {"default"}),
    "environment": {name: os.environ[name] for name in names if name in os.environ},
}), flush=True)
"""
PLACES = {"0": "0", "1": "1"}  # CPU of each local rank's GPU
PROBE = "/tmp/rank.py"


class Pair(Fabric):
    """Two nodes with an Open MPI, which reach one another by SSH."""

    def __init__(self, folder, platform):
        self.folder, self.names, self.env = folder, ["gpu01", "gpu02"], {}
        self.lab, self.platform = Lab(folder / ".lab"), platform
        (folder / "fabric.yml").write_text(FABRIC)

    def up(self):
        self.lab.up(self.names, "two-cpu", f"{self.platform}-mpi")
        for name in self.names:
            for path, content, mode in (
                ("/usr/local/lib/gpufab/gpufab.pyz", build(), "644"),
                (PROGRAM, SCRIPT, "755"),
                (PROBE, RANK.encode(), "644"),
            ):
                folder = path.rpartition("/")[0]
                self.sh(name, f"mkdir -p {folder} && base64 -d >{path} <<X\n{_base64(content)}\nX\nchmod {mode} {path}")
            self.sh(name, "ln -s /usr/bin/python3 /usr/local/lib/gpufab/python")
        self._ssh_between()
        self.cli("lock")
        return self

    def _ssh_between(self):
        """The site's part: a key and a name with which the first node reaches the second."""
        address = self.sh("gpu02", "ip -4 -o addr show dev eth0").split("inet ")[1].split("/")[0]
        key = (self.folder / ".lab/id_ed25519").read_text()
        file = "~ops/.ssh/id_ed25519"
        self.sh(
            "gpu01", f"mkdir -p -m 700 ~ops/.ssh && cat >{file} <<X\n{key}X\nchmod 600 {file}; chown -R ops: ~ops/.ssh"
        )
        self.sh("gpu01", f"echo {address} gpu02 >>/etc/hosts")
        self.sh("gpu01", "sudo -u ops ssh -o StrictHostKeyChecking=accept-new gpu02 true")


def _base64(content):
    return base64.b64encode(content).decode()


@pytest.fixture(scope="module", params=["debian12", "debian13"])
def pair(tmp_path_factory, request):
    made = Pair(tmp_path_factory.mktemp("launch"), request.param)
    try:
        yield made.up()
    finally:
        made.lab.down()


def test_each_rank_of_mpirun_reports_the_planned_binding(pair):
    done = pair.cli("launch", "--run", "--gpus", "--transport", "tcp", "python3", PROBE)
    release = {"debian12": "vader", "debian13": "prte_if_include"}[pair.platform]
    assert release in done.stderr  # the words of the Open MPI that is there
    found = {
        rank["environment"]["OMPI_COMM_WORLD_RANK"]: rank
        for rank in map(json.loads, (line for line in done.stdout.splitlines() if line.startswith("{")))
    }
    assert sorted(found) == ["0", "1", "2", "3"]
    for number, rank in ((int(number), rank) for number, rank in found.items()):
        local = str(number % 2)
        assert rank["host"] == ("gpu01", "gpu02")[number // 2]
        assert (rank["cpus"], rank["memory"]) == (PLACES[local], ["bind:0"])
        assert rank["environment"]["CUDA_VISIBLE_DEVICES"] == local
        assert rank["environment"]["GLOO_SOCKET_IFNAME"] == "eth0"


def test_report_48_what_this_mpirun_says_of_bindings_is_read(pair):
    """The words are those of the real program; the container's CPUs are on one package."""
    words = "mpirun --np 2 --host localhost:2 --mca pml ob1 --mca btl self,tcp --bind-to core --report-bindings true"
    done = pair.lab.run("gpu01", f"sudo -u ops {words}")
    found = sorted(parse(done.stdout + done.stderr), key=lambda bound: bound.rank)
    assert [(bound.host, bound.rank, len(bound.packages)) for bound in found] == [("gpu01", 0, 1), ("gpu01", 1, 1)]
    assert [bound.of is None for bound in found] == [pair.platform == "debian13"] * 2


def test_gpufab_bind_under_torchrun_s_environment(pair):
    for local in ("0", "1"):
        environment = f"LOCAL_RANK={local} TORCHELASTIC_RUN_ID=none"
        done = pair.lab.run("gpu01", f"env {environment} gpufab-bind --gpus --show python3 {PROBE}")
        rank = json.loads(done.stdout)
        assert (rank["cpus"], rank["memory"]) == (PLACES[local], ["bind:0"]), done.stderr
        assert rank["environment"] == {"LOCAL_RANK": local, "CUDA_VISIBLE_DEVICES": local}
        assert f"gpufab-bind: GPU {local} " in done.stderr


def test_a_rank_without_a_gpu_does_not_run(pair):
    done = pair.lab.run("gpu01", f"env LOCAL_RANK=2 gpufab-bind {shlex.quote('touch')} /tmp/ran")
    assert (done.returncode, "local rank 2, and there are 2 GPUs" in done.stderr) == (125, True)
    assert pair.lab.run("gpu01", "test -e /tmp/ran").returncode == 1


def test_numactl_and_hwloc_see_the_binding_too(pair):
    for local, mask in (("0", "0x00000001"), ("1", "0x00000002")):
        bound = f"env LOCAL_RANK={local} gpufab-bind --gpus"
        shown = pair.lab.run("gpu01", f"{bound} numactl --show").stdout.splitlines()
        assert {"policy: bind", f"physcpubind: {PLACES[local]} ", "membind: 0 "} <= set(shown)
        assert pair.lab.run("gpu01", f"{bound} hwloc-bind --get").stdout == f"{mask}\n"
