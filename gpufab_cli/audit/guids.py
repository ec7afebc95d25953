"""RDMA devices of the whole fabric that have one GUID: two of them, and the fabric finds neither reliably."""

from gpufab_cli.audit.twice import Owned
from gpufab_cli.module_utils.identity import plain_guid
from gpufab_cli.module_utils.snapshot import Snapshot

NO_GUID = "00:00:00:00:00:00:00:00"


def guids(snapshot: Snapshot) -> Owned | None:
    """The node GUIDs of a host's RDMA devices, those of VFs too."""
    found = tuple(
        (guid, nic.pci)
        for nic in snapshot.devices.nics
        for device in nic.rdma
        if (guid := plain_guid(device.node_guid)) not in ("", NO_GUID)
    )
    return found or None
