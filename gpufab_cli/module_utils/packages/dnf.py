"""A rehearsal with dnf: resolve, and download with every signature checked, in folders of its own.

dnf.conf(5): reposdir, cachedir, persistdir and logdir are where it reads and writes. The keys that the downloaded
packages are checked by lie in a database of their own too (rpmkeys(8)): the system's is not touched before the run.
"""

import re
from typing import Dict, Iterable, List, Mapping, Tuple

from ..host import Output
from .database import RPM_FORMAT
from .files import declared, key_path, repository_id, source_path
from .recipe import natural
from .rehearsal import Rehearsal
from .transaction import SECONDS, Offered, RefusedError, Transaction, said

REPOS = "/etc/yum.repos.d"
_QUERY = r"%{name} %{epoch}:%{version}-%{release}"
_REMOVING = re.compile(r"^Removing.*?:\n((?: \S.*\n|\s{2,}.*\n)+)", re.MULTILINE)


def fetch(specs: Tuple[str, ...]) -> Tuple[str, ...]:
    """The command line that reads the sources and downloads packages into dnf's own cache, for a later transaction.

    keepcache is for this call alone: dnf would else discard them at the end of the transaction that comes first.
    """
    options = ("--setopt=keepcache=1", "--setopt=install_weak_deps=False")
    return ("dnf", "-y", *options, "--refresh", "--downloadonly", "--allowerasing", "install", *specs)


class DnfRehearsal(Rehearsal):
    """One rehearsal of one set."""

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

    def _offered(self) -> Dict[str, Tuple[str, ...]]:
        return self._versions(*sorted({root.name for root in self._recipe.roots} | set(self._database.packages)))

    def _own(self, names: Iterable[str]) -> Dict[str, Tuple[str, ...]]:  # noqa: ARG002
        if self._recipe.repository is None:
            return {}
        return self._versions(f"--repoid={repository_id(self._recipe.name)}")

    def _versions(self, *argv: str) -> Dict[str, Tuple[str, ...]]:
        output = self._dnf("-q", "repoquery", "--available", f"--qf={_QUERY}\n", *argv)
        if output.rc != 0:
            raise RefusedError(f"repository: {said(output)}")
        return offered(output.stdout)

    def _reached(self, roots: Mapping[str, str]) -> List[str]:
        only = f"--repoid={repository_id(self._recipe.name)}"
        specs = [f"{name}-{version}" if version else name for name, version in sorted(roots.items())]
        output = self._dnf(only, "-q", "repoquery", "--requires", "--resolve", "--recursive", "--qf=%{name}\n", *specs)
        if output.rc != 0:
            raise RefusedError(f"repository: {said(output)}")
        return output.stdout.split()

    def _resolve(self, wanted: Mapping[str, str]) -> Transaction:
        """What comes is downloaded as well: dnf's table of it cannot be read by a program."""
        gone = [name for name, version in wanted.items() if not version]
        specs = [f"{name}-{version}" for name, version in sorted(wanted.items()) if version]
        if not specs:
            return Transaction(remove=tuple(sorted(gone)))
        self._clear(wanted)
        rpms = f"{self._folder}/rpms"
        flags = ("--downloadonly", f"--downloaddir={rpms}", "--allowerasing", "--setopt=install_weak_deps=False")
        output = self._dnf(*flags, "install", *specs)
        if output.rc != 0:
            raise RefusedError(said(output))
        return Transaction(self._downloaded(), tuple(sorted({*removing(output.stdout), *gone})))

    def _files(self) -> List[str]:
        names = self._host.names(f"{self._folder}/rpms")
        found = names if isinstance(names, tuple) else ()
        return [f"{self._folder}/rpms/{name}" for name in found if name.endswith(".rpm")]

    def _clear(self, wanted: Mapping[str, str]) -> None:
        """Of what an earlier call has downloaded, away with the packages that are now asked for in another version."""
        files = self._files()
        said = self._host.attempt("rpm", "-qp", "--nosignature", "--qf", RPM_FORMAT, *files).stdout if files else ""
        for path, line in zip(files, said.splitlines()):
            if any(wanted.get(name, version) != version for name, (version,) in offered(line).items()):
                self._host.remove(path)

    def _downloaded(self) -> Dict[str, str]:
        files = self._files()
        output = self._host.attempt("rpm", "-qp", "--nosignature", "--qf", RPM_FORMAT, *files) if files else None
        return {name: found[0] for name, found in offered(output.stdout).items()} if output else {}

    def _taken_along(self, going: Tuple[str, ...]) -> Iterable[str]:
        flags = ("--assumeno", "--setopt=clean_requirements_on_remove=False")
        return removing(self._dnf(*flags, "remove", *going).stdout)

    def _foreign_holds(self, found: Transaction) -> Iterable[str]:
        for name, lock in self._database.foreign.items():
            comes = found.install.get(name)
            if name in found.remove or (comes is not None and lock.removesuffix(".*") not in (comes, f"0:{comes}")):
                yield f"{name} is locked in versionlock.list"

    def _fetch(self, wanted: Mapping[str, str], own: Offered) -> None:  # noqa: ARG002
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
