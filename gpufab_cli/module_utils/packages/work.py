"""What a run is to do, computed whole: gpufab's own files, and the parameters of tasks that have nothing to decide."""

from dataclasses import dataclass, field, replace
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Tuple

from ..change import Impact, Step
from ..devices import Devices
from ..host import Host
from ..schema import encode
from .apt import AptRehearsal, reads_every_source, refresh
from .database import installed
from .dnf import DnfRehearsal, fetch
from .files import key_path
from .impact import of_packages
from .plan import driver_step, files_to_write, pinned, resolved, step_name
from .platforms import Platform
from .recipe import Recipe, Want, recipe
from .seen import Database, PackagesSeen
from .transaction import RefusedError, Transaction, scratch, with_scripts

_REHEARSED = (
    "packages.version",
    "packages.other-stack",
    "packages.firmware-updater",
    "packages.repository",
    "packages.key",
    "packages.pin",
)
"""What cannot be mended without asking the repository; holds can."""


@dataclass(frozen=True)
class Work:
    """The parameters of the tasks, in their order; an empty list is a task with nothing to do.

    Attributes:
        steps: what they make, to be proven when they are done, each with the impact that a rehearsal has found.
        files: what is to stand in gpufab's own files, by path; "" of one that goes. They are no task's.
        signers: keys that rpm is to know: path and fingerprint.
        refresh: command lines that have apt read its sources.
        fetch: command lines that have dnf read its sources and download what comes, before anything goes.
        stale: whether dnf has yet to read its sources when it installs.
        release: command lines that lift the holds of what goes or is none of the set's any more.
        remove, install: what is done at once; none where there is nothing to do, for asking costs seconds.
        hold: command lines that hold the set.
        restart: services that load the drivers anew.
    """

    manager: str
    steps: Tuple[Step, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    signers: Tuple[Dict[str, str], ...] = ()
    refresh: Tuple[Tuple[str, ...], ...] = ()
    fetch: Tuple[Tuple[str, ...], ...] = ()
    stale: bool = True
    release: Tuple[Tuple[str, ...], ...] = ()
    remove: Tuple[Tuple[str, ...], ...] = ()
    install: Tuple[Tuple[str, ...], ...] = ()
    hold: Tuple[Tuple[str, ...], ...] = ()
    restart: Tuple[str, ...] = ()

    @property
    def data(self) -> Any:
        """The tasks' parameters, as plain data."""
        return {name: encode(value) for name, value in self.__dict__.items() if name != "files"}


def work(host: Host, seen: PackagesSeen, devices: Devices, want: Want, steps: Tuple[Step, ...]) -> Work:
    """The work for steps that are to be made now.

    Raises:
        RefusedError: the rehearsal failed.
    """
    platform, _ = _known(seen)
    made = recipe(want, platform)
    names = {step.name: step for step in steps}
    restart = ("openibd",) if driver_step(made.name) in names else ()
    found = Work(platform.manager, steps, restart=restart)
    step = names.get(step_name(made.name))
    if step is None:
        return found
    if not any(change.code in _REHEARSED for change in step.changes):
        return replace(found, hold=_marked("hold", resolved(seen, made, platform)))
    return _packages(host, seen, devices, made, found)


def _known(seen: PackagesSeen) -> Tuple[Platform, Database]:
    """What a step that is to be made has known."""
    if not isinstance(seen.platform, Platform) or not isinstance(seen.database, Database):
        raise RefusedError("platform or package database cannot be read")
    return seen.platform, seen.database


def _packages(host: Host, seen: PackagesSeen, devices: Devices, made: Recipe, found: Work) -> Work:
    platform, database = _known(seen)
    before, now = pinned(seen, made, platform), installed(host, platform)
    transaction = rehearse(host, seen, made)
    impact = of_packages(seen, made, devices, with_scripts(made, before, now, transaction))
    install = _specs(platform, transaction.install)
    early = fetch(install) if platform.manager == "dnf" and transaction.remove and install else ()
    return replace(
        found,
        steps=tuple(_with(step, impact) if step.name == step_name(made.name) else step for step in found.steps),
        files=files_to_write(seen, made, platform, transaction.closure),
        signers=_keys(made, platform),
        refresh=_refresh(host, made, platform),
        release=_marked("unhold", _held(database, _released(transaction, before))),
        remove=_at_once(transaction.remove),
        fetch=_at_once(early),
        stale=not early,
        install=_at_once(install),
        hold=_marked("hold", transaction.closure) if platform.manager == "apt" else (),
    )


def _with(step: Step, impact: FrozenSet[Impact]) -> Step:
    return replace(step, impact=step.impact | impact)


def declare(host: Host, todo: Work) -> None:
    """Write source, key and pins, and remove those that are not wanted: the tasks go by them.

    Raises:
        HostError: one cannot be written.
    """
    for path, text in todo.files.items():
        folder = path.rpartition("/")[0]
        if not text:
            host.remove(path)
            continue
        if not host.exists(folder):
            host.run("mkdir", "-p", "-m", "755", folder)  # whatever root's umask is: apt reads keys as another user
        host.put(path, text.encode())


def _at_once(names: Tuple[str, ...]) -> Tuple[Tuple[str, ...], ...]:
    return (names,) if names else ()


def _marked(how: str, names: Iterable[str]) -> Tuple[Tuple[str, ...], ...]:
    """One command line for all: a stack has a hundred packages."""
    return tuple(("apt-mark", how, *found) for found in _at_once(tuple(sorted(names))))


def rehearse(host: Host, seen: PackagesSeen, made: Recipe) -> Transaction:
    """What would be done, found out with folders of its own that are gone afterwards.

    Raises:
        RefusedError: it could not be done whole.
    """
    platform, database = _known(seen)
    kind = DnfRehearsal if platform.manager == "dnf" else AptRehearsal
    try:
        return kind(host, made, platform, database, pinned(seen, made, platform)).run()
    finally:
        host.run("rm", "-rf", scratch(made.name))


def _released(transaction: Transaction, before: Dict[str, str]) -> Tuple[str, ...]:
    """What goes, what goes with it and comes back, and what stays and is none of the set's any more."""
    left = tuple(name for name in before if name not in transaction.closure)
    return tuple(dict.fromkeys((*transaction.remove, *transaction.along, *left)))


def _held(database: Database, names: Tuple[str, ...]) -> Tuple[str, ...]:
    return tuple(name for name in names if name in database.packages and database.packages[name].held)


def _specs(platform: Platform, install: Dict[str, str]) -> Tuple[str, ...]:
    between = "-" if platform.manager == "dnf" else "="
    return tuple(f"{name}{between}{version}" for name, version in sorted(install.items()))


def _keys(made: Recipe, platform: Platform) -> Tuple[Dict[str, str], ...]:
    if platform.manager != "dnf" or made.repository is None:
        return ()
    return ({"path": key_path(made.name, platform), "fingerprint": made.repository.fingerprint},)


def _refresh(host: Host, made: Recipe, platform: Platform) -> Tuple[Tuple[str, ...], ...]:
    if platform.manager != "apt":
        return ()
    argv: List[str] = refresh(made, platform, every=reads_every_source(host, made))
    return (tuple(argv),)
