"""mlxconfig and mstconfig, one program in two packages (MFT, mstflint); likewise mlxfwreset and mstfwreset."""

from typing import Dict, Iterable, Optional, Union

from ..change import ABSENT, Unknown
from ..host import SEARCH_PATH, Host, HostError, Output, Reader
from .seen import Parameter, Parameters
from .table import argument, parse

TOOLS = ("mlxconfig", "mstconfig")
RESETS = ("mlxfwreset", "mstfwreset")
RESET_SECONDS = 300.0
"""A reset takes the driver away, restarts firmware and PCI link and brings the driver back: a minute, rarely more."""
LOCKDOWN = "/sys/kernel/security/lockdown"


def _tool(host: Reader, names: Iterable[str]) -> Optional[str]:
    folders = SEARCH_PATH.split(":")
    return next((name for name in names if any(host.exists(f"{folder}/{name}") for folder in folders)), None)


def read(host: Reader, pci: str, names: Iterable[str]) -> Union[Parameters, Unknown]:
    """The named parameters of a card; elements of arrays are asked for one by one."""
    tool = _tool(host, TOOLS)
    if tool is None:
        return Unknown("neither mlxconfig (MFT) nor mstconfig (mstflint) is installed")
    table = _query(host, tool, pci)
    if isinstance(table, Unknown):
        return table
    found: Parameters = {}
    for name in names:
        array = "[" in name and name.partition("[")[0] in table
        rows = _query(host, tool, pci, name) if array else table
        found[name] = rows.get(name, ABSENT) if isinstance(rows, dict) else Parameter(rows, rows, rows)
    return found


def _query(host: Reader, tool: str, pci: str, *names: str) -> Union[Dict[str, Parameter], Unknown]:
    output = host.query(tool, "-d", pci, "-e", "q", *names)
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"{tool}: {_said(output)}{_lockdown(host)}")
    table = parse(output.whole)
    return Unknown(f"{tool}: printed what no known release prints") if table is None else table


def _said(output: Output) -> str:
    """The tool's own complaint: it goes to stdout, behind a header."""
    lines = [line for line in (output.stdout + "\n" + output.stderr).splitlines() if line.startswith("-E-")]
    return lines[0][3:].strip() if lines else output.error


def _lockdown(host: Reader) -> str:
    """Whether the kernel keeps user space off PCI devices; the active mode stands in brackets."""
    text = host.read(LOCKDOWN)
    locked = isinstance(text, str) and text.strip() and "[none]" not in text
    return f" (kernel lockdown: {text})" if locked else ""


def write(host: Host, pci: str, values: Dict[str, str]) -> None:
    """Set parameters for the next boot, in one call: the firmware checks them against one another.

    Raises:
        HostError: the tool refuses; nothing is set then.
    """
    tool = _needed(host, TOOLS)
    host.run(tool, "-d", pci, "-y", "set", *(f"{name}={argument(value)}" for name, value in values.items()))


def reset(host: Host, pci: str) -> None:
    """Restart the card's firmware, driver included.

    Raises:
        HostError: the tool refuses or fails.
    """
    host.run(_needed(host, RESETS), "-d", pci, "--yes", "reset", seconds=RESET_SECONDS)


def _needed(host: Reader, names: Iterable[str]) -> str:
    tool = _tool(host, names)
    if tool is None:
        raise HostError(f"none of {', '.join(names)} is installed")
    return tool
