"""The strings of a spec. Each may end up in a path, a template or on a command line: each says what it may contain."""

import ipaddress
import re
from typing import Annotated

from pydantic import AfterValidator

from gpufab_cli.module_utils.schema import Pattern
from gpufab_cli.spec import ranges

Name = Annotated[
    str,
    Pattern(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?", "a name of lower-case letters, digits and dashes, 40 at most"),
]
LoginName = Annotated[str, Pattern(r"[A-Za-z_][A-Za-z0-9_.@-]{0,63}", "a login name")]
AbsolutePath = Annotated[str, Pattern(r"/[A-Za-z0-9._/+-]{1,254}", "an absolute path of plain characters")]
FilePath = Annotated[str, Pattern(r"[A-Za-z0-9._/][A-Za-z0-9._/+-]{0,254}", "a path of plain characters")]
SerialNumber = Annotated[str, Pattern(r"[A-Za-z0-9._:/+-]{1,64}", "a serial number of plain characters")]
Guid = Annotated[str, Pattern(r"[0-9a-f]{4}(?::[0-9a-f]{4}){3}", "a GUID such as a088:c203:0012:34c6")]
OneLine = Annotated[
    str, Pattern(r"[^\x00-\x1f\x7f-\x9f\u2028\u2029]{1,200}", "one line of text, 200 characters at most")
]
PciPattern = Annotated[
    str, Pattern(r"[0-9a-f:.*?\[\]!-]{1,40}", "a PCI address with wildcards, such as *.1 or 0000:1?:00.0")
]

NAME_LENGTH = 253  # of a whole host name (RFC 1035, section 2.3.4, less length octets)

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")

# Names that Ansible gives a meaning of its own, and the groups that render makes (the insync_ and profile_ groups hold
# an underscore, which no host name does).
RESERVED = frozenset(
    {
        "all",
        "dvfs",
        "firmware",
        "gpufab",
        "kernel",
        "limits",
        "links",
        "localhost",
        "mpi",
        "nccl",
        "node",
        "numa",
        "ofed",
        "roce",
        "sriov",
        "ungrouped",
    }
)


def check_host_name(name: str) -> str:
    """Return the name.

    Raises:
        ValueError: it is no host name, or has a meaning of its own in the inventory.
    """
    if len(name) > NAME_LENGTH or not _HOST_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a host name")
    if name.lower() in RESERVED:
        raise ValueError(f"host name {name!r} is reserved for the inventory")
    return name


def check_address(address: str) -> str:
    """Return the address.

    Raises:
        ValueError: it is neither an IP address nor a host name.
    """
    if re.fullmatch(r"[0-9.]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*", address):
        ipaddress.ip_address(address)
    elif len(address) > NAME_LENGTH or not _HOST_NAME.fullmatch(address):
        raise ValueError(f"{address!r} is neither an IP address nor a host name")
    return address


def _host_range(pattern: str) -> str:
    for name in ranges.expand(pattern):
        check_host_name(name)
    return pattern


def _address_range(pattern: str) -> str:
    for address in ranges.expand(pattern):
        check_address(address)
    return pattern


HostName = Annotated[str, AfterValidator(check_host_name)]
HostRange = Annotated[str, AfterValidator(_host_range)]
AddressRange = Annotated[str, AfterValidator(_address_range)]
RailName = Annotated[str, Pattern(r"[a-z0-9][a-z0-9-]{0,39}/[0-9]{1,2}", "a rail such as compute/3")]
