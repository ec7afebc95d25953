"""The lock: what it holds comes back as it was, and no device is in two places."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufab_cli.spec import source
from gpufab_cli.spec.load import validate
from gpufab_cli.spec.lock import Lock, LockedHost, LockedPort, dump, load_lock
from tests.fabrics import lock, text_refusals


def loaded(text):
    return validate(source.parse(text, "fabric.lock.yml"), Lock)


def test_a_lock_survives_its_file():
    assert loaded(dump(lock())) == lock()


@given(
    st.from_regex(r"[A-Za-z0-9._:/+-]{1,64}", fullmatch=True),
    st.from_regex(r"[a-z0-9]([a-z0-9-]{0,10}[a-z0-9])?", fullmatch=True),
)
def test_serial_numbers_and_host_names_of_any_kind_survive(serial, name):
    if name in ("all", "node", "roce"):
        return
    given_lock = Lock(hosts={name: LockedHost(ports={"compute/0": LockedPort(pci="0000:68:00.0", serial=serial)})})
    assert loaded(dump(given_lock)) == given_lock


def test_hosts_are_in_order_whatever_the_order_of_locking():
    backwards = Lock(hosts=dict(reversed(lock().hosts.items())))
    assert dump(backwards) == dump(lock())


def test_no_lock_is_an_empty_lock(tmp_path):
    assert load_lock(tmp_path / "fabric.yml") == Lock()


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "02:00:00:00:02:00",
            "02:00:00:00:01:00",
            "hosts.gpu02.ports.compute/0.mac: 02:00:00:00:01:00 is already gpu01",
        ),
        (
            "'0000:28:00.0', mac: '02:00:00:00:02",
            "'0000:18:00.0', mac: '02:00:00:00:02",
            "hosts.gpu02.ports.compute/1.pci",
        ),
        ("02:00:00:00:02:00", "02:00:00:00:02:0G", "is not a MAC address in lower case"),
        (
            "compute/0: {pci: '0000:18:00.0', mac: '02:00:00:00:01",
            "c: {pci: '0000:18:00.0', mac: '02:00:00:00:01",
            "rail",
        ),
        ("'0000:18:00.0', mac: '02:00:00:00:03", "'18:00.0', mac: '02:00:00:00:03", "is not a PCI address"),
        ("serial: SN10", "serial: 10", "10 is read as a number, text is wanted"),
        ("serial: SN10", "seril: SN10", "unknown key"),
    ],
)
def test_a_wrong_lock_is_refused(old, new, told):
    text = dump(lock())
    assert text.count(old) == 1
    found = text_refusals(text.replace(old, new), Lock)
    assert len(found) == 1, found
    assert told in found[0]
