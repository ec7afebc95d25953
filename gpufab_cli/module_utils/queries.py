"""The allow-list of everything gpufab may run on a node to look at it: whole argv patterns, nothing else.

Audit is read-only because of this file: a :class:`~.host.Reader` refuses any command line that matches no row. Each
word is a regular expression that must match the whole argument. A command that can write with other arguments is
listed only in the form that cannot (``dcb … show``, never ``dcb … set``).
"""

import re
from typing import Optional, Sequence, Tuple

NETDEV = r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,14}"
IP = r"[0-9a-fA-F.:]{2,45}"
UNIT = r"[A-Za-z0-9@_.\-]+"
PCI = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"
MEMORY_LIMIT = "--property=Id,LoadState,ActiveState,MainPID,LimitMEMLOCK,LimitMEMLOCKSoft"
WORDS = r"[a-z._]+(?:,[a-z._]+)*"
CSV = "--format=csv,noheader,nounits"
PACKAGE = r"[a-z0-9][a-z0-9+.\-]{0,80}"
# apt.conf(5): with these empty, apt-cache keeps its cache in memory, where it otherwise writes it to disk for root.
NO_CACHE = ("-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=")

ALLOWED: Tuple[Tuple[str, ...], ...] = (
    ("dcb", "-j", "(pfc|ets|app|buffer|dcbx)", "show", "dev", NETDEV),
    ("mlnx_qos", "-a", "-i", NETDEV),
    ("ethtool", "-a", NETDEV),
    ("ethtool", "-S", NETDEV),
    ("devlink", "-j", "dev", "info"),
    ("devlink", "-j", "dev", "eswitch", "show", f"pci/{PCI}"),
    ("dmesg", "--notime"),
    ("ip", "-d", "-j", "link", "show", "dev", NETDEV),
    ("(mlxconfig|mstconfig)", "-d", PCI, "-e", "q"),
    ("(mlxconfig|mstconfig)", "-d", PCI, "-e", "q", r"[A-Z][A-Z0-9_]*\[\d{1,3}\]"),
    ("ip", "-j", "addr", "show"),
    ("ip", "-j", "(-4|-6)", "route", "show", "default"),
    ("ip", "-j", "route", "get", IP),
    ("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader"),
    ("nvidia-smi", "topo", "-m"),
    ("nvidia-smi", f"--query-gpu={WORDS}", CSV),
    ("nvidia-smi", "-i", PCI, f"--query-gpu={WORDS}", CSV),
    ("nvidia-smi", "--query-supported-clocks=gpu_bus_id,memory,graphics", CSV),
    ("nvidia-smi", "-i", PCI, "--query-supported-clocks=gpu_bus_id,memory,graphics", CSV),
    ("systemctl", "show", "--property=Id,LoadState,ActiveState,UnitFileState,Job", UNIT, UNIT, UNIT, UNIT, UNIT),
    ("systemctl", "show", "--property=Id,ActiveState,Result,NeedDaemonReload", UNIT, UNIT),
    ("systemd-analyze", "dot", "--order"),
    ("systemctl", "show", MEMORY_LIMIT, UNIT),
    ("modinfo", "-F", "version", "nvidia"),
    ("nv-fabricmanager", "--version"),
    ("uname", "-m"),
    ("modinfo", "-F", "(filename|srcversion)", r"[a-z0-9_]+"),
    ("mokutil", "--test-key", r"/var/lib/(dkms/mok\.pub|shim-signed/mok/MOK\.der)"),
    ("rpm", "-qa", "--qf", r"%\{NAME\} %\{EPOCHNUM\}:%\{VERSION\}-%\{RELEASE\}\\n"),
    *(("apt-cache", *NO_CACHE, "madison", *([PACKAGE] * count)) for count in range(1, 13)),
)


BATCHES: Tuple[Tuple[Tuple[str, ...], Tuple[str, ...]], ...] = ((("dcb", "-j", "-f", "-b", "-"), ("dcb", "-j")),)
"""Programs that take their commands from stdin, a line each, and how such a command begins when it stands alone."""


def batch(commands: Sequence[Sequence[str]]) -> Optional[Tuple[Tuple[str, ...], str]]:
    """The one program that runs all these commands, and its stdin; None unless each alone is allowed and it can."""
    for argv, start in BATCHES:
        if commands and all(allowed(command) and tuple(command[: len(start)]) == start for command in commands):
            return argv, "".join(" ".join(command[len(start) :]) + "\n" for command in commands)
    return None


def allowed(argv: Sequence[str]) -> bool:
    """Whether the command line, word for word, is one that only looks."""
    return any(
        len(argv) == len(pattern) and all(re.fullmatch(p, word) for p, word in zip(pattern, argv))
        for pattern in ALLOWED
    )
