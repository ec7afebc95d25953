"""``gpufab completion``: what makes a shell complete gpufab's commands and options."""

import click
from click.shell_completion import get_completion_class

from gpufab_cli.errors import GpufabError


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes commands in a shell.

    \b
    Examples:
      gpufab completion bash > /etc/bash_completion.d/gpufab
      gpufab completion zsh > "${fpath[1]}/_gpufab"
      gpufab completion fish > ~/.config/fish/completions/gpufab.fish
    """
    root = context.find_root()
    completion = get_completion_class(shell)
    if completion is None:
        raise GpufabError(f"no completion for {shell}")
    click.echo(completion(root.command, {}, "gpufab", "_GPUFAB_COMPLETE").source())
