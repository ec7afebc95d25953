"""What others have chosen comes to the terminal as it is, and does nothing there."""

from gpufab_cli.report.console import print_table, progress, results


def test_brackets_are_no_markup(capsys):
    print_table(["a", "[b]"], [["always [madvise] never", "[/etc/x]"]], title="[gpu01]")
    shown = capsys.readouterr().out
    assert all(words in shown for words in ("[gpu01]", "[b]", "always [madvise] never", "[/etc/x]"))


def test_nothing_is_acted_on_or_cannot_be_encoded(capsys):
    print_table(["name"], [["a\x1b]0;title\x07b\udcff"]])
    assert "a?]0;title?b?" in capsys.readouterr().out


def test_a_line_of_its_own_has_no_markup_either(capsys):
    results().print("[/etc]/fabric.yml :100:")
    assert capsys.readouterr().out == "[/etc]/fabric.yml :100:\n"


def test_nor_is_what_goes_to_stderr(capsys):
    progress("gpu01: \x1b[2J\udcff")
    assert capsys.readouterr().err == "gpu01: ?[2J?\n"
