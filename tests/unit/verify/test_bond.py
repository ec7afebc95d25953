"""The check of a port's bond."""

import pytest

from gpufab_cli.verify.expected import Port
from gpufab_cli.verify.port import PortReading
from gpufab_cli.verify.reading import Reading, Section, UnreadableError
from gpufab_cli.verify.test_roce import test_bond as check

PCI = "0000:18:00.0"
PORT = Port("gpu1", "compute/0", PCI, None, None, None, {}, ("bond0", "802.3ad"))


def look(code, text):
    found = {f"{PCI}/netdevs": Section("", "0", "ens1"), f"{PCI}/bond": Section("", code, text)}
    check(PORT, PortReading(Reading(found), PORT))


def test_as_declared():
    look("0", "bond0\n802.3ad 4\nup")


@pytest.mark.parametrize(
    ("code", "text", "words"),
    [
        ("absent", "", "ens1 is in no bond, wanted in bond0"),
        ("0", "bond1\n802.3ad 4\nup", "ens1 is in bond1"),
        ("0", "bond0\nbalance-rr 0\nup", "bond0 is balance-rr, wanted 802.3ad"),
        ("0", "bond0\n802.3ad 4\ndown", "takes the link of ens1 for down"),
    ],
)
def test_otherwise(code, text, words):
    with pytest.raises(AssertionError, match=words):
        look(code, text)


@pytest.mark.parametrize("text", ["", "bond0", "bond0\n802.3ad 4"])
def test_what_is_no_answer_is_unknown(text):
    with pytest.raises(UnreadableError):
        look("0", text)
