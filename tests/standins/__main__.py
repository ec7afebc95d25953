"""``python -m tests.standins FOLDER``: all repositories, and the keys they are signed with."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from tests.standins import apt, catalogue, kept, yum
from tests.standins.keys import Key, keyring

# How a platform's repositories are made, and the rdma-core that it comes with.
_PLATFORMS = {"ubuntu2404": (apt.repository, "50.0-2ubuntu0.2"), "rhel9": (yum.repository, "54.0-1.el9")}
_MADE = {"doca", "mlnx_ofed", "cuda", "distribution", "keys"}
_KEYS = ("vendor", "distribution", "stranger")


def build(folder: Path) -> None:
    """Fills a folder: REPOSITORY/PLATFORM, keys/NAME.asc and NAME.fingerprint. The stranger's key signs nothing."""
    with tempfile.TemporaryDirectory(prefix="key-") as scratch, keyring(Path(scratch) / "gpg", *_KEYS) as keys:
        for platform in _PLATFORMS:
            _platform(folder, platform, vendor=keys[0], distribution=keys[1])
        (folder / "keys").mkdir()
        for name, key in zip(_KEYS, keys, strict=True):
            (folder / "keys" / f"{name}.asc").write_text(key.public)
            (folder / "keys" / f"{name}.fingerprint").write_text(key.fingerprint)


def _platform(folder: Path, platform: str, vendor: Key, distribution: Key) -> None:
    make, rdma = _PLATFORMS[platform]
    for release, packages in catalogue.doca().items():
        make(folder / "doca" / release / platform, packages, vendor)
    for release, packages in catalogue.mlnx_ofed().items():
        make(folder / "mlnx_ofed" / release / platform, packages, vendor)
    make(folder / "cuda" / platform, catalogue.cuda(), vendor)
    make(folder / "distribution" / platform, catalogue.distribution(rdma), distribution)


def provide(folder: Path) -> None:
    """Fills a new folder with a copy of the repositories, which are built once for all."""
    kept.copy(folder, build)


def main(arguments: list[str]) -> None:
    """Fills the one folder that is named; what an earlier run has left there goes, and nobody else's files ever."""
    parser = argparse.ArgumentParser(prog="python -m tests.standins", description="Make repositories of stand-ins.")
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="new, empty, or of an earlier run")
    folder = parser.parse_args(arguments).folder
    if folder.exists():
        if not folder.is_dir() or not {path.name for path in folder.iterdir()} <= _MADE:
            parser.error(f"{folder} holds other things than stand-ins")
        shutil.rmtree(folder)
    provide(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
