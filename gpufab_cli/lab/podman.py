"""podman, as far as the lab needs it."""

import json
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.shell import run, succeeds

LABEL = "gpufab.lab"  # the label that holds the lab's token
# Where CAP_SYS_RESOURCE is missing podman cannot raise limits, and it tries to unless it is told.
_OPEN_FILES, _PROCESSES = 20000, 4096
# Only the unified hierarchy has this file in its root: cgroups(7).
_UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")
# Long enough for systemd to stop its units, short enough for a node whose hardware hangs.
_STOP_S = 10


@dataclass(frozen=True)
class Container:
    """What a node's container is made of; mounts are (host path, path in the node, options)."""

    name: str
    hostname: str
    image: str
    ssh_port: int
    token: str
    mounts: tuple[tuple[Path, str, str], ...]


def _json(*argv: str) -> Any:
    return json.loads(run(["podman", *argv, "--format", "json"]) or "[]")


def runtime() -> list[str]:
    """The option that picks an OCI runtime: crun refuses the old control group hierarchy, runc takes both.

    The kernel is asked, not `podman info`, which asks dpkg and rpm nine times who made its helpers.

    Raises:
        LabError: runc is needed and missing.
    """
    if _UNIFIED.exists():
        return []
    if not shutil.which("runc"):
        raise LabError("this host has control groups v1, which needs runc", hint="apt install runc")
    return ["--runtime", "runc"]


def image_id(tag: str) -> str:
    """The id of a local image, empty if there is none."""
    return run(["podman", "image", "inspect", tag, "--format", "{{.Id}}"]).strip() if has_image(tag) else ""


def has_image(tag: str) -> bool:
    """Whether a local image exists."""
    return succeeds(["podman", "image", "exists", tag])


def import_image(tarball: Path, tag: str) -> None:
    """Makes an image of a root file system."""
    run(["podman", "import", "--quiet", "--change", 'CMD ["/sbin/gpufab-boot"]', str(tarball), tag], timeout=600)


def build_image(folder: Path, base: str, tag: str, timeout: float) -> None:
    """Makes an image from another by the Containerfile in a folder, whose argument BASE is that image."""
    argv = ["podman", *runtime(), "build", "--quiet", "--pull=never", f"--build-arg=BASE={base}", f"--tag={tag}"]
    run([*argv, str(folder)], timeout=timeout)


def containers(prefix: str) -> dict[str, dict[str, Any]]:
    """All containers whose name begins so, by name, as `podman ps` tells them."""
    found = _json("ps", "--all", "--filter", f"name=^{prefix}")
    return {names[0]: entry for entry in found if (names := entry["Names"])}


def create(container: Container) -> None:
    """Makes a container that starts again whenever its system reboots."""
    argv = ["podman", *runtime(), "create", "--name", container.name, "--hostname", container.hostname]
    argv += [f"--label={LABEL}={container.token}"]
    argv += ["--systemd=always", "--restart=always", "--cap-add=NET_ADMIN,NET_RAW,SYS_PTRACE"]
    argv += [f"--ulimit={_limit('nofile', resource.RLIMIT_NOFILE, _OPEN_FILES)}"]
    argv += [f"--ulimit={_limit('nproc', resource.RLIMIT_NPROC, _PROCESSES)}"]
    argv += [f"--publish=127.0.0.1:{container.ssh_port}:22"]
    argv += [f"--volume={host}:{path}:{options}" for host, path, options in container.mounts]
    run([*argv, container.image])


def _limit(name: str, which: int, wanted: int) -> str:
    hard = resource.getrlimit(which)[1]
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    return f"{name}={allowed}:{allowed}"


def start(name: str) -> None:
    """Starts a container; one that runs stays as it is."""
    run(["podman", *runtime(), "start", name])


def stop(name: str, seconds: int = _STOP_S) -> None:
    """Stops a container, whose restart policy then rests; kills it after some seconds."""
    run(["podman", "stop", "--time", str(seconds), name], timeout=seconds + 60)


def remove(name: str) -> None:
    """Removes a container, running or not.

    One that ends by itself just before podman kills it makes podman fail ("container state improper: stopped"); it is
    then stopped, and goes the second time.
    """
    argv = ["podman", "rm", "--force", "--time", "1", name]
    try:
        run(argv)
    except LabError:
        run(argv)


def execute_detached(name: str, *argv: str) -> None:
    """Starts a program in a container and leaves it running."""
    run(["podman", "exec", "--detach", name, *argv])
