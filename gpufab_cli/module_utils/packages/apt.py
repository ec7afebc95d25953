"""A rehearsal with apt: resolve, and download with every signature and hash checked, in apt's own words but its own
folders. The sources and preferences that are rehearsed are not the system's yet: apt.conf(5), Dir::Etc and Dir::State.
"""

import re
from typing import Dict, Iterable, List, Sequence, Tuple

from ..host import Host, Output
from ..queries import NO_CACHE
from .database import installed
from .files import declared, key_path, preferences, proxy_option, source_path
from .gather import versions
from .platforms import Platform
from .recipe import Recipe
from .seen import Database
from .transaction import (
    SECONDS,
    Offered,
    RefusedError,
    Transaction,
    after,
    choose,
    coming_back,
    leftovers,
    mixed,
    said,
    scratch,
    surprising,
    whole,
)

LISTS = "/var/lib/apt/lists"
ETC = "/etc/apt"
_UNITS = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def refresh(recipe: Recipe, platform: Platform, *, every: bool) -> List[str]:
    """The command line that has apt read the sources anew: the set's own, or ``every`` one."""
    return ["apt-get", "update", *(() if every else _own_source(source_path(recipe.name, platform)))]


def _own_source(path: str) -> Tuple[str, ...]:
    return ("-o", f"Dir::Etc::sourcelist={path}", "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Get::List-Cleanup=0")


def reads_every_source(host: Host, recipe: Recipe) -> bool:
    """Whether the node's own sources have to be read too: the packages come from there, or they never were."""
    names = host.names(LISTS)
    known = isinstance(names, tuple) and any("Packages" in name for name in names)
    return recipe.repository is None or not known


