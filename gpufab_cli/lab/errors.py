"""What the lab says when it cannot do something: one line and a hint."""


class LabError(Exception):
    """A failure the user can act on."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.args[0]} (hint: {self.hint})" if self.hint else str(self.args[0])
