"""What the lab says when it cannot do something."""

from gpufab_cli.errors import Exit, GpufabError


class LabError(GpufabError):
    """A failure the user can act on: one line and a hint."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint, Exit.DRIFT)
