"""Every code that is used is in the catalogue, and every code of the catalogue is used."""

import ast
import re

from gpufab_cli.audit.collect import Failed, Failure
from gpufab_cli.catalogue import Severity, catalogue

CODE = re.compile(r"[a-z]+\.[a-z0-9-]+")
FAMILIES = {"roce", "device", "foreign", "node", "host", "fabric", "waiver"}
FILES = (".yml", ".json", ".md")


def used(repository):
    """Codes as string literals anywhere in the sources, and those that are made of a failure's kind."""
    found = {Failure(kind, "").code for kind in Failed}
    families = {code.partition(".")[0] for code in catalogue()} | FAMILIES
    for path in (repository / "gpufab_cli").rglob("*.py"):
        if "lab" in path.relative_to(repository).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            if CODE.fullmatch(text) and text.partition(".")[0] in families and not text.endswith(FILES):
                found.add(text)
    return found


def test_codes_of_the_sources_are_the_codes_of_the_catalogue(repository):
    assert used(repository) == set(catalogue())


def test_entries_are_whole_and_in_order(repository):
    text = (repository / "gpufab_cli" / "catalogue.yml").read_text()
    codes = re.findall(r"^([a-z0-9.-]+):", text, re.MULTILINE)
    assert codes == sorted(codes) == list(catalogue())
    for entry in catalogue().values():
        assert isinstance(entry.severity, Severity)
        assert not entry.title.endswith(".")
        assert all(text.endswith((".", ".)")) for text in (entry.symptom, entry.cause, entry.remedy)), entry.code
