"""What a rehearsal finds: which packages come and go, and which of them make up the set. The choices in it are pure."""

import re
from dataclasses import dataclass, field
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ..host import HostError, Output
from .recipe import ANY, Recipe, Root, fits, vendor_s
from .seen import Database

Offered = Mapping[str, Sequence[str]]
"""Versions by package, the best first."""
FOLDER = "/run/gpufab"
SECONDS = 900.0
"""For a download of a whole stack, of one to two GB, through a slow mirror."""


_DNF_ERROR = re.compile(r"^(Error: .+:)\n\s*", re.MULTILINE)
"""The line of dnf's that has the cause in the next."""


class RefusedError(HostError):
    """The rehearsal failed: why, in one line. Nothing was changed."""


@dataclass(frozen=True)
class Transaction:
    """Packages that come or change, by version; those that go; and the set as it then is, which is pinned.

    ``along`` are of those that come the ones that go first, for they depend on what goes. ``brings`` is all that comes,
    also what nobody asked for and is none of the set's.
    """

    install: Dict[str, str] = field(default_factory=dict)
    remove: Tuple[str, ...] = ()
    closure: Dict[str, str] = field(default_factory=dict)
    along: Tuple[str, ...] = ()
    brings: Dict[str, str] = field(default_factory=dict)


def scratch(name: str) -> str:
    """Where a set is rehearsed: nothing of it outlasts the rehearsal."""
    return f"{FOLDER}/packages-{name}"


def choose(made: Recipe, database: Database, offered: Offered) -> Dict[str, str]:
    """The version of each root. Roots of one wanted version get one and the same: a pair stays a pair.

    Raises:
        RefusedError: there is none.
    """
    found: Dict[str, str] = {}
    for wanted in dict.fromkeys(root.version for root in made.roots):
        roots = [root for root in made.roots if root.version == wanted]
        one = _any(made, roots, database, offered) if wanted == ANY else _same(made, roots, wanted, database, offered)
        found.update(one)
    return found


def _any(made: Recipe, roots: List[Root], database: Database, offered: Offered) -> Dict[str, str]:
    found = {}
    for root in roots:
        package = database.packages.get(root.name)
        if package is not None and package.whole and _own(made, root.name, package.version):
            continue  # whichever version it is
        version = native(made, root.name, offered)
        if version is None:
            raise RefusedError(f"no source offers {root.name}")
        found[root.name] = version
    return found


def native(made: Recipe, name: str, offered: Offered) -> Optional[str]:
    """The best version on offer that is not another stack's."""
    return next((version for version in offered.get(name, ()) if _own(made, name, version)), None)


def _own(made: Recipe, name: str, version: str) -> bool:
    return not made.strange(name, version) and not made.other_build(version)


def _same(made: Recipe, roots: List[Root], wanted: str, database: Database, offered: Offered) -> Dict[str, str]:
    packages = [database.packages[root.name] for root in roots if root.name in database.packages]
    there = {package.version for package in packages if package.whole}
    everywhere = [v for v in offered.get(roots[0].name, ()) if all(v in offered.get(r.name, ()) for r in roots)]
    fitting = [version for version in everywhere if fits(version, wanted) and not made.other_build(version)]
    if not fitting:
        names = " and ".join(root.name for root in roots)
        others = ", ".join(list(offered.get(roots[0].name, ()))[:4]) or "none"
        raise RefusedError(f"no source offers {names} {wanted}; offered: {others}")
    version = next((version for version in fitting if version in there), fitting[0])
    return {root.name: version for root in roots}


def leftovers(
    made: Recipe, pinned: Mapping[str, str], database: Database, kept: Iterable[str], offered: Offered
) -> Dict[str, str]:
    """What another stack, or another version of this one, leaves: the distribution's version instead; "": it goes.

    ``kept`` are the names that are the set's own.
    """
    found: Dict[str, str] = {}
    for name, package in database.packages.items():
        old = pinned.get(name) == package.version or made.strange(name, package.version)
        if name in made.forbidden:
            found[name] = ""
        elif old and name not in kept:
            found[name] = native(made, name, offered) or ""
    return found


def whole(members: Iterable[str], final: Mapping[str, str], own: Offered) -> Dict[str, str]:
    """The set as it is then: of the roots and what they depend on, what the repository has in just that version.

    Others may have got other packages from the same repository: they are none of the set's.
    """
    names = set(members)
    return {name: version for name, version in final.items() if name in names and version in own.get(name, ())}


def mixed(members: Iterable[str], final: Mapping[str, str], own: Offered) -> Dict[str, str]:
    """The roots and what they depend on that would then be another source's: the repository's version instead.

    A stack depends on rdma-core in any version, and a distribution's that is installed would do for a resolver.
    """
    return {name: own[name][0] for name in members if name in final and own.get(name) and final[name] not in own[name]}


def after(now: Mapping[str, str], install: Mapping[str, str], remove: Iterable[str]) -> Dict[str, str]:
    """What is installed then."""
    gone = set(remove)
    return {name: version for name, version in {**now, **install}.items() if name not in gone}


def with_scripts(
    made: Recipe, pinned: Mapping[str, str], now: Mapping[str, str], found: Transaction
) -> Tuple[str, ...]:
    """Of what comes, changes or goes, the packages of a vendor's stack: their scripts do more than others'."""
    comes = {**found.brings, **found.install}
    moved = {name for name, version in comes.items() if now.get(name) != version} | set(found.remove)
    own = moved if made.modules else moved & set(pinned) if made.name == "ofed" else set()
    versions = {name: (now.get(name, ""), comes.get(name, "")) for name in moved}
    return tuple(sorted(own | {name for name in moved if any(vendor_s(name, version) for version in versions[name])}))


def surprising(made: Recipe, removed: Sequence[str], database: Database, pinned: Mapping[str, str]) -> Iterator[str]:
    """Packages that would go and are nobody's of whom that was meant."""
    for name in removed:
        package = database.packages.get(name)
        meant = package is not None and (made.strange(name, package.version) or name in made.forbidden)
        if not meant and name not in pinned:
            yield name


def coming_back(removed: Iterable[str], going: Iterable[str], install: Iterable[str]) -> Tuple[str, ...]:
    """Of what a removal takes, what is not to go: it has to be among what is then installed.

    Raises:
        RefusedError: something is not.
    """
    along = tuple(sorted(set(removed) - set(going)))
    lost = sorted(set(along) - set(install))
    if lost:
        raise RefusedError(f"it would remove {', '.join(lost)}, which depend on what goes")
    return along


def said(output: Output) -> str:
    """What a package manager says went wrong, in one line."""
    texts = [_DNF_ERROR.sub(r"\1 ", text) for text in (output.stderr, output.stdout)]
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip()]
    unmet = [" ".join(line.split()) for line in lines if "Depends:" in line or "nothing provides" in line]
    errors = [line[3:].strip() for line in lines if line.startswith("E: ")]
    errors += [line.partition(":")[2].strip() for line in lines if line.startswith(("Error:", "Errors during"))]
    warnings = [line[3:].strip() for line in lines if line.startswith("W: ")]
    # apt calls a source that another key has signed "not signed", and says which key it was in a warning.
    keys = [line for line in warnings if "NO_PUBKEY" in line]
    found = unmet or keys or [line for line in errors if line] or warnings or lines
    return found[0] if found else f"exit {output.rc}"
