"""What an operator reads of a change."""

import pytest

from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.dvfs.seen import CpuSeen
from gpufab_cli.module_utils.dvfs.want import GpuPolicy
from gpufab_cli.module_utils.numa.want import NumaWant
from gpufab_cli.module_utils.roce.seen import PortSeen
from gpufab_cli.report.values import LABELS, difference, value

MAP = tuple((dscp, 3 if dscp == 26 else 6 if dscp == 48 else 0) for dscp in range(64))
IDENTITY = tuple((dscp, dscp >> 3) for dscp in range(64))


def changed(**priorities):
    new = {int(dscp[1:]): priority for dscp, priority in priorities.items()}
    return tuple((dscp, new.get(dscp, priority)) for dscp, priority in MAP)


@pytest.mark.parametrize(
    ("name", "current", "desired", "text"),
    [
        ("pfc", (), (3,), "none → 3"),
        ("pfc", (0, 1, 2, 5), (3,), "0-2,5 → 3"),
        ("pause", (True, False), (False, False), "rx on tx off → rx off tx off"),
        ("trust", "pcp", "dscp", "pcp → dscp"),
        ("traffic_class", ABSENT, 106, "unset → 106"),
        ("traffic_class", 106, ABSENT, "106 → unset"),
        ("cnp_priority", 0, 6, "0 → 6"),
        ("dscp_priority", (), MAP, "all 64 unset → 0, but 26 → 3, 48 → 6"),
        ("dscp_priority", tuple((d, 1) for d in range(64)), MAP, "all 64 1 → 0, but 26 → 3, 48 → 6"),
        ("dscp_priority", changed(d26=4), MAP, "26: 4 → 3"),
        ("dscp_priority", changed(d8=1, d9=1, d26=4), MAP, "8-9: 1 → 0, 26: 4 → 3"),
        ("dscp_priority", MAP[:26] + MAP[27:], MAP, "26: unset → 3"),
        ("dscp_priority", (*MAP[:27], (26, 5), *MAP[27:]), MAP, "26: 3+5 → 3"),
        ("prio_tc", (1, 0, 2, 3, 4, 5, 6, 7), tuple(range(8)), "0: 1 → 0, 1: 0 → 1"),
        ("tc_bw", (0,) * 8, (50, 0, 0, 50, 0, 0, 0, 0), "0,3: 0 → 50"),
        ("tc_tsa", ("vendor",) * 8, ("ets",) * 6 + ("strict", "ets"), "0-5,7: vendor → ets, 6: vendor → strict"),
        ("/etc/x", ABSENT, "sha256:aa", "missing"),
        ("/etc/x", "sha256:bb", "sha256:aa", "differs"),
        ("/etc/link", ABSENT, "/etc/target", "missing"),
        ("/etc/x", "present", ABSENT, "present → absent"),
        ("/etc/x", "one\ntwo", "one\n2", "differs"),
        ("/etc/x", "one\ntwo", ABSENT, "2 lines → absent"),
    ],
)
def test_a_difference(name, current, desired, text):
    assert difference(name, current, desired) == text


@pytest.mark.parametrize(
    ("name", "item", "text"),
    [
        ("pfc", (), "none"),
        ("pfc", (3,), "3"),
        ("cnp_dscp", 0, "0"),
        ("rdma_cm_mode", "", '""'),
        ("pfc", Unknown("no dcb"), "UNKNOWN(no dcb)"),
        ("dscp_priority", MAP, "0, but 26 → 3, 48 → 6"),
        ("dscp_priority", (), "unset"),
        ("dscp_priority", IDENTITY[:8], "0"),
        ("tc_bw", (50, 0, 0, 50, 0, 0, 0, 0), "0,3: 50, 1-2,4-7: 0"),
        ("tc_tsa", ("ets",) * 6 + ("strict", "ets"), "0-5,7: ets, 6: strict"),
        ("/etc/x", ABSENT, "absent"),
    ],
)
def test_a_value(name, item, text):
    assert value(name, item) == text


def test_labels_are_of_settings_that_exist():
    settings = {name for kind in (PortSeen, GpuPolicy, CpuSeen, NumaWant) for name in kind.__dataclass_fields__}
    assert set(LABELS) - {"acs"} <= settings


@pytest.mark.parametrize(
    ("name", "current", "desired", "text"),
    [
        (
            "irq",
            (("64", "0-3"), ("65", "1"), ("66", "7")),
            (("64", "0"), ("65", "1"), ("66", "2")),
            "2 of 3: CPUs 0-3,7 → 0,2",
        ),
        ("irq", Unknown("denied"), (), "UNKNOWN(denied) → none"),
        ("acs", ("SrcValid", "ReqRedir"), ("SrcValid",), "SrcValid+ ReqRedir+ → SrcValid+"),
        ("acs", ("ReqRedir",), (), "ReqRedir+ → all off"),
        ("max_read_request", 512, 4096, "512 bytes → 4096 bytes"),
        ("/etc/gpufab/irqbalance.env", ABSENT, "a\nb", "missing"),
        ("/etc/gpufab/irqbalance.env", "a", "a\nb", "differs"),
    ],
)
def test_interrupts_and_registers(name, current, desired, text):
    assert difference(name, current, desired) == text
