"""Where a topology is read from: a host, what was saved of it, a pasted matrix, an NCCL XML file."""

import sys
from collections.abc import Mapping
from pathlib import Path

from gpufab_cli import disk
from gpufab_cli.audit import saved
from gpufab_cli.audit.collect import Exec, Failure, answer, ask, no_root
from gpufab_cli.errors import Exit, GpufabError
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.schema import SchemaError, decode
from gpufab_cli.module_utils.texts import parse_json
from gpufab_cli.reach.target import Target
from gpufab_cli.topology import matrix, nccl_xml
from gpufab_cli.topology.layout import Layout, Links, layout

_LARGEST = 4 * 1024 * 1024  # bytes of a pasted file; a real one has a few thousand


def from_host(
    target: Target, locked: Mapping[str, str], execute: Exec, seconds: float
) -> tuple[Layout, tuple[str, ...]]:
    """A host's topology, and what of it is not known and why.

    Raises:
        GpufabError: the host does not answer, or not as the node core does.
    """
    result = ask(target, "topology", {}, execute, seconds)
    line = result if isinstance(result, Failure) else answer(result, target)
    if isinstance(line, Failure):
        raise GpufabError(f"{target.host}: {line.kind.value}: {line.message}", line.hint, Exit.UNKNOWN)
    try:
        found = parse_json(line)
        devices: Devices = decode(Devices, found["devices"], "devices")
        printed = found["matrix"]
    except (ValueError, KeyError, TypeError, SchemaError) as error:
        raise GpufabError(f"{target.host}: garbage: {error!s:.160}", "", Exit.UNKNOWN) from error
    links, why = _links(printed, devices)
    doubts = [f"NVLinks are not known: {why}"] if why and len(devices.gpus) > 1 else []
    reason = no_root(result) if not isinstance(result, Failure) else ""
    doubts += [f"no root, so that roles of ports may be wrong: {reason}"] if reason else []
    return layout(target.host, devices, locked, links), tuple(doubts)


def _links(printed: object, devices: Devices) -> tuple[Links | None, str]:
    """The NVLinks of what ``nvidia-smi topo -m`` printed on a host; None and the reason where that is not known."""
    if not isinstance(printed, str):
        return None, str(printed.get("unknown")) if isinstance(printed, dict) else "nothing was printed"
    try:
        read = matrix.parse(printed)
    except GpufabError as error:
        return None, f"nvidia-smi topo -m: {error.message}"
    if len(read.gpus) != len(devices.gpus):
        return None, f"nvidia-smi topo -m shows {len(read.gpus)} GPUs, the PCI tree {len(devices.gpus)}"
    return matrix.links(read, devices.gpus), ""


def from_saved(directory: Path, host: str, locked: Mapping[str, str]) -> Layout:
    """The topology in a snapshot that ``gpufab audit --save`` kept.

    Raises:
        GpufabError: there is none of the host.
    """
    found = next(iter(saved.load(directory, [host])))
    if isinstance(found.result, Failure):
        raise GpufabError(f"{host}: {found.result.message}", found.result.hint, Exit.UNKNOWN)
    return layout(host, found.result.devices, locked)


def from_file(path: Path) -> Layout:
    """The topology in a pasted matrix or an NCCL XML file; ``-`` is stdin.

    Raises:
        GpufabError: it is neither, or wrong.
    """
    name = "pasted" if str(path) == "-" else path.name
    try:
        raw = sys.stdin.buffer.read(_LARGEST + 1) if name == "pasted" else disk.read(path, _LARGEST)
        text = raw.decode("utf-8")
    except OSError as error:
        raise GpufabError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise GpufabError(f"{path}: not UTF-8 text") from error
    if len(raw) > _LARGEST:
        raise GpufabError(f"{path}: more than {_LARGEST // 1024} KiB", "no topology is as large")
    if nccl_xml.is_xml(text):
        return nccl_xml.read(name, text)
    return matrix.rebuilt(name, matrix.parse(text))
