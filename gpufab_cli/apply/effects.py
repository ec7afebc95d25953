"""The ways out of this machine, as one object: a test hands a command its own."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpufab_cli.apply.ansible import run
from gpufab_cli.apply.apply import Runner
from gpufab_cli.apply.drain import Command, run_command
from gpufab_cli.audit.collect import Exec
from gpufab_cli.reach.connections import Ssh

Verify = Callable[[Path, Sequence[str]], Mapping[str, str]]
"""Proves that hosts of a fabric.yml are as declared; those that are not, and why."""


def _ssh() -> Exec:
    return Ssh().exec


def _verify(fabric: Path, hosts: Sequence[str]) -> Mapping[str, str]:
    from gpufab_cli.apply.proof import unproven

    return unproven(fabric, hosts)


@dataclass(frozen=True)
class Doors:
    """How commands are run on hosts, how playbooks are, and commands of the site on this machine."""

    execute: Exec = field(default_factory=_ssh)
    runner: Runner = run
    verify: Verify = _verify
    command: Command = run_command
    sleep: Callable[[float], None] = time.sleep
