"""One-shot changes of settings, as a careless operator, a script or a driver makes them. None goes to the write log."""

import errno
from collections.abc import Callable

from gpufab_cli.lab.hardware import sriov
from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.state import PRIORITIES, Cma, Ets, Port

Drift = Callable[[Hardware, str], None]

# The widespread marking of RoCE data, and a priority that is not its own.
_DATA_DSCP, _WRONG_PRIORITY = 26, 4


def _pfc_off(hw: Hardware, netdev: str) -> None:
    hw.set_pfc(netdev, [False] * PRIORITIES, None)


def _wrong_priority(hw: Hardware, netdev: str) -> None:
    hw.set_dscp(netdev, _DATA_DSCP, _WRONG_PRIORITY)


def _global_pause_on(hw: Hardware, netdev: str) -> None:
    hw.set_pause(netdev, rx=True, tx=True)


def _ecn_np_off(hw: Hardware, netdev: str) -> None:
    hw.change(netdev, lambda port: setattr(port, "np_enable", [False] * PRIORITIES))


def _tos_reset(hw: Hardware, netdev: str) -> None:
    def edit(port: Port) -> None:
        port.cma = Cma(directory=port.cma.directory)

    hw.change(netdev, edit)


def _ets_lost(hw: Hardware, netdev: str) -> None:
    hw.change(netdev, lambda port: setattr(port, "ets", Ets()))


def _dscp_flushed(hw: Hardware, netdev: str) -> None:
    hw.change(netdev, lambda port: port.dscp.clear())


def _cnp_changed(hw: Hardware, netdev: str) -> None:
    hw.change(netdev, lambda port: port.np.update({"cnp_dscp": 4, "cnp_802p_prio": 0}))


def _traffic_class_cleared(hw: Hardware, netdev: str) -> None:
    hw.change(netdev, lambda port: setattr(port, "traffic_class", None))


def _driver_reload(hw: Hardware, _: str) -> None:
    for place in hw.machine.ports:
        sriov.remove_all(hw, place)
    hw.driver_reload()


def _vf_lost(hw: Hardware, netdev: str) -> None:
    place = hw.place(netdev)
    if place is not None:
        sriov.remove_all(hw, place)


def _duplicate_guid(hw: Hardware, netdev: str) -> None:
    """The first VF has the GUIDs of the second, as after a copied configuration."""

    def edit(port: Port) -> None:
        if len(port.sriov.vfs) < 2:  # noqa: PLR2004
            raise fail(errno.EINVAL)
        first, second = port.sriov.vfs[:2]
        first.node_guid, first.port_guid, first.own_guid = second.node_guid, second.port_guid, second.own_guid

    hw.change(netdev, edit)


def _dcbx_firmware(hw: Hardware, netdev: str) -> None:
    hw.change(netdev, lambda port: setattr(port, "dcbx", ["cee", "ieee"]))


DRIFTS: dict[str, Drift] = {
    "pfc-off": _pfc_off,
    "wrong-priority": _wrong_priority,
    "global-pause-on": _global_pause_on,
    "ecn-np-off": _ecn_np_off,
    "tos-reset": _tos_reset,
    "ets-lost": _ets_lost,
    "dscp-flushed": _dscp_flushed,
    "cnp-changed": _cnp_changed,
    "traffic-class-cleared": _traffic_class_cleared,
    "driver-reload": _driver_reload,
    "trust-pcp": _dscp_flushed,
    "dcbx-firmware": _dcbx_firmware,
    "vf-lost": _vf_lost,
    "duplicate-guid": _duplicate_guid,
}
