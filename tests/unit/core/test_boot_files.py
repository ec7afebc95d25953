"""What starts a restore: the udev rule's events, the units as systemd reads them, and what comes after them at boot."""

import re
import shutil
import subprocess

import pytest

from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.dvfs import hooks
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.mpi.files import SCRIPT
from gpufab_cli.module_utils.node import files, order
from gpufab_cli.module_utils.node.want import NodeWant
from gpufab_cli.module_utils.place import AWAITED, COMMAND, PYTHON
from tests.fakes import ok
from tests.udev import Device, Event, wanted

from .test_node import ORDERS, SHOW, node, plan, shown

PF = "0000:5e:00.0"
RULE = files.texts()[files.UDEV_RULE].decode()
HAS_UDEV_TEST = {"device/vendor", AWAITED}


def port(driver="mlx5_core", kind="net", pci=PF):
    root = Device("pci0000:5d", "")
    bridge = Device("0000:5d:01.0", "pci", "pcieport", root)
    return Device("eth0" if kind == "net" else "mlx5_0", kind, parent=Device(pci, "pci", driver, bridge))


def starts(action, device, *, without=(), extra=()):
    return wanted(RULE, Event(action, device, (HAS_UDEV_TEST - set(without)) | set(extra)))


@pytest.mark.parametrize("action", ["add", "move"])
@pytest.mark.parametrize("kind", ["net", "infiniband"])
@pytest.mark.parametrize("driver", ["mlx5_core", "bnxt_en"])
def test_a_port_that_came_or_was_renamed_is_restored_by_its_pci_address(action, kind, driver):
    assert starts(action, port(driver, kind)) == [f"gpufab-restore-device@{PF}.service"]


@pytest.mark.parametrize("action", ["change", "remove", "bind", "unbind", "online"])
def test_other_events_of_a_port_start_nothing(action):
    assert starts(action, port()) == []


@pytest.mark.parametrize("kind", ["net", "infiniband"])
def test_vfs_sub_functions_and_ports_of_other_drivers_start_nothing(kind):
    assert starts("move", port(kind=kind), extra=("device/physfn",)) == []
    function = port(kind=kind).parent
    sub = Device("eth1", kind, parent=Device("mlx5_core.sf.4", "auxiliary", "mlx5_core.sf", function))
    assert starts("move", sub, without=("device/vendor",)) == []
    assert starts("move", port("ice", kind)) == []
    # A driver of that name elsewhere than at a PCI function would give no address.
    assert starts("add", Device("eth9", kind, parent=Device("mlx5_core.eth.0", "auxiliary", "mlx5_core"))) == []


def test_until_the_early_restore_has_waited_no_port_has_a_restore_of_its_own():
    assert starts("move", port(), without=(AWAITED,)) == []


def test_the_driver_of_the_gpus_and_a_gpu_given_to_it_later():
    module = Device("nvidia", "module")
    gpu = Device("0000:18:00.0", "pci", "nvidia")
    assert starts("add", module) == starts("bind", gpu) == [files.GPUS]
    assert starts("remove", module) == starts("unbind", gpu) == starts("add", gpu) == []
    assert starts("add", Device("nvidia_uvm", "module")) == starts("bind", Device(PF, "pci", "mlx5_core")) == []


@pytest.mark.parametrize("pci", [PF, "10000:01:00.7"])
def test_a_pci_address_is_a_unit_s_instance_as_it_is(pci):
    """systemd escapes only what is not valid in a unit's name (systemd.unit(5)); %i is the instance unchanged."""
    assert re.fullmatch(r"[A-Za-z0-9:_.\\-]+", pci)
    assert starts("add", port(pci=pci)) == [f"gpufab-restore-device@{pci}.service"]
    assert "restore device %i\n" in text(files.DEVICE)


def text(unit):
    return files.texts()[f"{files.UNITS}/{unit}"].decode()


UNITS = (files.EARLY, files.LATE, files.DEVICE, files.GPUS)


@pytest.mark.parametrize("unit", UNITS)
def test_every_unit_ends_in_bounded_time_and_by_sigkill(unit):
    assert re.search(r"^TimeoutStartSec=[1-9]\d*$", text(unit), re.MULTILINE)
    assert "\nTimeoutStopSec=5\n" in text(unit)
    assert "SendSIGKILL" not in text(unit)  # systemd's own is yes


@pytest.mark.parametrize("unit", [files.DEVICE, files.GPUS])
def test_a_flurry_of_events_leaves_no_unit_that_refuses_the_last(unit):
    assert "\nStartLimitIntervalSec=0\n" in text(unit)
    assert "\nExecStartPre=/bin/sleep " in text(unit)


def test_the_wait_is_within_the_time_limit():
    dropin = order.text(order.wanted(300, order.JOBS, {})).decode()
    assert "\nEnvironment=GPUFAB_WAIT_S=300\n" in dropin
    assert f"\nTimeoutStartSec={300 + files.EARLY_SECONDS}\n" in dropin
    assert "restore early --wait ${GPUFAB_WAIT_S}\n" in text(files.EARLY)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze here")
