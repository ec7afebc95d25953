"""Faults of clocks and power."""

from gpufab_cli.lab.fault import FaultKind, Strike, model


def _drift(name: str, text: str, argument: str = "GPU") -> FaultKind:
    def strike(strike: Strike) -> None:
        strike.node.ask("drift-power", name=name, gpu=int(strike.argument or 0))

    return FaultKind(name, text, strike, argument=argument)


KINDS = (
    _drift("persistence-off", "a GPU's persistence mode is off: limit and locks are lost"),
    _drift("power-reset-by-job", "a job's epilog has set a GPU's power limit to its default"),
    _drift("clock-lost", "the GPUs' driver was reloaded: persistence, limits and locks are lost", ""),
    _drift("governor-overwritten", "another program has set the governor of all CPUs", ""),
    model("thermal-throttle", "a GPU is too hot and slowed down", "GPU"),
    model("gpu-lost", "a GPU has fallen off the bus", "GPU"),
)
