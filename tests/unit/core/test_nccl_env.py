"""NCCL's environment on emulated machines, and what is said of what others have written."""

import subprocess
from dataclasses import replace

import pytest

from gpufab_cli.module_utils import jobs_environment, planning
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.features import FEATURES, SEEN_TYPES
from gpufab_cli.module_utils.nccl_env import files, variables
from gpufab_cli.module_utils.nccl_env.files import NCCL_CONF
from gpufab_cli.module_utils.roce import dcb
from gpufab_cli.module_utils.settings_file import BEGIN, END, take_apart
from gpufab_cli.module_utils.snapshot import dumps, loads, within
from tests.fakes import start

from .rails_node import CHECK, found, look, lossless, machine, mpi, nccl, run

STEP = f"nccl_env {NCCL_CONF}"


@pytest.fixture
def host(tmp_path):
    return lossless(machine(tmp_path))


def told(host, path=NCCL_CONF):
    """What gpufab's lines in a file say."""
    text = host.read(path)
    return take_apart(files.form(path), text).own


def process(host, pid, environment, gpu="/dev/nvidia0"):
    """A process that holds a GPU open."""
    host.files[f"/proc/{pid}/environ"] = "".join(f"{name}={value}\0" for name, value in environment.items())
    start(host, pid, "python", gpu, uid=1000)


def codes(host, want=None):
    return [code for code, _, _ in found(host, "nccl_env", want or nccl(host))]


def words(host, code, want=None):
    (said,) = [text for c, _, text in found(host, "nccl_env", want or nccl(host)) if c == code]
    return said


def test_the_file_has_the_devices_of_this_node_exactly_and_the_class_of_the_fabric(host):
    want = nccl(host, socket_interfaces=("eno1",), variables={"NCCL_DEBUG": "WARN"}, release="2.27.5")
    host.hardware.node.interfaces["eno1"] = (1, "02:00:00:00:00:01")
    assert run(host, "nccl_env", want)[STEP] == ("made", "")
    assert host.read(NCCL_CONF) == "\n".join(
        [
            BEGIN,
            "NCCL_DEBUG=WARN",
            "NCCL_IB_HCA==mlx5_0:1,mlx5_1:1",
            "NCCL_IB_TC=106",
            "NCCL_SOCKET_IFNAME==eno1",
            END,
        ]
    )
    plan = look(host, "nccl_env", want)
    assert (plan.steps, [f.code for f in plan.findings]) == ((), [])


def test_infiniband_has_no_traffic_class_and_its_service_level(tmp_path):
    host = machine(tmp_path, "hgx-h100-ib")
    assert run(host, "nccl_env", nccl(host, variables={"NCCL_IB_SL": "1"}))[STEP] == ("made", "")
    assert set(told(host)) == {"NCCL_IB_HCA", "NCCL_IB_SL"}


def test_no_class_is_announced_that_the_nics_do_not_keep_lossless(tmp_path):
    host = machine(tmp_path)
    status, reason = run(host, "nccl_env", nccl(host))[STEP]
    assert status == "blocked"
    assert reason.startswith("NCCL_IB_TC=106 waits for feature roce: compute/0: DSCP 26 leads to priority")
    assert reason.endswith("; a run in which roce mends that writes it too")  # and so it is, see below
    assert NCCL_CONF not in host.files
    lossless(host)
    assert run(host, "nccl_env", nccl(host))[STEP] == ("made", "")


def test_a_class_that_cannot_be_told_is_unknown_and_withholds_the_file(host, monkeypatch):
    netdev, real = host.hardware.machine.ports[1].netdev, dcb.read

    def read(*arguments):
        found = real(*arguments)
        return {**found, netdev: replace(found[netdev], pfc=Unknown("dcb did not answer"))}

    monkeypatch.setattr(dcb, "read", read)
    assert run(host, "nccl_env", nccl(host))[STEP] == ("unknown", "dcb did not answer")
    assert run(host, "nccl_env", nccl(host), CHECK)[STEP] == ("unknown", "dcb did not answer")
    assert NCCL_CONF not in host.files


