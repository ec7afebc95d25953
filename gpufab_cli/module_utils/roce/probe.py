"""Which backend a port has, found by looking: what is installed, and what the driver shows."""

from typing import Optional

from ..change import Unknown
from ..host import Reader
from . import bnxt, cc_params, dcb, mlnx_qos, vendor_ecn
from .backend import Congestion, CongestionBackend, DcbBackend, Port

NOTHING = "the driver shows no congestion control: neither ecn/ in sysfs, nor cc_params in debugfs, nor bnxt_re"
BNXT_DRIVER = "bnxt_en"


def dcb_backend(host: Reader) -> DcbBackend:
    """iproute2's dcb where there is one, as its JSON leaves nothing to guess; else the vendor's mlnx_qos."""
    return dcb if host.installed("dcb") or not host.installed("mlnx_qos") else mlnx_qos


def congestion_backend(host: Reader, port: Port, driver: str) -> Optional[CongestionBackend]:
    """The interface that the port's driver has; None when it shows none."""
    if host.exists(f"/sys/class/net/{port.netdev}/ecn"):
        return vendor_ecn
    if host.exists(cc_params.path(port.pci)):
        return cc_params
    return bnxt if driver == BNXT_DRIVER and host.exists(bnxt.CONFIGFS) else None


def no_congestion(host: Reader, knobs: "tuple[str, ...]") -> Congestion:
    """ECN and CNP of a port whose driver shows neither, with the best reason there is."""
    debugfs = host.names(cc_params.DEBUGFS.rpartition("/")[0])
    reason = debugfs if isinstance(debugfs, Unknown) else Unknown(NOTHING)
    return Congestion(reason, reason, reason, reason, dict.fromkeys(knobs, reason))
