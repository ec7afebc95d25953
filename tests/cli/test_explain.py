"""``gpufab explain``: what a code means."""

import json

from click.testing import CliRunner

from gpufab_cli.catalogue import catalogue
from gpufab_cli.cli import cli
from gpufab_cli.errors import Exit
from tests.cli.expected import expected


def test_one_code(gpufab_on):
    code, out, err = gpufab_on("explain", "roce.pfc")
    assert (code, err) == (Exit.IN_SYNC, "")
    assert out == expected("explain", out)


def test_all_codes(gpufab_on):
    code, out, _ = gpufab_on("explain")
    assert code == Exit.IN_SYNC
    assert [line.split()[0] for line in out.splitlines() if "." in line.split("  ")[0]] == list(catalogue())


def test_json(gpufab_on):
    one = json.loads(gpufab_on("explain", "roce.pfc", "--format", "json")[1])
    assert (one["code"], one["severity"]) == ("roce.pfc", "critical")
    assert set(one) == {"code", "severity", "title", "symptom", "cause", "remedy"}
    assert [item["code"] for item in json.loads(gpufab_on("explain", "--format", "json")[1])] == list(catalogue())


def test_a_code_that_there_is_not(gpufab_on):
    error = "error: no code 'roce.pfk'\nhint: did you mean roce.pfc?\n"
    assert gpufab_on("explain", "roce.pfk") == (Exit.USAGE, "", error)


def test_codes_are_completed():
    environment = {"_GPUFAB_COMPLETE": "bash_complete", "COMP_WORDS": "gpufab explain device.mo", "COMP_CWORD": "2"}
    done = CliRunner().invoke(cli, prog_name="gpufab", env=environment)
    assert done.output.split() == ["plain,device.moved"]
