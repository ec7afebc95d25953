"""Words that others have chosen, such as a node's, on the terminal of an operator."""

from rich.text import Text


def said(words: str, style: str = "") -> Text:
    """The words as they are: nothing in them is markup, is acted on by a terminal, or cannot be encoded."""
    return Text("".join(char if char.isprintable() or char == "\n" else "?" for char in words), style=style)
