"""Text by path → files on disk, touching nothing that gpufab did not write."""

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.disk import replace
from gpufab_cli.errors import GpufabError, SpecErrors


@dataclass(frozen=True)
class FileChange:
    """One file that is not as rendered: ``current`` None means it is not there, ``wanted`` None that it is stale."""

    path: Path
    current: str | None
    wanted: str | None

    def diff(self, root: Path) -> Iterator[str]:
        """The change as lines of a unified diff, paths relative to ``root``."""
        name = self.path.relative_to(root).as_posix()
        yield from difflib.unified_diff(
            (self.current or "").splitlines(keepends=True),
            (self.wanted or "").splitlines(keepends=True),
            "/dev/null" if self.current is None else f"a/{name}",
            "/dev/null" if self.wanted is None else f"b/{name}",
        )


def compare(root: Path, files: Mapping[str, str], header: str) -> tuple[FileChange, ...]:
    """What would change below ``root`` so that it holds these files and no other of gpufab's.

    Args:
        root: their directory.
        files: path relative to it → text.
        header: what each of gpufab's files there starts with; no other file is touched.

    Raises:
        SpecErrors: files without gpufab's header are in the way; they are the site's. Or a folder is a link: what is
            written through it would lie elsewhere.
    """
    links = sorted({folder for name in files for folder in _folders(root, name) if folder.is_symlink()})
    if links:
        raise SpecErrors([_link(path) for path in links])
    wanted = {root / name: text for name, text in files.items()}
    current = {path: text for path in _files(root) if (text := _ours(path, header)) is not None}
    foreign = [path for path in wanted if path not in current and (path.exists() or path.is_symlink())]
    if foreign:
        raise SpecErrors([_foreign(path) for path in foreign])
    paths = sorted({*wanted, *current})
    changes = (FileChange(path, current.get(path), wanted.get(path)) for path in paths)
    return tuple(change for change in changes if change.current != change.wanted)


def write(root: Path, changes: Iterable[FileChange]) -> None:
    """Make the changes, each file in one move, and drop the directories that this empties.

    Raises:
        GpufabError: the file system refuses.
    """
    for change in changes:
        try:
            if change.wanted is None:
                change.path.unlink()
                _drop_empty(change.path.parent, root)
            else:
                replace(change.path, change.wanted)
        except OSError as error:
            raise GpufabError(f"{change.path}: {error.strerror}") from error


def _files(root: Path) -> Iterator[Path]:
    """Every regular file below a directory; links are followed nowhere."""
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory) / name
            if path.is_file() and not path.is_symlink():
                yield path


def _ours(path: Path, header: str) -> str | None:
    """The text of a file that bears gpufab's header; None for any other."""
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return text if text.startswith(header) else None


def _foreign(path: Path) -> GpufabError:
    return GpufabError(
        f"{path}: not written by gpufab", "move it away; the site's own variables go in a file beside it"
    )


def _folders(root: Path, name: str) -> Iterator[Path]:
    """The folders below the root that lead to a file."""
    parents = Path(name).parents
    return (root / parent for parent in parents if parent != Path())


def _link(path: Path) -> GpufabError:
    hint = "make it a folder; the site's own files may lie in it"
    return GpufabError(f"{path}: a link to {path.readlink()}, and nothing is written through one", hint)


def _drop_empty(directory: Path, root: Path) -> None:
    while directory != root and not any(directory.iterdir()):
        directory.rmdir()
        directory = directory.parent
