"""What the real tools answer to the commands that the lab emulates. The lab is not held against it yet."""

import json
import os
from pathlib import Path

import pytest

from tests.vm import parity

pytestmark = pytest.mark.vm

GOLDEN = Path(parity.__file__).with_suffix(".json")
RENEW = "GPUFAB_VM_RENEW"
"""Set, the record is written anew."""


def test_the_record_is_what_a_real_kernel_answers(applied, sh):
    sh(f"cat >/root/parity.py <<'END'\n{Path(parity.__file__).read_text()}END")
    found = json.loads(sh("python3 /root/parity.py rail0"))
    if os.environ.get(RENEW):
        GOLDEN.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    assert parity.differences(json.loads(GOLDEN.read_text()), found) == []
