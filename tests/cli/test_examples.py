"""The examples as an operator meets them: they validate, are locked, and their inventories are fresh."""

import json

import pytest

from gpufab_cli import cli
from tests.golden.cases import EXAMPLES


def summary(repository, capfd, name):
    assert cli.run(["validate", "-f", str(repository / "inventory" / name / "fabric.yml"), "--format", "json"]) == 0
    return json.loads(capfd.readouterr().out)


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_validates_is_locked_and_rendered(repository, capfd, name):
    found = summary(repository, capfd, name)
    assert found["locked"] == found["hosts"]["active"] > 0
    assert cli.run(["render", "-f", str(repository / "inventory" / name / "fabric.yml"), "--check"]) == 0


def test_what_is_otherwise_and_what_is_accepted_is_told(repository, capfd):
    assert summary(repository, capfd, "infiniband-ndr")["overridden"] == 1
    (accepted,) = summary(repository, capfd, "site-dscp-40")["accepted"]
    assert accepted == {"code": "roce.mtu", "hosts": "r1gpu03", "rail": "storage/1", "expires": "2030-06-30"}
