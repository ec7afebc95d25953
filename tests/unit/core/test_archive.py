"""The core as a zip: the same bytes from pip's files, and everything in it can be reached from its entry."""

import io
import subprocess
import sys
import zipfile

from gpufab_cli.module_utils import archive


def test_every_file_of_the_core_is_in_the_archive_and_nothing_else(repository):
    core = repository / "gpufab_cli/module_utils"
    on_disk = {str(path.relative_to(core)): path.read_text() for path in core.rglob("*.py")}
    assert archive.sources() == on_disk


def test_entries_are_stored_with_one_date_in_one_order():
    with zipfile.ZipFile(io.BytesIO(archive.build())) as opened:
        entries = opened.infolist()
    assert {(entry.compress_type, entry.date_time) for entry in entries} == {(0, (1980, 1, 1, 0, 0, 0))}
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)


def test_the_archive_rebuilds_itself_byte_for_byte(tmp_path):
    path = tmp_path / "gpufab.pyz"
    path.write_bytes(archive.build())
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from gpufab_node import archive;"
        "sys.stdout.buffer.write(archive.build())"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code, path], capture_output=True, check=True)
    assert done.stdout == path.read_bytes()
