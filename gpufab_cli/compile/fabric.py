"""A fabric.yml as those commands need it that go to the hosts: what each host is told, and the way to it."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from gpufab_cli.errors import GpufabError, NotLockedError
from gpufab_cli.fabric.host_pattern import select
from gpufab_cli.fabric.model import Resolved, ResolvedHost
from gpufab_cli.fabric.resolve import load_resolved
from gpufab_cli.fabric.targets import targets
from gpufab_cli.intent.compile import Compiled, compile_wants
from gpufab_cli.reach.target import Target
from gpufab_cli.spec.accept import Waiver
from gpufab_cli.spec.hooks import Hook
from gpufab_cli.spec.lock import lock_path
from gpufab_cli.spec.rollout import DEFAULT, Rollout


@dataclass(frozen=True)
class Whole:
    """A whole fabric.yml, with what each of its active hosts is told. Whoever needs it for two things loads it once."""

    path: Path
    resolved: Resolved
    wants: Compiled


@dataclass(frozen=True)
class Fabric:
    """The active hosts of a fabric that a command is limited to.

    Attributes:
        digest: of fabric.yml and its lock, for the journals on the nodes.
        limited: whether there are active hosts besides.
        skipped: the hosts in maintenance, which are told nothing and looked at by no command.
        waivers: the deviations that it accepts.
        rollout: in which portions an apply goes over it.
        hosts: the hosts that wants has, as they are resolved.
        profiles: the profile of each host.
        unlocked: the hosts of which nobody can say what is wanted, for the lock lacks them; they are in no other part.
        drain: takes a host out of service before an apply disturbs it.
        resume: gives it back.
    """

    path: Path
    wants: Mapping[str, Mapping[str, Any]]
    targets: Mapping[str, Target]
    digest: str
    limited: bool
    skipped: tuple[str, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    rollout: Rollout = DEFAULT
    drain: Hook | None = None
    resume: Hook | None = None
    hosts: Mapping[str, ResolvedHost] = field(default_factory=dict)
    profiles: Mapping[str, str] = field(default_factory=dict)
    unlocked: Mapping[str, NotLockedError] = field(default_factory=dict)

    @property
    def jobs(self) -> dict[str, tuple[Target, Mapping[str, Any]]]:
        """What an audit needs of each host."""
        return {host: (self.targets[host], wants) for host, wants in self.wants.items()}

    def only(self, hosts: Iterable[str]) -> Self:
        """The same fabric, limited to some of its hosts."""
        chosen = set(hosts)
        return replace(
            self,
            wants={host: wants for host, wants in self.wants.items() if host in chosen},
            targets={host: target for host, target in self.targets.items() if host in chosen},
            hosts={name: host for name, host in self.hosts.items() if name in chosen},
            unlocked={host: why for host, why in self.unlocked.items() if host in chosen},
            limited=self.limited or len(chosen) < len(self.wants),
        )


def load_whole(path: Path) -> Whole:
    """Read a fabric and its lock, resolve them and work out what each host is told.

    Raises:
        GpufabError: they are wrong.
    """
    resolved = load_resolved(path)
    return Whole(path, resolved, compile_wants(resolved))


def load_fabric(path: Path, limit: str | None) -> Fabric:
    """Read a fabric and its lock, limited to some of its hosts.

    Raises:
        GpufabError: they are wrong, or the limit names no host.
    """
    return limited(load_whole(path), limit)


def limited(whole: Whole, limit: str | None) -> Fabric:
    """The hosts of a fabric that a command is limited to.

    Raises:
        GpufabError: no host is active, or the limit names none.
    """
    path, spec, wants = whole.path, whole.resolved.spec, whole.wants
    active = tuple(host.name for host in spec.in_state("active"))
    if not active:
        raise GpufabError(f"no host of {spec.name} is active", "their state is maintenance or absent")
    hosts = select(limit, active)
    chosen = tuple(host for host in hosts if host in wants)
    reached = {target.host: target for target in targets(spec, path.parent)}
    return Fabric(
        path=path,
        wants={host: wants[host] for host in chosen},
        targets={host: reached[host] for host in chosen},
        digest=_digest(path),
        limited=len(hosts) < len(active),
        skipped=tuple(host.name for host in spec.in_state("maintenance")),
        waivers=spec.accept,
        rollout=spec.rollout,
        drain=spec.drain,
        resume=spec.resume,
        hosts={host: whole.resolved.hosts[host] for host in chosen},
        profiles={host.name: host.profile for host in spec.hosts},
        unlocked={host: wants.unlocked[host] for host in hosts if host in wants.unlocked},
    )


def _digest(path: Path) -> str:
    files = (file for file in (path, lock_path(path)) if file.exists())
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]