def test_a_class_lost_later_is_told_and_the_file_stays(host):
    assert run(host, "nccl_env", nccl(host))
    host.hardware.port(host.hardware.machine.ports[0].netdev).pfc = 0
    plan = look(host, "nccl_env", nccl(host))
    assert (plan.steps, [f.code for f in plan.findings]) == ((), ["nccl.class"])


def test_a_rail_without_its_device_withholds_the_file_rather_than_shift_the_others(host):
    assert run(host, "nccl_env", nccl(host))
    before = host.read(NCCL_CONF)
    want = nccl(host, variables={"NCCL_DEBUG": "INFO"})
    lost = want.rails[0].__class__("compute/2", "0000:7f:00.0", "roce")
    want = nccl(host, rails=(*want.rails, lost), variables={"NCCL_DEBUG": "INFO"})
    assert run(host, "nccl_env", want)[STEP] == ("blocked", "compute/2: nothing there")
    assert host.read(NCCL_CONF) == before
    assert "device.missing" in codes(host, want)


def test_the_site_s_lines_stay_and_are_not_argued_with(host):
    host.files[NCCL_CONF] = "# the site's\nNCCL_IB_TC=41\nNCCL_DEBUG=WARN\n"
    status, reason = run(host, "nccl_env", nccl(host))[STEP]
    assert (status, "NCCL_IB_TC otherwise" in reason) == ("blocked", True)
    assert run(host, "nccl_env", nccl(host, takeover=True))[STEP] == ("made", "")
    assert host.read(NCCL_CONF).endswith(f"NCCL_IB_TC=106\n{END}\n# the site's\nNCCL_DEBUG=WARN")


def test_only_what_the_release_knows_is_told(host):
    tuning = {"NCCL_IB_QPS_PER_CONNECTION": "4", "NCCL_IB_ADAPTIVE_ROUTING": "1", "NCCL_MADE_UP": "1"}
    want = nccl(host, variables=tuning)
    assert "no NCCL is found" in words(host, "nccl.too-new", want)
    for port in (0, 1):
        with_gids(host, port, LINK_LOCAL, IPV4)
    host.files["/usr/lib/x86_64-linux-gnu/libnccl.so.2.12.12"] = ""
    host.files["/usr/lib/x86_64-linux-gnu/libnccl.so.2.27.5"] = ""
    assert words(host, "nccl.too-new", want) == "it does not know NCCL_IB_ADAPTIVE_ROUTING (since 2.16.2): left out"
    run(host, "nccl_env", want)
    assert {"NCCL_IB_QPS_PER_CONNECTION", "NCCL_MADE_UP"} <= set(told(host))
    assert "NCCL_IB_ADAPTIVE_ROUTING" not in told(host)


@pytest.mark.parametrize(("release", "index"), [("2.18.3", "3"), ("2.21.5", None), ("2.27.5", None)])
def test_newer_releases_choose_the_gid_themselves_older_ones_are_told(host, release, index):
    for port in (0, 1):
        with_gids(host, port, LINK_LOCAL, IPV4)
    run(host, "nccl_env", nccl(host, release=release))
    assert told(host).get("NCCL_IB_GID_INDEX") == index


# Field reports. GIDs of a port as sysfs has them: link-local as v1 and v2, then the addresses.
LINK_LOCAL = "fe80:0000:0000:0000:0200:00ff:fe00:0001"
PRIVACY = "fe80:0000:0000:0000:02aa:bbcc:ddee:0001"
IPV4 = "0000:0000:0000:0000:0000:ffff:ac13:003c"


def with_gids(host, port, *addresses):
    """The snapshot's table of a port as it would be with these addresses."""
    rows = [(address, kind) for address in addresses for kind in ("IB/RoCE v1", "RoCE v2")]
    folder = f"/sys/class/infiniband/{host.hardware.machine.ports[port].rdma}/ports/1"
    real_read, real_names = host.read, host.names

    def read(path):
        index = path.rpartition("/")[2]
        if path.startswith(f"{folder}/gid") and index.isdigit():
            return rows[int(index)]["types" in path]
        return real_read(path)

    host.read = read
    host.names = lambda path: tuple(map(str, range(len(rows)))) if path == f"{folder}/gids" else real_names(path)


