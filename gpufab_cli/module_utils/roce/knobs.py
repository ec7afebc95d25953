"""The DCQCN parameters of a port by their usual names, and where each driver shows them.

Names, units, ranges and defaults: NVIDIA "DCQCN CC parameters". The vendor driver shows them below ``ecn/`` of the
netdev (MLNX_OFED en_sysfs.c), the kernel's own below ``cc_params`` of debugfs (drivers/infiniband/hw/mlx5/cong.c).
"""

from dataclasses import dataclass
from typing import Annotated, Dict, Optional, Tuple

from ..schema import Doc, Range

U32 = 2**32 - 1
Flag = Annotated[int, Range(0, 1)]
Count = Annotated[int, Range(0, U32)]


@dataclass(frozen=True)
class DcqcnWant:
    """DCQCN parameters of the reaction point (RP) and notification point (NP). One that is None is not managed."""

    clamp_tgt_rate: Annotated[
        Optional[Flag], Doc("RP: take the current rate as target at each CNP, also within a cycle (0 or 1).")
    ] = None
    clamp_tgt_rate_after_time_inc: Annotated[
        Optional[Flag], Doc("RP: take the current rate as target at a CNP after an increase by timer (0 or 1).")
    ] = None
    dce_tcp_g: Annotated[
        Optional[Annotated[int, Range(0, 1023)]], Doc("RP: weight of the old alpha, in 1/1024; usually 1019.")
    ] = None
    dce_tcp_rtt: Annotated[
        Optional[Annotated[int, Range(1, 131071)]], Doc("RP: time between updates of alpha, in us; usually 1.")
    ] = None
    initial_alpha_value: Annotated[
        Optional[Annotated[int, Range(1, 1023)]], Doc("RP: alpha at the first CNP, in 1/1024; usually 1023.")
    ] = None
    rate_reduce_monitor_period: Annotated[
        Optional[Count], Doc("RP: least time between two rate reductions, in us; usually 4.")
    ] = None
    rate_to_set_on_first_cnp: Annotated[
        Optional[Count], Doc("RP: rate at the first CNP, in Mb/s; 0 leaves the current rate.")
    ] = None
    rpg_ai_rate: Annotated[Optional[Count], Doc("RP: additive increase, in Mb/s; usually 5.")] = None
    rpg_byte_reset: Annotated[Optional[Count], Doc("RP: bytes between increases, in 64 B; usually 32767.")] = None
    rpg_gd: Annotated[Optional[Annotated[int, Range(10, 11)]], Doc("RP: log2 of the reduction's weight; 11.")] = None
    rpg_hai_rate: Annotated[Optional[Count], Doc("RP: hyper increase, in Mb/s; usually 50.")] = None
    rpg_max_rate: Annotated[Optional[Count], Doc("RP: highest rate of a flow, in Mb/s; 0 is the line rate.")] = None
    rpg_min_dec_fac: Annotated[
        Optional[Annotated[int, Range(0, 100)]], Doc("RP: the most that one CNP reduces a rate to, in percent; 50.")
    ] = None
    rpg_min_rate: Annotated[Optional[Count], Doc("RP: lowest rate of a flow, in Mb/s; usually 1.")] = None
    rpg_threshold: Annotated[Optional[Count], Doc("RP: stages before hyper increase; usually 1.")] = None
    rpg_time_reset: Annotated[Optional[Count], Doc("RP: time between increases, in us; usually 300.")] = None
    min_time_between_cnps: Annotated[
        Optional[Count], Doc("NP: least time between two CNPs of a flow, in us; usually 4.")
    ] = None

    def wanted(self) -> Dict[str, int]:
        """The parameters that are managed, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


NP = ("min_time_between_cnps",)
"""The parameters of the notification point; all others are the reaction point's."""

# Where the kernel's debugfs has another name than the vendor's without its "rpg_" or with "rp_" before it.
_DEBUGFS = {
    "clamp_tgt_rate": "rp_clamp_tgt_rate",
    "clamp_tgt_rate_after_time_inc": "rp_clamp_tgt_rate_ati",
    "min_time_between_cnps": "np_min_time_between_cnps",
}


def vendor_file(knob: str) -> Tuple[str, str]:
    """The side (``roce_np`` or ``roce_rp``) and file of a parameter in the vendor's ``ecn/``."""
    return ("roce_np" if knob in NP else "roce_rp"), knob


def debugfs_file(knob: str) -> str:
    """The file of a parameter in ``cc_params``: rpg_ai_rate is rp_ai_rate, dce_tcp_g is rp_dce_tcp_g."""
    return _DEBUGFS.get(knob) or "rp_" + (knob[len("rpg_") :] if knob.startswith("rpg_") else knob)
