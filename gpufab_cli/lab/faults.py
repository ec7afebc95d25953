"""Faults by name: what each does to a node and how it ends. One table, from which help and completion come too."""

from pathlib import PurePosixPath
from typing import NoReturn

from gpufab_cli.lab import faults_numa, faults_power, faults_roce, faults_software, podman
from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.fault import TARGETED, FaultKind, Strike, drift, model
from gpufab_cli.lab.files import USER
from gpufab_cli.lab.hardware.tools.mlnx_qos_print import RELEASES
from gpufab_cli.lab.shell import run
from gpufab_cli.lab.toolbox import TOOLS

_SUDOERS, _SUDOERS_OFF = "/etc/sudoers.d/ops", "/root/sudoers.ops"
_BINARIES = PurePosixPath("/usr/local/sbin")
_GUEST = _BINARIES / "qemu-system-x86"
_LLDPAD_UNIT = """\
[Unit]
Description=Stands for the LLDP agent daemon: same name, does nothing
[Service]
ExecStart=/usr/local/sbin/lldpad infinity
[Install]
WantedBy=multi-user.target
"""


def _hide_tool(strike: Strike) -> None:
    path = TOOLS[strike.argument]
    strike.shell('[ ! -e "$1" ] || mv "$1" "$1.missing"', str(path))


def _show_tool(strike: Strike) -> None:
    path = TOOLS[strike.argument]
    strike.shell('mv "$1.missing" "$1"', str(path))


def _start_lldpad(strike: Strike) -> None:
    script = (
        'cp /usr/bin/sleep "$1"; printf %s "$2" >/etc/systemd/system/lldpad.service; systemctl enable -q --now lldpad'
    )
    strike.shell(script, str(_BINARIES / "lldpad"), _LLDPAD_UNIT)


def _stop_lldpad(strike: Strike) -> None:
    strike.shell("systemctl disable -q --now lldpad; rm /etc/systemd/system/lldpad.service; systemctl daemon-reload")


def _hold_verbs(strike: Strike) -> None:
    strike.shell('cp /usr/bin/sleep "$1"', str(_BINARIES / "ib_write_bw"))
    script = 'exec "$1" infinity 9<>"$2"'
    program, device = str(_BINARIES / "ib_write_bw"), f"/dev/infiniband/uverbs{strike.rail}"
    podman.execute_detached(strike.node.container, "sh", "-c", script, "sh", program, device)


def _release_verbs(strike: Strike) -> None:
    strike.shell("pkill -x ib_write_bw || true")


# A guest has the first VF of the port: the VF is bound to vfio-pci, and a process holds its group.
_FIND_VF = 'vf=$(basename "$(readlink "/sys/class/net/$1/device/virtfn0")"); d=/sys/bus/pci/devices/$vf; '


def _hold_vf(strike: Strike) -> None:
    script = (
        'cp /usr/bin/sleep "$2"; echo "$vf" >"$d/driver/unbind"; echo vfio-pci >"$d/driver_override"; '
        'echo "$vf" >/sys/bus/pci/drivers/vfio-pci/bind'
    )
    strike.shell(_FIND_VF + script, strike.netdev, str(_GUEST))
    script = _FIND_VF + 'exec "$2" infinity 9<>"/dev/vfio/$(basename "$(readlink "$d/iommu_group")")"'
    podman.execute_detached(strike.node.container, "sh", "-c", script, "sh", strike.netdev, str(_GUEST))


def _release_vf(strike: Strike) -> None:
    script = (
        'pkill -x qemu-system-x86 || true; [ -e "$d" ] || exit 0; echo "$vf" >"$d/driver/unbind"; '
        'echo >"$d/driver_override"; echo "$vf" >/sys/bus/pci/drivers_probe'
    )
    strike.shell(_FIND_VF + script, strike.netdev)


def _rail_socket(strike: Strike) -> str:
    return str(strike.node.run / "rail.ssh")


def _login_over_rail(strike: Strike) -> None:
    """Logs in from the far side of the rail and stays; ssh goes to the background once it is through."""
    node, folder = strike.node, strike.node.state.parent.parent
    address = node.site.ipv4.format(rail=strike.rail, host=node.record.number).split("/")[0]
    options = {
        "HostKeyAlias": f"[127.0.0.1]:{node.record.ssh_port}",
        "IdentityFile": str(folder / "id_ed25519"),
        "UserKnownHostsFile": str(folder / "known_hosts"),
        "StrictHostKeyChecking": "yes",
        "ControlMaster": "yes",
        "ControlPath": _rail_socket(strike),
    }
    argv = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    run(["ip", "netns", "exec", node.netns, "ssh", "-F", "none", "-f", "-N", *argv, f"{USER}@{address}"], timeout=20)


def _logout_over_rail(strike: Strike) -> None:
    run(["ssh", "-F", "none", "-S", _rail_socket(strike), "-O", "exit", "node"])


def _deny_root(strike: Strike) -> None:
    strike.shell('mv "$1" "$2"', _SUDOERS, _SUDOERS_OFF)


def _allow_root(strike: Strike) -> None:
    strike.shell('mv "$1" "$2"', _SUDOERS_OFF, _SUDOERS)


def _stop_node(strike: Strike) -> None:
    podman.stop(strike.node.container)


def _start_node(strike: Strike) -> None:
    podman.start(strike.node.container)
    strike.node.wait_up()


