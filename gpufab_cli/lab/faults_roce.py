"""Faults of RoCE ports: owners and writers beside gpufab, dead and swapped cards, frames, masks, releases."""

from gpufab_cli.lab.fault import Act, FaultKind, Strike, drift, model
from gpufab_cli.lab.hardware.tools.mlnx_qos_print import FAULT as RELEASE

_SMALL_FRAMES = 1500


def _shrink_frames(strike: Strike) -> None:
    strike.shell('ip link set dev "$1" mtu "$2"', strike.netdev, str(_SMALL_FRAMES))


def _restore_frames(strike: Strike) -> None:
    strike.shell('ip link set dev "$1" mtu "$2"', strike.netdev, str(strike.node.site.mtu))


def _mask(value: int) -> Act:
    """Sets the priorities, a bit each, on which the port's firmware controls congestion."""

    def act(strike: Strike) -> None:
        strike.node.ask("firmware", netdev=strike.netdev, name="ROCE_CC_PRIO_MASK_P{port}", value=value)

    return act


KINDS = (
    drift("trust-pcp", "the port trusts PCP, which empties its DSCP map"),
    drift("dcbx-firmware", "DCBX in the firmware owns the port's PFC and ETS: what the host sets does not stay"),
    FaultKind("mtu-mismatch", "the port has an MTU of 1500", _shrink_frames, _restore_frames, on_port=True),
    model("nic-dead", "the port's driver has failed: its netdev and RDMA device are gone", on_port=True),
    model("nic-swapped", "the port's card was replaced: another serial number", on_port=True),
    FaultKind(
        "firmware-mask-off",
        "the firmware has congestion control off for priority 3",
        _mask(0xFF & ~(1 << 3)),
        _mask(0xFF),
        on_port=True,
    ),
    model("errors-rising", "the port drops a packet between any two looks at its counters", on_port=True),
    model("foreign-writer", "something sets the DSCP of CNPs back to 4 after every write", on_port=True),
    model(RELEASE, "mlnx_qos is of another release", "RELEASE"),
)
