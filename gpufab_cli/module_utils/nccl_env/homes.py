"""Users' homes, as far as they may be looked into: a look must not mount a thousand of them, nor wait for a server."""

from typing import List, Optional, Tuple

from ..change import Unknown
from ..host import Reader
from ..management import NETWORK_FILESYSTEMS, SERVERLESS_FILESYSTEMS

HOMES = "/home"
MOUNTS = "/proc/self/mounts"
REMOTE = frozenset({*NETWORK_FILESYSTEMS, *SERVERLESS_FILESYSTEMS, "afs", "autofs", "fuse.glusterfs", "fuse.sshfs"})
"""File systems of other machines, and the one that mounts what is looked at."""


def homes(host: Reader) -> Tuple[Tuple[str, ...], Optional[str]]:
    """The homes on the node's own disks, and why others are left out; None where none are."""
    mounts = _mounts(host)
    target = host.link(HOMES)
    base = target if isinstance(target, str) and target.startswith("/") else HOMES
    kind = _kind(mounts, base)
    if kind in REMOTE:
        return (), f"homes are on {kind}: not looked into"
    names = host.names(HOMES)
    if isinstance(names, Unknown):
        return (), names.reason
    kinds = {name: _kind(mounts, f"{base}/{name}") for name in (names if isinstance(names, tuple) else ())}
    left = sorted({kind for kind in kinds.values() if kind in REMOTE})
    own = tuple(f"{HOMES}/{name}" for name, kind in kinds.items() if kind not in REMOTE)
    return own, f"{len(kinds) - len(own)} homes are on {', '.join(left)}: not looked into" if left else None


def _mounts(host: Reader) -> List[Tuple[str, str]]:
    text = host.read(MOUNTS)
    rows = [line.split() for line in text.splitlines()] if isinstance(text, str) else []
    return [(row[1].rstrip("/"), row[2]) for row in rows if len(row) > 2]  # noqa: PLR2004


def _kind(mounts: List[Tuple[str, str]], path: str) -> str:
    """The type of the file system that a path is on: of the deepest mount above it, the last made."""
    over = [(len(at), number) for number, (at, _) in enumerate(mounts) if path == at or path.startswith(f"{at}/")]
    return mounts[max(over)[1]][1] if over else ""
