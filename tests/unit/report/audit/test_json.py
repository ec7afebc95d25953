"""The report as JSON text, written piece by piece."""

import json

from gpufab_cli.audit.audit import audit
from gpufab_cli.audit.collect import Collected, Failed, Failure
from gpufab_cli.report.audit.json import data, text
from tests.snapshots import WANTS, in_sync


def test_the_pieces_are_the_whole():
    answers = {
        "gpu01": in_sync("gpu01"),
        "gpu02": in_sync("gpu02", ports={0: {"pfc": ()}}),
        "gpu03": Failure(Failed.TIMEOUT, 'no "answer"\n'),
    }
    report = audit((Collected(host, answer) for host, answer in answers.items()), WANTS)
    assert report.fabric
    assert "".join(text(report)) == json.dumps(data(report), indent=2) + "\n"
