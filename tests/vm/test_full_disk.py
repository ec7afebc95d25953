"""A root file system that takes nothing, and machines that lose power in the middle of an apply."""

import json
import subprocess
import threading
import time

import pytest

from tests.vm import ports_of
from tests.vm.crash import Crash
from tests.vm.site import ALLOW, SLOW_S

pytestmark = [pytest.mark.vm, pytest.mark.vm_full]

_FULL = "dd if=/dev/zero of=/var/filler bs=1M 2>/dev/null; dd if=/dev/zero of=/var/filler2 bs=1 2>/dev/null; sync; df /"
_READ_ONLY = "systemctl stop systemd-journald.socket systemd-journald; mount -o remount,ro /"
IMAGES = 10


@pytest.mark.parametrize("ends", ["full", "read-only"])
def test_a_disk_that_takes_nothing_does_not_stop_a_restore(applied, sh, ends):
    sh("dcb pfc set dev rail0 prio-pfc 3:off; dcb pfc set dev rail1 prio-pfc 3:off")
    if ends == "full":
        sh(f"{_FULL}; ! echo x >/var/x")
    else:
        sh("echo 1 >/proc/sys/kernel/sysrq; echo u >/proc/sysrq-trigger; sleep 5; ! touch /var/x")
    sh("systemctl start gpufab-restore@late")
    assert ports_of.lossless(sh, "rail0")
    assert ports_of.lossless(sh, "rail1")


def test_power_lost_during_an_apply_tears_nothing(fresh, tmp_path):
    """Images of the disk at ten moments of a first apply, read without a boot."""
    site, machine = fresh.site, fresh.machine
    site.cli("lock", "--timeout", "300")
    site.cli("render")
    images = []
    argv = [site.bin / "gpufab", "apply", "--allow", ALLOW, "--timeout", SLOW_S]
    apply = subprocess.Popen(argv, cwd=site.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    drained = threading.Thread(target=apply.stdout.read, daemon=True)
    drained.start()
    while apply.poll() is None and len(images) < IMAGES:
        time.sleep(8)
        images.append(Crash(machine, tmp_path / f"{len(images)}"))
    apply.wait(1500)
    assert len(images) == IMAGES
    begun = 0
    for image in images:
        for path, text in image.files().items():
            begun += path.endswith("journal.jsonl")
            for line in text.splitlines() if path.endswith(".jsonl") else [text]:
                json.loads(line)
    assert begun, "no image was taken while the apply wrote"
