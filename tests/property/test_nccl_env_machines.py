"""Over random files on an emulated machine: audit, dry run and run agree, again and after a reboot nothing is left."""

from hypothesis import given
from hypothesis import strategies as st

from gpufab_cli.module_utils.mpi.files import UCX_CONF
from gpufab_cli.module_utils.nccl_env.files import CONTAINERS, NCCL_CONF
from gpufab_cli.module_utils.restore import EARLY, restore
from tests.unit.core.rails_node import lossless, machine, mpi, nccl
from tests.unit.core.test_mpi import DEBIAN, MCA, with_mpi

from .test_machine import drift, holds, relaxed

confs = st.sampled_from(
    ("", "NCCL_IB_TC=41\n", "# ours\nNCCL_DEBUG=INFO\n", "export NCCL_IB_HCA = mlx5\n", "NCCL_IB_HCA=x\n")
)
ucx = st.sampled_from(("", "UCX_TLS=tcp\n", "UCX_NET_DEVICES==mlx5_0\n[section]\nUCX_TLS=rc\n"))
mca = st.sampled_from((DEBIAN, "pml = ob1\n", "btl = ^openib\npml=ucx\n", "\n"))
variables = st.none() | st.dictionaries(
    st.sampled_from(("NCCL_DEBUG", "NCCL_CROSS_NIC", "NCCL_IB_DATA_DIRECT")), st.sampled_from("012"), min_size=1
)
containers = st.none() | st.lists(st.sampled_from(sorted(CONTAINERS)), unique=True, min_size=1).map(tuple)


nodes = st.fixed_dictionaries({"nccl": confs, "ucx": ucx, "mca": mca, "major": st.sampled_from((4, 5))})


@relaxed
@given(nodes, variables, containers)
def test_nccl_and_mpi(tmp_path_factory, found, variables, containers):
    folder = tmp_path_factory.mktemp("lab")
    host = with_mpi(lossless(machine(folder, count=1)), found["major"], text=found["mca"])
    host.files |= {path: found[key] for path, key in ((NCCL_CONF, "nccl"), (UCX_CONF, "ucx")) if found[key]}
    told = nccl(host, variables=variables, containers=containers, release="2.27.5", takeover=True)
    wishes = {"nccl_env": told, "mpi": mpi(host, tls=("rc", "self"), binding="numa", takeover=True)}
    for name, want in wishes.items():
        holds(host, name, want)
    host.boot()
    for path in (NCCL_CONF, MCA):  # an image of before
        host.files.pop(path)
    assert restore(host, EARLY)
    assert restore(host, EARLY)
    assert {name: drift(host, name, want) for name, want in wishes.items()} == {"nccl_env": set(), "mpi": set()}
