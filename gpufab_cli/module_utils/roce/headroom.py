"""How many bytes a lossless receive buffer must hold so that nothing is lost between a pause and its effect.

Kernel: calculate_xoff and port_set_buffer in drivers/net/ethernet/mellanox/mlx5/core/en/port_buffer.c.
"""

from typing import Iterable, List, Sequence, Tuple

SLOWEST_GBPS = 40
"""The driver computes with at least this speed."""
CELL_BYTES = 128
LEAST_FRAME = 9216
"""The frame that the driver provides for, whatever smaller MTU the port has."""


def xoff(cable_m: int, speed_gbps: int, mtu: int) -> int:
    """Bytes that still arrive once a pause is sent, rounded up.

    Args:
        cable_m: cable length in metres.
        speed_gbps: link speed in Gb/s.
        mtu: MTU of the port in bytes.
    """
    # (301 + 2.16 m) ns · Gb/s + 2.72 · MTU, in hundredths so that no rounding of floats decides.
    hundredths = (30100 + 216 * cable_m) * max(speed_gbps, SLOWEST_GBPS) + 272 * mtu
    return -(-hundredths // 100)


def least_buffer(cable_m: int, speed_gbps: int, mtu: int) -> int:
    """The least size in bytes of a lossless buffer: headroom, one frame and one cell."""
    return xoff(cable_m, speed_gbps, mtu) + max(mtu, LEAST_FRAME) + CELL_BYTES


def too_small(
    sizes: Sequence[int], prio_buffer: Sequence[int], lossless: Iterable[int], least: int
) -> Tuple[Tuple[int, int], ...]:
    """The (buffer, size) pairs that a lossless priority uses and that hold less than ``least`` bytes."""
    used: List[int] = sorted({prio_buffer[priority] for priority in lossless})
    return tuple((buffer, sizes[buffer]) for buffer in used if sizes[buffer] < least)
