"""Which parameters each file is to hold."""

from typing import Dict, Tuple, Union

from .. import rails
from ..change import Finding
from ..devices import Devices
from . import files
from .seen import Install, MpiSeen
from .want import MpiWant

NET, TLS, TC = "UCX_NET_DEVICES", "UCX_TLS", "UCX_IB_TRAFFIC_CLASS"
PORT = "1"
_BINDING_OF_4 = {"package": "socket"}


def ucx(want: MpiWant, devices: Tuple[str, ...]) -> Dict[str, str]:
    """What UCX is told. Names have their port, for UCX knows no device without one."""
    found = {NET: ",".join(f"{name}:{PORT}" for name in devices)} if devices else {}
    if want.tls:
        found[TLS] = ",".join(want.tls)
    if want.roce is not None:
        found[TC] = str(want.roce.traffic_class)
    return found


def openmpi(seen: MpiSeen, want: MpiWant, install: Install, sockets: Tuple[str, ...]) -> Dict[str, str]:
    """What one Open MPI is told: UCX carries messages where there is one; openib, gone in 5, never beside it."""
    old = install.major == files.MAJOR_OF_PRTE - 1
    found: Dict[str, str] = {}
    if seen.ucx is not None and want.rails:
        found["pml"] = "ucx"
        if old and not files.excludes_openib(seen, files.openmpi(install)):
            found["btl"] = files.NO_OPENIB
    elif old and want.rails:
        found["btl_openib_allow_ib"] = "1"
    if sockets:
        found["btl_tcp_if_include"] = ",".join(sockets)
    if old and sockets:
        found["oob_tcp_if_include"] = ",".join(sockets)
    if old and want.binding is not None:
        found["hwloc_base_binding_policy"] = _BINDING_OF_4.get(want.binding, want.binding)
    return found


def prte(want: MpiWant, sockets: Tuple[str, ...]) -> Dict[str, str]:
    """What the run-time of Open MPI 5 is told."""
    found = {"prte_if_include": ",".join(sockets)} if sockets else {}
    if want.binding is not None:
        found["hwloc_default_binding_policy"] = want.binding
    return found


def sockets(devices: Devices, want: MpiWant) -> Union[Tuple[str, ...], Finding]:
    """The interfaces for start-up and TCP by their names now."""
    return rails.interfaces(devices, want.socket_interfaces or (), want.socket_ports or ())
