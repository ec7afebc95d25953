"""Every check of the suite, with each part that it reads missing, empty or garbled: none may pass so.

Which parts a check reads is found by letting it read. A check that is added is held to this without a word here.
"""

import importlib
import inspect
import re

import pytest

from gpufab_cli.verify import run as suite
from gpufab_cli.verify.compare import NOTHING, compare, comparing, settled
from gpufab_cli.verify.port import PortReading
from gpufab_cli.verify.reading import Reading, Section, UnreadableError

from . import whole

MODULES = [importlib.import_module(f"gpufab_cli.verify.{path.stem}") for path in sorted(suite.SUITE.glob("test_*.py"))]
CHECKS = {
    name: check
    for module in MODULES
    for name, check in vars(module).items()
    if name.startswith("test_") and inspect.isfunction(check)
}
WAYS = {
    "missing": None,
    "absent": ("absent", ""),
    "hung": ("hung", ""),
    "empty": ("0", ""),
    "failed": ("1", ""),
    "garbled": ("0", "\x7fELF segmentation fault (core dumped)"),
}
# Where a check may pass all the same: the part decides nothing then, or its lack is itself an answer.
FINE = {
    # systemd-analyze verify and udevadm verify answer by how they end; the latter is not in every systemd.
    ("units", "units", "garbled"),
    ("rule", "rule-verified", "absent"), ("rule", "rule-verified", "empty"), ("rule", "rule-verified", "garbled"),
    # The kernel has no such setting, and so does not do what is not wanted of it.
    ("balancing", "numa/numa_balancing", "absent"), ("zone_reclaim", "numa/zone_reclaim_mode", "absent"),
    # Nothing has been learnt of managed interrupts: then all are held to their place.
    ("interrupts_are_local", "numa/managed", "absent"),
    # grep found no vendor: an architecture without one, whose IOMMU needs no argument.
    ("kernel", "vendor", "failed"),
    # One of two ways for GPUDirect is enough, and the other is there.
    *(("gpudirect", part, way) for part in ("peermem", "users", "symbols", "release") for way in WAYS),
    # With the kernel's own driver ECN is the firmware's: cc_params only shows that it is that driver.
    *(("ecn", "cc-params", way) for way in WAYS),
}  # fmt: skip


class Recorder(Reading):
    """A reading that knows what was asked of it."""

    asked: set

    def section(self, name):
        self.asked.add(name)
        return super().section(name)


def read(sections):
    found = Recorder({name: Section(name, *pair) for name, pair in sections.items() if pair is not None})
    object.__setattr__(found, "asked", set())
    return found


def subjects(check):
    """What a check is about: the node, or each part of it."""
    wanted = set(inspect.signature(check).parameters)
    for kind, parts in (("port", whole.NODE.ports), ("link", whole.NODE.links), ("card", whole.NODE.cards)):
        if kind in wanted or (kind == "port" and "seen" in wanted):
            return [{kind: part} for part in parts]
    return [{}]


def outcome(check, subject, reading):
    """ "pass", or what it says instead."""
    arguments = {"node": whole.NODE, "reading": reading, "unchecked": [], **subject}
    if "port" in arguments:
        arguments["seen"] = PortReading(reading, arguments["port"])
    try:
        with comparing():
            check(**{name: arguments[name] for name in inspect.signature(check).parameters})
    except (AssertionError, UnreadableError) as error:
        return str(error)
    return "pass"


def cases():
    for stack in whole.STACKS:
        sections = whole.sections(stack)
        for name, check in CHECKS.items():
            for subject in subjects(check):
                yield pytest.param(name.removeprefix("test_"), check, subject, sections, id=f"{name}-{stack}")


@pytest.mark.parametrize(("name", "check", "subject", "sections"), [*cases()])
def test_a_check_whose_part_cannot_be_read_does_not_pass(name, check, subject, sections):
    reading = read(sections)
    assert outcome(check, subject, reading) == "pass"
    passed = []
    for part in sorted(reading.asked & set(sections)):
        for way, given in WAYS.items():
            if sections[part] == given or sections[part][0] == "absent":
                continue
            said = outcome(check, subject, read({**sections, part: given}))
            if said == "pass" and (name, part.removeprefix(f"{whole.PCI}/"), way) not in FINE:
                passed.append((part, way))
    assert passed == []


def test_every_check_reads_something():
    sections = whole.sections("dcb and the vendor's ecn")
    for name, check in CHECKS.items():
        for subject in subjects(check):
            reading = read(sections)
            outcome(check, subject, reading)
            assert reading.asked or name == "test_complete", name


def test_a_check_that_compares_nothing_fails():
    with pytest.raises(AssertionError, match=re.escape(NOTHING)), comparing():
        pass
    with comparing():
        compare(True, "")
    with comparing():
        settled("there is none")
    with pytest.raises(AssertionError, match="it is otherwise"), comparing():
        compare(False, "it is otherwise")


def test_no_check_asserts_by_itself():
    """What a check holds is counted: by `compare` alone."""
    for module in MODULES:
        bare = [
            line for line in inspect.getsource(module).splitlines() if re.match(r"\s*(assert|pytest\.fail)\b", line)
        ]
        assert bare == [], module.__name__
