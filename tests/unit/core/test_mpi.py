"""What Open MPI and UCX are told on emulated machines, by the releases that are there."""

import pytest

from gpufab_cli.module_utils import settings_file
from gpufab_cli.module_utils.mpi import files
from gpufab_cli.module_utils.mpi.files import PROGRAM, UCX_CONF
from gpufab_cli.module_utils.mpi.gather import installs
from gpufab_cli.module_utils.settings_file import take_apart
from tests.fakes import FakeHost

from .rails_node import found, look, lossless, machine, mpi, run
from .test_nccl_env import process

MCA, PRTE = "/etc/openmpi/openmpi-mca-params.conf", "/etc/openmpi/prte-mca-params.conf"
LIBRARIES = "/usr/lib/x86_64-linux-gnu"
DEBIAN = "mtl = ^ofi\nbtl = ^uct,openib,ofi\npml = ^ucx\nosc = ^ucx,pt2pt\n"
RELEASES = {4: "libmpi.so.40.30.4", 5: "libmpi.so.40.40.7"}


def with_mpi(host, major, *, ucx=True, text=DEBIAN):
    """A machine with Debian's packages of a release."""
    host.files[f"{LIBRARIES}/libmpi.so.40"] = host.files[f"{LIBRARIES}/{RELEASES[major]}"] = ""
    if text is not None:
        host.files[MCA] = text
    if ucx:
        host.files[f"{LIBRARIES}/libucp.so.0"] = ""
    return host


@pytest.fixture
def host(tmp_path):
    return lossless(machine(tmp_path))


def told(host, path):
    return take_apart(files.form(path), host.read(path)).own


def test_open_mpi_4_uses_ucx_and_binds_in_its_own_words(host):
    want = mpi(with_mpi(host, 4), tls=("rc", "cuda", "sm", "self"), binding="package", socket_interfaces=("eno1",))
    host.hardware.node.interfaces["eno1"] = (1, "02:00:00:00:00:01")
    assert {status for status, _ in run(host, "mpi", want).values()} == {"made"}
    assert told(host, MCA) == {
        "pml": "ucx",
        "btl_tcp_if_include": "eno1",
        "oob_tcp_if_include": "eno1",
        "hwloc_base_binding_policy": "socket",
    }
    assert told(host, UCX_CONF) == {
        "UCX_NET_DEVICES": "mlx5_0:1,mlx5_1:1",
        "UCX_TLS": "rc,cuda,sm,self",
        "UCX_IB_TRAFFIC_CLASS": "106",
    }
    assert PRTE not in host.files
    assert (look(host, "mpi", want).steps, look(host, "mpi", want).findings) == ((), ())


def test_debian_s_own_defaults_are_overruled_and_stay(host):
    run(host, "mpi", mpi(with_mpi(host, 4)))
    assert host.read(MCA).startswith(DEBIAN)
    assert host.read(MCA).endswith(f"pml = ucx\n{settings_file.END}")


def test_open_mpi_5_has_its_run_time_s_own_file(host):
    run(host, "mpi", mpi(with_mpi(host, 5), binding="numa", socket_interfaces=("eno1",)))
    assert told(host, MCA) == {"pml": "ucx", "btl_tcp_if_include": "eno1"}
    assert told(host, PRTE) == {"hwloc_default_binding_policy": "numa", "prte_if_include": "eno1"}


@pytest.mark.parametrize(
    ("major", "ucx", "text", "wanted"),
    [
        (4, True, DEBIAN, {"pml": "ucx"}),
        (4, True, "btl = ^openib,ofi\n", {"pml": "ucx"}),
        (4, True, None, {"pml": "ucx", "btl": "^openib"}),
        (4, False, None, {"btl_openib_allow_ib": "1"}),
        (5, True, None, {"pml": "ucx"}),
    ],
)
def test_openib_never_beside_ucx_and_allowed_only_for_4_without(host, major, ucx, text, wanted):
    run(host, "mpi", mpi(with_mpi(host, major, ucx=ucx, text=text)))
    assert told(host, MCA) == wanted


