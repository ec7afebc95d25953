"""A rehearsal with apt: resolve, and download with every signature and hash checked, in apt's own words but its own
folders. The sources and preferences that are rehearsed are not the system's yet: apt.conf(5), Dir::Etc and Dir::State.
"""

import re
from typing import Dict, Iterable, List, Mapping, Tuple

from ..host import Host, Output
from .files import declared, key_path, preferences, proxy_option, source_path
from .gather import versions
from .platforms import Platform
from .recipe import Recipe
from .rehearsal import Rehearsal
from .transaction import SECONDS, Offered, RefusedError, Transaction, said

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


class AptRehearsal(Rehearsal):
    """One rehearsal of one set."""

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
        self._update()

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

    def _options(self, cache: str) -> Tuple[str, ...]:
        """``cache`` names the sources that are read: apt parses them once for each."""
        folder = self._folder
        places = {
            "Dir::Cache::pkgcache": f"{folder}/{cache}.bin",
            "Dir::Cache::srcpkgcache": f"{folder}/{cache}-sources.bin",
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
        return tuple(word for name, value in places.items() for word in ("-o", f"{name}={value}"))

    def _apt(self, program: str, *argv: str) -> Output:
        return self._host.attempt(program, *self._options("every"), *argv, seconds=SECONDS)

    def _alone(self, program: str, *argv: str) -> Output:
        """With the set's own source and no other."""
        own = _own_source(self._source)
        return self._host.attempt(program, *self._options("own"), *own, *argv, seconds=SECONDS)

    def _update(self) -> None:
        if reads_every_source(self._host, self._recipe):
            self._must(self._apt("apt-get", "update"))
        if self._recipe.repository is not None:  # of the set's own source nothing may be amiss
            self._must(self._alone("apt-get", "-o", "APT::Update::Error-Mode=any", "update"))

    def _must(self, output: Output) -> None:
        if output.rc != 0:
            raise RefusedError(f"repository: {said(output)}")

    def _offered(self) -> Dict[str, Tuple[str, ...]]:
        names = {root.name for root in self._recipe.roots} | set(self._database.packages)
        return versions(self._apt("apt-cache", "madison", *sorted(names)).stdout)

    def _own(self, names: Iterable[str]) -> Dict[str, Tuple[str, ...]]:
        if self._recipe.repository is None:
            return {}
        return versions(self._alone("apt-cache", "madison", *sorted(set(names))).stdout)

    def _reached(self, roots: Mapping[str, str]) -> List[str]:
        """Names alone, for they vary little by version."""
        kinds = ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")
        flags = ("-o", "Dir::State::status=/dev/null", "depends", "--recurse", *(f"--no-{kind}" for kind in kinds))
        output = self._alone("apt-cache", *flags, *roots)
        return re.findall(r"^([a-z0-9][a-z0-9+.\-]*)$", output.stdout, re.MULTILINE)

    def _arguments(self, wanted: Mapping[str, str]) -> List[str]:
        flags = ["install", "--no-install-recommends", "--allow-downgrades", "--allow-change-held-packages"]
        return [*flags, *(f"{name}={version}" if version else f"{name}-" for name, version in sorted(wanted.items()))]

    def _resolve(self, wanted: Mapping[str, str]) -> Transaction:
        return self._simulate(*self._arguments(wanted))

    def _simulate(self, *argv: str) -> Transaction:
        output = self._apt("apt-get", "-s", *argv)
        if output.rc != 0:
            raise RefusedError(said(output))
        return simulated(output.stdout)

    def _taken_along(self, going: Tuple[str, ...]) -> Iterable[str]:
        return self._simulate("remove", *going).remove

    def _foreign_holds(self, found: Transaction) -> Iterable[str]:
        held = self._host.attempt("apt-mark", "showhold").stdout.split()
        return [f"{name} is on hold" for name in set(held) & {*found.install, *found.remove} - set(self._pinned)]

    def _fetch(self, wanted: Mapping[str, str], own: Offered) -> None:  # noqa: ARG002
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
