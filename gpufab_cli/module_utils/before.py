"""What a step found before it wrote and its changes do not hold: kept for the undo of that step, and no longer.

Some devices hide what they are set to until something has been made, and some lose more than the value that is
changed. What is found then goes to a file of the running system, so that the undo does not have to guess.
"""

import json
from typing import Any

from .change import ABSENT, Step, Unknown
from .host import Host, HostError
from .place import RUN as FOLDER
from .texts import parse_json


def _file(step: Step) -> str:
    return f"{FOLDER}/{step.name.replace(' ', '-').replace('/', '-')}.json"


def keep(host: Host, step: Step, found: Any) -> None:
    """Note what was found, as JSON data, in place of what was noted for the step before."""
    host.put(_file(step), json.dumps(found).encode(), 0o600)


def kept(host: Host, step: Step) -> Any:
    """What the step has noted; None when it has noted nothing.

    Raises:
        HostError: the note is damaged or cannot be read.
    """
    text = host.read(_file(step))
    if text is ABSENT:
        return None
    try:
        return parse_json(str(text))
    except ValueError as error:
        why = text.reason if isinstance(text, Unknown) else str(error)
        raise HostError(f"{_file(step)}, what was there before the step: {why}") from error


def forget(host: Host, step: Step) -> None:
    """The step is over, or is about to begin."""
    if host.exists(_file(step)):
        host.remove(_file(step))
