"""Whether users reach what is written for them: gpufab's own folders are mended, the site's are told."""

import pytest

from gpufab_cli.module_utils import access, planning
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.converge import Order, converge
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.mpi import files as mpi
from gpufab_cli.module_utils.nccl_env import files as nccl
from gpufab_cli.module_utils.node import files as program
from gpufab_cli.module_utils.node.want import NodeWant
from tests.fakes import FakeHost

OWN = dict(zip(access.OWN, (0o755, 0o755, 0o755, 0o700), strict=True))
NODE = FEATURES["node"]


def host():
    files = dict.fromkeys(("/etc/ucx/ucx.conf", "/usr/local/bin/gpufab-bind"), "")
    found = FakeHost({"/proc/sys/kernel/random/boot_id": "boot-1", **files})
    folders = ("/etc", "/etc/ucx", "/usr", "/usr/local", "/usr/local/bin", "/usr/local/lib")
    found.modes = {**OWN, **dict.fromkeys(folders, 0o755), "/usr/local/bin/gpufab-bind": 0o755}
    return found


def plan(node):
    want = NodeWant(())
    planned = planning.plan(NODE, planning.take(node, {"node": NODE}, {"node": want}), want)
    steps = [step for step in planned.steps if step.name == access.STEP]
    found = [(f.path[0], f.evidence, f.unknown) for f in planned.findings if f.code == access.CODE]
    return [change for step in steps for change in step.changes], found


def test_as_they_are_made_there_is_nothing_to_say():
    assert plan(host()) == ([], [])


@pytest.mark.parametrize(
    ("path", "wrong"), [("/etc/gpufab", 0o700), ("/usr/local/lib/gpufab", 0o700), (access.PRIVATE, 0o755)]
)
def test_a_folder_of_gpufab_s_own_gets_its_mode_back(path, wrong):
    node = host()
    node.modes[path] = wrong
    (change,), found = plan(node)
    assert (change.path, change.current, change.desired) == ((path,), f"{wrong:04o}", f"{OWN[path]:04o}")
    assert found == []
    made = converge(node, NODE, NodeWant(()), Order())
    assert {r.step.name: r.status.value for r in made.steps}[access.STEP] == "made"
    assert node.modes[path] == OWN[path]
    assert plan(node)[0] == []


def test_a_mode_that_does_not_stick_is_a_failure_and_is_put_back():
    node = host()
    node.modes["/etc/gpufab"] = 0o700
    node.set_mode = lambda path, mode: None
    made = converge(node, NODE, NodeWant(()), Order())
    (result,) = [r for r in made.steps if r.step.name == access.STEP]
    assert result.reason == "did not stick: /etc/gpufab is 0700, not 0755; undone"


def test_a_folder_of_the_site_is_told_and_left_alone():
    node = host()
    node.modes["/etc/ucx"] = 0o700
    assert plan(node) == ([], [("/etc/ucx", "it has mode 0700: users do not reach /etc/ucx/ucx.conf", False)])
    assert node.modes["/etc/ucx"] == 0o700


@pytest.mark.parametrize(
    ("path", "mode", "fine"),
    [
        ("/etc/ucx/ucx.conf", 0o600, False),
        ("/etc/ucx/ucx.conf", 0o604, True),
        ("/usr/local/bin/gpufab-bind", 0o744, False),
        ("/usr/local/bin", 0o751, True),
        ("/usr/local/bin", 0o754, False),
    ],
)
def test_users_need_to_read_files_to_search_folders_and_to_run_programs(path, mode, fine):
    node = host()
    node.modes[path] = mode
    assert [found[0] for found in plan(node)[1]] == ([] if fine else [path])


def test_what_is_not_there_hides_nothing():
    node = host()
    node.modes["/etc/enroot"] = 0o700
    assert plan(node) == ([], [])


def test_what_cannot_be_told_is_unknown():
    node, plain = host(), FakeHost.mode
    node.mode = lambda path: Unknown("Input/output error") if path == "/etc/ucx" else plain(node, path)
    assert [(found[0], found[2]) for found in plan(node)[1]] == [("/etc/ucx", True)]


def test_all_that_features_write_for_users_is_looked_at():
    written = {nccl.NCCL_CONF, *nccl.CONTAINERS.values(), mpi.UCX_CONF, mpi.PROGRAM, program.PROGRAM}
    params = {f"/etc/openmpi/{name}" for name in (mpi.OPENMPI, mpi.PRTE)}
    assert written | params <= set(access.PUBLIC)
