"""What gpufab keeps on a node so that all of it is there after a reboot."""

import re

import pytest

from gpufab_cli.verify import parsers
from gpufab_cli.verify.compare import compare, settled
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, Section, UnreadableError

pytestmark = pytest.mark.wishes("node")
USAGE = "2"  # what the restore program exits with when it is not told what to do
NO_VERIFY = "Unknown command verb"
BOTH = 2  # early and late
# systemd(1): what a unit can be.
STATES = {"active", "reloading", "inactive", "failed", "activating", "deactivating", "maintenance", "refreshing"}


def asked(reading: Reading, name: str, tool: str) -> Section:
    """What a program said, however it ended: of these the exit status is part of the answer.

    Raises:
        UnreadableError: it is not there or gave no answer in time.
    """
    section = reading.section(name)
    if section.code == "hung" or not section.there:
        section.require(tool)
    return section


def test_program(reading: Reading) -> None:
    """The restore program is there and runs."""
    section = asked(reading, "program", "/usr/local/lib/gpufab/python")
    compare(section.code == USAGE, f"exit {section.code}, not {USAGE}: {last_line(section.text)}")
    compare("usage: collect" in section.text, f"says {last_line(section.text)!r}, not how it is used")


def test_access(reading: Reading) -> None:
    """Users reach what is written for them, whatever umask root has."""
    lines = re.finditer(r"^([-a-zA-Z]{10}) (/.+)$", reading.section("access").require("stat"), re.MULTILINE)
    found = {line[2]: line[1] for line in lines}
    if not any(path.endswith("/gpufab.pyz") for path in found):
        raise UnreadableError("stat: shows no mode of the restore program")
    closed = [f"{path} is {mode}" for path, mode in found.items() if not open_to_all(path, mode)]
    compare(not closed, f"users do not reach what they need: {', '.join(closed)}")


def open_to_all(path: str, mode: str) -> bool:
    """Whether others may search a folder, read a file, and run a program; ``mode`` as ``ls -l`` shows it."""
    runs = path.endswith((".sh", "/gpufab-bind"))
    return mode[9:10] in ("x", "t") if mode.startswith("d") else mode[7:8] == "r" and (mode[9:10] == "x" or not runs)


def test_units(reading: Reading) -> None:
    """The units are there and systemd understands them."""
    files = reading.section("unit-files")
    compare(files.code != "absent", "not all restore units are there")
    if "[Unit]" not in files.words("unit files"):
        raise UnreadableError("unit files: cut short or garbled")
    section = asked(reading, "units", "systemd-analyze verify")
    complaints = [line for line in section.text.splitlines() if "gpufab-restore" in line]
    compare(not complaints, "".join(complaints[:1]))
    section.require("systemd-analyze verify")


def test_enabled(reading: Reading) -> None:
    """The units start at boot."""
    states = asked(reading, "enabled", "systemctl").text.split()
    compare(states == ["enabled", "enabled"], f"early and late are {' and '.join(states) or 'unknown to systemd'}")


def test_restored(reading: Reading) -> None:
    """The last restore did not fail."""
    states = asked(reading, "ended", "systemctl").text.split()
    if len(states) != BOTH or not set(states) <= STATES:
        raise UnreadableError(f"systemctl is-failed: {' '.join(states) or 'printed nothing'}")
    compare("failed" not in states, f"early and late are {' and '.join(states)}")


def test_order(reading: Reading, node: Node) -> None:
    """systemd has read how long the restore waits for ports, and that the network and job services wait for it."""
    text = reading.section("order").require("systemctl show")
    fields = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if not {"Before", "Environment"} <= fields.keys():
        raise UnreadableError("systemctl show: does not tell the order of the early restore")
    wish = node.wishes["node"]
    wait = f"GPUFAB_WAIT_S={wish['wait_s']}"
    compare(wait in fields["Environment"].split(), f"it has {fields['Environment'] or 'no variable'}, wanted {wait}")
    wanted = ["network-pre.target", *(f"{service}.service" for service in wish.get("services", ()))]
    early = [unit for unit in wanted if unit not in fields["Before"].split()]
    compare(not early, f"these do not wait for the restore at boot: {', '.join(early)}")


def test_python(reading: Reading, node: Node) -> None:
    """What starts at boot is run by the Python that the site names."""
    section = reading.section("python")
    compare(section.code != "1", f"/usr/local/lib/gpufab/python: {last_line(section.text)}")
    found, wanted = section.require("readlink").strip(), node.wishes["node"]["python"]
    compare(found == wanted, f"the link leads to {found}, wanted {wanted}")


def test_rule(reading: Reading) -> None:
    """udev understands the rule. Where udevadm cannot tell (before systemd 254), the grammar of udev(7) must do."""
    rule = reading.section("rule")
    compare(rule.code != "absent", "the udev rule is not there")
    text = rule.require("the udev rule")
    faults = list(parsers.udev_faults(text))
    compare(not faults, "".join(faults[:1]))
    compare("gpufab-restore-device@" in text, "the rule starts no restore")
    section = reading.section("rule-verified")
    if section.code != "absent" and NO_VERIFY not in section.text:
        compare(section.code != "1", f"udevadm verify: {last_line(section.text)}")
        section.require("udevadm verify")


def test_complete(reading: Reading, unchecked: list[str]) -> None:  # noqa: ARG001 (of a node that was reached)
    """Of every feature that is wanted some check says something."""
    if unchecked:
        raise UnreadableError(f"not verified: {', '.join(unchecked)}")
    settled("of every wanted feature there is a check")


def test_desired(reading: Reading, node: Node) -> None:
    """The node keeps the wishes that fabric.yml makes, and no others."""
    if not reading.is_root:
        raise UnreadableError("only root may read /etc/gpufab/desired.d")
    wanted = {f"{feature}.json": wish for feature, wish in node.kept.items()}
    names = reading.names("desired/")
    words = f"it keeps {', '.join(names) or 'none'}, wanted {', '.join(wanted) or 'none'}"
    compare(set(names) == set(wanted), words)
    for name, wish in wanted.items():
        kept = loaded(name, reading.section(f"desired/{name}").require(name))
        compare(kept.get("want") == wish, f"{name} is not what fabric.yml says")


def loaded(name: str, text: str) -> dict[str, object]:
    """A wish file's content; a damaged one fails the test."""
    try:
        data = parsers.parse_json(text)
    except ValueError as error:
        raise AssertionError(f"{name}: {error}") from error
    compare(isinstance(data, dict), f"{name}: not a mapping")
    return dict(data)


def last_line(text: str) -> str:
    """The last line of what a program said."""
    return (text.strip().splitlines() or ["nothing"])[-1]
