"""MACs and GUIDs of VFs, made of the identity of their physical port and their number. Pure and always the same.

They are hashes, so two ports' VFs have the same one only by a chance of some one in ten million for a fabric of a
thousand hosts; every compilation checks that none does.
"""

import hashlib
from collections.abc import Iterator, Mapping

from gpufab_cli.errors import GpufabError
from gpufab_cli.module_utils.sriov.want import SriovWant

_LOCAL, _GROUP = 0x02, 0x01  # IEEE 802: bits of the first octet


def vf_mac(port: str, index: int) -> str:
    """A locally administered unicast MAC of a VF; ``port`` is its physical port's own address."""
    return _address(f"mac/{port}/{index}", 6)


def vf_guid(kind: str, port: str, index: int) -> str:
    """A locally administered GUID of a VF; ``kind`` is node or port, ``port`` its physical port's own address."""
    return _address(f"{kind}-guid/{port}/{index}", 8)


def _address(seed: str, length: int) -> str:
    digest = bytearray(hashlib.sha256(seed.encode()).digest()[:length])
    digest[0] = digest[0] & ~_GROUP | _LOCAL
    return digest.hex(":")


def duplicates(wants: Mapping[str, SriovWant]) -> Iterator[GpufabError]:
    """VFs of the fabric, by host, that would have one address."""
    owners: dict[str, str] = {}
    for host, want in wants.items():
        for address, owner in _addresses(host, want):
            first = owners.setdefault(address, owner)
            if first != owner:
                hint = "give one of them another under each:, or leave it out to have it derived"
                yield GpufabError(f"{owner} would have {address}, which {first} has", hint)


def _addresses(host: str, want: SriovWant) -> Iterator[tuple[str, str]]:
    for port in want.ports:
        if port.mac is not None:
            yield port.mac, f"{host} {port.rail}"
        for index, vf in enumerate(port.vfs):
            for address in (vf.mac, vf.node_guid, vf.port_guid):
                if address is not None:
                    yield address, f"{host} {port.rail} VF {index}"