def test_report_38_the_index_is_computed_and_3_is_right_here(host):
    for port in (0, 1):
        with_gids(host, port, LINK_LOCAL, IPV4)
    run(host, "nccl_env", nccl(host, release="2.18.3"))
    assert told(host)["NCCL_IB_GID_INDEX"] == "3"
    host.files[NCCL_CONF] = "NCCL_IB_GID_INDEX=1\n"
    assert words(host, "nccl.gid").endswith("RoCE v2 of its address is 3")


def test_report_39_an_extra_address_shifts_the_index_on_one_port(host):
    with_gids(host, 1, LINK_LOCAL, IPV4)
    with_gids(host, 0, LINK_LOCAL, PRIVACY, IPV4)
    host.files[NCCL_CONF] = "NCCL_IB_GID_INDEX=3\n"
    text = words(host, "nccl.gid")
    assert text == "mlx5_0: index 3 is link-local fe80::2aa:bbcc:ddee:1; RoCE v2 of its address is 5"
    want = nccl(host, release="2.18.3")
    assert "no index that all ports share: compute/0 5, compute/1 3" in words_all(host, want)
    assert run(host, "nccl_env", nccl(host, release="2.18.3", takeover=True))[STEP][0] == "blocked"


def words_all(host, want):
    return " | ".join(text for _, _, text in found(host, "nccl_env", want))


def test_a_declared_index_is_held_against_every_port(host):
    with_gids(host, 0, LINK_LOCAL, IPV4)
    with_gids(host, 1, LINK_LOCAL, PRIVACY, IPV4)
    run(host, "nccl_env", nccl(host, gid_index=3))
    assert words(host, "nccl.gid", nccl(host, gid_index=3)).startswith("mlx5_1: index 3 is link-local")


def test_report_44_names_come_from_the_node_and_a_job_s_own_list_is_held_against_it(host):
    job = {"NCCL_IB_HCA": "=mlx5_0,mlx5_3", "NCCL_IGNORE_NET_MISMATCH": "1", "SECRET": "hunter2"}
    process(host, "77", job)
    process(host, "78", job)
    said = found(host, "nccl_env", nccl(host))
    assert (
        "nccl.no-match",
        ("python (process 77 and 1 more)", "NCCL_IB_HCA"),
        "no RDMA device is called mlx5_3; there are mlx5_0, mlx5_1",
    ) in said
    assert "nccl.ignore-mismatch" in [code for code, _, _ in said]
    assert "hunter2" not in dumps(planning.take(host, {"nccl_env": FEATURES["nccl_env"]}, {"nccl_env": nccl(host)}))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("=mlx5_0:2,mlx5_1:1", "no RDMA device has the port of mlx5_0:2: NCCL leaves it out and says nothing"),
        ("mlx5_1:2", "no RDMA device has the port of mlx5_1:2: NCCL leaves it out and says nothing"),
        ("mlx5:2", "no RDMA device has the port of mlx5:2: NCCL leaves it out and says nothing"),
        ("=mlx5_0:x", "no RDMA device has the port of mlx5_0:x: NCCL leaves it out and says nothing"),
        ("=mlx5_0:1,mlx5_1", None),
        ("^mlx5_0:2", None),
    ],
)
def test_a_port_that_no_device_has_is_told(host, value, said):
    process(host, "77", {"NCCL_IB_HCA": value})
    assert codes(host) == (["nccl.no-match"] if said else [])
    assert said is None or words(host, "nccl.no-match") == said


