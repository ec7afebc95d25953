"""GID tables and headroom: pure facts."""

import pytest

from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.roce import gids, headroom
from gpufab_cli.module_utils.roce.seen import Gid
from tests.fakes import FakeHost

PORT = "/sys/class/infiniband/rocep24s0/ports/1"
LOCAL = "fe80:0000:0000:0000:0200:00ff:fe00:0001"
MAPPED = "0000:0000:0000:0000:0000:ffff:ac13:003c"
ULA = "fd00:0000:0000:0000:0000:0000:0000:0007"
ZERO = "0000:0000:0000:0000:0000:0000:0000:0000"


def host(rows):
    files = {}
    for index, (text, kind) in rows.items():
        files[f"{PORT}/gids/{index}"] = text + "\n"
        if kind:
            files[f"{PORT}/gid_attrs/types/{index}"] = kind + "\n"
    return FakeHost(files)


def test_rows_in_use_in_the_order_of_their_numbers():
    rows = {
        0: (LOCAL, "IB/RoCE v1"),
        10: (MAPPED, "IB/RoCE v1"),
        11: (MAPPED, "RoCE v2"),
        2: (ULA, "RoCE v2"),
        3: (ZERO, None),
    }
    assert [gid.index for gid in gids.read(host(rows), "rocep24s0")] == [0, 2, 10, 11]


def test_a_bare_link_local_prefix_is_no_gid():
    assert gids.read(host({0: ("fe80:0000:0000:0000:0000:0000:0000:0000", None)}), "rocep24s0") == ()


def test_without_a_device_or_a_table_nothing_is_known():
    assert isinstance(gids.read(FakeHost(), None), Unknown)
    assert isinstance(gids.read(FakeHost(), "rocep24s0"), Unknown)


FIVE = tuple(Gid(i, LOCAL if i < 4 else MAPPED, ("IB/RoCE v1", "RoCE v2")[i % 2]) for i in range(6))


@pytest.mark.parametrize(
    ("table", "address", "index"),
    [
        (FIVE, "172.19.0.60/24", 5),
        (FIVE, "172.19.0.60", 5),
        (FIVE[2:], "172.19.0.61/24", None),
        ((Gid(7, ULA, "RoCE v2"),), "fd00::7/64", 7),
        ((Gid(7, "garbage", "RoCE v2"),), "fd00::7/64", None),
    ],
)
def test_index_by_type_and_address(table, address, index):
    assert gids.index(table, address) == index


def test_routable():
    assert gids.routable(FIVE) == (5,)
    assert gids.routable((Gid(1, LOCAL, "RoCE v2"), Gid(3, "x", "RoCE v2"))) == ()


@pytest.mark.parametrize(
    ("cable", "speed", "mtu", "size"),
    [
        (7, 400, 9000, 150_928),
        (100, 100, 1500, 55_780),
        # Slower links are computed as 40 Gb/s.
        (1, 10, 1500, headroom.xoff(1, 40, 1500)),
    ],
)
def test_headroom(cable, speed, mtu, size):
    assert headroom.xoff(cable, speed, mtu) == size


def test_a_buffer_also_holds_one_frame_and_one_cell():
    assert headroom.least_buffer(7, 400, 9000) == 150_928 + 9216 + 128
    assert headroom.least_buffer(7, 400, 9978) == headroom.xoff(7, 400, 9978) + 9978 + 128


def test_only_buffers_of_lossless_priorities_count():
    sizes, prio_buffer = (10, 200, 50, 0, 0, 0, 0, 0), (0, 0, 0, 1, 2, 0, 0, 0)
    assert headroom.too_small(sizes, prio_buffer, (3,), 100) == ()
    assert headroom.too_small(sizes, prio_buffer, (3, 4), 100) == ((2, 50),)
