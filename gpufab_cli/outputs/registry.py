"""All outputs that there are. ``OutputName`` in spec/outputs.py lists their names; a test ties the two."""

from collections.abc import Mapping

from gpufab_cli.outputs.ansible.inventory import ANSIBLE
from gpufab_cli.outputs.output import OutputFormat

OUTPUTS: Mapping[str, OutputFormat] = {output.name: output for output in (ANSIBLE,)}
"""Each by its name, in the order in which they are rendered."""
