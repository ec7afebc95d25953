"""Snapshots in a directory, one JSON file a host, to be judged later and elsewhere.

A host without a snapshot is saved with its failure: judged offline, the fabric reads as it did. The files are for
their owner only, for they say what runs on the nodes.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gpufab_cli.audit.collect import Collected, Failed, Failure
from gpufab_cli.errors import GpufabError
from gpufab_cli.module_utils import snapshot
from gpufab_cli.module_utils.features import SEEN_TYPES
from gpufab_cli.module_utils.schema import SchemaError, decode, encode

FORMAT = 1


def save(collected: Iterable[Collected], directory: Path) -> Iterator[Collected]:
    """Write each host's file as it comes, and pass it on.

    Raises:
        GpufabError: the directory or a file cannot be written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for item in collected:
            _write(directory / f"{item.host}.json", _text(item))
            yield item
    except OSError as error:
        raise GpufabError(f"{error.filename}: {error.strerror}") from error


def _text(item: Collected) -> str:
    failure = isinstance(item.result, Failure)
    result = encode(item.result) if failure else json.loads(snapshot.dumps(item.result))  # type: ignore[arg-type]
    data = {"format": FORMAT, "host": item.host, "no_root": item.no_root}
    return json.dumps({**data, "failure" if failure else "snapshot": result}, indent=1, sort_keys=True) + "\n"


def _write(path: Path, text: str) -> None:
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)
    temporary.replace(path)


def load(directory: Path, hosts: Iterable[str]) -> Iterator[Collected]:
    """What was saved of the hosts; a host without a file ends as a failure of its own.

    Raises:
        GpufabError: there is no such directory, or nothing was saved there.
    """
    if not any(directory.glob("*.json")):
        raise GpufabError(f"{directory}: no saved snapshots", "gpufab audit --save DIR writes them")
    for host in hosts:
        yield _load(directory / f"{host}.json", host)


def _load(path: Path, host: str) -> Collected:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return _collected(host, data)
    except FileNotFoundError:
        return Collected(host, Failure(Failed.MISSING, f"there is no {path}"))
    except OSError as error:
        return Collected(host, Failure(Failed.GARBAGE, f"{path}: {error.strerror}"))
    except (ValueError, TypeError, KeyError) as error:
        return Collected(host, Failure(Failed.GARBAGE, f"{path}: {error}", "take it anew with gpufab audit --save"))


def _collected(host: str, data: Any) -> Collected:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise SchemaError(f"not of format {FORMAT}")
    if "failure" in data:
        return Collected(host, decode(Failure, data["failure"], "failure"))
    return Collected(host, snapshot.loads(json.dumps(data["snapshot"]), SEEN_TYPES), str(data["no_root"]))
