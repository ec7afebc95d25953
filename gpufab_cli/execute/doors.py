"""The ways out of this machine, as one object: a test hands a command its own."""

from dataclasses import dataclass, field

from gpufab_cli.audit.collect import Exec
from gpufab_cli.execute.ansible import run
from gpufab_cli.execute.apply import Runner
from gpufab_cli.execute.connect import Ssh


def _ssh() -> Exec:
    return Ssh().exec


@dataclass(frozen=True)
class Doors:
    """How commands are run on hosts, and how playbooks are."""

    execute: Exec = field(default_factory=_ssh)
    runner: Runner = run