_ALL = (
    drift("pfc-off", "PFC is off on a port, which flaps its link"),
    drift("wrong-priority", "DSCP 26 is mapped to priority 4"),
    drift("global-pause-on", "global pause is on, which turns PFC off"),
    drift("ecn-np-off", "no congestion notifications are sent"),
    drift("tos-reset", "RDMA-CM's default ToS and mode are back to 0 and RoCE v2"),
    drift("ets-lost", "ETS is back to the driver's default"),
    drift("dscp-flushed", "the DSCP map is empty, so that trust is back to PCP"),
    drift("cnp-changed", "CNPs leave with DSCP 4 and priority 0"),
    drift("traffic-class-cleared", "the port's global traffic class is unset"),
    drift("driver-reload", "the NIC driver and rdma_cm were reloaded on all ports", on_port=False),
    FaultKind("tool-missing", "a tool is not installed", _hide_tool, _show_tool, "TOOL"),
    model("tool-hangs", "a tool does not come back", "TOOL"),
    model("tool-lies", "a tool exits 0 and sets nothing", "TOOL"),
    model("garbage-output", "a tool prints what no release prints", "TOOL"),
    FaultKind("lldpad-running", "an LLDP agent runs that may overwrite settings", _start_lldpad, _stop_lldpad),
    FaultKind("verbs-busy", "a process holds the port's verbs device", _hold_verbs, _release_verbs, "", True),
    model("gpu-busy", "a compute process runs on GPU 0"),
    FaultKind("ssh-over-rail", "someone is logged in over the rail", _login_over_rail, _logout_over_rail, "", True),
    model("link-down", "the cable carries nothing", on_port=True),
    model("no-ecn-sysfs", "the vendor's ecn/ and tc/ files are absent, as with an inbox driver"),
    drift("vf-lost", "the port's VFs are gone, as after a reload of its driver"),
    drift("duplicate-guid", "the port's first VF has the GUIDs of its second"),
    FaultKind("vf-busy", "a guest has the port's first VF", _hold_vf, _release_vf, "", True),
    model("firmware-not-applied", "firmware parameters do not become current, neither by reset nor by reboot"),
    model("nic-locked-down", "the kernel is locked down: firmware tools cannot open the port's card", on_port=True),
    model("enospc-msix", "the port's card has no interrupt vectors left for VFs", on_port=True),
    model("enomem-bios", "the BIOS left no address space for the port's VFs", on_port=True),
    *faults_roce.KINDS,
    *faults_power.KINDS,
    *faults_software.KINDS,
    *faults_numa.KINDS,
    model("no-rdma-cm", "the rdma_cm module is not loaded"),
    FaultKind("no-root", "sudo -n is refused", _deny_root, _allow_root),
    model("stall-at-write", "the Nth hardware write from now does not return", "N"),
    model("fail-at-write", "the Nth hardware write from now fails with an I/O error", "N"),
    FaultKind("node-stopped", "the node is off", _stop_node, _start_node),
)
KINDS = {kind.name: kind for kind in _ALL}


def find(name: str) -> FaultKind:
    """The fault of that name.

    Raises:
        LabError: There is none.
    """
    if name not in KINDS:
        raise LabError(f"no fault {name!r}", hint=f"known: {', '.join(KINDS)}")
    return KINDS[name]


def check_argument(kind: FaultKind, argument: str) -> None:
    """Checks what was given besides the name.

    Raises:
        LabError: It does not fit the fault.
    """
    if kind.argument == "TOOL" and argument not in TOOLS:
        raise LabError(f"{kind.name} needs a tool", hint=f"one of {', '.join(TOOLS)}")
    if kind.argument == "RELEASE" and argument not in RELEASES:
        raise LabError(f"{kind.name} needs a release", hint=f"one of {', '.join(RELEASES)}")
    if kind.argument == "GPU" and argument and not argument.isdigit():
        raise LabError(f"{kind.name} needs a GPU", hint="its number from 0 on, in the order of PCI addresses")
    if kind.argument == "N" and not (argument.isdigit() and int(argument)):
        raise LabError(f"{kind.name} needs a count", hint="a number from 1 on")
    if not kind.argument and argument:
        raise LabError(f"{kind.name} takes no argument", hint="--port names a port")


def strike(kind: FaultKind, strike: Strike) -> None:
    """Brings a fault about and, if it lasts, has the hardware remember it."""
    check_argument(kind, strike.argument)
    kind.strike(strike)
    if kind.mend is not None:
        strike.node.ask("break", name=kind.name, target=_target(kind, strike), count=_count(kind, strike))


def mend(kind: FaultKind, strike: Strike) -> None:
    """Ends a lasting fault."""
    if kind.mend is not None:
        kind.mend(strike)
    strike.node.ask("repair", name=kind.name, target=_target(kind, strike))


def refuse_mending(kind: FaultKind, node: str) -> NoReturn:
    """Says why there is nothing to mend."""
    if kind.mend is None:
        raise LabError(f"{kind.name} is a change of settings", hint="gpufab apply puts it right")
    raise LabError(f"{node} has no fault {kind.name}", hint="gpufab lab status")


def _target(kind: FaultKind, strike: Strike) -> str:
    if kind.on_port:
        return strike.netdev
    if kind.argument == "GPU":
        return strike.argument or "0"
    return strike.argument if kind.argument in TARGETED else ""


def _count(kind: FaultKind, strike: Strike) -> int:
    return int(strike.argument) if kind.argument == "N" else 0
