"""Words that others have chosen, such as a node's, on the terminal of an operator."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text


def printable(words: str) -> str:
    """The words with nothing in them that a terminal acts on or cannot encode."""
    return "".join(char if char.isprintable() or char in "\n\t" else "?" for char in words)


def one_line(words: str) -> str:
    """The printable words in one line: who chose them cannot make them look like a line of gpufab's own."""
    return printable(" ".join(words.split()))


def said(words: str, style: str = "") -> "Text":
    """The printable words in one line, for a table or a report: nothing in them is markup."""
    from rich.text import Text

    return Text(printable(words.replace("\n", " ")), style=style)
