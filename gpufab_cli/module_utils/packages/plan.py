"""What would change of a set of packages. Pure: it decides for the audit, for check mode and for a run alike."""

from typing import Dict, Iterator, List, Optional, Tuple

from ..change import ABSENT, Change, Finding, Impact, Pending, Plan, Step, Unknown, Where
from ..devices import Devices
from ..host import sha256
from . import blocked
from .compatibility import against, works
from .files import VERSIONLOCK, closure, declared, key_path, paths, pins, pins_path
from .impact import DRIVER, HEAVY, of_changes, of_reload
from .platforms import Platform
from .recipe import ANY, Recipe, Want, fits, recipe
from .seen import Database, Module, PackagesSeen
from .want import OfedWant

UNTRIED = "packages.untried"


def step_name(name: str) -> str:
    """The name of the step that brings a set of packages in."""
    return f"{name} packages"


def driver_step(name: str) -> str:
    """The name of the step that loads the drivers anew."""
    return f"{name} driver"


def plan(seen: PackagesSeen, devices: Devices, want: Want) -> Plan:
    """Steps, what is pending, and what gpufab does not change."""
    platform = seen.platform
    if isinstance(platform, Unknown):
        return Plan(findings=(Finding("packages.platform", ("platform",), platform.reason, unknown=True),))
    if not isinstance(platform, Platform):
        return Plan(findings=(Finding("packages.platform", ("platform",), "none that the table of packages knows"),))
    made = recipe(want, platform)
    changes = tuple(_changes(seen, made, platform))
    first = _with_step(seen, platform, devices, want, changes) if changes else Plan()
    if _heavy(changes):  # of drivers there is nothing to say before their packages are there
        return first
    steps, pending = _driver(seen, devices, made)
    return Plan((*first.steps, *steps), pending, (*first.findings, *_findings(seen, made)))


def _heavy(changes: Tuple[Change, ...]) -> bool:
    return any(change.code in HEAVY for change in changes)


def _with_step(
    seen: PackagesSeen, platform: Platform, devices: Devices, want: Want, changes: Tuple[Change, ...]
) -> Plan:
    made, heavy = recipe(want, platform), _heavy(changes)
    reasons = blocked.reasons(seen, made, pinned(seen, made, platform), heavy=heavy)
    reasons += tuple(_compatibility(seen, devices, want)) if heavy else ()
    forbids = tuple(reason for reason in reasons if reason.code != UNTRIED)
    why = "; ".join(reason.evidence for reason in forbids)
    impact = of_changes(seen, made, devices, changes, resolved=bool(resolved(seen, made, platform)))
    return Plan(
        (Step(step_name(made.name), changes, impact, blocked=why, undoable=False),), findings=forbids or reasons
    )


def _compatibility(seen: PackagesSeen, devices: Devices, want: Want) -> Iterator[Finding]:
    """What the table says of a vendor's stack on this node; where it is silent that is told and forbids nothing."""
    if not isinstance(want, OfedWant) or want.stack == "inbox" or seen.kernel is None:
        return
    reasons = tuple(against(want, seen.kernel.running, devices))
    for words in reasons:
        yield Finding("packages.incompatible", ("packages",), words)
    if not reasons and not works(want, seen.kernel.running):
        words = f"nothing is known of {want.stack} {want.version} with kernel {seen.kernel.running}"
        yield Finding(UNTRIED, ("packages",), words)


def _text(seen: PackagesSeen, path: str) -> str:
    text = seen.files.get(path)
    return text + "\n" if isinstance(text, str) else ""


def pinned(seen: PackagesSeen, made: Recipe, platform: Platform) -> Dict[str, str]:
    """What is pinned of the set, for whichever wish that was."""
    return closure(made.name, platform, _text(seen, pins_path(made.name, platform)))


def resolved(seen: PackagesSeen, made: Recipe, platform: Platform) -> Dict[str, str]:
    """What is pinned, if the pins are whole and of these roots; empty if they have to be resolved anew."""
    found = pinned(seen, made, platform)
    path = pins_path(made.name, platform)
    whole = pins(made, platform, found, _text(seen, path)) == _text(seen, path)
    roots = [(found.get(root.name, ""), root.version) for root in made.roots if root.version != ANY]
    meant = all(fits(version, wanted) and not made.other_build(version) for version, wanted in roots)
    return found if whole and meant and made.pinned else {}


def _changes(seen: PackagesSeen, made: Recipe, platform: Platform) -> Iterator[Change]:
    if isinstance(seen.database, Unknown):
        for root in made.roots:
            yield Change((root.name,), seen.database, root.version or "the distribution's", "packages.version")
        return
    found = resolved(seen, made, platform)
    yield from _file_changes(seen, made, platform)
    yield from _package_changes(seen, seen.database, made, found)
    yield from _pin_changes(seen, made, platform, found)
    yield from _hold_changes(seen.database, made, platform, found)


def _file_changes(seen: PackagesSeen, made: Recipe, platform: Platform) -> Iterator[Change]:
    """Source, key and proxy; those that are no longer wanted go."""
    wanted = declared(made, platform)
    for path in paths(made.name, platform):
        if path == pins_path(made.name, platform):
            continue
        current, desired = seen.files.get(path, ABSENT), wanted.get(path)
        if isinstance(current, Unknown) or _text(seen, path) != (desired or ""):
            code = "packages.key" if path == key_path(made.name, platform) else "packages.repository"
            yield Change(
                (path,), _shown(current), ABSENT if desired is None else _shown(desired), code, Where.PERSISTED
            )


