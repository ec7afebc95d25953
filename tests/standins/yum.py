"""RPM repositories of stand-ins: packages and metadata signed."""

import shutil
from pathlib import Path

from gpufab_cli.lab.shell import run
from tests.standins.keys import Key
from tests.standins.package import SAYS, Package, rpm_name

_HEAD = f"""Name: gpufab-standins
Version: 1
Release: 1
Summary: {SAYS}
License: Apache-2.0
BuildArch: noarch
AutoReqProv: no

%description
{SAYS}
"""


def repository(folder: Path, packages: list[Package], key: Key) -> None:
    """Builds the packages, signs them, and the metadata besides."""
    folder.mkdir(parents=True)
    for source in _sources(packages):
        _build(source, folder)
    rpms = [str(path) for path in sorted(folder.glob("*.rpm"))]
    sign = {"__gpg": shutil.which("gpg"), "_gpg_path": key.home, "_gpg_name": key.name}
    run(["rpmsign", *(f"--define={name} {value}" for name, value in sign.items()), "--addsign", *rpms])
    run(["createrepo_c", "--quiet", "--no-database", "--simple-md-filenames", str(folder)])
    repomd = folder / "repodata" / "repomd.xml"
    key.gpg("--armor", "--detach-sign", "--output", f"{repomd}.asc", str(repomd))


def _sources(packages: list[Package]) -> list[list[Package]]:
    """Packages that one run of rpmbuild can make, which costs more than a package does: each name once."""
    sources: list[list[Package]] = []
    for package in packages:
        fitting = (source for source in sources if all(other.name != package.name for other in source))
        source = next(fitting, None)
        if source is None:
            sources.append([package])
        else:
            source.append(package)
    return sources


def _build(packages: list[Package], folder: Path) -> None:
    scratch = folder.with_name(f"{folder.name}.build")
    scratch.mkdir()
    spec = scratch / "standins.spec"
    installs = "".join(_install(path, text) for package in packages for path, text in package.files.items())
    spec.write_text("".join([_HEAD, *map(_part, packages), "\n%install\n", installs]))
    build = {
        "_rpmdir": str(folder),
        "_topdir": str(scratch),
        "_rpmfilename": "%%{NAME}-%%{VERSION}-%%{RELEASE}.noarch.rpm",
        "_binary_payload": "w0.gzdio",
    }
    run(["rpmbuild", *(f"--define={name} {value}" for name, value in build.items()), "-bb", str(spec)])
    shutil.rmtree(scratch)


def _part(package: Package) -> str:
    """A package's section of a spec file."""
    name, (version, release) = f"-n {package.rpm_name}", package.version.rsplit("-", 1)
    lines = [f"\n%package {name}", f"Version: {version}", f"Release: {release}", f"Summary: {SAYS}"]
    lines += [f"Requires: {_relation(depended, package.version)}" for depended in package.depends]
    lines += [f"Recommends: {rpm_name(other)}" for other in package.recommends]
    lines += [f"\n%description {name}", SAYS]
    if package.after:
        lines += [f"\n%post {name}", package.after]
    if package.gone:
        lines += [f"\n%postun {name}", package.gone]
    lines += [f"\n%files {name}", *package.files, ""]
    return "\n".join(lines)


def _install(path: str, text: str) -> str:
    mode = "0755" if text.startswith("#!") else "0644"
    return f"install -D -m {mode} /dev/stdin %{{buildroot}}{path} <<'STANDIN'\n{text}STANDIN\n"


def _relation(name: str, version: str) -> str:
    return f"{rpm_name(name[:-1])} = {version}" if name.endswith("=") else rpm_name(name)
