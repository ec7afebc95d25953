"""Lines of gpufab's own in files that others write too."""

import pytest

from gpufab_cli.module_utils import before as notes
from gpufab_cli.module_utils import settings_file as files
from gpufab_cli.module_utils.change import ABSENT, Step, Unknown
from gpufab_cli.module_utils.host import HostError
from gpufab_cli.module_utils.settings_file import Content, Format
from tests.fakes import FakeHost

PATH = "/etc/some.conf"
TOP = Format("{name}={value}", r"(?P<name>\w+)=(?P<value>.*)")
END = Format(
    "{name} = {value}", r"\s*(?P<name>\w+)\s*=\s*(?P<value>.*?)\s*", first=False, top=False, defaults=(("pml", "^ucx"),)
)
SCRIPT = Format("say {name}={value}", r"say (?P<name>\w+)=(?P<value>.*)", head=("#!/bin/sh",), mode=0o755)


def block(*lines):
    return "\n".join([files.BEGIN, *lines, files.END]) + "\n"


def make(form, text, wanted):
    """The text after the planned changes, which must leave nothing to plan."""
    host = FakeHost({PATH: text} if text is not None else {})
    step = Step("x", files.changes(PATH, form, host.read(PATH), wanted, "c.d"))
    if step.changes:
        files.apply(step, host, form)
    after = host.read(PATH)
    assert files.changes(PATH, form, after, wanted, "c.d") == ()
    return host.files.get(PATH, b"").decode() if isinstance(host.files.get(PATH), bytes) else host.files.get(PATH)


@pytest.mark.parametrize(
    ("form", "before", "wanted", "after"),
    [
        (TOP, None, {"B": "2", "A": "1"}, block("A=1", "B=2")),
        (TOP, "# ours\nC=3\n", {"A": "1"}, block("A=1") + "# ours\nC=3\n"),
        (END, "# ours\nc = 3\n", {"a": "1"}, "# ours\nc = 3\n" + block("a = 1")),
        (TOP, block("A=1") + "C=3\n", {"A": "2"}, block("A=2") + "C=3\n"),
        (TOP, block("A=1", "B=2") + "C=3\n", {"A": "1"}, block("A=1") + "C=3\n"),
        (TOP, block("A=1"), {}, None),
        (TOP, "A=7\nC=3\nA=8\n", {"A": "1"}, block("A=1") + "C=3\n"),
        (TOP, "A=1\n", {"A": "1"}, block("A=1") + "A=1\n"),
        (END, "pml = ^ucx\n", {"pml": "ucx"}, "pml = ^ucx\n" + block("pml = ucx")),
        (SCRIPT, None, {"A": "1"}, "#!/bin/sh\n" + block("say A=1")),
        (SCRIPT, "#!/bin/sh\n" + block("say A=1"), {"A": "2"}, "#!/bin/sh\n" + block("say A=2")),
    ],
)
def test_the_lines_of_others_stay(form, before, wanted, after):
    assert make(form, before, wanted) == after


def test_a_line_that_counts_before_gpufab_s_is_a_conflict_a_default_of_the_distribution_is_none():
    assert files.conflicts(TOP, "A=7\nB=2\n", [("A", "1"), ("B", "2")]) == ("A",)
    assert files.conflicts(END, "pml = ^ucx\n", [("pml", "ucx")]) == ()
    assert files.conflicts(END, "pml = ob1\n", [("pml", "ucx")]) == ("pml",)
    # The last one counts, and it is the wanted one.
    assert files.conflicts(END, "pml = ob1\npml = ucx\n", [("pml", "ucx")]) == ()
    assert files.conflicts(TOP, ABSENT, [("A", "1")]) == files.conflicts(TOP, Unknown("x"), [("A", "1")]) == ()


def test_what_cannot_be_read_is_unknown_and_a_link_is_not_written_through():
    assert [change.current for change in files.changes(PATH, TOP, Unknown("x"), {"A": "1"}, "c.d")] == [Unknown("x")]
    host = FakeHost({"/srv/conf": "A=1\n"}, links={PATH: "/srv/conf"})
    assert files.read(host, PATH) == Unknown(f"{PATH} is a symbolic link to /srv/conf")


@pytest.mark.parametrize("before", ["# ours\nA=7\n\nC=3\n", None])
def test_an_undo_brings_the_whole_file_back(before):
    host = FakeHost({PATH: before} if before is not None else {})
    step = Step("x", files.changes(PATH, TOP, host.read(PATH), {"A": "1"}, "c.d"))
    files.apply(step, host, TOP)
    assert host.read(PATH) != before
    files.apply(Step("x", step.changes, undoes=True), host, TOP)
    assert host.read(PATH) == (before.rstrip("\n") if before is not None else ABSENT)


def test_words_between_the_marks_that_say_nothing_are_dropped():
    assert files.take_apart(TOP, block("A=1", "nonsense")) == Content({"A": "1"})


@pytest.mark.parametrize("note", [None, b"", b'{"te', b"[" * 100_000, b"null", b"[1]", b'{"text": 7}', b"\xff"])
def test_an_undo_without_its_note_leaves_the_file_rather_than_take_it_away(note):
    host = FakeHost({PATH: "# ours\nA=7\n"})
    step = Step("x", files.changes(PATH, TOP, host.read(PATH), {"A": "1"}, "c.d"))
    files.apply(step, host, TOP)
    made = host.read(PATH)
    notes.forget(host, step)
    if note is not None:
        host.files["/run/gpufab/x.json"] = note
    with pytest.raises(HostError):
        files.apply(Step("x", step.changes, undoes=True), host, TOP)
    assert host.read(PATH) == made


def test_a_file_that_cannot_be_read_is_not_written_over():
    host = FakeHost({PATH: "# ours\n"})
    step = Step("x", files.changes(PATH, TOP, host.read(PATH), {"A": "1"}, "c.d"))
    host.unreadable[PATH] = "Input/output error"
    with pytest.raises(HostError, match="Input/output error"):
        files.apply(step, host, TOP)
    assert host.files[PATH] == "# ours\n"
