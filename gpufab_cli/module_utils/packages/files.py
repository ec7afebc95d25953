"""The files that gpufab keeps of a set of packages: source, key, proxy and pins, as text. Pure.

The pins hold the whole closure that was resolved when the set was installed, each package at its exact version: what
belongs to the set is read from there, and a digest in their first line tells when one was taken out.
"""

import re
from typing import Dict, Iterable, List, Mapping, Tuple
from urllib.parse import urlsplit

from ..host import sha256
from .platforms import Platform
from .recipe import Recipe
from .want import RepositoryWant

Closure = Mapping[str, str]

MARK = "Kept by gpufab: changes made here are reverted."
VERSIONLOCK = "/etc/dnf/plugins/versionlock.list"
ABOVE_ALL, BELOW_DISTRIBUTION, NEVER = 1001, 100, -1
"""Pin-Priorities (apt_preferences(5)): also if it is a downgrade; as what is installed; not at all."""


def source_path(name: str, platform: Platform) -> str:
    """Where the repository is declared."""
    if platform.manager == "dnf":
        return f"/etc/yum.repos.d/gpufab-{name}.repo"
    return f"/etc/apt/sources.list.d/gpufab-{name}.sources"


def key_path(name: str, platform: Platform) -> str:
    """Where its key lies."""
    folder = "/etc/pki/rpm-gpg" if platform.manager == "dnf" else "/etc/apt/keyrings"
    return f"{folder}/gpufab-{name}.asc"


def proxy_path(name: str) -> str:
    """Where apt's proxy for it is set; dnf's stands with the repository."""
    return f"/etc/apt/apt.conf.d/90gpufab-{name}"


def pins_path(name: str, platform: Platform) -> str:
    """Where the versions are pinned; dnf has one such file for everybody."""
    return VERSIONLOCK if platform.manager == "dnf" else f"/etc/apt/preferences.d/gpufab-{name}.pref"


def paths(name: str, platform: Platform) -> Tuple[str, ...]:
    """Every file of a set that may be there."""
    own = (source_path(name, platform), key_path(name, platform), pins_path(name, platform))
    return own if platform.manager == "dnf" else (*own, proxy_path(name))


def declared(recipe: Recipe, platform: Platform, key: str = "") -> Dict[str, str]:
    """Source, key and proxy as they are to be, by path; none for a set from the node's own sources.

    ``key`` is where the source is to look for its key, if not at its place.
    """
    repository = recipe.repository
    if repository is None:
        return {}
    found = {
        key_path(recipe.name, platform): repository.key.strip() + "\n",
        source_path(recipe.name, platform): source(recipe, platform, repository, key),
    }
    if repository.proxy and platform.manager == "apt":
        option = proxy_option(platform.resolve(repository.url))
        found[proxy_path(recipe.name)] = f'// {MARK}\n{option} "{repository.proxy}";\n'
    return found


def source(recipe: Recipe, platform: Platform, repository: RepositoryWant, key: str = "") -> str:
    """The declaration of the repository."""
    lines = (_yum if platform.manager == "dnf" else _deb822)(recipe, platform, repository, key)
    return "\n".join((f"# {MARK}", *lines)) + "\n"


def _deb822(recipe: Recipe, platform: Platform, repository: RepositoryWant, key: str) -> List[str]:
    components = [f"Components: {' '.join(repository.components)}"] if repository.components else []
    return [
        "Types: deb",
        f"URIs: {platform.resolve(repository.url)}",
        f"Suites: {repository.suite}",
        *components,
        f"Signed-By: {key or key_path(recipe.name, platform)}",
    ]


def _yum(recipe: Recipe, platform: Platform, repository: RepositoryWant, key: str) -> List[str]:
    exclude = [f"excludepkgs={' '.join(recipe.forbidden)}"] if recipe.forbidden else []
    proxy = [f"proxy={repository.proxy}"] if repository.proxy else []
    return [
        f"[{repository_id(recipe.name)}]",
        f"name=gpufab {recipe.name}",
        f"baseurl={platform.resolve(repository.url)}",
        "enabled=1",
        "gpgcheck=1",
        "repo_gpgcheck=1",
        f"gpgkey=file://{key or key_path(recipe.name, platform)}",
        *exclude,
        *proxy,
    ]


