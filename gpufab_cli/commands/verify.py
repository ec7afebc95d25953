"""``gpufab verify``: prove on the nodes themselves that they are as declared."""

from pathlib import Path

import click

from gpufab_cli.commands.options import fabric_option, format_option, limit_option
from gpufab_cli.errors import Exit


@click.command()
@fabric_option
@limit_option
@click.option("-k", "expression", default="", metavar="EXPRESSION", help="Only these checks, as pytest's -k.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write a JUnit report to this file.")
@format_option
def command(fabric: Path, limit: str | None, expression: str, junit: Path | None, output: str) -> Exit:
    """Prove on the nodes that they are as declared.

    A testinfra suite over SSH. It reads the nodes by other means than the audit does, so that the two can disagree.
    What cannot be read is unknown, which is not a pass.

    \b
    Examples:
      gpufab verify
      gpufab verify --limit gpu[001-004] -k 'pfc or ets'
      gpufab verify --junit verify.xml --format json
    """
    from gpufab_cli.compile.fabric import load_fabric
    from gpufab_cli.report.console import print_json, progress
    from gpufab_cli.report.verify import data, show
    from gpufab_cli.verify.results import exit_code
    from gpufab_cli.verify.run import run

    declared = load_fabric(fabric, limit)
    progress(f"verifying {len(declared.wants)} hosts")
    results = run(fabric, limit=limit, expression=expression, junit=junit)
    if output == "json":
        print_json(data(results))
    else:
        show(results)
    return exit_code(results)
