"""APT repositories of stand-ins: flat, signed, uncompressed."""

import tempfile
from pathlib import Path

from gpufab_cli.lab.shell import run
from tests.standins.keys import Key
from tests.standins.package import SAYS, Package


def repository(folder: Path, packages: list[Package], key: Key) -> None:
    """Builds the packages and the signed index in a folder; whoever may read the index may read all."""
    folder.mkdir(parents=True)
    for package in packages:
        _build(package, folder)
    _archive(folder, "packages", into="Packages")
    _archive(
        folder, "-o", f"APT::FTPArchive::Release::Origin=gpufab stand-ins {folder.name}", "release", into="Release"
    )
    key.gpg("--clearsign", "--output", str(folder / "InRelease"), str(folder / "Release"))


def _archive(folder: Path, *argv: str, into: str) -> None:
    (folder / into).write_text(run(["env", f"--chdir={folder}", "apt-ftparchive", *argv, "."]))


def _build(package: Package, folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="standin-") as scratch:
        root = Path(scratch)
        for path, text in package.files.items():
            _write(root / path.lstrip("/"), text)
        _write(root / "DEBIAN" / "control", _control(package))
        if package.after:
            _write(root / "DEBIAN" / "postinst", f"#!/bin/sh\n{package.after}")
        if package.gone:
            _write(root / "DEBIAN" / "postrm", f"#!/bin/sh\n{package.gone}")
        root.chmod(0o755)
        run(["dpkg-deb", "--root-owner-group", "-Znone", "--build", scratch, str(folder)])


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755 if text.startswith("#!") else 0o644)


def _control(package: Package) -> str:
    fields = {
        "Package": package.name,
        "Version": package.version,
        "Architecture": "all",
        "Maintainer": "gpufab tests <nobody@gpufab.invalid>",
        "Depends": ", ".join(_relation(name, package.version) for name in package.depends),
        "Recommends": ", ".join(package.recommends),
        "Installed-Size": str(package.installed_kib or ""),
        "Description": SAYS,
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def _relation(name: str, version: str) -> str:
    return f"{name.removesuffix('=')} (= {version})" if name.endswith("=") else name