def test_report_46_a_site_s_own_class_is_right_where_its_nics_keep_it(host):
    process(host, "77", {"NCCL_IB_TC": "104", "UCX_TLS": "tcp", "UCX_NET_DEVICES": "eth0"})
    assert codes(host) == []  # without ECN, and the same DSCP
    process(host, "78", {"NCCL_IB_TC": "41"})
    assert words(host, "nccl.class").startswith(
        "41 is DSCP 10, which leads to priority 0, not lossless on mlx5_0, mlx5_1"
    )


@pytest.mark.parametrize("value", ["300", "-1"])
def test_what_is_no_traffic_class_is_not_put_down_to_the_port_s_trust(host, value):
    process(host, "77", {"NCCL_IB_TC": value})
    assert "the port's map has no such DSCP" in words(host, "nccl.class")


def test_a_dscp_in_place_of_the_byte_is_told_as_such(host):
    process(host, "77", {"NCCL_IB_TC": "26"})
    assert words(host, "nccl.tos").endswith("as a DSCP 26 would be 104, or 106 with ECN")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("NCCL_IB_TC=0152", "nccl.octal"),
        ("NCCL_IB_TC = 106", "nccl.grammar"),
        ("export NCCL_IB_TC=106", "nccl.grammar"),
        ('NCCL_DEBUG="WARN"', "nccl.grammar"),
        ("NCCL_DEBUG=WARN # quiet", "nccl.grammar"),
        ("NCCL_TOPO_FILE=/opt/topo.xml", "nccl.topo-file"),
        ("NCCL_SOCKET_IFNAME=ens1f0", "nccl.no-match"),
        ("# NCCL_IB_TC = 1", None),
        ("NCCL_DEBUG=WARN\r", None),
        ("NCCL_IB_TC=0x6a", None),
    ],
)
def test_a_site_s_lines_are_judged_as_nccl_reads_them(host, line, code):
    host.files[NCCL_CONF] = f"{line}\n"
    assert codes(host) == ([code] if code else [])


def test_so_are_the_files_of_users(host):
    for path in ("/root/.nccl.conf", "/home/ana/.nccl.conf"):
        host.files[path] = "NCCL_IB_TC=26\n"
    assert [where[0] for _, where, _ in found(host, "nccl_env", nccl(host))] == [
        "/root/.nccl.conf",
        "/home/ana/.nccl.conf",
    ]


@pytest.mark.parametrize(
    ("mounts", "read", "told"),
    [
        ("/dev/sda / ext4", True, None),
        ("/dev/sda / ext4\nauto.home /home autofs", False, "homes are on autofs: not looked into"),
        ("/dev/sda / ext4\nnas:/h /home nfs4", False, "homes are on nfs4: not looked into"),
        ("/dev/sda / ext4\nnas:/h /home nfs4\n/dev/sdb /home xfs", True, None),  # the last one covers the other
        ("/dev/sda / ext4\nnas:/a /home/ana nfs4", False, "1 homes are on nfs4: not looked into"),
        ("nas:/r / nfs4\n/dev/sda /home ext4", True, None),
        ("garbage", True, None),
    ],
)
def test_homes_of_other_machines_are_neither_mounted_nor_waited_for(host, monkeypatch, mounts, read, told):
    host.files["/proc/self/mounts"], host.files["/home/ana/.nccl.conf"] = mounts, "NCCL_IB_TC=26\n"
    asked = []
    plain = host.read_of_user
    monkeypatch.setattr(host, "read_of_user", lambda path: asked.append(path) or plain(path))
    said = [text for code, _, text in found(host, "nccl_env", nccl(host)) if code == "nccl.unread"]
    assert ("/home/ana/.nccl.conf" in asked) is read
    assert said == ([told] if told else [])


def test_a_user_s_file_that_is_a_link_is_told_and_not_followed(host):
    host.files["/etc/shadow"] = "root:secret\n"
    host.links["/home/ana/.nccl.conf"] = "/etc/shadow"
    (said,) = look(host, "nccl_env", nccl(host)).findings
    assert (said.code, said.evidence) == ("nccl.unread", "/home/ana/.nccl.conf: a link is not followed")


