"""Jobs that have their own clocks for a while: one file each in /var/lib/gpufab/jobs, written by the prolog.

While it is there the plan wants the job's values of the job's GPUs; when it is gone, the policy's again. So a job's
values are set, read back and undone exactly as a policy's are, and whoever finds the file without its job ends it.
"""

import json
import re
from dataclasses import replace
from typing import Mapping, Optional, Tuple

from ..host import Host, Reader
from ..schema import SchemaError, decode, encode
from ..texts import parse_json
from .seen import JobSeen
from .want import GpuPolicy

FOLDER = "/var/lib/gpufab/jobs"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
_FILE = r"([0-9]{1,18})\.json"
_ENDED = r"([0-9]{1,18})\.ended"
"""A job that has ended, and whose GPUs may still have its values."""
REQUEST = r"(?:^|\s)gpufab:([a-z0-9=,-]+)(?:\s|$)"
"""What a job asks for, anywhere in its comment: gpufab:graphics=1200-1500,power=500 (MHz, W)."""


def path(job: str) -> str:
    """The file of a job."""
    return f"{FOLDER}/{job}.json"


def read(host: Reader) -> Tuple[JobSeen, ...]:
    """The jobs of this boot. A file that is damaged or of another boot counts for nothing."""
    found = (_job(host, name) for name in names(host))
    return tuple(job for job in found if job is not None)


def names(host: Reader, pattern: str = _FILE) -> Tuple[str, ...]:
    """The ids of all jobs that have a file, also of an earlier boot."""
    listed = host.names(FOLDER)
    found = (re.fullmatch(pattern, name) for name in (listed if isinstance(listed, tuple) else ()))
    return tuple(match[1] for match in found if match)


def ended(host: Reader) -> Tuple[str, ...]:
    """The jobs that have ended and whose values may still be there."""
    return names(host, _ENDED)


def end(host: Host, job: str) -> None:
    """From now on the plan wants the policy's values; that a job had others is known until :func:`forget`."""
    if host.exists(path(job)):
        host.rename(path(job), f"{FOLDER}/{job}.ended")


def forget(host: Host, job: str) -> None:
    """The policy's values are back."""
    host.remove(f"{FOLDER}/{job}.ended")


def _job(host: Reader, job: str) -> Optional[JobSeen]:
    try:
        data = parse_json(str(host.read(path(job))))
        held: JobSeen = decode(JobSeen, data["job"])
    except (ValueError, KeyError, TypeError, SchemaError):
        return None
    return held if data.get("boot_id") == host.read(BOOT_ID) else None


def write(host: Host, job: JobSeen) -> None:
    """Note a job, so that the plan wants its values."""
    text = json.dumps({"boot_id": str(host.read(BOOT_ID)), "job": encode(job)}) + "\n"
    host.put(path(job.job), text.encode(), 0o600)


def request(comment: str) -> Optional[Mapping[str, str]]:
    """What a job's comment asks for, by name; None when it asks for nothing."""
    match = re.search(REQUEST, comment)
    return dict(word.partition("=")[::2] for word in match[1].split(",")) if match else None


def bounded(job: str, gpus: Tuple[str, ...], asked: Mapping[str, str], policy: GpuPolicy) -> JobSeen:
    """The values a job gets.

    Raises:
        ValueError: it asks for what there is not, or for more than the node's policy allows.
    """
    unknown = sorted(set(asked) - {"graphics", "power"})
    if unknown:
        raise ValueError(f"{unknown[0]!r} cannot be asked for, graphics and power can")
    held = JobSeen(job, gpus)
    if "graphics" in asked:
        held = replace(held, graphics_mhz=_graphics(asked["graphics"], policy.graphics_mhz))
    if "power" in asked:
        held = replace(held, power_limit_w=_power(asked["power"], policy.power_limit_w))
    return held


def _graphics(text: str, allowed: Optional[Tuple[int, ...]]) -> Tuple[int, int]:
    low, _, high = text.partition("-")
    clocks = (_number(low), _number(high or low))
    if not allowed:
        raise ValueError("this node's policy sets no bounds of the graphics clock")
    if not allowed[0] <= clocks[0] <= clocks[1] <= allowed[1]:
        raise ValueError(f"graphics={text} is not within {allowed[0]}-{allowed[1]}")
    return clocks


def _power(text: str, allowed: Optional[int]) -> int:
    if allowed is None:
        raise ValueError("this node's policy sets no bound of the power limit")
    if _number(text) > allowed:
        raise ValueError(f"power={text} is more than {allowed}")
    return _number(text)


def _number(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,4}", text):
        raise ValueError(f"{text!r} is not a number")
    return int(text)


def effective(policy: GpuPolicy, pci: str, held: Tuple[JobSeen, ...]) -> GpuPolicy:
    """The policy of a GPU as long as the jobs run that have it."""
    for job in held:
        if pci in job.gpus:
            policy = replace(
                policy,
                power_limit_w=job.power_limit_w or policy.power_limit_w,
                graphics_mhz=job.graphics_mhz or policy.graphics_mhz,
            )
    return policy
