"""``python -m tests.vm [FOLDER]``: a machine to look at by hand; it ends with this program."""

import signal
import sys
import tempfile
from pathlib import Path

from tests.vm import image, requirements
from tests.vm.machine import Machine
from tests.vm.site import Site


def main() -> None:
    """Boot one, say how it is reached, wait for the end."""
    if reason := requirements.missing():
        sys.exit(reason)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="gpufab-vm-")).resolve()
    folder.mkdir(exist_ok=True)
    machine = Machine(image.ensure(print), folder)
    try:
        machine.create_disk()
        machine.start().wait_up()
        site = Site(folder, [machine])
        print(f"fabric: cd {site.folder}\nlogin:  ssh -F {machine.guest.config} {machine.name}", flush=True)  # noqa: T201
        print(f"monitor: {machine.short / 'hmp'}\nconsole: {machine.console}", flush=True)  # noqa: T201
        signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        machine.close()


main()
