"""The order of units, as systemd-analyze dot --order prints it."""

from gpufab_cli.module_utils import units
from tests.fakes import FakeHost, ok

ORDERS = ("systemd-analyze", "dot", "--order")
PRINTED = """\
digraph systemd {
\t"shutdown.target"->"gpufab-restore@early.service" [color="green"];
\t"gpufab-restore@late.service"->"gpufab-restore@early.service" [color="green"];
\t"gpufab-restore@late.service"->"system-gpufab\\x2drestore.slice" [color="green"];
\t"a.service"->"b.service" [color="grey66"];
}
"""


def test_only_orders_are_taken_and_names_stay_as_they_are():
    found = units.after(FakeHost({}, answers={ORDERS: ok(PRINTED)}))
    assert found == {
        "shutdown.target": ("gpufab-restore@early.service",),
        "gpufab-restore@late.service": ("gpufab-restore@early.service", "system-gpufab\\x2drestore.slice"),
    }