def test_systemd_understands_the_units(tmp_path):
    dropin = order.text(order.wanted(60, order.JOBS, {}))
    # A colon in an argument of verify would be an alias.
    for unit, name in ((u, u.replace("device@", "device@port")) for u in UNITS):
        content = text(unit).replace(COMMAND, "/bin/true").encode()
        (tmp_path / name).write_bytes(content)
    (tmp_path / f"{files.EARLY}.d").mkdir()
    (tmp_path / f"{files.EARLY}.d" / "50-order.conf").write_bytes(dropin)
    names = [str(path) for path in tmp_path.glob("*.service")]
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *names], capture_output=True, text=True, check=False
    )
    assert [line for line in done.stderr.splitlines() if "gpufab" in line or "50-order" in line] == []
    assert "Couldn't" not in done.stderr, done.stderr


def test_the_network_and_what_starts_jobs_come_after_the_early_restore():
    host = node(shown())
    dropin = host.files[order.ORDER].decode()
    for unit in ("network-pre.target", "slurmd.service", "kubelet.service", "containerd.service", "docker.service"):
        assert f"\nBefore={unit}\n" in dropin


def site_order(*pairs):
    """As systemd 257 prints it: an arrow for each unit that another comes after."""
    arrows = (f'\t"{unit}"->"{one}" [color="green"];\n' for unit, after in pairs for one in after.split())
    return ok("digraph systemd {\n" + "".join(arrows) + "}\n")


def test_a_service_that_the_site_has_before_the_early_restore_is_left_out_and_told():
    host = node(shown())
    host.answers[ORDERS] = site_order(
        ("-.slice", ""),
        ("slurmd.service", "network.target"),
        ("site-mount.service", "docker.service"),
        ("local-fs.target", "site-mount.service"),
    )
    (step,) = plan(host).steps
    assert step.name == "node order"
    assert "docker.service" not in step.changes[0].desired.split()
    assert {"slurmd.service", "network-pre.target"} <= set(step.changes[0].desired.split())
    (finding,) = plan(host).findings
    way = f"docker.service before site-mount.service before local-fs.target before {files.EARLY}"
    assert (finding.code, finding.path, finding.evidence) == ("node.order", ("docker.service",), way)
    assert [r.status for r in converge(host, FEATURES["node"], NodeWant(()), Order()).steps] == [Status.MADE]
    assert "Before=docker.service" not in host.files[order.ORDER].decode()
    assert not plan(host).steps


def test_gpufab_s_own_order_makes_no_cycle_with_itself():
    host = node(shown())
    host.answers[ORDERS] = site_order(
        ("docker.service", f"network-pre.target {files.EARLY}"), ("network-pre.target", files.EARLY), (files.EARLY, "")
    )
    assert plan(host).clean


CUT = ok('digraph systemd {\n\t"a.service"->"b.service" [color="green"];\n')


@pytest.mark.parametrize("answer", [Unknown("hangs"), ok("no such thing\n"), ok("digraph systemd {\n}\n"), CUT])
def test_an_order_that_is_not_known_is_not_written_and_holds_up_nothing_else(answer):
    host = node(shown())
    host.answers[ORDERS] = answer
    host.files[files.UDEV_RULE] = b"old"
    statuses = {r.step.name: r.status for r in converge(host, FEATURES["node"], NodeWant(()), Order()).steps}
    assert statuses == {"node files": Status.MADE, "node order": Status.UNKNOWN}


def test_the_site_says_how_long_and_what_waits():
    want = NodeWant((), wait_s=5, services=("site-jobs",))
    host = node(shown())
    converge(host, FEATURES["node"], want, Order())
    dropin = host.files[order.ORDER].decode()
    assert re.findall("^Before=(.*)$", dropin, re.MULTILINE) == ["network-pre.target", "site-jobs.service"]
    assert "GPUFAB_WAIT_S=5\n" in dropin


def test_an_edited_drop_in_is_drift():
    host = node(shown())
    host.files[order.ORDER] += b"Before=x.service\n"
    (step,) = plan(host).steps
    assert str(step.changes[0].current).startswith("sha256:")


def test_everything_starts_by_the_python_that_the_site_names():
    want = NodeWant((), python="/opt/py/bin/python3")
    host = node(shown())
    host.files["/opt/py/bin/python3"] = ""
    converge(host, FEATURES["node"], want, Order())
    assert host.links[PYTHON] == "/opt/py/bin/python3"
    texts = [SCRIPT, *hooks.CONTENTS.values(), *files.texts().values()]
    assert not [content for content in texts if b"python3" in content]
    assert all(COMMAND in text(unit) for unit in UNITS)
    assert SHOW in host.answers


def test_a_python_that_is_not_there_changes_nothing_and_is_told():
    want = NodeWant((), python="/opt/py/bin/python3")
    host = node(shown())
    before = dict(host.links)
    made = planning.plan(FEATURES["node"], planning.take(host, {"node": FEATURES["node"]}, {"node": want}), want)
    assert [(step.name, "not there" in step.blocked) for step in made.steps] == [("node files", True)]
    assert [(f.code, f.path) for f in made.findings] == [("node.python", ("/opt/py/bin/python3",))]
    converge(host, FEATURES["node"], want, Order())
    assert host.links == before
