"""``gpufab topo``: from a node, from what was saved of it, from what was pasted."""

import io
import json

import pytest

from gpufab_cli import cli
from gpufab_cli.apply.effects import Doors
from gpufab_cli.commands.topo import command
from gpufab_cli.module_utils.program import MARKER
from gpufab_cli.module_utils.topology import report
from gpufab_cli.reach.remote_loader import REFUSED
from gpufab_cli.reach.result import Result, UnreachableError
from tests.machine import LabHost
from tests.unit.topology.machines import MATRICES
from tests.unit.topology.test_reports import CLOUD


@pytest.fixture
def machine(tmp_path):
    return LabHost(tmp_path, "hgx-b200", rails=None, cpus=2)


@pytest.fixture
def topo(site, capfd):
    """Run the command; ``answer`` is what the host's program prints."""

    def run(*arguments, answer="", stderr=""):
        asked = []

        def execute(target, argv, stdin, seconds):
            asked.append((target.host, "topology" in argv[-1]))
            if isinstance(answer, Exception):
                raise answer
            return Result(0, answer.encode(), stderr.encode())

        code = cli.run(["topo", *arguments], Doors(execute))
        out, err = capfd.readouterr()
        return code, out, err, asked

    return run


def printed(machine):
    out = io.StringIO()
    report.answer(machine, out, MARKER)
    return "motd\n" + out.getvalue()


def test_a_node_with_its_nvlinks(topo, machine, tmp_path):
    code, out, err, asked = topo("gpu01", "--svg", "node.svg", "--format", "json", answer=printed(machine))
    assert (code, asked) == (0, [("gpu01", True)])
    found = json.loads(out)
    assert found["matrix"]["GPU0"]["GPU7"] == "NV18"
    assert found["matrix"]["GPU4"]["NIC6"] == "PXB"
    assert {port["device"]: port["role"] for port in found["ports"]}["mlx5_8"] == "nvswitch"
    assert found["pairs"][3] == {"gpu": "GPU3", "nic": "mlx5_3", "distance": "PXB"}
    assert found["gpus"][0]["cpus"] == "0-1"
    assert err == "node.svg: drawn\n"
    assert (tmp_path / "node.svg").read_text().startswith("<svg ")


def test_what_the_lock_calls_a_port_is_what_it_is_called(topo, machine, site):
    lock = site / "fabric.lock.yml"
    lock.write_text(lock.read_text().replace("0000:18:00.0", machine.hardware.machine.ports[0].pci, 1))
    found = json.loads(topo("gpu01", "--format", "json", answer=printed(machine))[1])
    assert {port["device"]: port["rail"] for port in found["ports"] if port["rail"]} == {"mlx5_0": "compute/0"}


def test_without_nvidia_smi_nvlinks_are_not_known_and_that_is_told(topo, machine):
    silent = json.loads(printed(machine).splitlines()[-1])
    silent["matrix"] = {"unknown": "nvidia-smi is not installed"}
    code, out, err, _ = topo("gpu01", answer=f"{MARKER}\n{json.dumps(silent)}\n")
    assert code == 0
    assert "NV18" not in out
    assert "gpu01: NVLinks are not known: nvidia-smi is not installed\n" in err
    assert "between GPUs: PCIe paths" in err


def test_without_root_roles_may_be_wrong_and_that_is_told(topo, machine):
    err = topo("gpu01", answer=printed(machine), stderr=f"{REFUSED}sudo: a password is required\n")[2]
    assert "gpu01: no root, so that roles of ports may be wrong: sudo: a password is required\n" in err


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (UnreachableError("no route to host", ""), "gpu01: unreachable: no route to host"),
        ("hello\n", "gpu01: garbage: printed"),
        (f"{MARKER}\n{{}}\n", "gpu01: garbage: 'devices'"),
        (f"{MARKER}\nnot json\n", "gpu01: garbage: Expecting value"),
        (f'{MARKER}\n{{"devices": {{"gpus": 3}}, "matrix": ""}}\n', "gpu01: garbage: "),
    ],
)
def test_a_host_that_does_not_answer_as_it_should(topo, answer, told):
    code, out, err, _ = topo("gpu01", answer=answer)
    assert (code, out) == (3, "")
    assert told in err


def test_a_saved_snapshot(gpufab_on, nodes):
    assert gpufab_on("audit", "--save", "kept")[0] == 0
    code, out, _ = gpufab_on("topo", "gpu02", "--from", "kept")
    assert code == 0
    assert "compute/0" in out


def test_a_pasted_matrix_and_its_findings(topo):
    code, out, _, asked = topo("--from", str(MATRICES / "l40s-one-socket.txt"))
    assert (code, asked) == (1, [])
    assert "GPU0     no rail on its own NUMA node; mlx5_0 is SYS away   topo.remote-rail" in out
    assert "PIX" in out


def test_an_nccl_file(topo, tmp_path):
    (tmp_path / "topo.xml").write_text(CLOUD)
    found = json.loads(topo("--from", "topo.xml", "--format", "json")[1])
    assert found["matrix"]["GPU0"]["NIC0"] == "PXB"
    assert found["gpus"][0]["pci"] == "0000:0d:00.0"


def test_what_a_matrix_does_not_say_is_null(topo):
    found = json.loads(topo("--from", str(MATRICES / "guest-h100.txt"), "--format", "json")[1])
    assert found["gpus"][0] == {"gpu": "GPU0", "numa": None, "cpus": None, "pci": None, "bridges": None}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "no host is named"),
        (["gpu99"], "no host 'gpu99' in fabric.yml"),
        (["--from", "none.txt"], "none.txt: No such file or directory"),
        (["gpu01", "--from", "fabric.yml"], "fabric.yml: no directory of snapshots"),
        (["gpu01", "--from", "-"], "-: no directory of snapshots"),
        (["gpu01", "--from", "kept"], "kept: No such file or directory"),
        (["--from", "fabric.yml"], "no matrix in it"),
        (["--from", "latin.txt"], "latin.txt: not UTF-8 text"),
        (["gpu01", "--from", "."], ".: no saved snapshots"),
        (["--from", str(MATRICES / "gb200.txt"), "--svg", "no/such.svg"], "no/such.svg: No such file or directory"),
    ],
)
def test_what_cannot_be_shown(topo, tmp_path, arguments, told):
    (tmp_path / "latin.txt").write_bytes(b"\xe4")
    code, _, err, asked = topo(*arguments)
    assert (code, asked) == (2, [])
    assert told in err


def test_hosts_are_completed(site):
    kind = next(parameter.type for parameter in command.params if parameter.name == "host")
    context = command.make_context("topo", [], resilient_parsing=True)
    assert [item.value for item in kind.shell_complete(context, command.params[0], "gpu0")] == [
        "gpu01",
        "gpu02",
        "gpu03",
    ]
    (site / "fabric.yml").write_text("nonsense")
    assert kind.shell_complete(context, command.params[0], "gpu0") == []
