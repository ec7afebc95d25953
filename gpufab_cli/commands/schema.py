"""``gpufab schema``: the JSON Schema of fabric.yml."""

import click

from gpufab_cli.report.console import print_json


@click.command()
def command() -> None:
    """Print the JSON Schema of fabric.yml, for editors.

    With it an editor completes keys, shows what each means and marks wrong values. Only gpufab validate also sees what
    two values must agree on.

    \b
    Examples:
      gpufab schema > fabric.schema.json
      and as the first line of fabric.yml:
      # yaml-language-server: $schema=fabric.schema.json
    """
    from gpufab_cli.spec.schema import json_schema

    print_json(json_schema())
