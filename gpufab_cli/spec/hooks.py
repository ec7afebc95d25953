"""``drain:`` and ``resume:``: the site's own commands that take a host out of service and give it back."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from gpufab_cli.module_utils.schema import Pattern, Range
from gpufab_cli.spec.base import Model, NotEmpty
from gpufab_cli.spec.faults import Fault

if TYPE_CHECKING:
    from gpufab_cli.spec.model import FabricSpec

HOST = "{host}"
"""What stands for the host's name in an argument."""

Argument = Annotated[
    str,
    Pattern(
        r"(?:[^\x00-\x1f\x7f-\x9f{}]|\{host\}){1,512}", "an argument: one line, no braces other than those of {host}"
    ),
]


class Hook(Model):
    """A program and its arguments, run on the control node without a shell; exit status 0 means done."""

    command: Annotated[tuple[Argument, ...], NotEmpty]
    """The program and its arguments, one item each; ``{host}`` stands for the host's name."""
    timeout_s: Annotated[int, Range(1, 86400)] = 600
    """Seconds after which it has failed."""

    def argv(self, host: str) -> tuple[str, ...]:
        """The command for one host."""
        return tuple(argument.replace(HOST, host) for argument in self.command)


def hook_faults(spec: "FabricSpec") -> Iterator[Fault]:
    """One hook without the other, a program that is none, or one that is not told the host."""
    hooks = {"drain": spec.drain, "resume": spec.resume}
    for name, hook in hooks.items():
        if hook is None:
            if any(hooks.values()):
                hint = "hosts would stay drained" if name == "resume" else "nothing would have to be resumed"
                yield Fault((name,), "missing, and its counterpart is there", hint)
            continue
        program = hook.command[0]
        if program.startswith("-") or HOST in program or " " in program:
            hint = "one item an argument: [scontrol, update, 'nodename={host}', state=drain]"
            yield Fault((name, "command", 0), f"{program!r:.60} is not a program", hint)
        if not any(HOST in argument for argument in hook.command[1:]):
            yield Fault((name, "command"), "no argument holds {host}", "the hook must be told which host")
