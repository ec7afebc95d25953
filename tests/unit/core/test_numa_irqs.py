"""Interrupts of ports: near, one CPU each, cores first; what may not be moved; and irqbalance kept off."""

import subprocess
from dataclasses import replace

import pytest

from gpufab_cli.lab.hardware import interrupts
from gpufab_cli.lab.hardware.state import Fault
from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.devices import gather
from gpufab_cli.module_utils.host import Host
from gpufab_cli.module_utils.numa import irqbalance, irqs
from gpufab_cli.module_utils.numa.feature import Numa
from gpufab_cli.module_utils.numa.want import NumaWant, PortWant
from gpufab_cli.module_utils.topology.cpus import parse_cpus
from tests.fakes import FakeHost, ok, start
from tests.machine import LabHost


def want(host, **wishes):
    places = host.hardware.machine.ports
    ports = tuple(PortWant(f"compute/{n}", place.pci, n) for n, place in enumerate(places))
    return NumaWant(ports, **{"irq": "local", **wishes})


def run(host, wish, **order):
    return converge(host, Numa(), wish, Order(**order))


def plan(host, wish):
    return planning.plan(Numa(), planning.take(host, {"numa": Numa()}, {"numa": wish}), wish)


def codes(host, wish):
    return {(finding.code, finding.path[0]) for finding in plan(host, wish).findings}


def placed(host, netdev):
    """The CPUs of a port's interrupts, in the order of their numbers."""
    found = [i for i in interrupts.interrupts(host.hardware) if i.port.netdev == netdev]
    return [interrupts.affinity(host.hardware, interrupt.number) for interrupt in found]


