"""What is found on one node of NCCL's settings."""

from dataclasses import dataclass, field
from typing import Dict, Optional, Tuple, Union

from ..change import Absent, Unknown
from ..jobs_environment import Job
from ..rails import RailSeen


@dataclass(frozen=True)
class OtherFile:
    """A settings file that is not gpufab's to write: what it sets, and the lines that NCCL does not take as meant.

    ``cut`` says what of it is not kept; "" where all is.
    """

    values: Dict[str, str]
    bad_lines: Tuple[str, ...] = ()
    cut: str = ""


@dataclass(frozen=True)
class NcclEnvSeen:
    """Files by path; text of those that gpufab writes."""

    files: Dict[str, Union[str, Absent, Unknown]] = field(default_factory=dict)
    homes: Dict[str, Union[OtherFile, Unknown]] = field(default_factory=dict)
    """The ~/.nccl.conf of root and of users, those that are there."""
    unread_homes: Optional[str] = None
    """Why homes could not be looked into, where they could not."""
    libraries: Tuple[str, ...] = ()
    """The releases of the NCCL libraries in the system's folders."""
    ports: Dict[str, RailSeen] = field(default_factory=dict)
    device_ports: Dict[str, Tuple[str, ...]] = field(default_factory=dict)
    """The ports of each RDMA device, by its name."""
    interfaces: Tuple[str, ...] = ()
    """Every network interface there is."""
    jobs: Union[Tuple[Job, ...], Unknown] = ()
    strangers: Tuple[Tuple[str, Tuple[str, ...]], ...] = ()
    """(who names a topology file, the addresses of GPUs and NICs in it that this node has not)."""
    missing: Tuple[Tuple[str, str], ...] = ()
    """(who names it, path) of files that NCCL is told to read and that are not there."""
