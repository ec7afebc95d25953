"""Options as Ansible documents them, out of a feature's dataclass and the consent that every module takes."""

import dataclasses
from collections.abc import Iterator
from typing import Any, get_args, get_origin

from gpufab_cli.module_utils.ansible_module import CONSENT
from gpufab_cli.module_utils.arguments import argument_spec
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.schema import hints

Options = dict[str, dict[str, Any]]


def options(feature: str) -> Options:
    """Every option of a feature's module, ``description`` as a list of sentences."""
    kind = FEATURES[feature].want_type
    return {name: _described(spec, _nested(kind, name)) for name, spec in {**argument_spec(kind), **CONSENT}.items()}


def documented(arguments: Options) -> Options:
    """Options that no dataclass has, likewise."""
    return {name: _described(spec, ()) for name, spec in arguments.items()}


def _described(spec: dict[str, Any], nested: tuple[str, ...]) -> dict[str, Any]:
    """Description first and as a list; what a mapping's values hold is told there, for no argument spec can say it."""
    found = {**spec, "description": [spec["description"], *nested]}
    if "options" in spec:
        found["options"] = {name: _described(option, ()) for name, option in spec["options"].items()}
    return {"description": found.pop("description"), **found}


def _nested(kind: type, name: str) -> tuple[str, ...]:
    """The fields of a mapping's values, one sentence each; empty for an option that is no such mapping."""
    hint = hints(kind).get(name)
    inner = next((item for item in _within(hint) if dataclasses.is_dataclass(item)), None)
    if inner is None or "options" in argument_spec(kind)[name]:
        return ()
    return tuple(f"C({field}) - {spec['description']}" for field, spec in argument_spec(inner).items())


def _within(hint: Any) -> Iterator[type]:
    """The types that the values of a ``Dict`` may have, whatever it is wrapped in."""
    if get_origin(hint) is dict:
        yield get_args(hint)[1]
    else:
        for part in get_args(hint):
            yield from _within(part)
