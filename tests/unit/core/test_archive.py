"""The core as a zip: all of it, the same bytes whoever builds it."""

import io
import zipfile

from gpufab_cli.module_utils import archive


def test_every_file_of_the_core_is_in_the_archive_and_nothing_else(repository):
    core = repository / "gpufab_cli/module_utils"
    on_disk = {str(path.relative_to(core)): path.read_bytes() for path in core.rglob("*.py")}
    assert archive.sources() == on_disk


def test_entries_are_stored_with_one_date_in_one_order():
    with zipfile.ZipFile(io.BytesIO(archive.build())) as opened:
        entries = opened.infolist()
    assert {(entry.compress_type, entry.date_time) for entry in entries} == {(0, (1980, 1, 1, 0, 0, 0))}
    assert [entry.filename for entry in entries] == sorted(entry.filename for entry in entries)