class Rehearsal:
    """One rehearsal of one set."""

    def __init__(
        self, host: Host, recipe: Recipe, platform: Platform, database: Database, pinned: Dict[str, str]
    ) -> None:
        self._host, self._recipe, self._platform = host, recipe, platform
        self._database, self._pinned = database, pinned
        self._now = installed(host, platform)
        self._folder = scratch(recipe.name)

    def run(self) -> Transaction:
        """What would be done.

        Raises:
            RefusedError: it could not be done whole.
        """
        self._lay_out()
        self._update()
        offered = self._offered(self._names())
        roots = choose(self._recipe, self._database, offered)
        reached = self._reached(roots)
        own = self._own([*roots, *reached])
        wanted = self._wanted(roots, reached, offered, own)
        final = self._simulate(wanted)
        self._check(final)
        along = self._along(final)
        self._download(wanted)
        asked = {name: version for name, version in wanted.items() if version}
        closure = self._closure(roots, reached, after(self._now, {**final.install, **roots}, final.remove), own)
        install = {**asked, **{n: v for n, v in closure.items() if final.install.get(n) == v}}
        return Transaction(install, final.remove, closure, along)

    def _along(self, final: Transaction) -> Tuple[str, ...]:
        """What the removal takes with it, which comes first: packages that depend on what goes and come back after."""
        if not final.remove:
            return ()
        output = self._apt("apt-get", "-s", "remove", *final.remove)
        if output.rc != 0:
            raise RefusedError(said(output))
        return coming_back(simulated(output.stdout).remove, final.remove, final.install)

    def _wanted(self, roots: Dict[str, str], reached: List[str], offered: Offered, own: Offered) -> Dict[str, str]:
        """What apt is to be asked for: the roots, and what would else stay another stack's or source's."""
        ours: Dict[str, str] = {}
        kept = set(roots)
        if own:
            first = self._simulate(roots)
            then = after(self._now, {**first.install, **roots}, first.remove)
            ours = mixed(reached, then, own)
            kept = {*whole(roots, reached, then, own), *ours}
        return {**leftovers(self._recipe, self._pinned, self._database, kept, offered), **ours, **roots}

    def _lay_out(self) -> None:
        folder, host = self._folder, self._host
        host.run("rm", "-rf", folder)
        for name in ("lists/partial", "sources.list.d", "preferences.d"):
            host.run("mkdir", "-p", f"{folder}/{name}")
        for name in ("sources.list.d", "preferences.d"):
            if host.exists(f"{ETC}/{name}"):
                host.run("cp", "-rT", f"{ETC}/{name}", f"{folder}/{name}")
        if host.exists(LISTS):
            host.run("cp", "-aT", LISTS, f"{folder}/lists", seconds=SECONDS)
        text = host.read(f"{ETC}/sources.list")
        host.put(f"{folder}/sources.list", (text if isinstance(text, str) else "").encode() + b"\n")
        host.remove(f"{folder}/preferences.d/gpufab-{self._recipe.name}.pref")
        host.remove(self._source)
        self._put_own()

    @property
    def _source(self) -> str:
        return f"{self._folder}/sources.list.d/gpufab-{self._recipe.name}.sources"

    def _put_own(self) -> None:
        key = f"{self._folder}/key.asc"
        own = declared(self._recipe, self._platform, key)
        for path, text in own.items():
            if path == key_path(self._recipe.name, self._platform):
                self._host.put(key, text.encode())
            elif path == source_path(self._recipe.name, self._platform):
                self._host.put(self._source, text.encode())
        text = preferences(self._recipe, self._platform, {}, ahead=True)
        self._host.put(f"{self._folder}/preferences.d/gpufab-{self._recipe.name}.pref", text.encode())

    def _options(self) -> Tuple[str, ...]:
        folder = self._folder
        places = {
            "Dir::State::lists": f"{folder}/lists",
            "Dir::Etc::sourcelist": f"{folder}/sources.list",
            "Dir::Etc::sourceparts": f"{folder}/sources.list.d",
            "Dir::Etc::preferencesparts": f"{folder}/preferences.d",
            "Debug::NoLocking": "1",
            "APT::Ignore-Hold": "1",  # gpufab's own holds move with the set; others' are looked for in what comes out
        }
        repository = self._recipe.repository
        if repository is not None and repository.proxy:  # the repository's alone, as in the run
            places[proxy_option(self._platform.resolve(repository.url))] = repository.proxy
        return (*NO_CACHE, *(word for name, value in places.items() for word in ("-o", f"{name}={value}")))

    def _apt(self, program: str, *argv: str) -> Output:
        return self._host.attempt(program, *self._options(), *argv, seconds=SECONDS)

    def _update(self) -> None:
        own = () if reads_every_source(self._host, self._recipe) else _own_source(self._source)
        output = self._apt("apt-get", *own, "update")
        if output.rc == 0 and self._recipe.repository is not None:  # of the set's own source nothing may be amiss
            strict = ("-o", "APT::Update::Error-Mode=any")
            output = self._apt("apt-get", *_own_source(self._source), *strict, "update")
        if output.rc != 0:
            raise RefusedError(f"repository: {said(output)}")

    def _names(self) -> List[str]:
        return sorted({root.name for root in self._recipe.roots} | set(self._database.packages))

    def _offered(self, names: Sequence[str], *source: str) -> Dict[str, Tuple[str, ...]]:
        return versions(self._apt("apt-cache", *source, "madison", *names).stdout) if names else {}

    def _arguments(self, wanted: Dict[str, str]) -> List[str]:
        flags = ["install", "--no-install-recommends", "--allow-downgrades", "--allow-change-held-packages"]
        return [*flags, *(f"{name}={version}" if version else f"{name}-" for name, version in sorted(wanted.items()))]

    def _simulate(self, wanted: Dict[str, str]) -> Transaction:
        output = self._apt("apt-get", "-s", *self._arguments(wanted))
        if output.rc != 0:
            raise RefusedError(said(output))
        return simulated(output.stdout)

    def _closure(self, roots: Dict[str, str], reached: List[str], then: Dict[str, str], own: Offered) -> Dict[str, str]:
        """The packages of the repository that are then there; without one the pinned roots."""
        if not self._recipe.pinned:
            return {}
        return whole(roots, reached, then, own) if self._recipe.repository is not None else roots

    def _own(self, names: Iterable[str]) -> Dict[str, Tuple[str, ...]]:
        """What the set's repository has of some packages."""
        if self._recipe.repository is None:
            return {}
        return self._offered(sorted(set(names)), *_own_source(self._source))

    def _reached(self, roots: Dict[str, str]) -> List[str]:
        """What the roots depend on as far as the repository knows: names alone, for they vary little by version."""
        if self._recipe.repository is None:
            return []
        alone = (*_own_source(self._source), "-o", "Dir::State::status=/dev/null")
        kinds = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
        output = self._apt("apt-cache", *alone, "depends", "--recurse", *(f"--no-{kind}" for kind in kinds), *roots)
        return re.findall(r"^([a-z0-9][a-z0-9+.\-]*)$", output.stdout, re.MULTILINE)

    def _check(self, found: Transaction) -> None:
        surprises = sorted(surprising(self._recipe, found.remove, self._database, self._pinned))
        if surprises:
            raise RefusedError(f"it would remove {', '.join(surprises)}")
        held = self._host.attempt("apt-mark", "showhold").stdout.split()
        others = sorted(set(held) & {*found.install, *found.remove} - set(self._pinned))
        if others:
            raise RefusedError(f"{others[0]} is on hold, and not by gpufab")
        if self._recipe.modules == "prebuilt" and any(name.endswith("-dkms") for name in found.install):
            raise RefusedError("it builds modules by DKMS: say modules: dkms")

    def _download(self, wanted: Dict[str, str]) -> None:
        output = self._apt("apt-get", "-y", "--download-only", *self._arguments(wanted))
        if output.rc != 0:
            raise RefusedError(said(output))
        free, need = self._host.free_bytes("/usr"), _unpacked(output.stdout)
        if isinstance(free, int) and free < need:
            raise RefusedError(f"{need / 1e6:.0f} MB are needed in /usr, {free / 1e6:.0f} MB are free")


def simulated(text: str) -> Transaction:
    """What ``apt-get -s`` prints: ``Inst NAME [OLD] (NEW ORIGIN [ARCH])`` and ``Remv NAME [OLD]``; ``Conf NAME (NEW …``
    follows each Inst, and stands alone for a package that a failed run has left half-configured.
    """
    install = dict(re.findall(r"^(?:Inst|Conf) (\S+)(?: \[[^\]]*\])? \((\S+) ", text, re.MULTILINE))
    return Transaction(install, tuple(sorted(set(re.findall(r"^Remv (\S+)", text, re.MULTILINE)))))


def _unpacked(text: str) -> float:
    match = re.search(r"After this operation, ([0-9.,]+) ([kMGT]?B) of additional", text)
    return float(match[1].replace(",", "")) * _UNITS[match[2]] if match else 0.0
