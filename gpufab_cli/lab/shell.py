"""Running programs on the host, quietly: output is kept for the error message."""

import subprocess
from collections.abc import Sequence

from gpufab_cli.lab.errors import LabError


def run(argv: Sequence[str], stdin: str = "", timeout: float = 120) -> str:
    """Runs a program and gives its stdout.

    Raises:
        LabError: It is missing, failed or took longer than `timeout` seconds.
    """
    try:
        done = subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)
    except FileNotFoundError:
        raise LabError(f"{argv[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise LabError(f"{' '.join(argv)} took longer than {timeout:.0f} s") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise LabError(f"{' '.join(argv)} failed: {said[-1] if said else f'exit {done.returncode}'}")
    return done.stdout


def succeeds(argv: Sequence[str], timeout: float = 120) -> bool:
    """Whether a program runs and exits 0."""
    try:
        run(argv, timeout=timeout)
    except LabError:
        return False
    return True
