"""Snapshots in a directory, one JSON file a host, to be judged later and elsewhere.

A host without a snapshot is saved with its failure: judged offline, the fabric reads as it did. The files are for
their owner only, for they say what runs on the nodes.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gpufab_cli import disk
from gpufab_cli.audit.collect import Collected, Failed, Failure, short
from gpufab_cli.errors import GpufabError
from gpufab_cli.module_utils import snapshot
from gpufab_cli.module_utils.features import SEEN_TYPES
from gpufab_cli.module_utils.schema import SchemaError, decode, encode
from gpufab_cli.module_utils.texts import blame, parse_json

FORMAT = 1
MODE = 0o600
ANEW = "take it anew with gpufab audit --save"
LARGEST = 64 << 20
"""Bytes of a file; what a host sends is cut off at 8 MiB, and indenting makes it longer."""


def save(collected: Iterable[Collected], directory: Path) -> Iterator[Collected]:
    """Write each host's file as it comes, and pass it on.

    Raises:
        GpufabError: the directory or a file cannot be written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise GpufabError(f"{error.filename}: {error.strerror}") from error
    for item in collected:
        disk.replace(directory / f"{item.host}.json", _text(item), MODE)
        yield item


def _text(item: Collected) -> str:
    failure = isinstance(item.result, Failure)
    data = {"format": FORMAT, "host": item.host, "no_root": item.no_root}
    found = {**data, "failure" if failure else "snapshot": encode(item.result)}
    return json.dumps(found, indent=1, sort_keys=True, allow_nan=False) + "\n"


def load(directory: Path, hosts: Iterable[str]) -> Iterator[Collected]:
    """What was saved of the hosts; a host without a file ends as a failure of its own.

    Raises:
        GpufabError: there is no such directory, or nothing was saved there.
    """
    if directory.exists() and not directory.is_dir():
        raise GpufabError(f"{directory}: not a directory", "gpufab audit --save DIR writes one")
    if not any(directory.glob("*.json")):
        raise GpufabError(f"{directory}: no saved snapshots", "gpufab audit --save DIR writes them")
    for host in hosts:
        yield _load(directory / f"{host}.json", host)


def _load(path: Path, host: str) -> Collected:
    try:
        raw = disk.read(path, LARGEST)
        if len(raw) > LARGEST:
            raise SchemaError(f"larger than {LARGEST >> 20} MiB")
        return _collected(host, parse_json(raw.decode("utf-8")))
    except FileNotFoundError:
        return Collected(host, Failure(Failed.MISSING, f"there is no {path}"))
    except GpufabError as error:
        return Collected(host, Failure(Failed.GARBAGE, error.message))
    except Exception as error:  # a file that was spoilt is its own host's matter, however it was
        why = str(error) if isinstance(error, ValueError) else blame(error)
        return Collected(
            host, Failure(Failed.GARBAGE, f"{path}: {short(why)}", "take it anew with gpufab audit --save")
        )


def _collected(host: str, data: Any) -> Collected:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise SchemaError(f"not of format {FORMAT}")
    if "failure" in data:
        return Collected(host, decode(Failure, data["failure"], "failure"))
    return Collected(host, snapshot.loads(json.dumps(data["snapshot"]), SEEN_TYPES), str(data["no_root"]))
