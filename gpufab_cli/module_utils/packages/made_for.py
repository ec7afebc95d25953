"""Which kernel a package is made for, as its name or version says. Pure.

Sources: versions of the vendor's prebuilt modules end in .kver.RELEASE (component lists of the DOCA 2.9 release notes),
with its dashes as underscores in rpm, which allows none; Debian and Ubuntu name packages of a kernel after its release,
the RHEL family gives them its version.
"""

import re
from typing import Mapping, Optional

_BUILT = re.compile(r"\.kver\.(\S+)$")
_NAMED = re.compile(r"linux-(?:image|modules)(?:-[a-z]+)*-(\d\S+)")
_VERSIONED = re.compile(r"kernel(?:-rt|-64k)?(?:-core|-modules(?:-core|-extra)?)?")


def kernel_of(name: str, version: str) -> Optional[str]:
    """The release that a package of modules, or of a kernel itself, is made for; None of any other package."""
    built, named = _BUILT.search(version), _NAMED.fullmatch(name)
    if built or named:
        return (built or named)[1]  # type: ignore[index]
    return version.rpartition(":")[2] if _VERSIONED.fullmatch(name) else None


def other_kernel(packages: Mapping[str, str], running: str) -> str:
    """What is amiss with packages, by version, of which one is made for a kernel that does not run; "" if none is."""
    for name, version in sorted(packages.items()):
        release = kernel_of(name, version)
        if release is not None and not _is(release, running):
            return f"{name} {version} is for kernel {release}, and {running} runs"
    return ""


def _is(release: str, running: str) -> bool:
    """Whether it is the running one; packages may leave the architecture out that a kernel ends its release with."""
    release, running = release.replace("-", "_"), running.replace("-", "_")
    return running == release or running.startswith(release + ".")
