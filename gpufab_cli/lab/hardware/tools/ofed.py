"""Small tools of the vendor's stack that only look: ibdev2netdev, show_gids, ofed_info."""

import ipaddress

from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.sysfs.infiniband import GIDS, gids
from gpufab_cli.lab.hardware.tools.answer import Answer, Request

_HEAD = "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---\n"


def ibdev2netdev(hw: Hardware, request: Request) -> Answer:
    """Which netdev each RDMA device is behind; of a bond its own."""
    lines, nic = [], hw.machine.nic
    for place in hw.machine.ports:
        if place.rdma:
            up = hw.live().admin_up(place.netdev) and hw.carrier(place.netdev)
            end = f"==> {place.holder} ({'Up' if up else 'Down'})\n"
            known = f"{place.pci} {place.rdma} ({nic.hca_type} - {nic.part_number}) adapter card fw {nic.firmware}"
            state = f" ({'ACTIVE' if up else 'DOWN  '})" if "-v" in request.argv else ""
            lines.append(f"{known if '-v' in request.argv else place.rdma} port 1{state} {end}")
    return Answer("".join(lines))


def show_gids(hw: Hardware, request: Request) -> Answer:
    """The GID tables, in the order in which ls sorts the indexes."""
    devices = [place for place in hw.machine.ports if place.rdma and request.argv[:1] in ((), (place.rdma,))]
    rows = []
    for place in devices:
        held = gids(hw, place)
        for index in sorted(range(min(GIDS, 2 * len(held))), key=str):
            address = ipaddress.IPv6Address(held[index // 2])
            shown = f"{address.ipv4_mapped}  \t" if address.ipv4_mapped else "\t\t"
            netdev = place.holder if hw.machine.is_ethernet(place) else ""
            rows.append(f"{place.rdma}\t1\t{index}\t{address.exploded}\t{shown}\tv{index % 2 + 1}\t{netdev}\n")
    return Answer(_HEAD + "".join(rows) + f"n_gids_found={len(rows)}\n")


def ofed_info(hw: Hardware, request: Request) -> Answer:
    """The release of the vendor's stack, with the colon it ends with."""
    if request.argv != ("-s",):
        return Answer(f"{hw.machine.stack.release}:\n\nInstalled Packages:\n-------------------\n\nib\n")
    return Answer(f"{hw.machine.stack.release}:\n")