def test_a_topology_file_is_looked_for_where_the_job_looks(host):
    process(host, "77", {"NCCL_TOPO_FILE": "/opt/topo.xml"})
    host.files["/opt/topo.xml"] = ""
    assert codes(host) == ["nccl.topo-file"]
    host.files["/proc/77/root/opt/topo.xml"] = ""
    assert codes(host) == []


def test_report_35_a_topology_file_is_held_against_the_node_and_not_needed_by_newer_releases(host):
    process(host, "77", {"NCCL_TOPO_FILE": "/opt/topo.xml"})
    bridge, there = "<pci busid='0000:08:00.0' class='0x060400'>", "<pci busid='0000:18:00.0' class='0x020000'/>"
    host.files["/proc/77/root/opt/topo.xml"] = f'{bridge}{there}<pci busid="0000:0F:00.0" class="0x030200"/></pci>'
    old = nccl(host, release="2.19.3")
    assert words(host, "nccl.topo-strange", old) == "/opt/topo.xml: no GPU or NIC is at 0000:0f:00.0"
    assert "nccl.topo-unneeded" not in codes(host, old)
    host.files["/proc/77/root/opt/topo.xml"] = there
    newer = codes(host, nccl(host, release="2.20.3"))
    assert [code for code in newer if code.startswith("nccl.topo")] == ["nccl.topo-unneeded"]
    host.files["/proc/77/root/opt/topo.xml"] = b"\xff" * 9
    assert not [code for code in codes(host, old) if code.startswith("nccl.topo")]


def test_report_49_devices_that_udev_has_named_are_found_by_their_ports_and_listed_for_who_names_others(tmp_path):
    host = machine(tmp_path, "l40s-inbox")
    (step,) = look(host, "nccl_env", nccl(host)).steps
    assert {c.path[1]: c.desired for c in step.changes}["NCCL_IB_HCA"] == "=rocep24s0f0:1,rocep24s0f1:1"
    process(host, "77", {"NCCL_IB_HCA": "=mlx5_0"})
    assert words(host, "nccl.no-match").endswith("called mlx5_0; there are rocep24s0f0, rocep24s0f1")


def test_a_topology_file_without_its_folder_is_below_where_the_job_was_started(host):
    host.files[NCCL_CONF] = "NCCL_TOPO_FILE=topo.xml\n"
    assert codes(host) == []  # that is another place with each job
    process(host, "77", {"NCCL_TOPO_FILE": "topo.xml"})
    assert codes(host) == ["nccl.topo-file"]
    host.files["/proc/77/cwd/topo.xml"] = ""
    assert codes(host) == []


def test_jobs_that_cannot_be_looked_at_are_unknown_a_home_that_keeps_root_out_is_told(host):
    host.unreadable["/root/.nccl.conf"] = "Permission denied"
    process(host, "77", {})
    host.unreadable["/proc/77/environ"] = "Permission denied"
    said = look(host, "nccl_env", nccl(host)).findings
    assert [(f.code, f.path[0], f.unknown) for f in said] == [
        ("nccl.unread", "/root/.nccl.conf", False),
        ("nccl.unread", "jobs", True),
    ]


@pytest.mark.parametrize("name", ["mlx5_0,mlx5_1", "$(reboot)", 'a"b', "a b", ""])
def test_a_device_whose_name_would_be_more_than_a_name_withholds_the_file(host, name):
    found = planning.take(host, {"nccl_env": FEATURES["nccl_env"]}, {"nccl_env": nccl(host)})
    nic = found.devices.nics[0]
    nics = (replace(nic, rdma=(replace(nic.rdma[0], name=name),)), *found.devices.nics[1:])
    plan = FEATURES["nccl_env"].plan(replace(found, devices=replace(found.devices, nics=nics)), nccl(host))
    assert [finding.code for finding in plan.findings] == ["device.missing"]
    assert all(step.blocked for step in plan.steps)


