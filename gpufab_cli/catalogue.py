"""The catalogue of codes: what each means, and what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from importlib.resources import files

import yaml


class Severity(StrEnum):
    """How bad it is; :attr:`INFO` alone leaves a host in sync."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True)
class Entry:
    """What is known about one code; all texts are one paragraph."""

    code: str
    severity: Severity
    title: str
    symptom: str
    cause: str
    remedy: str


@cache
def catalogue() -> Mapping[str, Entry]:
    """Every entry by code, in alphabetical order."""
    text = files(__package__).joinpath("catalogue.yml").read_text(encoding="utf-8")
    data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 (both are safe)
    return {code: _entry(code, data[code]) for code in sorted(data)}


def _entry(code: str, data: Mapping[str, str]) -> Entry:
    wanted = {item.name for item in fields(Entry)} - {"code"}
    if set(data) != wanted:
        raise ValueError(f"catalogue.yml: {code}: has {sorted(data)}, not {sorted(wanted)}")
    texts = {name: text for name, text in data.items() if name != "severity"}
    return Entry(code=code, severity=Severity(data["severity"]), **texts)
