"""Why packages are not to be touched now: each reason one line, told before anything is done. Pure."""

from typing import Iterator, Optional, Set, Tuple

from ..change import ABSENT, Finding, Unknown
from .recipe import Recipe, fits
from .seen import Database, KernelState, PackagesSeen

GIB = 1 << 30


def reasons(seen: PackagesSeen, recipe: Recipe, pinned: "dict[str, str]", *, heavy: bool) -> Tuple[Finding, ...]:
    """Everything that stands against the step; ``heavy``: packages come or go, and not only files and holds."""
    if isinstance(seen.database, Unknown):
        return ()
    own = {*pinned, *(root.name for root in recipe.roots), *_going(seen.database, recipe)} if heavy else set()
    found = list(_database(seen.database, own))
    if heavy:
        found += _held(seen.database, recipe, pinned)
        found += _space(seen, recipe)
        found += _kernel(seen.kernel, recipe)
    return tuple(found)


def _going(database: Database, recipe: Recipe) -> Set[str]:
    packages = database.packages.items()
    return {name for name, p in packages if name in recipe.forbidden or recipe.strange(name, p.version)}


def _database(database: Database, own: Set[str]) -> Iterator[Finding]:
    """Whoever left packages half done has to see to it; the set's ``own`` get another version now, or go."""
    broken = [f"{name} is {how}" for name, how in database.broken.items() if name not in own]
    if broken:
        yield _finding("packages.half-configured", broken[0] + (f" and {len(broken) - 1} more" if broken[1:] else ""))
    if database.holder:
        yield _finding("packages.locked", f"{database.holder} has the package database locked")


def _held(database: Database, recipe: Recipe, pinned: "dict[str, str]") -> Iterator[Finding]:
    """Packages that somebody else wants to stay as they are, of those that would change."""
    wanted = {root.name: root.version for root in recipe.roots}
    for name, package in sorted(database.packages.items()):
        if not package.held or name in pinned:
            continue
        if name in recipe.forbidden or recipe.strange(name, package.version):
            yield _finding("packages.foreign-hold", f"{name} {package.version} is on hold, and would go", name)
        elif name in wanted and (recipe.other_build(package.version) or not fits(package.version, wanted[name])):
            yield _finding("packages.foreign-hold", f"{name} is held at {package.version}", name)
    for name, version in sorted(database.foreign.items()):
        if name in wanted and not fits(version.partition(":")[2].removesuffix(".*"), wanted[name]):
            yield _finding("packages.foreign-hold", f"{name} is locked at {version}", name)


def _space(seen: PackagesSeen, recipe: Recipe) -> Iterator[Finding]:
    if isinstance(seen.free_bytes, int) and seen.free_bytes < recipe.need_bytes:
        words = f"{seen.free_bytes / GIB:.1f} GiB free in /usr, {recipe.need_bytes / GIB:.2g} GiB are needed"
        yield _finding("packages.disk-full", words)


def _kernel(state: Optional[KernelState], recipe: Recipe) -> Iterator[Finding]:
    """Modules are built for the kernel that runs: it must be the one that will, and let them in."""
    if state is None or not recipe.modules:
        return
    if isinstance(state.next_boot, Unknown):
        words = f"cannot tell which kernel the next boot takes: {state.next_boot.reason}"
        yield Finding("packages.kernel-pending", ("packages",), words, unknown=True)
    elif state.next_boot is not ABSENT and state.next_boot != state.running:
        yield _finding("packages.kernel-pending", f"{state.running} runs and the next boot takes {state.next_boot}")
    if recipe.modules != "dkms":
        return
    if not state.headers:
        yield _finding("packages.headers", f"no headers of {state.running} below /lib/modules/{state.running}/build")
    if state.secure_boot is not False and state.signing_key is not True:
        known = isinstance(state.secure_boot, bool) and isinstance(state.signing_key, bool)
        words = "Secure Boot is on and DKMS signs with no enrolled key" if known else "cannot tell about Secure Boot"
        yield Finding("packages.secure-boot", ("packages",), words, unknown=not known)


def _finding(code: str, evidence: str, name: str = "") -> Finding:
    return Finding(code, (name or "packages",), evidence)
