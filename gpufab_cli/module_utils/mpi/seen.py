"""What is found of MPI on one node."""

from dataclasses import dataclass, field
from typing import Dict, Optional, Tuple, Union

from ..change import Absent, Unknown
from ..jobs_environment import Job
from ..rails import RailSeen


@dataclass(frozen=True)
class Install:
    """One Open MPI: the folder of its parameter files, and its major release; Unknown where nothing tells it."""

    folder: str
    major: Union[int, Unknown]


@dataclass(frozen=True)
class MpiSeen:
    """Files by path; text of those that gpufab writes, a digest of the program it installs."""

    installs: Tuple[Install, ...] = ()
    ucx: Optional[str] = None
    """Where the UCX library lies; None: there is none."""
    files: Dict[str, Union[str, Absent, Unknown]] = field(default_factory=dict)
    program: Union[str, Absent, Unknown] = ""
    ports: Dict[str, RailSeen] = field(default_factory=dict)
    device_ports: Dict[str, Tuple[str, ...]] = field(default_factory=dict)
    interfaces: Tuple[str, ...] = ()
    jobs: Union[Tuple[Job, ...], Unknown] = ()
