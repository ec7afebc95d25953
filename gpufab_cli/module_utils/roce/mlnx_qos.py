"""The vendor's ``mlnx_qos``: the same settings as ``dcb``, on hosts whose iproute2 lacks it.

Grammar: mlnx-tools, python/mlnx_qos. Two traps decide how it is called: it applies what one call gives it in an order
of its own (PFC before trust), and where OFED's ``qos/`` exists in sysfs it takes only the first of two buffer options
and ignores the removal of a DSCP without a word. So each setting is a call of its own, and what it prints is not
believed: the read after it decides.
"""

from typing import Dict, Iterable, Mapping, Sequence

from ..change import Unknown
from ..host import Host, HostError, Reader
from . import mlnx_qos_text
from .backend import Dcb, Ets, Pairs
from .seen import Owner
from .want import DSCPS, PRIORITIES

_OWNERS = {"host": "os", "firmware": "fw"}


def read(host: Reader, netdevs: Mapping[str, bool]) -> Dict[str, Dcb]:
    """What mlnx_qos prints of netdevs. It always prints the buffers."""
    return {netdev: _read(host, netdev) for netdev in netdevs}


def _read(host: Reader, netdev: str) -> Dcb:
    output = host.query("mlnx_qos", "-a", "-i", netdev)
    if isinstance(output, Unknown):
        return mlnx_qos_text.nothing(output)
    return mlnx_qos_text.parse(output.whole, output.error if output.rc else "", netdev)


def _run(host: Host, netdev: str, *words: str) -> None:
    host.run("mlnx_qos", "-i", netdev, *words)


def set_owner(host: Host, netdev: str, owner: Owner) -> None:
    """Who runs DCBX: the operating system or the firmware."""
    _run(host, netdev, "-d", _OWNERS[owner])


def set_dscp(host: Host, netdev: str, current: Pairs, desired: Pairs) -> None:
    """Trust first, then the map: trusting DSCP sets all 64 to DSCP >> 3, trusting PCP removes them all.

    Raises:
        HostError: single DSCPs would have to be removed, which not every release can.
    """
    if not desired:
        _run(host, netdev, "--trust", "pcp")
        return
    if not current:
        _run(host, netdev, "--trust", "dscp")
        current = tuple((dscp, dscp >> 3) for dscp in range(DSCPS))
    if {dscp for dscp, _ in current} - {dscp for dscp, _ in desired}:
        raise HostError(f"mlnx_qos cannot remove single DSCPs from the map of {netdev}")
    changed = [pair for pair in desired if pair not in current]
    if changed:
        _run(host, netdev, *(word for dscp, priority in changed for word in ("--dscp2prio", f"set,{dscp},{priority}")))


def set_pfc(host: Host, netdev: str, priorities: Sequence[int]) -> None:
    """PFC on for exactly these priorities."""
    _run(host, netdev, "-f", _listed(int(priority in priorities) for priority in range(PRIORITIES)))


def set_ets(host: Host, netdev: str, ets: Ets) -> None:
    """All of ETS in one call."""
    _run(host, netdev, "-p", _listed(ets.prio_tc), "-s", _listed(ets.tc_tsa), "-t", _listed(ets.tc_bw))


def set_cable(host: Host, netdev: str, metres: int) -> None:
    """The cable length."""
    _run(host, netdev, "--cable_len", str(metres))


def set_prio_buffer(host: Host, netdev: str, prio_buffer: Sequence[int]) -> None:
    """The receive buffer of each priority."""
    _run(host, netdev, "--prio2buffer", _listed(prio_buffer))


def set_buffer_bytes(host: Host, netdev: str, sizes: Sequence[int]) -> None:
    """The size of each receive buffer in bytes."""
    _run(host, netdev, "--buffer_size", _listed(sizes))


def _listed(items: Iterable[object]) -> str:
    return ",".join(map(str, items))
