"""The emulated tools answer as the real ones do: tests/vm/parity.json was recorded on a real kernel."""

import json
from pathlib import Path

import pytest

from tests.vm import parity

pytestmark = pytest.mark.lab

PORT = "enp64s0np0"
GOLDEN = Path(parity.__file__).with_suffix(".json")


def test_emulated_tools_answer_as_real_ones(lab, sh):
    sh(f"echo 1 >/sys/class/net/{PORT}/device/sriov_numvfs")
    done = lab.run("gpu01", f"sudo -n python3 - {PORT} <<'END'\n{Path(parity.__file__).read_text()}END")
    assert done.returncode == 0, done.stderr
    assert parity.differences(json.loads(GOLDEN.read_text()), json.loads(done.stdout)) == []
