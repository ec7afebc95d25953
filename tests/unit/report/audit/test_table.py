"""The report for people."""

import io

from rich.console import Console

from gpufab_cli.audit.judge import HostReport, Kind, Place, Row
from gpufab_cli.report.audit.table import show_rows


def test_a_node_s_own_words_reach_no_terminal_as_commands_and_break_no_encoding():
    strange = "ens1 is \x1b[2J\udcff\u202eup"
    row = Row(Kind.FINDING, "roce.link", "roce", Place("0000:18:00.0", "compute/0"), reason=strange)
    drift = Row(
        Kind.DRIFT, "roce.rdma-cm", "roce", Place("0000:18:00.0", "compute/0", "rdma_cm_mode"), strange, "RoCE v2"
    )
    stream = io.StringIO()
    show_rows({"gpu01": HostReport("gpu01", (row, drift))}, Console(file=stream, width=200))
    shown = stream.getvalue()
    assert "ens1 is ?[2J??up" in shown
    assert shown.encode("utf-8", "strict")
    assert "\x1b" not in shown


def test_what_a_user_has_written_without_an_end_is_cut():
    row = Row(Kind.FINDING, "nccl.gid", "nccl_env", Place(name="~ada/.nccl.conf"), reason="x" * 100_000)
    stream = io.StringIO()
    show_rows({"gpu01": HostReport("gpu01", (row,))}, Console(file=stream, width=200))
    assert len(stream.getvalue()) < 5000
    assert "x…" in stream.getvalue()
