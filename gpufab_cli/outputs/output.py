"""What an output is. Each has a folder of its own here, and a row in registry.py."""

from collections.abc import Mapping
from typing import Protocol

from gpufab_cli.fabric.model import Resolved
from gpufab_cli.intent.compile import Wants


class OutputFormat(Protocol):
    """One form in which a fabric is written for others, as files below a folder of its own beside fabric.yml."""

    @property
    def name(self) -> str:
        """How ``outputs:`` in fabric.yml names it."""

    @property
    def folder(self) -> str:
        """Where its files lie, relative to fabric.yml. No other output writes below it."""

    @property
    def header(self) -> str:
        """The text that each of its files begins with. Files that begin otherwise are the site's own."""

    def render(self, fabric: Resolved, wants: Mapping[str, Wants]) -> Mapping[str, str]:
        """Write every file: path relative to the folder → text. Pure; the same fabric gives the same text.

        Args:
            fabric: the resolved fabric.
            wants: what each active host is told, by host and feature.
        """
