"""Addresses of ports by a pattern such as ``10.10.{rail}.{host}/24``.

``{host}`` is the last number in the host's name, ``{rack}`` the one before it: 7 and 12 of ``r12n07``.
"""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from gpufab_cli.spec.bond import lead
from gpufab_cli.spec.faults import Fault

if TYPE_CHECKING:
    from gpufab_cli.spec.model import FabricSpec, Host, Rail

_TEMPLATE = re.compile(r"(?:[0-9.]|\{rail\}|\{host\}|\{rack\})+/[0-9]{1,2}")
_NUMBERS = ("host", "rack")  # from the last in the name backwards


def check_template(template: str) -> str:
    """Return the pattern.

    Raises:
        ValueError: it is not an IPv4 address with a prefix length, ``{rail}``, ``{host}`` and ``{rack}`` aside.
    """
    if not _TEMPLATE.fullmatch(template):
        raise ValueError(f"{template!r} is not a pattern such as 10.10.{{rail}}.{{host}}/24")
    _fill(template, 1, {"host": 1, "rack": 1})
    return template


def _fill(template: str, rail: int, numbers: Mapping[str, int]) -> ipaddress.IPv4Interface:
    text = template.replace("{rail}", str(rail))
    for name, number in numbers.items():
        text = text.replace(f"{{{name}}}", str(number))
    return ipaddress.IPv4Interface(text)


def host_numbers(name: str) -> dict[str, int]:
    """The numbers in a host's own name: host 7 and rack 12 of ``r12n07.pod1``, as many as there are."""
    found = re.findall(r"[0-9]+", name.partition(".")[0])
    return dict(zip(_NUMBERS, map(int, reversed(found)), strict=False))


def port_address(spec: "FabricSpec", host: "Host", rail: "Rail") -> ipaddress.IPv4Interface | None:
    """The address of a host's port, or of the bond it is in; None where the network has no addressing.

    Raises:
        ValueError: the pattern gives this host no legal address.
    """
    addressing = spec.networks[rail.network].addressing
    if addressing is None:
        return None
    numbers = host_numbers(host.name)
    missing = [name for name in _NUMBERS if name not in numbers and f"{{{name}}}" in addressing.ipv4]
    if missing:
        raise ValueError(f"the name of {host.name} holds no number for {{{missing[0]}}}")
    found = _fill(addressing.ipv4, lead(spec.profile_of(host), rail).number, numbers)
    inner = found.network.num_addresses > 2  # noqa: PLR2004 (a /31 and a /32 have no broadcast address)
    if inner and found.ip in (found.network.network_address, found.network.broadcast_address):
        raise ValueError(f"{found} of {host.name} is not the address of a port")
    return found


def address_faults(spec: "FabricSpec") -> Iterator[Fault]:
    """Ports with no legal address, with one address, or two rails of a host in one subnet.

    Two rails in one subnet: the kernel answers ARP for both on either port, and traffic leaves by the wrong rail.
    """
    owners: dict[Any, str] = {}
    told: set[str] = set()
    for host in spec.in_state("active", "maintenance"):
        subnets: dict[Any, Rail] = {}
        for rail in spec.rails(host):
            if rail.network in told or lead(spec.profile_of(host), rail) != rail:
                continue
            message, hint = _clash(spec, host, rail, owners, subnets)
            if message:
                told.add(rail.network)  # one mistake in the pattern is one error, not one a host
                yield Fault(("networks", rail.network, "addressing", "ipv4"), message, hint)


def _clash(
    spec: "FabricSpec", host: "Host", rail: "Rail", owners: dict[Any, str], subnets: "dict[Any, Rail]"
) -> tuple[str, str]:
    """What is wrong with one port's address, and what to do; both empty if nothing is."""
    try:
        address = port_address(spec, host, rail)
    except ValueError as error:
        return str(error), ""
    if address is None:
        return "", ""
    port = f"{host.name} {rail}"
    owner = owners.setdefault(address.ip, port)
    if owner != port:
        return f"{port} has the address of {owner}, {address.ip}", "tell them apart by {rail}, {rack} and {host}"
    near = next((other for subnet, other in subnets.items() if subnet.overlaps(address.network)), None)
    subnets[address.network] = rail
    if near is None:
        return "", ""
    hint = "give each rail a subnet of its own: in one, the kernel answers for either port on both"
    return f"{port} is in the subnet of {near}, {address.network}", hint
