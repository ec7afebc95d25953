"""Snapshots of the hosts of the small fabric: as declared, or with a few values changed."""

from dataclasses import replace

from gpufab_cli.module_utils import archive
from gpufab_cli.module_utils.change import ABSENT
from gpufab_cli.module_utils.desired import desired_text
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.host import sha256
from gpufab_cli.module_utils.node import order
from gpufab_cli.module_utils.node.files import digests, links
from gpufab_cli.module_utils.node.seen import NodeSeen
from gpufab_cli.module_utils.node.want import WAIT_S
from gpufab_cli.module_utils.roce.seen import RoceSeen
from gpufab_cli.module_utils.snapshot import Snapshot
from tests import fabrics
from tests.unit.core.roce_node import GOOD, nic

HOSTS = ("gpu01", "gpu02", "gpu03")
WANTS = fabrics.compiled(fabrics.spec(), fabrics.lock())


def in_sync(host="gpu01", *, ports=None, lldpad=None, node=None, desired=None, nics=None, wants=WANTS):
    """A host that is as declared, but for ``ports`` (rail number → changed fields) and the other arguments."""
    want = wants[host]["roce"]
    seen = {port.pci: _port(want.qos[port.qos], (ports or {}).get(rail, {})) for rail, port in enumerate(want.ports)}
    return Snapshot(
        boot_id="boot-1",
        uid=0,
        devices=Devices(nics if nics is not None else tuple(_nic(port) for port in want.ports)),
        seen={"node": node or node_seen(), "roce": RoceSeen(seen, lldpad)},
        desired={"roce": desired or sha256(desired_text("roce", want).encode())},
        records={"node": ABSENT, "roce": ABSENT},
    )


def node_seen(**changes):
    python = "/usr/bin/python3"
    ordered = order.wanted(WAIT_S, order.JOBS, {})
    return replace(
        NodeSeen(files=dict(digests(archive.digest())), links=links(python), python=python, order=ordered), **changes
    )


def _nic(port):
    return nic(pci=port.pci, name=f"ens{port.pci[5:7]}np0", mac=port.mac, serial=port.serial, addresses=_address(port))


def _address(port):
    """An address of its own on every host, as MAC addresses are."""
    *host, rail = (int(part, 16) for part in port.mac.split(":")[2:])
    return (f"{20 + rail}.{'.'.join(map(str, host))}/8",)


def _port(qos, changes):
    """GOOD with what the small fabric wants, which differs from GOOD in its shares and its forced traffic class."""
    as_wanted = replace(GOOD, tc_tsa=qos.tc_tsa, tc_bw=qos.tc_bw, traffic_class=qos.traffic_class or ABSENT)
    return replace(as_wanted, **changes)
