"""Start a job with mpirun on its first host, which reaches the others by itself."""

import re
import subprocess
from collections.abc import Sequence

from gpufab_cli.errors import GpufabError
from gpufab_cli.reach.connections import ssh_argv
from gpufab_cli.reach.target import Target

CONNECT_S = 15
SSH_FAILED = 255


def release(target: Target, mpirun: str) -> int:
    """The major release of a host's Open MPI.

    Raises:
        GpufabError: the host cannot be reached, or there is none.
    """
    done = subprocess.run(
        ssh_argv(target, (mpirun, "--version"), CONNECT_S),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"\(Open MPI\) (\d+)\.", done.stdout)
    if found is None:
        said = ((done.stderr or done.stdout).strip().splitlines() or [f"exit {done.returncode}"])[-1]
        raise GpufabError(f"{target.host}: {mpirun} --version: {said}", "install Open MPI, or give --mpirun PATH")
    return int(found[1])


def run(target: Target, argv: Sequence[str]) -> int:
    """Run a command on a host, its output on ours; the exit status is the command's.

    Raises:
        GpufabError: the host cannot be reached.
    """
    status = subprocess.run(ssh_argv(target, argv, CONNECT_S), stdin=subprocess.DEVNULL, check=False).returncode
    if status == SSH_FAILED:
        raise GpufabError(f"{target.host}: ssh ended with {status}", "is it reachable? gpufab audit says more")
    return status
