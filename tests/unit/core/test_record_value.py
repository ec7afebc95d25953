"""What the record says of a value that cannot be read back."""

import pytest

from gpufab_cli.module_utils import record
from gpufab_cli.module_utils.change import ABSENT, Change, Impact, Pending, Unknown
from gpufab_cli.module_utils.record import Entry
from tests.fakes import FakeHost

PATH = ("0000:1b:00.0", "graphics_mhz")
SET = Entry(PATH, (1200, 1980), "boot-1", load="7")


@pytest.mark.parametrize(
    ("found", "boot", "load", "value"),
    [
        ((SET,), "boot-1", "7", (1200, 1980)),
        ((SET,), "boot-2", "7", ABSENT),
        ((SET,), "boot-1", "8", ABSENT),
        ((Entry(("other",), 1, "boot-1"),), "boot-1", "7", ABSENT),
        ((Entry(PATH, (1200, 1980), "boot-1", pending=True, load="7"),), "boot-1", "7", ABSENT),
        ((), "boot-1", "7", ABSENT),
        (ABSENT, "boot-1", "7", ABSENT),
        (Unknown("damaged"), "boot-1", "7", Unknown("damaged")),
    ],
)
def test_it_is_what_was_set_as_long_as_nothing_has_forgotten_it(found, boot, load, value):
    assert record.value(found, PATH, boot, load) == value


def test_what_is_made_is_noted_with_its_load_and_read_again():
    host = FakeHost()
    record.note(host, "dvfs", "boot-1", [Change(PATH, ABSENT, (1200, 1980), "x", load="7")], [])
    assert record.read(host, "dvfs") == (SET,)
    waiting = Pending(("0000:1b:00.0", "ecc"), True, False, Impact.GPU_RESET, "x")
    record.note(host, "dvfs", "boot-2", [], [waiting])
    assert record.value(record.read(host, "dvfs"), PATH, "boot-1", "7") == (1200, 1980)


def test_an_undone_value_takes_the_place_of_the_one_before():
    made = record.with_made((SET,), [Change(PATH, (1200, 1980), (), "x", load="7")], "boot-1")
    assert record.value(made, PATH, "boot-1", "7") == ()
