"""Wants → the files of an Ansible inventory, as text by relative path. Pure: nothing is read or written.

Active hosts are in the group of each of their features. A host in maintenance stays in the inventory and in its
profile's group, so that ad-hoc commands reach it, but in no feature's: no role touches it. An absent host is left out.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufab_cli.fabric.model import Resolved, ResolvedHost
from gpufab_cli.intent.compile import FEATURES, Wants
from gpufab_cli.intent.needs import FAILED
from gpufab_cli.intent.roles import role
from gpufab_cli.module_utils.schema import encode
from gpufab_cli.outputs.output import OutputFormat
from gpufab_cli.spec.model import Connection
from gpufab_cli.spec.text import dumps

DIRECTORY = "inventory"
"""Name of the inventory, beside fabric.yml."""

MARK = "# Rendered by gpufab"
"""What every file of it starts with; no other file is touched."""

HEADER = f"{MARK} from fabric.yml; edit that, then run `gpufab render`.\n---\n"

FILE = "gpufab.yml"
"""Name of each file of variables; the site's own files lie beside it."""

PER_HOST = frozenset(
    {
        "roce_ports",
        "links_ports",
        "dvfs_gpus",
        "numa_ports",
        "sriov_ports",
        "nic_firmware_ports",
        "nccl_env_rails",
        "nccl_env_socket_ports",
        "mpi_rails",
        "mpi_socket_ports",
    }
)
"""The variables that the lock gives each host; all others are the same for all hosts of a profile."""


def inventory(fabric: Resolved, wants: Mapping[str, Wants]) -> dict[str, str]:
    """Every file of the inventory: path relative to its directory → text."""
    files = {"hosts.yml": _hosts(fabric, wants)}
    files[f"group_vars/gpufab/{FILE}"] = _text(_connection(fabric.spec.connection))
    for profile in fabric.spec.profiles:
        members = [host for host in fabric.hosts.values() if host.kind == profile]
        shared = _shared(members, wants)
        if shared:
            files[f"group_vars/{group(profile)}/{FILE}"] = _text(shared)
        for host in members:
            own = _reached(host) | _own(wants.get(host.name, {}), shared)
            if own:
                files[f"host_vars/{host.name}/{FILE}"] = _text(own)
    return dict(sorted(files.items()))


def _shared(members: Iterable[ResolvedHost], wants: Mapping[str, Wants]) -> dict[str, Any]:
    """What the profile gives its hosts: the variables of one that overrides nothing."""
    plain = (host for host in members if host.name in wants and not host.overridden)
    first = next(plain, None)
    found = _variables(wants[first.name]) if first else {}
    return {name: value for name, value in found.items() if name not in PER_HOST}


def _own(wants: Wants, shared: Mapping[str, Any]) -> dict[str, Any]:
    """What a host has otherwise than its profile; what the profile says and the host is not to have is null."""
    found = _variables(wants)
    own = {name: value for name, value in found.items() if name not in shared or shared[name] != value}
    told = tuple(f"{role(feature)}_" for feature in wants)
    return own | {name: None for name in shared if name not in found and name.startswith(told)}


def group(profile: str) -> str:
    """The group of a profile's hosts; Ansible's group names take no dashes, profile names no underscores."""
    return "profile_" + profile.replace("-", "_")


def _hosts(fabric: Resolved, wants: Mapping[str, Wants]) -> str:
    """hosts.yml. The insync and failed groups are empty here: an apply and the plays fill them, plays exclude them."""
    hosts = tuple(fabric.hosts.values())
    groups = {group(name): [h.name for h in hosts if h.kind == name] for name in fabric.spec.profiles}
    groups |= {name: [h.name for h in hosts if name in wants.get(h.name, {})] for name in FEATURES}
    groups |= {f"{kind}{name}": [] for kind in ("insync_", FAILED) for name in FEATURES}
    members = {"gpufab": [host.name for host in hosts], **groups}
    return _text({name: _group(names) for name, names in members.items()})


def _group(names: Iterable[str]) -> dict[str, Any]:
    found = dict.fromkeys(names)
    return {"hosts": found} if found else {}


def _connection(connection: Connection) -> dict[str, Any]:
    """How every host is reached. Unknown host keys are refused and sudo never asks: both would hang a run."""
    sudo = {"ansible_become": True, "ansible_become_method": "sudo", "ansible_become_flags": "-H -n"}
    found: dict[str, Any] = {
        "ansible_user": connection.user,
        "ansible_port": connection.port,
        "ansible_python_interpreter": connection.python,
        "ansible_host_key_checking": True,
        "ansible_pipelining": True,
        # Ansible names the socket of a shared connection after the host's name alone: two fabrics with a gpu01 each
        # would talk over one another's. %C (ssh_config(5)) hashes the address, port, user and jump host in fact used.
        "ansible_control_path": "%(directory)s/%%C",
        "ansible_ssh_common_args": _ssh_args(connection),
        **(sudo if connection.become == "sudo" else {"ansible_become": False}),
    }
    return {name: value for name, value in found.items() if value is not None}


def _ssh_args(connection: Connection) -> str:
    """The site's ssh_config relative to the inventory, so that the whole directory can be moved."""
    strict = "-o StrictHostKeyChecking=yes"
    if connection.ssh_config is None:
        return strict
    path = Path(connection.ssh_config)
    shown = str(path) if path.is_absolute() else f"{{{{ inventory_dir }}}}/../{path}"
    return f'-F "{shown}" {strict}'


def _reached(host: ResolvedHost) -> dict[str, Any]:
    return {"ansible_host": host.address} if host.address != host.name else {}


def _variables(wants: Wants) -> dict[str, Any]:
    """The role variables of a host: each field of a want, under its role's prefix."""
    return {f"{role(feature)}_{name}": value for feature, want in wants.items() for name, value in encode(want).items()}


def _text(data: dict[str, Any]) -> str:
    return HEADER + dumps(data)


@dataclass(frozen=True)
class _Ansible:
    name: str = "ansible"
    folder: str = DIRECTORY
    header: str = MARK

    def render(self, fabric: Resolved, wants: Mapping[str, Wants]) -> Mapping[str, str]:
        return inventory(fabric, wants)


ANSIBLE: OutputFormat = _Ansible()
"""The inventory as an output."""
