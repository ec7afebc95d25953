"""``gpufab init``: a commented fabric.yml to start from."""

from pathlib import Path

import click

from gpufab_cli.errors import GpufabError
from gpufab_cli.report.console import progress
from gpufab_cli.spec.templates import KINDS, template


@click.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@click.option(
    "--kind", type=click.Choice(KINDS), default="roce", show_default=True, help="The kind of fabric it starts as."
)
def command(directory: Path, kind: str) -> None:
    """Write a commented fabric.yml to start from.

    It is valid as it is; the names, numbers and hosts in it are examples. A file that is there is left alone.

    \b
    Examples:
      gpufab init pod1
      gpufab init playground --kind lab
    """

    path = directory / "fabric.yml"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(template(kind))
    except FileExistsError:
        raise GpufabError(f"{path}: already there", "name another directory, or edit that file") from None
    except OSError as error:
        raise GpufabError(f"{error.filename}: {error.strerror}") from error
    progress(f"{path}: written; edit it, then run gpufab validate -f {path}")