def test_open_mpi_5_without_ucx_is_told_nothing_and_named(host):
    with_mpi(host, 5, ucx=False, text=None)
    assert set(run(host, "mpi", mpi(host))) == {"mpi gpufab-bind"}
    assert [code for code, _, _ in found(host, "mpi", mpi(host))] == ["mpi.no-ucx"]


def test_without_mpi_only_the_program_is_kept(host):
    assert run(host, "mpi", mpi(host)) == {"mpi gpufab-bind": ("made", "")}
    assert b"gpufab.pyz bind" in host.files[PROGRAM]
    assert [code for code, _, _ in found(host, "mpi", mpi(host))] == ["mpi.missing"]


@pytest.mark.parametrize("arch", ["x86_64", "aarch64"])
def test_the_folder_of_an_el_package_is_that_of_its_machine(arch):
    files = {"/usr/lib64/openmpi/lib/libmpi.so.40.30.7": "", f"/etc/openmpi-{arch}/openmpi-mca-params.conf": ""}
    assert [(it.folder, it.major) for it in installs(FakeHost(files))] == [(f"/etc/openmpi-{arch}", 4)]


def test_a_library_of_no_known_release_is_unknown(host):
    host.files["/usr/lib64/openmpi/lib/libmpi.so.40"] = ""
    (finding,) = [f for f in look(host, "mpi", mpi(host)).findings if f.code == "mpi.release"]
    assert (finding.unknown, finding.path) == (True, ("/etc/openmpi-x86_64",))


def test_a_site_s_choice_blocks_its_file_alone(host):
    with_mpi(host, 4, text="pml = ob1\n")
    steps = run(host, "mpi", mpi(host))
    assert steps[f"mpi {MCA}"][0] == "blocked"
    assert steps[f"mpi {UCX_CONF}"] == ("made", "")
    assert run(host, "mpi", mpi(host, takeover=True))[f"mpi {MCA}"] == ("made", "")
    assert "ob1" not in host.read(MCA)


def test_ucx_waits_for_the_class_too(tmp_path):
    host = with_mpi(machine(tmp_path), 4)
    steps = run(host, "mpi", mpi(host))
    assert steps[f"mpi {UCX_CONF}"][0] == "blocked"
    assert steps[f"mpi {UCX_CONF}"][1].startswith("UCX_IB_TRAFFIC_CLASS=106 waits for feature roce")


@pytest.mark.parametrize(
    ("variables", "codes"),
    [
        ({"UCX_TLS": "tcp", "UCX_NET_DEVICES": "enp24s0np0"}, []),
        ({"UCX_NET_DEVICES": "mlx5_0:1"}, []),
        ({"UCX_NET_DEVICES": "all"}, []),
        ({"UCX_NET_DEVICES": "=mlx5_0:1"}, ["mpi.net-devices"]),
        ({"UCX_NET_DEVICES": "mlx5_0"}, ["mpi.net-devices"]),
        ({"UCX_NET_DEVICES": "mlx5_7:1"}, ["mpi.net-devices"]),
        ({"UCX_NET_DEVICES": "mlx5_0:2"}, ["mpi.net-devices"]),
        ({"UCX_NET_DEVICES": ",".join(f"x{n}:1" for n in range(1000))}, ["mpi.net-devices"] * 13),
        ({"UCX_IB_TRAFFIC_CLASS": "106"}, []),
        ({"UCX_IB_TRAFFIC_CLASS": "41"}, ["mpi.class"]),
        ({"UCX_IB_TRAFFIC_CLASS": "auto"}, []),
    ],
)
def test_reports_45_and_46_what_jobs_tell_ucx(host, variables, codes):
    run(host, "mpi", mpi(with_mpi(host, 4)))
    process(host, "77", variables)
    assert [code for code, _, _ in found(host, "mpi", mpi(host))] == codes
