"""Node images: packages made into root file systems, each built once and kept by podman under a hash of its recipe."""

import fcntl
import hashlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpufab_cli.lab import platforms, podman
from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.files import RUN
from gpufab_cli.lab.platforms import PACKAGES, Platform
from gpufab_cli.lab.shell import run

_HERE = Path(__file__).parent / "image"
_COMPONENTS = ("main", "contrib")
_BUILD_S = 1200


def tag(name: str = platforms.DEFAULT) -> str:
    """The name that a platform's image has; another recipe gives another name.

    Raises:
        LabError: There is no such platform.
    """
    return f"localhost/gpufab-lab:{name}-{_recipe(platforms.load(name))}"


def _recipe(platform: Platform) -> str:
    digest = hashlib.sha256(" ".join((platform.suite, *_COMPONENTS, *PACKAGES)).encode())
    if platform.base:
        digest.update(_recipe(platforms.load(platform.base)).encode())
    for path in sorted(_sources(platform)):
        digest.update(str(path.relative_to(_HERE)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _sources(platform: Platform) -> Iterator[Path]:
    """The files that an image is made from."""
    roots = (_HERE / platform.folder,) if platform.base else (_HERE / "customize.sh", _HERE / "rootfs")
    for root in roots:
        yield from (path for path in (root, *root.rglob("*")) if path.is_file())


def ensure(say: Callable[[str], None], name: str = platforms.DEFAULT) -> str:
    """Gives the tag of a platform's image, after building it if need be.

    Raises:
        LabError: There is no such platform, or a package or a program is missing.
    """
    wanted = tag(name)
    if not podman.has_image(wanted):
        with _one_builder(say):
            _build(platforms.load(name), wanted, say)
    return wanted


@contextmanager
def _one_builder(say: Callable[[str], None]) -> Iterator[None]:
    """Labs that come up at the same time build an image once; the others wait for it."""
    RUN.mkdir(parents=True, exist_ok=True)
    with (RUN / "image.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another lab that builds an image")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(platform: Platform, wanted: str, say: Callable[[str], None]) -> None:
    if podman.has_image(wanted):
        return
    if platform.base:
        _derive(platform, wanted, say)
    else:
        _bootstrap(platform, wanted, say)


def _bootstrap(platform: Platform, wanted: str, say: Callable[[str], None]) -> None:
    say(f"building the {platform.name} image from Debian {platform.suite} packages (once, about a minute)")
    with tempfile.TemporaryDirectory(prefix="gpufab-lab-") as scratch:
        tarball = Path(scratch) / "root.tar"
        argv = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}"]
        argv += [f"--components={','.join(_COMPONENTS)}", f"--customize-hook='{_HERE / 'customize.sh'}' \"$1\""]
        run([*argv, platform.suite, str(tarball), *archive(platform.suite)], timeout=_BUILD_S)
        say(f"importing the {platform.name} image")
        podman.import_image(tarball, wanted)


def _derive(platform: Platform, wanted: str, say: Callable[[str], None]) -> None:
    base = tag(platform.base)
    _build(platforms.load(platform.base), base, say)
    say(f"building the {platform.name} image from {platform.base} (once, some seconds)")
    podman.build_image(_HERE / platform.folder, base, wanted, timeout=_BUILD_S)


def archive(suite: str) -> list[str]:
    """A suite's sources at the mirrors that this machine itself uses; empty leaves the choice to mmdebstrap.

    Without the suites for updates, what the image brought of them would hold other packages back.
    """
    found = mirrors()
    if "Debian" not in found:
        return []
    main, security = found["Debian"], found.get("Debian-Security")
    suites = [(main, suite), (main, f"{suite}-updates")] + ([(security, f"{suite}-security")] if security else [])
    return [f"deb {mirror} {name} {' '.join(_COMPONENTS)}" for mirror, name in suites]


def mirrors() -> dict[str, str]:
    """This machine's archives by label, as apt has found them; empty where there is no apt or it knows of none."""
    query = ["apt-get", "indextargets", "--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages", "Origin: Debian"]
    try:
        said = run(query)
    except LabError:
        return {}
    return dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
