"""What gpufab keeps on a node so that all of it is there after a reboot."""

import json

import pytest

from gpufab_cli.verify import parsers
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, UnreadableError

pytestmark = pytest.mark.wishes("node")
USAGE = "2"  # what the restore program exits with when it is not told what to do
NO_VERIFY = "Unknown command verb"


def test_program(reading: Reading) -> None:
    """The restore program is there and runs."""
    section = reading.section("program")
    if section.code in ("absent", "hung"):
        section.require("/usr/local/lib/gpufab/python")
    assert section.code == USAGE, f"exit {section.code}, not {USAGE}: {last_line(section.text)}"
    assert "usage: collect" in section.text, f"says {last_line(section.text)!r}, not how it is used"


def test_units(reading: Reading) -> None:
    """The units are there and systemd understands them."""
    assert reading.section("unit-files").code == "0", "not all restore units are there"
    section = reading.section("units")
    if section.code in ("absent", "hung"):
        section.require("systemd-analyze verify")
    complaints = [line for line in section.text.splitlines() if "gpufab-restore" in line]
    assert not complaints, complaints[0]
    section.require("systemd-analyze verify")


def test_enabled(reading: Reading) -> None:
    """The units start at boot."""
    section = reading.section("enabled")
    if section.code in ("absent", "hung"):
        section.require("systemctl")
    states = section.text.split()
    assert states == ["enabled", "enabled"], f"early and late are {' and '.join(states) or 'unknown to systemd'}"


def test_restored(reading: Reading) -> None:
    """The last restore did not fail."""
    section = reading.section("ended")
    if section.code in ("absent", "hung"):
        section.require("systemctl")
    assert "failed" not in section.text.split(), f"early and late are {' and '.join(section.text.split())}"


def test_rule(reading: Reading) -> None:
    """udev understands the rule. Where udevadm cannot tell (before systemd 254), the grammar of udev(7) must do."""
    rule = reading.section("rule")
    assert rule.code != "absent", "the udev rule is not there"
    text = rule.require("the udev rule")
    faults = list(parsers.udev_faults(text))
    assert not faults, faults[0]
    assert "gpufab-restore-device@" in text, "the rule starts no restore"
    section = reading.section("rule-verified")
    if section.code != "absent" and NO_VERIFY not in section.text:
        assert section.code != "1", f"udevadm verify: {last_line(section.text)}"
        section.require("udevadm verify")


def test_complete(reading: Reading, unchecked: list[str]) -> None:  # noqa: ARG001 (of a node that was reached)
    """Of every feature that is wanted some check says something."""
    if unchecked:
        raise UnreadableError(f"not verified: {', '.join(unchecked)}")


def test_desired(reading: Reading, node: Node) -> None:
    """The node keeps the wishes that fabric.yml makes, and no others."""
    if not reading.is_root:
        raise UnreadableError("only root may read /etc/gpufab/desired.d")
    wanted = {f"{feature}.json": wish for feature, wish in node.kept.items()}
    names = reading.names("desired/")
    assert set(names) == set(wanted), f"it keeps {', '.join(names) or 'none'}, wanted {', '.join(wanted) or 'none'}"
    for name, wish in wanted.items():
        kept = loaded(name, reading.section(f"desired/{name}").require(name))
        assert kept.get("want") == wish, f"{name} is not what fabric.yml says"


def loaded(name: str, text: str) -> dict[str, object]:
    """A wish file's content; a damaged one fails the test."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise AssertionError(f"{name}: {error}") from error
    assert isinstance(data, dict), f"{name}: not a mapping"
    return data


def last_line(text: str) -> str:
    """The last line of what a program said."""
    return (text.strip().splitlines() or ["nothing"])[-1]
