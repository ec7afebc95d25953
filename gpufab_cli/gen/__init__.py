"""Files made from the node core's dataclasses, so that an option is declared once. ``python -m gpufab_cli.gen``."""