def test_containers_get_the_same_and_a_prolog_lets_the_job_have_its_own(host, tmp_path):
    want = nccl(host, containers=("enroot", "slurm", "env-file"))
    assert {status for status, _ in run(host, "nccl_env", want).values()} == {"made"}
    assert told(host, files.ENROOT) == told(host, files.ENV_FILE) == told(host, files.TASK_PROLOG) == told(host)
    script = tmp_path / "prolog.sh"
    script.write_text(host.read(files.TASK_PROLOG) + "\n")
    done = subprocess.run(["sh", script], env={"NCCL_IB_TC": "41"}, capture_output=True, text=True, check=True)
    assert done.stdout == "export NCCL_IB_HCA==mlx5_0:1,mlx5_1:1\n"


@pytest.mark.parametrize(
    ("text", "value", "octal"),
    [("106", 106, False), ("0x6a", 106, False), ("0152", 106, True), ("0", 0, False), ("-1", -1, False),
     ("089", None, True), ("x", None, False), (str(2**63 - 1), 2**63 - 1, False), (str(2**63), None, False),
     ("9" * 5000, None, False), ("0" + "7" * 6000, None, True), ("0x" + "f" * 6000, None, False)],
)  # fmt: skip
def test_numbers_are_read_as_c_does(text, value, octal):
    assert (variables.number(text), variables.is_octal(text)) == (value, octal)


HUGE = {"NCCL_DEBUG_FILE": "x" * (1 << 17), "NCCL_IB_TC": "41"}


def test_a_job_whose_variables_are_too_long_is_named_and_judged_by_the_rest(host):
    process(host, "77", HUGE)
    process(host, "78", HUGE)
    told = found(host, "nccl_env", nccl(host))
    assert ("nccl.unread", ("python (process 77 and 1 more)",), "too long to be looked at: NCCL_DEBUG_FILE") in told
    assert "nccl.class" in [code for code, _, _ in told]


def test_an_environment_that_does_not_end_is_read_up_to_a_bound(host):
    process(host, "77", {"NCCL_IB_TC": "41", **{f"OTHER_{n}": "x" * 1000 for n in range(300)}, "NCCL_LAST": "1"})
    (job,) = jobs_environment.gather(host)
    assert job.variables == {"NCCL_IB_TC": "41"}
    assert job.cut == "its environment is longer than 262144 characters: the rest is not looked at"


def test_twelve_jobs_with_more_than_a_megabyte_each_cost_nobody_the_audit(host):
    for pid in range(100, 112):
        process(host, str(pid), {f"NCCL_{pid}_{n}": "x" * 1000 for n in range(1400)})
    process(host, "99", {"NCCL_IB_TC": "41"})
    wants = {"nccl_env": nccl(host), "mpi": mpi(host)}
    text = within(planning.take(host, FEATURES, wants, stumbling=True))
    assert len(text) < 2 << 20
    seen = loads(text, SEEN_TYPES)
    assert set(seen.seen) == set(wants)
    plan = FEATURES["nccl_env"].plan(seen, wants["nccl_env"])
    cut = {finding.path[0] for finding in plan.findings if finding.code == "nccl.unread" and finding.unknown}
    assert cut == {f"python (process {pid})" for pid in range(100, 112)}
    assert "nccl.class" in [finding.code for finding in plan.findings]


def test_what_one_node_keeps_of_all_its_jobs_is_bounded(host):
    for pid in range(100, 1100):
        process(host, str(pid), {"NCCL_X": f"{pid}" * 1000})
    jobs = jobs_environment.gather(host)
    assert sum(len(value) for job in jobs for value in job.variables.values()) <= jobs_environment.NODE
    assert sum(job.count for job in jobs) == 1000
    assert jobs[-1].cut.startswith("not looked at: other jobs")


def test_a_home_s_file_is_kept_up_to_a_bound(host):
    host.files["/home/eve/.nccl.conf"] = "".join(f"NCCL_{n}={'x' * 1000}\n" for n in range(100))
    (word,) = [text for code, path, text in found(host, "nccl_env", nccl(host)) if code == "nccl.unread"]
    assert word == "longer than 32768 characters: not looked at from line 33"
