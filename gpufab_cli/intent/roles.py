"""The role of each feature, whose name its variables bear."""

_OTHERWISE = {"firmware": "nic_firmware"}


def role(feature: str) -> str:
    """The role that brings a host to what a feature wants."""
    return _OTHERWISE.get(feature, feature)