def repository_id(name: str) -> str:
    """What dnf calls the repository."""
    return f"gpufab-{name}"


def proxy_option(url: str) -> str:
    """What apt calls the proxy of one host (apt-transport-http(1))."""
    parts = urlsplit(url)
    return f"Acquire::{parts.scheme}::Proxy::{parts.hostname}"


def pins(recipe: Recipe, platform: Platform, closure: Closure, before: str = "") -> str:
    """The text of the pins' file; of dnf's, which others write to as well, what stands in it ``before`` is kept."""
    if platform.manager == "apt":
        return preferences(recipe, platform, closure)
    before = before + "\n" if before and not before.endswith("\n") else before
    block, own = _block(recipe.name), _locks(recipe, closure)
    # In its place: two sets that each put theirs last would never come to rest.
    return block.sub(lambda _: own, before) if block.search(before) else before + own


def closure(name: str, platform: Platform, text: str) -> Dict[str, str]:
    """The packages that are pinned in a file's text, at which versions."""
    if platform.manager == "apt":
        stanza = rf"^Package: (\S+)\nPin: version (\S+)\nPin-Priority: {ABOVE_ALL}$"
        return dict(re.findall(stanza, text, re.MULTILINE))
    lines = _block(name).search(text)
    locks = re.findall(r"^([^\s!#]+)-(\d+):([^\s-]+-[^\s-]+)\.\*$", lines[0] if lines else "", re.MULTILINE)
    return {package: version if epoch == "0" else f"{epoch}:{version}" for package, epoch, version in locks}


def preferences(recipe: Recipe, platform: Platform, found: Closure, *, ahead: bool = False) -> str:
    """APT preferences. ``ahead``: what the repository offers goes before the distribution's, while it is resolved."""
    stanzas = [_stanza(name, f"version {version}", ABOVE_ALL) for name, version in sorted(found.items())]
    if recipe.repository is not None:
        host = urlsplit(platform.resolve(recipe.repository.url)).hostname or ""
        stanzas.append(_stanza("*", f'origin "{host}"', ABOVE_ALL if ahead else BELOW_DISTRIBUTION))
    if recipe.forbidden:
        stanzas.append(_stanza(" ".join(recipe.forbidden), "release *", NEVER))
    if recipe.shunned:
        # Another stack's; where the stack is the vendor's, Ubuntu's own packages of the same names.
        pin = "release *" if recipe.repository is None and not recipe.pinned else "release o=Ubuntu"
        stanzas.append(_stanza(" ".join(recipe.shunned), pin, NEVER))
    return f"# {MARK} {_digest(found)}\n" + "\n".join(stanzas) if stanzas else ""


def _stanza(packages: str, pin: str, priority: int) -> str:
    return f"Package: {packages}\nPin: {pin}\nPin-Priority: {priority}\n"


def _digest(found: Closure) -> str:
    return sha256("".join(f"{name} {version}\n" for name, version in sorted(found.items())).encode())[:23]


def _block(name: str) -> "re.Pattern[str]":
    return re.compile(rf"^# gpufab-{name} begin\b.*?^# gpufab-{name} end\n?", re.MULTILINE | re.DOTALL)


def _locks(recipe: Recipe, found: Closure) -> str:
    lines = [f"{name}-{_evr(version)}.*" for name, version in sorted(found.items())]
    lines += [f"!{name}" for name in recipe.forbidden]
    return _lines(recipe.name, found, lines) if lines else ""


def _lines(name: str, found: Closure, lines: Iterable[str]) -> str:
    return "\n".join((f"# gpufab-{name} begin. {MARK} {_digest(found)}", *lines, f"# gpufab-{name} end")) + "\n"


def _evr(version: str) -> str:
    return version if ":" in version else f"0:{version}"
