"""The JSON Schema takes what validate takes, and marks what an editor can mark."""

import json

import jsonschema
import pytest

from gpufab_cli.spec import source
from gpufab_cli.spec.schema import json_schema
from tests.fabrics import changed
from tests.golden.cases import EXAMPLES

VALIDATOR = jsonschema.Draft202012Validator(json_schema())


def told(data):
    return [error.json_path for error in VALIDATOR.iter_errors(json.loads(json.dumps(data)))]


def text_told(*replacements):
    return told(source.parse(changed(*replacements), "f").data)


def test_it_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("name", ["lab", *EXAMPLES])
def test_the_examples_fit(repository, name):
    assert told(source.read(repository / "inventory" / name / "fabric.yml").data) == []


@pytest.mark.parametrize("rail", ["1", "0-1", '"0,1"', "[0, 1]"])
def test_rails_may_be_written_in_every_way(rail):
    assert text_told(("rail: 0-1", f"rail: {rail}")) == []


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("transport: roce", "transport: rocky", "$.networks.compute.transport"),
        ("speed_gbps: 400", 'speed_gbps: "400"', "$.networks.compute.speed_gbps"),
        ("priority: 3", "priority: 8", "$.qos.dcqcn.lossless[0].priority"),
        ("lossless:", "losless:", "$.qos.dcqcn"),
        ("{user: ops}", "{user: '-oProxyCommand=x'}", "$.connection.user"),
        ("profile: box", "profil: box", "$.hosts[0]"),
    ],
)
def test_a_slip_is_marked_at_its_place(old, new, path):
    assert path in text_told((old, new))


def test_every_key_is_described():
    models = json_schema()["$defs"] | {"fabric.yml": json_schema()}
    bare = [
        f"{name}.{key}"
        for name, model in models.items()
        for key, item in model.get("properties", {}).items()
        if not item.get("description") and "$ref" not in item
    ]
    assert bare == []
