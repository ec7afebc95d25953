"""YAML as it is written by hand, by accident, and by someone who means harm."""

import pytest

from gpufab_cli.errors import SpecErrors
from gpufab_cli.spec import source


def data(text):
    return source.parse(text, "f.yml").data


def errors(text):
    with pytest.raises(SpecErrors) as caught:
        source.parse(text, "f.yml")
    return list(caught.value.lines())


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("-3", -3),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("3.20", 3.2),
        ("1e5", 1e5),
        (".inf", ".inf"),
        ("2026-01-01", "2026-01-01"),
        ("true", True),
        ("~", None),
        ("", None),
        ("'8'", "8"),
        ("0x", "0x"),
        ("100000000000000000000", 10**20),
        ("9" * 5000, "9" * 5000),
        ("1e999", float("inf")),
        ("5.", 5.0),
    ],
)
def test_scalars_mean_what_yaml_1_2_says(written, value):
    found = data(f"a: {written}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_lists_are_frozen():
    assert data("a: [1, [2]]") == {"a": (1, (2,))}


def test_every_path_knows_its_line_and_what_is_written_there():
    document = source.parse("a:\n  b:\n    - 007\n", "f.yml")
    assert document.mark(("a", "b", 0)) == source.Mark(3, "007")
    assert document.mark(("a", "missing")).line == document.mark(("a",)).line


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &x 1\nb: *x\n", "f.yml:1: anchors and aliases are not taken"),
        ("a: !!python/object:os.system 1\n", "f.yml:1: tag tag:yaml.org,2002:python/object:os.system is not taken"),
        ("a: !x {b: 1}\n", "f.yml:1: tag !x is not taken"),
        ("b:\n  <<: {a: 1}\n", "f.yml:2: merge keys are not taken"),
        ("a: 1\nb: 2\na: 3\n", "f.yml:3: a: given twice, first on line 1"),
        ("a: 1\n---\nb: 2\n", "f.yml:2: a second document"),
        ("? [a]\n: b\n", "f.yml:1: a key must be a plain value"),
        ("a:\n\tb: 1\n", "f.yml:2: found character that cannot start any token"),
        ("a: \x00", "f.yml: not YAML: unacceptable character #x0000: control characters are not allowed"),
    ],
)
def test_what_is_not_taken_is_refused_at_its_line(text, message):
    assert errors(text)[0] == f"error: {message}"


def test_a_tab_is_told_by_name():
    assert errors("a:\n\tb: 1\n")[1] == "hint: indent with spaces, not tabs"


@pytest.mark.parametrize("text", ["[" * 100_000, "{a: " * 100_000, "- " * 100_000, "a: " + "[" * 40 + "]" * 40])
def test_nesting_is_bounded(text):
    assert "nest" in errors(text)[0]


def test_a_hundred_aliases_of_a_hundred_aliases_cost_nothing():
    rows = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 30))
    assert "anchors and aliases" in errors(f"l0: &l0 [x]\n{rows}\n")[0]


def test_several_faults_are_told_at_once():
    assert len([line for line in errors("a: !x 1\nb: &y 2\na: 3\n") if line.startswith("error")]) == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name: \xff\xfe\n", "not UTF-8 text"),
        (b"a" * (source.MAX_BYTES + 1), f"larger than {source.MAX_BYTES} bytes"),
    ],
)
def test_files_that_are_no_text_are_refused(tmp_path, content, message):
    path = tmp_path / "fabric.yml"
    path.write_bytes(content)
    with pytest.raises(SpecErrors) as caught:
        source.read(path)
    assert message in caught.value.message


def test_the_line_of_a_wrong_byte_is_named(tmp_path):
    path = tmp_path / "fabric.yml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(SpecErrors, match=r"fabric\.yml:2: not UTF-8"):
        source.read(path)


def test_a_missing_file_and_a_directory_are_errors(tmp_path):
    for path in (tmp_path / "none.yml", tmp_path):
        with pytest.raises(SpecErrors):
            source.read(path)


def test_a_byte_order_mark_is_not_part_of_the_first_key(tmp_path):
    path = tmp_path / "fabric.yml"
    path.write_bytes(b"\xef\xbb\xbfname: x\n")
    assert source.read(path).data == {"name": "x"}
