"""A rehearsal with dnf: resolve, and download with every signature checked, in folders of its own.

dnf.conf(5): reposdir, cachedir, persistdir and logdir are where it reads and writes. The keys that the downloaded
packages are checked by lie in a database of their own too (rpmkeys(8)): the system's is not touched before the run.
"""

import re
from typing import Dict, List, Tuple

from ..host import Host, Output
from .database import RPM_FORMAT, installed
from .files import declared, key_path, repository_id, source_path
from .platforms import Platform
from .recipe import Recipe, natural
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

REPOS = "/etc/yum.repos.d"
_QUERY = r"%{name} %{epoch}:%{version}-%{release}"
_REMOVING = re.compile(r"^Removing.*?:\n((?: \S.*\n|\s{2,}.*\n)+)", re.MULTILINE)


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
        own = self._offered(f"--repoid={repository_id(self._recipe.name)}") if self._recipe.repository else {}
        everywhere = self._offered()
        roots = choose(self._recipe, self._database, everywhere)
        reached = self._reached(roots)
        asked = self._wanted(roots, reached, everywhere, own)
        gone = tuple(name for name, version in asked.items() if not version)
        wanted = {name: version for name, version in asked.items() if version}
        install, removed = self._resolve(wanted)
        self._check((*removed, *gone), install)
        along = self._along((*removed, *gone), install)
        self._verify(own)
        closure = self._closure(roots, reached, after(self._now, {**install, **roots}, (*removed, *gone)), own)
        extra = {name: version for name, version in closure.items() if install.get(name) == version}
        return Transaction({**wanted, **extra}, tuple(sorted({*removed, *gone})), closure, along)

    def _along(self, going: Tuple[str, ...], install: Dict[str, str]) -> Tuple[str, ...]:
        """What the removal takes with it, which comes first: packages that depend on what goes and come back after."""
        if not going:
            return ()
        flags = ("--assumeno", "--setopt=clean_requirements_on_remove=False")
        table = self._dnf(*flags, "remove", *going).stdout
        return coming_back(removing(table), going, install)

    def _wanted(self, roots: Dict[str, str], reached: List[str], offered: Offered, own: Offered) -> Dict[str, str]:
        """What dnf is to be asked for: the roots, and what would else stay another stack's or source's."""
        ours: Dict[str, str] = {}
        kept = set(roots)
        if own:
            install, removed = self._resolve(roots)
            then = after(self._now, {**install, **roots}, removed)
            ours = mixed(reached, then, own)
            kept = {*whole(roots, reached, then, own), *ours}
        return {**leftovers(self._recipe, self._pinned, self._database, kept, offered), **ours, **roots}

    def _lay_out(self) -> None:
        folder, host = self._folder, self._host
        host.run("rm", "-rf", folder)
        for name in ("repos", "rpms", "keys"):
            host.run("mkdir", "-p", f"{folder}/{name}")
        if host.exists(REPOS):
            host.run("cp", "-rT", REPOS, f"{folder}/repos")
        host.remove(f"{folder}/repos/gpufab-{self._recipe.name}.repo")
        for path, text in declared(self._recipe, self._platform, self._key).items():
            if path == key_path(self._recipe.name, self._platform):
                host.put(self._key, text.encode())
            elif path == source_path(self._recipe.name, self._platform):
                host.put(f"{folder}/repos/gpufab-{self._recipe.name}.repo", text.encode())

    @property
    def _key(self) -> str:
        return f"{self._folder}/key.asc"

    def _dnf(self, *argv: str) -> Output:
        folder = self._folder
        places = {"reposdir": f"{folder}/repos", "cachedir": f"{folder}/cache", "persistdir": f"{folder}/persist"}
        options = [f"--setopt={name}={value}" for name, value in {**places, "logdir": folder}.items()]
        if self._recipe.repository is not None:
            options.append(f"--setopt={repository_id(self._recipe.name)}.skip_if_unavailable=False")
        return self._host.attempt("dnf", "-y", "--disableplugin=versionlock", *options, *argv, seconds=SECONDS)

    def _offered(self, *only: str) -> Dict[str, Tuple[str, ...]]:
        names = () if only else sorted({root.name for root in self._recipe.roots} | set(self._database.packages))
        output = self._dnf(*only, "-q", "repoquery", "--available", f"--qf={_QUERY}\n", *names)
        if output.rc != 0:
            raise RefusedError(f"repository: {said(output)}")
        return offered(output.stdout)

    def _resolve(self, wanted: Dict[str, str]) -> "tuple[dict[str, str], tuple[str, ...]]":
        """Packages that come, downloaded, and those that go."""
        if not wanted:
            return {}, ()
        rpms = f"{self._folder}/rpms"
        specs = [f"{name}-{version}" for name, version in sorted(wanted.items())]
        flags = ("--downloadonly", f"--downloaddir={rpms}", "--allowerasing", "--setopt=install_weak_deps=False")
        output = self._dnf(*flags, "install", *specs)
        if output.rc != 0:
            raise RefusedError(said(output))
        return self._downloaded(), removing(output.stdout)

    def _files(self) -> List[str]:
        names = self._host.names(f"{self._folder}/rpms")
        found = names if isinstance(names, tuple) else ()
        return [f"{self._folder}/rpms/{name}" for name in found if name.endswith(".rpm")]

    def _downloaded(self) -> Dict[str, str]:
        files = self._files()
        output = self._host.attempt("rpm", "-qp", "--nosignature", "--qf", RPM_FORMAT, *files) if files else None
        return {name: found[0] for name, found in offered(output.stdout).items()} if output else {}

    def _closure(
        self, roots: Dict[str, str], reached: List[str], final: Dict[str, str], own: Offered
    ) -> Dict[str, str]:
        """The packages of the repository that are then there; without one the pinned roots."""
        if not self._recipe.pinned:
            return {}
        return whole(roots, reached, final, own) if self._recipe.repository is not None else roots

    def _reached(self, roots: Dict[str, str]) -> List[str]:
        """What the roots depend on within the repository."""
        if self._recipe.repository is None:
            return []
        only = f"--repoid={repository_id(self._recipe.name)}"
        specs = [f"{name}-{version}" for name, version in sorted(roots.items())]
        output = self._dnf(only, "-q", "repoquery", "--requires", "--resolve", "--recursive", "--qf=%{name}\n", *specs)
        return output.stdout.split()

    def _check(self, removed: Tuple[str, ...], install: Dict[str, str]) -> None:
        surprises = sorted(surprising(self._recipe, removed, self._database, self._pinned))
        if surprises:
            raise RefusedError(f"it would remove {', '.join(surprises)}")
        locked = sorted(set(self._database.foreign) & {*install, *removed})
        if locked:
            raise RefusedError(f"{locked[0]} is locked in versionlock.list, and not by gpufab")
        if self._recipe.modules == "prebuilt" and any(name.endswith("-dkms") for name in install):
            raise RefusedError("it builds modules by DKMS: say modules: dkms")

    def _verify(self, own: Offered) -> None:
        """The signatures of what comes from the set's repository, by its key alone."""
        files = [path for path, name in self._names().items() if name in own]
        if not files:
            return
        database = ("--dbpath", f"{self._folder}/keys")
        self._host.run("rpmkeys", *database, "--import", self._key)
        output = self._host.attempt("rpmkeys", *database, "--define", "_pkgverify_level all", "--checksig", *files)
        bad = [line for line in output.stdout.splitlines() if "NOT OK" in line]
        if output.rc != 0 or bad:
            words = bad[0].rpartition("/")[2] if bad else said(output)
            raise RefusedError(f"signature: {words}")

    def _names(self) -> Dict[str, str]:
        """The name of the package in each downloaded file."""
        files = self._files()
        output = self._host.attempt("rpm", "-qp", "--nosignature", "--qf", r"%{NAME}\n", *files) if files else None
        return dict(zip(files, output.stdout.split())) if output else {}


def offered(text: str) -> Dict[str, Tuple[str, ...]]:
    """Names and versions, one a line, as versions by name, the newest first; an epoch of 0 is not told."""
    found: Dict[str, Tuple[str, ...]] = {}
    for line in text.splitlines():
        name, _, version = line.strip().partition(" ")
        if version:
            version = version[2:] if version.startswith("0:") else version
            found[name] = tuple(dict.fromkeys((*found.get(name, ()), version)))
    return {name: tuple(sorted(versions, key=_newest, reverse=True)) for name, versions in found.items()}


def _newest(version: str) -> "list[tuple[int, int, str]]":
    return natural(version if ":" in version else f"0:{version}")


def removing(text: str) -> Tuple[str, ...]:
    """The names in the sections of dnf's table that tell what goes; long names have a line of their own."""
    found = []
    for section in _REMOVING.findall(text):
        found += [line.split()[0] for line in section.splitlines() if re.match(r" \S", line)]
    return tuple(dict.fromkeys(found))
