"""What stands for a module on a node: ``python -m tests.daytwo.module FLEET HOST RUN ALLOWED``."""

import sys

from tests.daytwo.operator import module

if __name__ == "__main__":
    folder, host, run, allowed = sys.argv[1:]
    print(module(folder, host, run, allowed == "1"))  # noqa: T201
