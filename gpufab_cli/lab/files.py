"""What the lab keeps on disk: its own state, keys, and the files by which ssh reaches the nodes."""

import json
import shutil
import uuid
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gpufab_cli.lab import platforms
from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.railnet import Site
from gpufab_cli.lab.shell import run

USER = "ops"
BOOK, LOCK = "lab.json", ".lock"
# Both ends are this machine: the key exchange that costs least. OpenSSH's first choice, against quantum computers,
# takes a client of Debian 12 seventy milliseconds of CPU a login.
_KEY_EXCHANGE = "ecdh-sha2-nistp256"
_NODES, _SSH = "nodes", ("id_ed25519", "id_ed25519.pub", "ssh_config", "known_hosts")
RUN = Path("/run/gpufab-lab")  # socket paths must be short, so not below the lab's own folder


@dataclass(frozen=True)
class NodeRecord:
    """One node: its number gives its addresses, its port is where sshd is published on 127.0.0.1."""

    name: str
    number: int
    machine: str
    ssh_port: int
    platform: str = platforms.DEFAULT


@dataclass
class LabFile:
    """lab.json. The token tells this lab's containers and processes from those of an earlier lab in the same folder."""

    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    site: Site = field(default_factory=Site)
    nodes: dict[str, NodeRecord] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> "LabFile":
        """Reads lab.json; a lab that never was is empty."""
        if not path.exists():
            return cls()
        raw = json.loads(path.read_text())
        return cls(raw["token"], Site(**raw["site"]), {name: NodeRecord(**node) for name, node in raw["nodes"].items()})

    def save(self, path: Path) -> None:
        """Writes lab.json whole or not at all."""
        write(path, json.dumps(asdict(self), indent=2) + "\n")

    def free_number(self) -> int:
        """The lowest node number not in use."""
        used = {node.number for node in self.nodes.values()}
        return next(number for number in range(1, len(used) + 2) if number not in used)


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Replaces a file in one move."""
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text(text)
    scratch.chmod(mode)
    scratch.replace(path)


def claim(folder: Path) -> None:
    """Sees that a folder is a lab's, or can be one.

    Raises:
        LabError: Somebody else has files there that a lab would write.
    """
    others = [name for name in (_NODES, *_SSH) if not (folder / BOOK).exists() and (folder / name).exists()]
    if others:
        raise LabError(f"{folder} is no lab's and has {others[0]} in it", hint="give --dir another folder")


def remove(folder: Path) -> None:
    """Removes what a lab has made in its folder, and the folder if that was all."""
    ours = (folder / BOOK).exists()
    if ours:
        shutil.rmtree(folder / _NODES, ignore_errors=True)
    for name in (*(_SSH if ours else ()), BOOK, LOCK):
        (folder / name).unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def keypair(path: Path, comment: str) -> None:
    """Makes an ed25519 key without passphrase, if there is none yet."""
    if not path.exists():
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)])


def node_keys(folder: Path, user_key: Path) -> None:
    """The folder a node mounts as /etc/ssh/lab: its host key and who may log in."""
    folder.mkdir(parents=True, exist_ok=True)
    keypair(folder / "ssh_host_ed25519_key", "gpufab lab host")
    write(folder / "authorized_keys", user_key.with_suffix(".pub").read_text())


def ssh_files(root: Path, nodes: list[NodeRecord], host_keys: dict[str, Path]) -> None:
    """Writes ssh_config and known_hosts for the nodes."""
    blocks, known = [], []
    for node in nodes:
        blocks.append(
            f"Host {node.name}\n"
            f"  HostName 127.0.0.1\n"
            f"  Port {node.ssh_port}\n"
            f"  User {USER}\n"
            f"  IdentityFile {root / 'id_ed25519'}\n"
            f"  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {root / 'known_hosts'}\n"
            f"  StrictHostKeyChecking yes\n"
            f"  KexAlgorithms {_KEY_EXCHANGE}\n"
        )
        kind, key = host_keys[node.name].with_suffix(".pub").read_text().split()[:2]
        known.append(f"[127.0.0.1]:{node.ssh_port} {kind} {key}\n")
    write(root / "ssh_config", "\n".join(blocks))
    write(root / "known_hosts", "".join(known))
