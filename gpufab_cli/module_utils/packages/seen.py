"""What is found of a set of packages on one node."""

from dataclasses import dataclass, field
from typing import Dict, Optional, Tuple, Union

from ..change import Absent, Unknown
from .platforms import Platform

Text = Union[str, Absent, Unknown]


@dataclass(frozen=True)
class Package:
    """A package that is there: its version, whether it is held at it, and whether it is wholly installed."""

    version: str
    held: bool = False
    whole: bool = True


@dataclass(frozen=True)
class Database:
    """The package database.

    Attributes:
        packages: of those that are there, half done or not, those that matter to the set.
        broken: packages that are half installed or not configured, whichever they are, and how; dpkg's own journal.
        holder: the program that has the database locked; "" if none has.
        foreign: packages that somebody else has locked at a version (dnf's versionlock).
    """

    packages: Dict[str, Package] = field(default_factory=dict)
    broken: Dict[str, str] = field(default_factory=dict)
    holder: str = ""
    foreign: Dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KernelState:
    """What decides whether modules can be built for the kernel that will run.

    Attributes:
        running: the release that runs.
        next_boot: the release that the next boot takes; ABSENT where /boot holds none, as on nodes booted by network.
        headers: whether its exact headers are there.
        secure_boot: whether the firmware takes signed code only.
        signing_key: whether the firmware knows the key that DKMS signs with.
    """

    running: str
    next_boot: Union[str, Absent, Unknown]
    headers: bool
    secure_boot: Union[bool, Unknown] = False
    signing_key: Union[bool, Unknown] = False


@dataclass(frozen=True)
class Module:
    """The mlx5_core that runs, and the one that is installed for the running kernel, by srcversion (modinfo(8)).

    Attributes:
        loaded: ABSENT where there are NICs for it and none is loaded; "" where one is that does not tell, unlike the
            installed one.
        path: where the installed one lies; "" where there is none.
    """

    loaded: Text
    installed: Text
    path: str = ""


@dataclass(frozen=True)
class PackagesSeen:
    """Everything that a plan for a set looks at. ``files`` are gpufab's own, by path.

    Attributes:
        available: versions that the sources offer of roots that are not there as wanted, newest first, as far as is
            known here.
        vfs: whether some of the vendor's NICs have VFs, which go with the driver.
        built: of each DKMS module of the set whether it is built for the running kernel.
        reloads: whether openibd is there to load the drivers anew.
        burns: whether it burns firmware each time it does, or cannot be told not to.
        locks_work: whether versions can be pinned: dnf needs a plugin for that.
        bundled: NCCL libraries that frameworks bring with them.
    """

    platform: Union[Platform, Absent, Unknown]
    files: Dict[str, Text] = field(default_factory=dict)
    database: Union[Database, Unknown] = field(default_factory=Database)
    available: Union[Dict[str, Tuple[str, ...]], Unknown] = field(default_factory=dict)
    free_bytes: Union[int, Unknown] = 0
    kernel: Optional[KernelState] = None
    built: Dict[str, bool] = field(default_factory=dict)
    module: Optional[Module] = None
    vfs: bool = False
    reloads: bool = False
    burns: bool = False
    locks_work: bool = True
    bundled: Tuple[str, ...] = ()
