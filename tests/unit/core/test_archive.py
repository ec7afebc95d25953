"""The core as a zip: all of it, the same bytes whoever builds it."""

import io
import subprocess
import sys
import zipfile

from gpufab_cli.module_utils import archive, program


def test_every_file_of_the_core_is_in_the_archive_and_nothing_else(repository):
    core = repository / "gpufab_cli/module_utils"
    on_disk = {str(path.relative_to(core)): path.read_bytes() for path in core.rglob("*.py")}
    assert archive.sources() == on_disk


def test_entries_are_stored_with_one_date_in_one_order():
    with zipfile.ZipFile(io.BytesIO(archive.build())) as opened:
        entries = opened.infolist()
    assert {(entry.compress_type, entry.date_time) for entry in entries} == {(0, (1980, 1, 1, 0, 0, 0))}
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)


def test_a_program_that_is_replaced_while_it_runs_is_still_what_it_was(tmp_path):
    """It has read more than a pipe holds, so it runs; and it has yet to import the feature of the wish."""
    path, other = tmp_path / "gpufab.pyz", tmp_path / "other"
    path.write_bytes(archive.build())
    other.write_bytes(b"another release")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-I", path, "collect"], **pipes) as process:
        process.stdin.write(b" " * 2**20)
        process.stdin.flush()
        other.replace(path)
        _, said = process.communicate(b'{"wants": {"links": 7}}')
    assert process.returncode == program.USAGE
    assert said.startswith(b"gpufab: wishes on stdin: links")
