"""Settings kept in a file that others may write too: gpufab's own lines between two marks, the rest left as it is.

Where the site says otherwise about the same name, gpufab does not argue: that is a conflict, for the plan to block on
or, with the site's consent, to take the line out. Programs differ in which of two lines counts, so a format says
which, and whether gpufab's lines go to the top or to the end.
"""

import re
from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Optional, Tuple, Union

from . import before
from .change import ABSENT, Absent, Change, Step, Unknown, Where
from .host import Host, HostError, Reader, Text

BEGIN = "# begin of what gpufab keeps: changes made here are reverted"
END = "# end of what gpufab keeps"
TEXT = "text"
NOT_ASKED = Unknown("not looked at: the snapshot was taken for another wish")


@dataclass(frozen=True)
class Format:
    """How a kind of file says that a name has a value.

    Attributes:
        line: the line, with {name} and {value}.
        pattern: the lines that say so, however spaced, with the groups ``name`` and ``value``.
        first: of two lines about a name the first counts; else the last.
        top: gpufab's lines go to the top; else to the end.
        head: the lines a file must begin with.
        mode: the file's mode.
        defaults: lines that a distribution ships in the file, which are nobody's wish: gpufab's overrule them.
    """

    line: str
    pattern: str
    first: bool = True
    top: bool = True
    head: Tuple[str, ...] = ()
    mode: int = 0o644
    defaults: Tuple[Tuple[str, str], ...] = ()

    def parse(self, line: str) -> Optional[Tuple[str, str]]:
        """Name and value of a line; None for any other."""
        match = re.fullmatch(self.pattern, line)
        return (match["name"], match["value"]) if match else None


@dataclass(frozen=True)
class Content:
    """A file taken apart: gpufab's settings, and the lines of others."""

    own: Dict[str, str]
    lines: Tuple[str, ...] = ()

    def others(self, form: Format) -> Dict[str, str]:
        """What the lines of others say; of several about a name, the one that counts."""
        found: Dict[str, str] = {}
        for line in self.lines:
            pair = form.parse(line)
            if pair is not None and pair not in form.defaults and not (form.first and pair[0] in found):
                found[pair[0]] = pair[1]
        return found


def read(host: Reader, path: str) -> Text:
    """The text of a settings file; Unknown for a symbolic link, which writing would make a file of its own."""
    target = host.link(path)
    if isinstance(target, str):
        return Unknown(f"{path} is a symbolic link to {target}")
    return host.read(path)


def take_apart(form: Format, text: Union[str, Absent]) -> Content:
    """The file's parts. Of two lines between the marks the one that counts is read; the rest is gpufab's to drop."""
    own: Dict[str, str] = {}
    lines: List[str] = []
    inside = False
    for line in text.splitlines() if isinstance(text, str) else ():
        if line == BEGIN or (inside and line == END):
            inside = line == BEGIN
        elif not inside:
            lines.append(line)
        else:
            pair = form.parse(line)
            if pair is not None and not (form.first and pair[0] in own):
                own[pair[0]] = pair[1]
    return Content(own, tuple(lines))


def put_together(form: Format, content: Content) -> Optional[str]:
    """The file's text; None when nothing is left of it."""
    block = [form.line.format(name=name, value=value) for name, value in sorted(content.own.items())]
    block = [BEGIN, *block, END] if block else []
    rest = list(content.lines[len(form.head) :] if content.lines[: len(form.head)] == form.head else content.lines)
    if not block and not any(rest):
        return None
    lines = [*form.head, *block, *rest] if form.top else [*form.head, *rest, *block]
    return "\n".join(lines) + "\n"


def conflicts(form: Format, text: Text, wanted: Iterable[Tuple[str, str]]) -> Tuple[str, ...]:
    """The wanted names of which somebody else says otherwise in the file."""
    others = {} if isinstance(text, Unknown) else take_apart(form, text).others(form)
    return tuple(name for name, value in wanted if others.get(name, value) != value)


def refusal(names: Tuple[str, ...], *, takeover: bool) -> str:
    """Why a file with conflicts is left alone; "" where it is not."""
    if not names or takeover:
        return ""
    return f"the site's own lines set {', '.join(names)} otherwise; takeover: true has them taken out"


def changes(path: str, form: Format, text: Text, wanted: Mapping[str, str], code: str) -> Tuple[Change, ...]:
    """What would change in a file for gpufab's lines to be the wanted ones and to be what counts."""
    if isinstance(text, Unknown):
        return tuple(Change((path, name), text, value, code, Where.PERSISTED) for name, value in wanted.items())
    content = take_apart(form, text)
    others, found = content.others(form), []
    for name in sorted({*wanted, *content.own}):
        desired = wanted.get(name, ABSENT)
        current = content.own.get(name, ABSENT)
        if desired is not ABSENT and others.get(name, desired) != desired:
            current = others[name]
        if current != desired:
            found.append(Change((path, name), current, desired, code, Where.PERSISTED))
    return tuple(found)


def apply(step: Step, host: Host, form: Format) -> None:
    """Make the changes of one file; undone, the file is what it was, others' lines and all."""
    path = step.changes[0].path[0]
    if step.undoes:
        _put(host, path, form, _kept(host, step))
        return
    text = host.read(path)
    if isinstance(text, Unknown):
        raise HostError(text.reason)
    before.keep(host, step, {TEXT: text if isinstance(text, str) else None})
    content = take_apart(form, text if isinstance(text, str) else ABSENT)
    own, lines = dict(content.own), list(content.lines)
    for change in step.changes:
        name = change.path[1]
        own.pop(name, None)
        if change.desired is not ABSENT:
            own[name] = change.desired
            lines = [line for line in lines if not _contradicts(form, line, name, change.desired)]
    _put(host, path, form, put_together(form, Content(own, tuple(lines))))


def _kept(host: Host, step: Step) -> Optional[str]:
    """The text that the file had; None where there was no file. A note that is lost is not taken for that."""
    note = before.kept(host, step)
    if not isinstance(note, dict) or not isinstance(note.get(TEXT, 0), (str, type(None))):
        raise HostError(f"what {step.changes[0].path[0]} held before is not noted: it stays as it is now")
    found: Optional[str] = note[TEXT]
    return found


def _contradicts(form: Format, line: str, name: str, value: str) -> bool:
    pair = form.parse(line)
    return pair is not None and pair not in form.defaults and pair[0] == name and pair[1] != value


def _put(host: Host, path: str, form: Format, text: Optional[str]) -> None:
    if text is None:
        host.remove(path)
    else:
        host.put(path, (text.rstrip("\n") + "\n").encode("utf-8", "surrogateescape"), form.mode)
