"""Which feature cannot be made where another failed. All others go on: one that fails is its own affair."""

from collections.abc import Mapping

_NEEDS: Mapping[str, tuple[str, ...]] = {
    # Their tools and settings are the driver's, which may be half installed.
    "firmware": ("ofed",),
    "roce": ("ofed", "firmware"),
    "sriov": ("ofed", "firmware"),
}

FAILED = "failed_"
"""What the group of the hosts is called on which a feature failed, before its name (playbooks/site.yml)."""

LAST_TASK = "Name the hosts on which a role failed"
"""The task that fails them in the end: that others went on hides nothing."""


def needs(feature: str) -> tuple[str, ...]:
    """The features without which this one is not begun, also by way of others."""
    direct = _NEEDS.get(feature, ())
    return tuple(dict.fromkeys(name for one in direct for name in (*needs(one), one)))
