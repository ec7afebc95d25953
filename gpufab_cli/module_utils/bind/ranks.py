"""Which rank of its node a process is, in the words of whatever launcher has started it."""

from typing import Mapping, Optional, Tuple

from ..texts import natural

LOCAL_RANKS: Tuple[str, ...] = (
    "OMPI_COMM_WORLD_LOCAL_RANK",  # Open MPI
    "SLURM_LOCALID",  # srun
    "MPI_LOCALRANKID",  # Intel MPI, MPICH's Hydra
    "MV2_COMM_WORLD_LOCAL_RANK",  # MVAPICH
    "PALS_LOCAL_RANKID",  # Cray PALS
    "FLUX_TASK_LOCAL_ID",  # Flux
    "PMI_LOCAL_RANK",
    "LOCAL_RANK",  # torchrun
)
"""The variables in the order in which they count: torchrun's own is set for processes below one that mpirun started."""

_SHOWN = 40
_NESTED = ("LOCAL_RANK", "TORCHELASTIC_RUN_ID")


def local_rank(environment: Mapping[str, str]) -> Tuple[Optional[int], str]:
    """The local rank and the variable that says so; None and what is wrong where none does."""
    names = (_NESTED[0], *LOCAL_RANKS) if all(name in environment for name in _NESTED) else LOCAL_RANKS
    for name in names:
        text = environment.get(name)
        if text is not None:
            rank = natural(text)
            return rank, name if rank is not None else f"{name} is {text[:_SHOWN]!r}, no number"
    return None, f"no launcher tells the local rank: none of {', '.join(LOCAL_RANKS)} is set"
