"""Look at everything that a plan for a set of packages needs."""

import re
from typing import Dict, Iterator, Tuple, Union

from ..change import ABSENT, Unknown
from ..host import Reader
from ..queries import NO_CACHE
from . import database, kernel
from .files import closure, paths, pins_path
from .platforms import Platform, identify
from .recipe import ANY, Recipe, Want, recipe
from .seen import Database, PackagesSeen

VERSIONLOCK_CONF, DNF_CONF = "/etc/dnf/plugins/versionlock.conf", "/etc/dnf/dnf.conf"
_OFF = r"^[ \t]*%s[ \t]*[=:][ \t]*(?:0|no|false|off)[ \t]*$"
OPENIBD = ("/etc/init.d/openibd", "/lib/systemd/system/openibd.service", "/usr/lib/systemd/system/openibd.service")
OPENIB_CONF = "/etc/infiniband/openib.conf"
_PYTHONS = ("/usr/local/lib", "/usr/lib", "/usr/lib64", "/usr/local/lib64", "/opt/conda/lib")
_BUNDLED = "nvidia/nccl/lib/libnccl.so.2"


def gather(host: Reader, want: Want) -> PackagesSeen:
    """What is there of the set that a wish is about."""
    platform = identify(host)
    if not isinstance(platform, Platform):
        return PackagesSeen(platform)
    made = recipe(want, platform)
    files = {path: host.read(path) for path in paths(made.name, platform)}
    pinned = closure(made.name, platform, str(files[pins_path(made.name, platform)]))
    found = database.look(host, platform, _matters(made, pinned))
    state = kernel.look(host) if made.name == "ofed" else None
    return PackagesSeen(
        platform=platform,
        files=files,
        database=found,
        available=_available(host, platform, _sought(made, found)),
        free_bytes=host.free_bytes("/usr"),
        kernel=state,
        built=dict(kernel.built(host, _installed(found), state.running)) if state else {},
        module=kernel.module(host) if made.name == "ofed" else None,
        vfs=kernel.has_vfs(host),
        reloads=any(host.exists(path) for path in OPENIBD),
        burns=_burns(host),
        locks_work=platform.manager == "apt" or _locks_work(host),
        bundled=tuple(_bundled(host)) if made.name == "nccl" else (),
    )


def _burns(host: Reader) -> bool:
    """Whether openibd runs the vendor's firmware updater whenever it starts: mlnx-fw-updater adds the line, with no."""
    text = host.read(OPENIB_CONF)
    lines = re.findall(r"^[ \t]*RUN_FW_UPDATER_ONBOOT[ \t]*=[ \t]*[\"']?(\w*)", str(text), re.MULTILINE)
    return isinstance(text, Unknown) or lines[-1:] == ["yes"]


def _locks_work(host: Reader) -> bool:
    """Whether the plugin is there and neither it nor all plugins are turned off (dnf.conf(5))."""
    own, main = host.read(VERSIONLOCK_CONF), str(host.read(DNF_CONF))
    if own is ABSENT:
        return False
    off = ((_OFF % "enabled", str(own)), (_OFF % "plugins", main))
    return not any(re.search(pattern, text, re.MULTILINE | re.IGNORECASE) for pattern, text in off)


def _matters(made: Recipe, pinned: Dict[str, str]) -> database.Matters:
    names = {root.name for root in made.roots} | set(made.forbidden) | set(pinned)
    return lambda name, version: name in names or made.strange(name, version)


def _installed(found: Union[Database, Unknown]) -> Tuple[str, ...]:
    return () if isinstance(found, Unknown) else tuple(found.packages)


def _sought(made: Recipe, found: Union[Database, Unknown]) -> Tuple[str, ...]:
    """The roots of which a version is wanted that is not there: only of these it is told which one would come."""
    there = {} if isinstance(found, Unknown) else found.packages
    roots = [root for root in made.roots if root.version != ANY]
    missed = {r.name for r in roots if r.name not in there or not made.met(r.name, there[r.name], r.version)}
    return tuple(sorted(missed))


def _available(host: Reader, platform: Platform, names: Tuple[str, ...]) -> Union[Dict[str, Tuple[str, ...]], Unknown]:
    """What apt's lists hold of these packages; to ask, apt has to parse them all, which takes it a second. dnf could
    only be asked by letting it write its caches.
    """
    if platform.manager == "dnf":
        return Unknown("dnf would write its caches to tell")
    if not names:
        return {}
    output = host.query("apt-cache", *NO_CACHE, "madison", *names)
    if isinstance(output, Unknown):
        return output
    return versions(output.stdout) if output.rc == 0 else Unknown(f"apt-cache: {output.error}")


def versions(madison: str) -> Dict[str, Tuple[str, ...]]:
    """The versions that apt-cache madison prints, newest first: ``name | version | source``."""
    found: Dict[str, Tuple[str, ...]] = {}
    for name, version in re.findall(r"^ *(\S+) \| +(\S+) \| .*Packages$", madison, re.MULTILINE):
        found[name] = tuple(dict.fromkeys((*found.get(name, ()), version)))
    return found


def _bundled(host: Reader) -> Iterator[str]:
    """libnccl of Python packages where they are usually installed, virtual environments aside."""
    for folder in _site_packages(host):
        if host.exists(f"{folder}/{_BUNDLED}"):
            yield f"{folder}/{_BUNDLED}"


def _site_packages(host: Reader) -> Iterator[str]:
    for prefix in _PYTHONS:
        names = host.names(prefix)
        for name in names if isinstance(names, tuple) else ():
            if re.fullmatch(r"python3(?:\.\d+)?", name):
                yield from (f"{prefix}/{name}/site-packages", f"{prefix}/{name}/dist-packages")
