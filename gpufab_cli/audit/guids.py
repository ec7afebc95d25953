"""RDMA devices of the whole fabric that have one GUID: two of them, and the fabric finds neither reliably."""

from collections.abc import Iterator, Mapping

from gpufab_cli.module_utils.identity import plain_guid
from gpufab_cli.module_utils.snapshot import Snapshot

Guids = tuple[tuple[str, str], ...]
"""GUID and the device that has it."""
NO_GUID = "00:00:00:00:00:00:00:00"


def guids(snapshot: Snapshot) -> Guids | None:
    """The node GUIDs of a host's RDMA devices, those of VFs too."""
    found = tuple(
        (guid, nic.pci)
        for nic in snapshot.devices.nics
        for device in nic.rdma
        if (guid := plain_guid(device.node_guid)) not in ("", NO_GUID)
    )
    return found or None


def duplicates(facts: Mapping[str, Guids]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The hosts that share a GUID, and in words what shares it."""
    owners: dict[str, list[tuple[str, str]]] = {}
    for host in sorted(facts):
        for guid, pci in facts[host]:
            owners.setdefault(guid, []).append((host, pci))
    for guid, places in sorted(owners.items()):
        if len(places) > 1:
            hosts = tuple(dict.fromkeys(host for host, _ in places))
            yield hosts, f"{guid} is that of " + ", ".join(f"{pci} on {host}" for host, pci in places)