def _shown(text: object) -> object:
    """A file by its digest: contents are for its own reader."""
    return sha256(text.rstrip("\n").encode())[:19] if isinstance(text, str) else text


def _package_changes(seen: PackagesSeen, database: Database, made: Recipe, found: Dict[str, str]) -> Iterator[Change]:
    wanted = {**{root.name: root.version for root in made.roots}, **found}
    for name, version in wanted.items():
        package = database.packages.get(name)
        if package is None or not made.met(name, package, version):
            current = _told(database, name) if package else ABSENT
            yield Change((name,), current, _exact(seen, made, name, version), "packages.version")
    for name, package in sorted(database.packages.items()):
        if name in wanted:
            continue
        if name in made.forbidden:
            yield Change((name,), _told(database, name), ABSENT, "packages.firmware-updater")
        elif made.strange(name, package.version):
            yield Change((name,), _told(database, name), "not the other stack's", "packages.other-stack")


def _told(database: Database, name: str) -> str:
    how = database.broken.get(name)
    return database.packages[name].version + (f", {how}" if how else "")


def _exact(seen: PackagesSeen, made: Recipe, name: str, version: str) -> str:
    """The version that apt's lists have for a wish, as far as is known."""
    if version == ANY:
        return "any version" if made.pinned else "the distribution's"
    offered = seen.available.get(name, ()) if isinstance(seen.available, dict) else ()
    return next((item for item in offered if fits(item, version) and not made.other_build(item)), version)


def _pin_changes(seen: PackagesSeen, made: Recipe, platform: Platform, found: Dict[str, str]) -> Iterator[Change]:
    path = pins_path(made.name, platform)
    current, text = seen.files.get(path, ABSENT), _text(seen, path)
    if isinstance(current, Unknown):
        yield Change((path,), current, "pins", "packages.pin", Where.PERSISTED)
    elif made.pinned:
        if not found:
            yield Change((path,), _shown(current), _roots(made), "packages.pin", Where.PERSISTED)
    elif pins(made, platform, {}, text) != text:
        desired = _shown(pins(made, platform, {}, text)) if pins(made, platform, {}, text) else ABSENT
        yield Change((path,), _shown(current), desired, "packages.pin", Where.PERSISTED)


def _roots(made: Recipe) -> str:
    return ", ".join(f"{root.name} {root.version}" for root in made.roots if root.version != ANY)


def _hold_changes(database: Database, made: Recipe, platform: Platform, found: Dict[str, str]) -> Iterator[Change]:
    """Packages are held on apt; dnf's locks are the pins themselves."""
    if platform.manager != "apt" or not made.pinned:
        return
    names = found or {root.name: root.version for root in made.roots if root.version != ANY}
    for name in sorted(names):
        if name not in database.packages or not database.packages[name].held:
            yield Change((name, "hold"), "install", "hold", "packages.hold", Where.PERSISTED)


def _driver(seen: PackagesSeen, devices: Devices, made: Recipe) -> Tuple[Tuple[Step, ...], Tuple[Pending, ...]]:
    """Another driver runs than is installed: it is loaded anew, by consent, or the next boot does it."""
    module = seen.module
    if module is None or made.name != "ofed" or not _differs(module, made):
        return (), ()
    if not seen.reloads or made.modules == "":
        return (), (Pending((DRIVER,), module.loaded, module.installed, Impact.REBOOT, "packages.driver"),)
    change = Change((DRIVER,), module.loaded, module.installed, "packages.driver")
    return (Step(driver_step(made.name), (change,), of_reload(seen, devices), undoable=False),), ()


def _differs(module: Module, made: Recipe) -> bool:
    """Another one runs; or, of a vendor's stack, none at all: a restart of openibd may end well and load nothing."""
    runs = isinstance(module.loaded, str) or (module.loaded is ABSENT and bool(made.modules))
    return runs and isinstance(module.installed, str) and module.loaded != module.installed


def _findings(seen: PackagesSeen, made: Recipe) -> Iterator[Finding]:
    running = seen.kernel.running if seen.kernel else ""
    if made.modules:
        for package, there in sorted(seen.built.items()):
            if not there:
                yield Finding("packages.dkms", (package,), f"not built for {running}")
        yield from _foreign_module(seen.module, running)
    if made.pinned and not seen.locks_work:
        yield Finding("packages.no-versionlock", (VERSIONLOCK,), "dnf's versionlock plugin is not there or turned off")
    for path in seen.bundled:
        yield Finding("packages.bundled-nccl", (path,), "what runs in that environment uses it, and not the system's")


def _foreign_module(module: Optional[Module], running: str) -> Iterator[Finding]:
    if module is None:
        return
    if isinstance(module.installed, Unknown):
        yield Finding("packages.dkms", (DRIVER,), module.installed.reason, unknown=True)
    elif module.installed is ABSENT:
        yield Finding("packages.dkms", (DRIVER,), f"there is none for {running}")
    elif "/kernel/drivers/" in module.path and "/updates/" not in module.path and "/extra/" not in module.path:
        yield Finding("packages.dkms", (DRIVER,), f"{running} would load the distribution's: {module.path}")


def files_to_write(seen: PackagesSeen, made: Recipe, platform: Platform, found: Dict[str, str]) -> Dict[str, str]:
    """The files that are not as wanted, with what is to stand in them; "" of one that goes."""
    wanted = declared(made, platform)
    path = pins_path(made.name, platform)
    wanted[path] = pins(made, platform, found, _text(seen, path))
    all_paths: List[str] = [*paths(made.name, platform)]
    return {p: wanted.get(p, "") for p in all_paths if _text(seen, p) != wanted.get(p, "")}
