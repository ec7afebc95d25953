"""The files that keep VF netdevs out of network managers: whoever hands VFs to guests or containers configures them.

NetworkManager reads NM_UNMANAGED (its man page, udev properties); systemd-networkd can match any udev property.
"""

from typing import Dict

UDEV_RULE = "/etc/udev/rules.d/81-gpufab-vf-unmanaged.rules"
NETWORK = "/etc/systemd/network/05-gpufab-vf-unmanaged.network"

_HEADER = "# Kept by gpufab: changes made here are reverted.\n"


def contents() -> Dict[str, bytes]:
    """Every file by path."""
    rule = (
        'ACTION!="remove", SUBSYSTEM=="net", TEST=="device/physfn", '
        'ENV{NM_UNMANAGED}="1", ENV{ID_GPUFAB_UNMANAGED}="1"\n'
    )
    network = "[Match]\nProperty=ID_GPUFAB_UNMANAGED=1\n\n[Link]\nUnmanaged=yes\n"
    return {UDEV_RULE: (_HEADER + rule).encode(), NETWORK: (_HEADER + network).encode()}
