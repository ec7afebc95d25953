"""Look at the MPI libraries of a node and at what they are told."""

import re
from typing import Iterator, Optional, Tuple, Union

from .. import jobs_environment, rails, settings_file
from ..change import Unknown
from ..devices import Devices
from ..host import Reader, sha256
from . import files
from .seen import Install, MpiSeen
from .want import MpiWant

_TRIPLETS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
_UCX_FOLDERS = (*_TRIPLETS, "/usr/lib64", "/usr/local/lib", "/opt/hpcx/ucx/lib")
# (where the library lies, where its parameter files lie): Debian and Ubuntu, HPC-X.
_PLACES: Tuple[Tuple[str, str], ...] = (
    *((folder, "/etc/openmpi") for folder in _TRIPLETS),
    ("/opt/hpcx/ompi/lib", "/opt/hpcx/ompi/etc"),
)
VENDOR = "/usr/mpi/gcc"
EL = "/usr/lib64/openmpi/lib"
_EL_FOLDERS = ("/etc/openmpi-x86_64", "/etc/openmpi-aarch64")  # the package brings the one of its machine
# libmpi.so.40.N: N is 20 and 21 for Open MPI 4.0, 30 for 4.1, 40 for 5.0 (their VERSION files, libmpi_so_version).
_FOUR, _FIVE = 20, 40


def gather(host: Reader, devices: Devices, want: MpiWant) -> MpiSeen:
    """Everything that the plan decides by."""
    found, ucx = tuple(installs(host)), _ucx(host)
    program = host.read_bytes(files.PROGRAM)
    interfaces = host.names("/sys/class/net")
    paths = files.paths(found, ucx=ucx is not None)
    return MpiSeen(
        installs=found,
        ucx=ucx,
        files={path: settings_file.read(host, path) for path in paths},
        program=sha256(program) if isinstance(program, bytes) else program,
        ports=rails.gather(host, devices, want.rails),
        device_ports=rails.device_ports(host, devices),
        interfaces=interfaces if isinstance(interfaces, tuple) else (),
        jobs=jobs_environment.gather(host),
    )


def installs(host: Reader) -> Iterator[Install]:
    """Every Open MPI in the places where packages put it."""
    vendor = host.names(VENDOR)
    own = [f"{VENDOR}/{name}" for name in (vendor if isinstance(vendor, tuple) else ()) if name.startswith("openmpi")]
    el = next(filter(host.exists, _EL_FOLDERS), _EL_FOLDERS[0])
    for library, folder in (*_PLACES, (EL, el), *((f"{base}/lib64", f"{base}/etc") for base in own)):
        major = _major(host, library)
        if major is not None:
            yield Install(folder, major)


def _major(host: Reader, folder: str) -> Union[int, Unknown, None]:
    names = host.names(folder)
    there = [name for name in names if name.startswith("libmpi.so.40")] if isinstance(names, tuple) else []
    if not there:
        return None
    numbers = [int(match[1]) for match in (re.match(r"libmpi\.so\.40\.(\d+)\.", name) for name in there) if match]
    if not numbers or max(numbers) < _FOUR:
        return Unknown(f"{folder}/{there[0]} does not tell a release that gpufab knows")
    return 5 if max(numbers) >= _FIVE else 4


def _ucx(host: Reader) -> Optional[str]:
    return next((f"{folder}/libucp.so.0" for folder in _UCX_FOLDERS if host.exists(f"{folder}/libucp.so.0")), None)