@pytest.mark.parametrize("kind", ["hgx-h100", "hgx-a100-nps4", "l40s-one-socket", "gb200"])
def test_interrupts_are_near_their_port_and_take_cores_first(tmp_path, kind):
    host = LabHost(tmp_path, kind, rails=None, cpus=None)
    wish = want(host)
    assert {result.status for result in run(host, wish).steps} == {Status.MADE}
    devices = gather(host)
    for place in host.hardware.machine.ports:
        cpus = placed(host, place.netdev)
        assert len(set(cpus)) == len(cpus) == interrupts.QUEUES + 1
        near = devices.numa.local(devices.nic(place.pci).numa_node)
        first_threads = parse_cpus(near.cpus)[: len(parse_cpus(near.cpus)) // (2 if "," in near.cpus else 1)]
        beyond = {int(cpu) for cpu in cpus} - set(first_threads)
        assert beyond <= set(parse_cpus(near.cpus))
        assert len(beyond) == max(0, len(cpus) - len(first_threads))


def test_a_port_without_cpus_in_its_node_has_those_of_the_nearest(tmp_path):
    host = LabHost(tmp_path, "gb200", rails=1, cpus=None)
    place = host.hardware.machine.ports[0]
    empty = next(node for node in host.hardware.machine.numa if not node.cpus and node.distances)
    host.hardware.machine = replace(host.hardware.machine, ports=(replace(place, numa=empty.id),))
    host.hardware.restructure()
    run(host, want(host))
    nearest = gather(host).numa.local(empty.id)
    assert {int(cpu) for cpu in placed(host, place.netdev)} <= set(parse_cpus(nearest.cpus))


def test_ports_of_a_node_begin_apart_and_one_that_is_missing_moves_no_other(tmp_path):
    host = LabHost(tmp_path, rails=4, cpus=64)
    wish = want(host)
    run(host, wish)
    before = {place.netdev: placed(host, place.netdev) for place in host.hardware.machine.ports}
    assert len({cpus[0] for cpus in before.values()}) == 4
    host.hardware.machine = replace(host.hardware.machine, ports=host.hardware.machine.ports[1:])
    host.boot()
    found = plan(host, wish)
    assert ("device.missing", wish.ports[0].pci) in {(f.code, f.path[0]) for f in found.findings}
    run(host, wish)
    assert {place.netdev: placed(host, place.netdev) for place in host.hardware.machine.ports} == {
        name: cpus for name, cpus in before.items() if name != "enp24s0np0"
    }


@pytest.mark.parametrize("file", ["devices/system/cpu/isolated", "devices/system/cpu/nohz_full"])
def test_isolated_cpus_take_no_interrupts(tmp_path, file, monkeypatch):
    host = LabHost(tmp_path, rails=1, cpus=8)
    shown = {f"/sys/{file}": b"0-3\n"}
    monkeypatch.setattr(host, "read_bytes", lambda path: shown.get(path) or LabHost.read_bytes(host, path))
    run(host, want(host))
    assert set(placed(host, "enp24s0np0")) == {"4", "5", "6", "7"}
    shown[f"/sys/{file}"] = b"0-7\n"
    assert ("numa.no-cpu", "0000:18:00.0") in codes(host, want(host))
    shown[f"/sys/{file}"] = b"(null)\n"
    run(host, want(host))
    assert "0" in placed(host, "enp24s0np0")


def test_report_37_where_nobody_says_which_node_nothing_is_bound_and_that_is_unknown(tmp_path):
    host = LabHost(tmp_path, rails=1, cpus=4)
    alone = replace(host.hardware.machine.ports[0], numa=-1)
    host.hardware.machine = replace(host.hardware.machine, ports=(alone,))
    host.hardware.restructure()
    found = plan(host, want(host))
    assert [(f.code, f.unknown) for f in found.findings] == [("numa.node-unknown", True)]
    assert all(step.name.startswith("persist") for step in found.steps)
    one = replace(host.hardware.machine, numa=host.hardware.machine.numa[:1])
    host.hardware.machine = one
    host.hardware.restructure()
    assert plan(host, want(host)).findings == ()
    run(host, want(host))
    assert set(placed(host, alone.netdev)) == {"0", "1", "2", "3"}


def test_a_managed_interrupt_is_left_and_named_and_the_others_are_placed(tmp_path):
    host = LabHost(tmp_path, rails=1, cpus=16)
    host.hardware.set_fault(Fault(interrupts.MANAGED, "enp24s0np0", 0))
    wish = want(host)
    assert run(host, wish).steps[-1].status is Status.MADE
    assert placed(host, "enp24s0np0")[0] == interrupts.every_cpu(host.hardware)
    assert len(set(placed(host, "enp24s0np0")[1:])) == interrupts.QUEUES
    assert run(host, wish).steps == ()
    assert codes(host, wish) == {("numa.irq-managed", "0000:18:00.0")}


@pytest.mark.parametrize("note", ['["0000:3a:00.0 {}"]', "[7]", "{{", "null"])
def test_a_note_about_another_device_or_a_damaged_one_leaves_no_interrupt_out(tmp_path, note):
    host = LabHost(tmp_path, rails=1, cpus=16)
    first = next(interrupts.interrupts(host.hardware)).number
    host.files[irqs.NOTE] = note.format(first)
    run(host, want(host))
    assert interrupts.every_cpu(host.hardware) not in placed(host, "enp24s0np0")
    assert codes(host, want(host)) == set()


def test_one_that_the_kernel_marks_read_only_is_never_written(tmp_path, monkeypatch):
    host = LabHost(tmp_path, rails=1, cpus=16)
    first = next(interrupts.interrupts(host.hardware)).number
    path = f"/proc/irq/{first}/smp_affinity_list"
    monkeypatch.setattr(host, "mode", lambda asked: 0o444 if asked == path else LabHost.mode(host, asked))
    run(host, want(host))
    assert path not in {write[0] for write in host.writes}
    assert ("numa.irq-managed", "0000:18:00.0") in codes(host, want(host))


def test_an_interrupt_that_cannot_be_read_withholds_its_port_alone(tmp_path, monkeypatch):
    host = LabHost(tmp_path, rails=2, cpus=4)
    numbers = [str(i.number) for i in interrupts.interrupts(host.hardware) if i.port.netdev == "enp24s0np0"]
    host.unreadable = {f"/proc/irq/{numbers[0]}/smp_affinity_list": "no"}
    real = host.read
    monkeypatch.setattr(host, "read", lambda path: _unknown(host, path) or real(path))
    statuses = {result.step.name: result.status for result in run(host, want(host)).steps}
    assert (statuses["numa compute/0"], statuses["numa compute/1"]) == (Status.UNKNOWN, Status.MADE)


def _unknown(host, path):
    return Unknown(f"{path}: denied") if path in host.unreadable else None


def test_a_write_that_fails_takes_the_port_back_to_what_it_was(tmp_path):
    host = LabHost(tmp_path, rails=1, cpus=16)
    run(host, replace(want(host), irq=None))  # keeps a wish; what follows writes the port alone
    before = placed(host, "enp24s0np0")
    real = host.set

    def broken(path, value):
        if value != before[0] and path.endswith("smp_affinity_list") and len(changed) > 3:
            real("/sys/class/net/none", value)
        changed.append(path)
        real(path, value)

    changed = []
    host.set = broken
    result = run(host, want(host)).steps[-1]
    assert result.status is Status.FAILED
    assert result.reason.endswith("; undone")
    assert placed(host, "enp24s0np0") == before


# ---- irqbalance ------------------------------------------------------------------------------------------------------

GPUFABS = f"--policyscript={irqbalance.POLICY}"


@pytest.fixture
def balanced(tmp_path):
    host = LabHost(tmp_path, rails=2, cpus=8)
    host.answers[("irqbalance",)] = ok("")
    return host


def begin(host, *arguments):
    start(host, 77, "irqbalance")
    host.files["/proc/77/cmdline"] = "\0".join(("/usr/sbin/irqbalance", "--foreground", *arguments, ""))


def test_where_it_is_not_installed_nothing_is_written(tmp_path):
    host = LabHost(tmp_path, rails=1)
    run(host, want(host, irqbalance=True))
    assert not any(str(write[0]).startswith("/etc/") and "irqbalance" in str(write[0]) for write in host.writes)


def test_it_gets_a_policy_and_keeps_the_site_s_arguments(balanced, tmp_path):
    balanced.files["/etc/default/irqbalance"] = '#IRQBALANCE_ARGS=\nIRQBALANCE_ARGS="--hintpolicy=ignore"\n'
    wish = want(balanced, irqbalance=True)
    assert run(balanced, wish).failures(False) == ()
    environment = balanced.read(irqbalance.ENVIRONMENT)
    assert f'IRQBALANCE_ARGS="--hintpolicy=ignore --policyscript={irqbalance.POLICY}"' in environment.splitlines()
    assert "EnvironmentFile=/etc/gpufab/irqbalance.env" in balanced.read(irqbalance.DROP_IN)
    assert plan(balanced, wish).clean
    script = tmp_path / "policy"
    script.write_text(balanced.read(irqbalance.POLICY))
    devices = ("/sys/devices/pci0000:15/0000:18:00.0", "/sys/devices/pci0000:15/0000:19:00.0")
    says = [
        subprocess.run(["sh", script, it, "84"], capture_output=True, text=True, check=True).stdout for it in devices
    ]
    assert says == ["ban=true\n", ""]


@pytest.mark.parametrize(
    ("site", "kept"),
    [
        ('"--hintpolicy=ignore" # of old', "--hintpolicy=ignore"),
        ("--debug --oneshot", "--debug --oneshot"),
        ("'--banscript=\"a b\"'", '--banscript=\\"a b\\"'),
        ("", ""),
    ],
)
def test_arguments_of_the_site_s_are_kept_however_they_are_quoted(balanced, site, kept):
    balanced.files["/etc/default/irqbalance"] = f"IRQBALANCE_ARGS={site}\n"
    run(balanced, want(balanced, irqbalance=True))
    line = f"{kept} --policyscript={irqbalance.POLICY}".strip()
    assert f'IRQBALANCE_ARGS="{line}"' in balanced.read(irqbalance.ENVIRONMENT).splitlines()


def test_a_node_without_ports_has_nothing_to_keep_irqbalance_from(balanced):
    run(balanced, NumaWant(irq="local", irqbalance=True))
    assert not balanced.exists(irqbalance.POLICY)


@pytest.fixture
def booted(balanced):
    """With systemd, and irqbalance running as the site has it."""
    balanced.files["/run/systemd/system/x"] = ""
    balanced.answers[("systemctl", "daemon-reload")] = ok("")
    begin(balanced)
    return balanced


def restarts(host, verb, then):
    """What becomes of irqbalance once systemd has been told to start it anew."""
    host.answers[("systemctl", verb, irqbalance.UNIT)] = lambda: (then(), ok(""))[1]


def irqbalance_step(outcome):
    return next(r for r in outcome.steps if r.step.name == "numa irqbalance")


def test_one_that_runs_without_it_is_named_and_started_anew(booted):
    wish = want(booted, irqbalance=True)
    step = next(step for step in plan(booted, wish).steps if step.name == "numa irqbalance")
    assert irqbalance.PROCESS in {change.path for change in step.changes}
    restarts(booted, "try-restart", lambda: begin(booted, GPUFABS))
    assert run(booted, wish).failures(False) == ()
    assert plan(booted, wish).clean


def test_one_whose_files_are_older_is_started_anew(booted):
    begin(booted, GPUFABS)
    begun = []
    restarts(booted, "try-restart", lambda: begun.append(1))
    assert run(booted, want(booted, irqbalance=True)).failures(False) == ()
    assert begun == [1]


def test_one_that_does_not_run_is_not_started(booted):
    del booted.files["/proc/77/comm"], booted.files["/proc/77/cmdline"]
    assert run(booted, want(booted, irqbalance=True)).failures(False) == ()
    assert not any("restart" in write[1] for write in booted.writes if write[0] == "systemctl")


def test_a_process_without_a_command_line_tells_nothing(booted):
    """A child of it between fork and exec, or that has ended; and itself before it has its arguments."""
    begin(booted, GPUFABS)
    start(booted, 78, "irqbalance")
    booted.files["/proc/78/cmdline"] = ""
    assert irqbalance.read(booted).told is True
    booted.files["/proc/77/cmdline"] = ""
    assert irqbalance.read(booted).running is False


def test_a_child_that_has_become_the_policy_s_shell_is_none_of_it(booted, monkeypatch):
    begin(booted, GPUFABS)
    start(booted, 78, "irqbalance")
    booted.files["/proc/78/cmdline"] = ""

    def read(path):
        if path == "/proc/78/cmdline":  # it was forked when its name was read, and is another program by now
            booted.files.update({"/proc/78/comm": "sh\n", path: f"sh\0-c\0{irqbalance.POLICY}\0"})
        return type(booted).read(booted, path)

    monkeypatch.setattr(booted, "read", read)
    assert irqbalance.read(booted).told is True


def test_one_that_takes_a_moment_is_waited_for(booted):
    restarts(booted, "try-restart", lambda: booted.files.update({"/proc/77/cmdline": ""}))
    booted.sleep = lambda seconds: begin(booted, GPUFABS)
    assert run(booted, want(booted, irqbalance=True)).failures(False) == ()


def test_one_that_does_not_bear_its_arguments_is_a_failure_and_runs_as_before(booted):
    """A release that does not know the option says so and ends."""
    wish = want(booted, irqbalance=True)
    restarts(booted, "try-restart", lambda: [booted.files.pop(f"/proc/77/{name}") for name in ("comm", "cmdline")])
    restarts(booted, "restart", lambda: begin(booted))
    result = irqbalance_step(run(booted, wish))
    assert result.status is Status.FAILED
    assert "irqbalance.service was started anew and does not run" in result.reason
    assert result.reason.endswith("; undone")
    assert irqbalance.read(booted).running
    assert not booted.exists(irqbalance.ENVIRONMENT)


def test_a_policy_of_the_site_s_own_is_not_fought(balanced):
    balanced.files["/etc/sysconfig/irqbalance"] = "IRQBALANCE_ARGS=--policyscript=/etc/site-policy\n"
    result = irqbalance_step(run(balanced, want(balanced, irqbalance=True)))
    assert result.status is Status.BLOCKED
    assert "--policyscript=/etc/site-policy" in result.reason


def test_one_port_s_restore_leaves_the_policy_of_all_alone(balanced):
    wish = want(balanced, irqbalance=True)
    run(balanced, wish)
    before = balanced.read(irqbalance.POLICY)
    run(balanced, Numa().only(wish, wish.ports[0].pci))
    assert balanced.read(irqbalance.POLICY) == before


def test_the_door_writes_registers_in_place(tmp_path):
    (tmp_path / "config").write_bytes(bytes(16))
    host = Host(str(tmp_path))
    host.patch("/config", 6, b"\x1d\x00")
    assert host.read_bytes("/config") == bytes(6) + b"\x1d" + bytes(9)
    assert host.mode("/config") == 0o644


def test_a_user_s_process_called_irqbalance_is_none():
    host = FakeHost()
    start(host, 77, "irqbalance", uid=1000)
    assert not irqbalance.read(host).running
