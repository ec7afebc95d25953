"""What mpirun says of bindings, in the words of Open MPI 4 and 5, and the verdict on it."""

import pytest

from gpufab_cli.launch.bindings import Bound, judge, parse

FOUR = """\
[gpu01:4711] MCW rank 0 bound to socket 0[core 0[hwt 0-1]], socket 0[core 1[hwt 0-1]]: [BB/BB/../..][../../../..]
hello from rank 0
[gpu01:4711] MCW rank 1 bound to socket {0}[core 2[hwt 0-1]], socket {0}[core 3[hwt 0-1]]: {1}
[gpu01:4711] MCW rank 2 is not bound (or bound to all available processors)
"""
LOOSE = "[gpu01:4711] Rank 7 is not bound (or bound to all available processors)\n"
ALONE = "[a:1] MCW rank {} bound to socket 0[core 0]: [B/.]\n"
MAP = """\
 Data for node: gpu07\tNum slots: 2\tMax slots: 0\tNum procs: 2
 \tProcess OMPI jobid: [1,1] App: 0 Process rank: 0 Bound: socket 0[core 0[hwt 0-1]]:[[<BB/../..>][[<../../..>]
 \tProcess OMPI jobid: [1,1] App: 0 Process rank: 1 Bound: socket 0[core 0[hwt 0-1]]:[[<BB/../..>][[<../../..>]
"""


def five(host, *packages, first=0):
    line = "[{}:1838] Rank {} bound to package[{}][core:0-23]\n"
    return "".join(line.format(host, number, package) for number, package in enumerate(packages, first))


def test_open_mpi_4_tells_how_many_packages_there_are():
    assert parse(FOUR.format(1, "[../../../..][BB/BB/../..]")) == (
        Bound("gpu01", 0, (0,), 2),
        Bound("gpu01", 1, (1,), 2),
        Bound("gpu01", 2),
    )
    assert parse(MAP) == (Bound("gpu07", 0, (0,), 2), Bound("gpu07", 1, (0,), 2))


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("[n] Rank 4 bound to package[0][core:L0]", Bound("n", 4, (0,))),
        ("[n:1] MCW rank 3 bound to package[1][hwt:10-19]", Bound("n", 3, (1,))),
        ("[n:1] Rank 3 bound to package[0][core:0-3] package[1][core:4-7]", Bound("n", 3, (0, 1))),
        ("[n:1] Rank 5 is not bound (or bound to all available processors)", Bound("n", 5)),
        ("[n:1] MCW rank 0 bound to socket 0[core 0[hwt 0]]: [B/././.]", Bound("n", 0, (0,), 1)),
        ("[10.0.0.7:12] Rank 1 bound to package[10][core:3]", Bound("10.0.0.7", 1, (10,))),
    ],
)
def test_a_rank_of_either_release(line, wanted):
    assert parse(f"noise\n{line}\n") == (wanted,)


@pytest.mark.parametrize("both", [five("gpu07", 0, 0) + MAP, MAP + five("gpu07", 0, 0)])
def test_two_kinds_of_report_tell_of_a_rank_once(both):
    """--report-bindings and --display-map together; the one tells more than the other."""
    assert parse(both) == parse(MAP)


@pytest.mark.parametrize("text", ["", "rank 0 is bound to fail", "[gpu01:1] Rank x bound to package[0][core:0]"])
def test_what_is_no_report_tells_of_no_rank(text):
    assert parse(text) == ()


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        # report 48: Open MPI 5 and -N, all on the first package; another node's rank tells that there is a second
        (five("a", 0, 0) + five("b", 0, 1, first=2), "fail", "all 2 ranks are on package 0 of 2"),
        (five("a", *[0] * 8), "unknown", "all 8 ranks are on package 0; Open MPI 5 does not tell"),
        (five("a", *[1] * 8), "fail", "all 8 ranks are on package 1 of 2"),
        (five("a", 0, 0, 1, 1), "pass", "4 ranks on packages 0, 1"),
        (five("a", 0), "pass", "1 ranks on package 0"),  # one rank is somewhere
        (MAP, "fail", "all 2 ranks are on package 0 of 2"),
        (LOOSE + LOOSE.replace("Rank 7", "Rank 8"), "pass", "2 ranks are not bound by mpirun"),
        # one that is not bound says nothing for the others
        (FOUR.format(0, "[../../BB/BB][../../../..]"), "fail", "2 ranks are on package 0 of 2"),
        (FOUR.format(1, "[../../../..][BB/BB/../..]"), "pass", "2 ranks on packages 0, 1; 1 are not bound"),
        (five("gpu01", 0) + LOOSE + LOOSE.replace("Rank 7", "Rank 8"), "pass", "1 ranks on package 0; 2 are not bound"),
        (five("gpu01", 0, 0) + LOOSE, "unknown", "2 ranks are on package 0; Open MPI 5 does not tell"),
        (ALONE.format(0) + ALONE.format(1), "pass", "2 ranks on package 0"),  # there is one
    ],
)
def test_report_48_all_ranks_of_a_node_on_one_package_of_several(text, status, words):
    verdict = judge(parse(text))[0]
    assert verdict.status == status
    assert verdict.words.startswith(words)


@pytest.mark.parametrize(("packages", "status"), [(2, "fail"), (1, "pass"), (None, "unknown")])
def test_how_many_packages_a_node_has_may_be_said(packages, status):
    assert judge(parse(five("node-2", *[0] * 8, first=8)), packages)[0].status == status


def test_each_node_has_its_own_verdict():
    assert [(v.host, v.status) for v in judge(parse(five("b", 0, 1) + five("a", 0, 0, first=2)))] == [
        ("b", "pass"),
        ("a", "fail"),
    ]
