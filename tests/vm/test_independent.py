"""One port that cannot be set: the other is, and the one is named."""

import pytest

from tests.vm.ports_of import PCI, lossless

pytestmark = pytest.mark.vm


def test_a_port_that_fails_leaves_the_other_restored(applied, sh):
    """The first port fails, as ports are restored in the order of their addresses."""
    sh("dcb pfc set dev rail0 prio-pfc 3:off; dcb pfc set dev rail1 prio-pfc 3:off")
    sh(FAIL.format(pci=PCI[0]))
    assert [lossless(sh, port) for port in ("rail0", "rail1")] == [False, False]
    sh("systemctl start gpufab-restore@late || :")
    assert [lossless(sh, port) for port in ("rail0", "rail1")] == [False, True]
    said = sh("journalctl -b --no-pager -o cat -u gpufab-restore@late")
    assert PCI[0] in said or "rail0" in said, said
    assert "gpufab-restore@late.service" in sh("systemctl --failed --no-legend --plain")


FAIL = "echo 5 >/sys/kernel/debug/gpufab_dcb/{pci}/setpfc/fail"
