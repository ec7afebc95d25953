"""The checks of NCCL's and MPI's settings, each on a node as declared and on one where just that is wrong."""

import inspect

import pytest

from gpufab_cli.module_utils.nccl_env.variables import OLDEST, SINCE
from gpufab_cli.reach.target import Target
from gpufab_cli.verify import nccl_releases, parsers, test_mpi, test_nccl_env
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, Section, UnreadableError

RAILS = [{"pci": "0000:18:00.0"}, {"pci": "0000:3a:00.0"}]
ROCE = {"traffic_class": 106, "priority": 3, "pfc": True}
WISHES = {
    "nccl_env": {
        "rails": RAILS, "roce": ROCE, "socket_interfaces": ["eno1"],
        "variables": {"NCCL_DEBUG": "WARN", "NCCL_IB_QPS_PER_CONNECTION": "4"},
        "containers": ["enroot", "slurm"],
    },
    "mpi": {"rails": RAILS, "roce": ROCE},
}  # fmt: skip
CONF = """\
# kept
NCCL_DEBUG=WARN
NCCL_IB_QPS_PER_CONNECTION=4
NCCL_IB_HCA==mlx5_0:1,mlx5_4:1
NCCL_IB_TC=106
NCCL_SOCKET_IFNAME==eno1
NCCL_IB_TC=0"""
WITHOUT_QPS = CONF.replace("NCCL_IB_QPS_PER_CONNECTION=4\n", "")
HEALTHY = {
    "names": "0000:18:00.0 mlx5_0\n0000:3a:00.0 mlx5_4\n0000:5c:00.0 mlx5_1",
    "nccl/conf": CONF,
    "nccl/enroot": CONF,
    "nccl/libraries": "2.27.5\n2.12.12",
    "nccl/slurm": "export NCCL_IB_HCA==mlx5_0:1,mlx5_4:1\nexport NCCL_IB_TC=106",
    "mpi/ucx": "UCX_NET_DEVICES=mlx5_0:1,mlx5_4:1\nUCX_IB_TRAFFIC_CLASS=0\nUCX_IB_TRAFFIC_CLASS=106",
    "mpi/pml": "/etc/openmpi/openmpi-mca-params.conf ucx",
    "mpi/libucp": "libucp.so.0 (libc6,x86-64) => /lib/libucp.so.0",
    "mpi/bind": "usage: gpufab-bind [--local-rank N]",
}
CHECKS = [
    (f"{module.__name__.rpartition('_')[2]}:{name}", check)
    for module in (test_nccl_env, test_mpi)
    for name, check in vars(module).items()
    if name.startswith("test_") and inspect.isfunction(check)
]


def failing(changed):
    """The checks that do not pass, each with what it says."""
    found = {**HEALTHY, **changed}
    read = Reading({name: Section(name, "0", text) for name, text in found.items() if text is not None})
    target = Target("gpu01", "gpu01", None, None, None, "none", "/usr/bin/python3", "active")
    arguments = {"node": Node(target, WISHES, (), (), ()), "reading": read}
    said = {}
    for name, check in CHECKS:
        try:
            check(**{key: arguments[key] for key in inspect.signature(check).parameters})
        except (AssertionError, UnreadableError) as error:
            said[name] = str(error).splitlines()[0]
    return said


@pytest.mark.parametrize(
    ("changed", "check", "said"),
    [
        ({}, None, ""),
        ({"mpi/libucp": "none", "mpi/ucx": None}, None, ""),
        ({"mpi/pml": "none"}, None, ""),
        ({"nccl/conf": CONF.replace("==mlx5", "=mlx5")}, "env:test_nccl_devices", "wanted =mlx5_0:1,mlx5_4:1"),
        ({"nccl/conf": CONF.replace("NCCL_IB_TC=106\n", "")}, "env:test_nccl_class", "NCCL_IB_TC is 0"),
        ({"nccl/conf": CONF.replace("WARN", "INFO")}, "env:test_nccl_variables", "NCCL_DEBUG is INFO"),
        (
            {"nccl/conf": CONF.replace("NCCL_DEBUG=WARN\n", "")},
            "env:test_nccl_variables",
            "NCCL_DEBUG is not set",
        ),
        ({"nccl/conf": WITHOUT_QPS}, "env:test_nccl_variables", "NCCL_IB_QPS_PER_CONNECTION is not set, wanted 4"),
        ({"nccl/conf": WITHOUT_QPS, "nccl/libraries": "2.27.5\n2.8.4"}, None, ""),  # the oldest does not know it
        (
            {"nccl/conf": WITHOUT_QPS, "nccl/libraries": "2.27.5\n2.8.4.bak"},
            "env:test_nccl_variables",
            "NCCL_IB_QPS_PER_CONNECTION is not set",
        ),
        ({"nccl/conf": WITHOUT_QPS, "nccl/libraries": "none"}, "env:test_nccl_variables", "no NCCL is there"),
        ({"nccl/conf": CONF.replace("eno1", "eno2")}, "env:test_nccl_sockets", "NCCL_SOCKET_IFNAME is =eno2"),
        ({"nccl/slurm": "export NCCL_IB_TC=106"}, "env:test_nccl_containers", "slurm: NCCL_IB_HCA is not set"),
        ({"nccl/enroot": None}, "env:test_nccl_containers", "enroot: not looked at"),
        ({"mpi/ucx": "UCX_IB_TRAFFIC_CLASS=106"}, "mpi:test_ucx_devices", "UCX_NET_DEVICES is not set"),
        ({"mpi/ucx": HEALTHY["mpi/ucx"][:-3] + "26"}, "mpi:test_ucx_class", "is 26, wanted 106"),
        ({"mpi/pml": "/etc/x ^ucx"}, "mpi:test_mpi_transport", "pml is ^ucx"),
        ({"mpi/pml": "/etc/x "}, "mpi:test_mpi_transport", "/etc/x: pml is not set"),  # its file is not there
        ({"mpi/bind": None}, "mpi:test_bind_program", "gpufab-bind: not looked at"),
    ],
)
def test_each_check_tells_just_its_fault(changed, check, said):
    found = failing(changed)
    assert set(found) - ({"env:test_nccl_containers"} if "nccl/conf" in changed else set()) == (
        {check} if check else set()
    )
    assert said in found.get(check, "")


def test_a_bond_s_device_is_at_one_of_its_ports():
    assert parsers.rail_devices(["0000:18:00.0 mlx5_bond_0"], RAILS) == ["mlx5_bond_0"]


def test_a_declared_release_counts_and_not_the_library():
    release = {**WISHES["nccl_env"], "release": "2.8.4"}
    arguments = Reading({"nccl/conf": Section("nccl/conf", "0", WITHOUT_QPS)})
    target = Target("gpu01", "gpu01", None, None, None, "none", "/usr/bin/python3", "active")
    test_nccl_env.test_nccl_variables(Node(target, {"nccl_env": release}, (), (), ()), arguments)


def test_what_nccl_reads_since_when_is_told_as_the_core_has_it():
    core = {name: first for name, first in SINCE.items() if first != OLDEST}
    assert core == nccl_releases.SINCE
