"""What an RDMA device itself is set to: the forced traffic class and the defaults of RDMA-CM.

``tc/`` comes with the vendor driver only (MLNX_OFED main_ext.c); without it the value is Unknown, never "none".
RDMA-CM: kernel drivers/infiniband/core/cma_configfs.c.
"""

import re
from typing import Optional, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..host import Host, Reader

RDMA_CM = "/sys/kernel/config/rdma_cm"
NO_TC = "no tc/1/traffic_class in sysfs: the driver is not the vendor's"
NO_RDMA_CM = "rdma_cm is not loaded or configfs is not mounted"


def traffic_class_path(rdma: str) -> str:
    """The file of the traffic class that overrides what applications ask for."""
    return f"/sys/class/infiniband/{rdma}/tc/1/traffic_class"


def rdma_cm_path(rdma: str, name: str) -> str:
    """A default of RDMA-CM connections over port 1 of the device."""
    return f"{RDMA_CM}/{rdma}/ports/1/{name}"


def read_traffic_class(host: Reader, rdma: Optional[str]) -> Tuple[Union[int, Absent, Unknown], Tuple[str, ...]]:
    """The global traffic class (ABSENT: none is forced) and the per-address rules beside it."""
    if rdma is None:
        return Unknown("the port has no RDMA device"), ()
    path = traffic_class_path(rdma)
    text = host.read(path)
    if text is ABSENT:
        return Unknown(NO_TC), ()
    if not isinstance(text, str):
        return Unknown(str(text)), ()
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    rules = tuple(line for line in lines if line.startswith(("src_ip=", "dst_ip=")))
    globals_ = [line for line in lines if line not in rules]
    if not globals_:
        return ABSENT, rules
    match = re.fullmatch(r"Global tclass=(\d{1,3})", globals_[0])
    if len(globals_) > 1 or not match:
        return Unknown(f"{path}: {globals_[0]!r} is what no known release prints"), rules
    return int(match.group(1)), rules


def read_rdma_cm(host: Reader, rdma: Optional[str], name: str) -> Union[str, Absent, Unknown]:
    """An RDMA-CM default; ABSENT while nobody has made the device's directory, which reading must not do."""
    if rdma is None:
        return Unknown("the port has no RDMA device")
    if not host.exists(RDMA_CM):
        return Unknown(NO_RDMA_CM)
    return host.read(rdma_cm_path(rdma, name))


def read_rdma_cm_tos(host: Reader, rdma: Optional[str]) -> Union[int, Absent, Unknown]:
    """The default ToS byte of RDMA-CM connections."""
    value = read_rdma_cm(host, rdma, "default_roce_tos")
    return value if value is ABSENT else number(f"{RDMA_CM}/{rdma}: default_roce_tos", value)


def number(path: str, value: Union[str, Absent, Unknown]) -> Union[int, Unknown]:
    """The decimal number that a file holds."""
    if isinstance(value, Unknown):
        return value
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,10}", value):
        return Unknown(f"{path}: {value!r} is not a number")
    return int(value)


def set_traffic_class(host: Host, rdma: str, value: Union[int, Absent]) -> None:
    """Force a traffic class on every queue pair, or stop doing so (-1)."""
    host.set(traffic_class_path(rdma), "-1" if value is ABSENT else str(value))


def set_rdma_cm(host: Host, rdma: str, name: str, value: Union[int, str]) -> None:
    """Set an RDMA-CM default. The device's directory is made and left: without it the value cannot be read."""
    host.make_directory(f"{RDMA_CM}/{rdma}")
    host.set(rdma_cm_path(rdma, name), str(value))
