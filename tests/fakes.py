"""A node made of dictionaries, behind the same doors as a real one."""

import errno
import json
import re
import zlib
from collections.abc import Callable
from contextlib import contextmanager

from gpufab_cli.module_utils import nvml
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.host import ForbiddenQueryError, HostError, Output
from gpufab_cli.module_utils.queries import allowed, batch
from gpufab_cli.module_utils.stats import FileStat


class FakeHost:
    """Files, links and command answers in memory; every write is counted in ``writes``."""

    def __init__(self, files=None, links=None, answers=None, uid=0):
        self.files = dict(files or {})
        self.links = dict(links or {})
        self.answers: dict[tuple[str, ...], Output | Unknown | Callable] = dict(answers or {})
        self.unreadable: dict[str, str] = {}
        self.writes: list[tuple] = []
        self.inodes: dict[str, int] = {}
        self.modes: dict[str, int] = {}
        self.stats: dict[str, FileStat] = {}
        self.own_tables: set[str] = set()  # threads that have a table of open files of their own
        self.library = None  # what stands for libnvidia-ml
        self.locked = 0
        self.up_seconds = 500.0
        self._uid = uid
        self.free: int | Unknown = 1 << 40

    def _below(self, path):
        prefix = path.rstrip("/") + "/"
        for name in [*self.files, *self.links]:
            if name.startswith(prefix):
                yield name[len(prefix) :].split("/")[0]

    def _resolve(self, path):
        """Follow links of leading directories, as a file system does."""
        for link, target in self.links.items():
            if path.startswith(link + "/"):
                return self._resolve(target + path[len(link) :])
        return path

    def read(self, path):
        content = self.read_bytes(path)
        return content.decode("utf-8", "surrogateescape").rstrip("\n") if isinstance(content, bytes) else content

    def read_of_user(self, path):
        return Unknown(f"{path}: a link is not followed") if path in self.links else self.read(path)

    def read_bytes(self, path):
        path = self._resolve(path)
        if path in self.unreadable:
            return Unknown(f"{path}: {self.unreadable[path]}")
        content = self.files.get(path, ABSENT)
        return content.encode() if isinstance(content, str) else content

    def names(self, path):
        path = self._resolve(path)
        if path in self.unreadable:
            return Unknown(f"{path}: {self.unreadable[path]}")
        return tuple(sorted(set(self._below(path)))) or ABSENT

    def link(self, path):
        if path in self.unreadable:
            return Unknown(f"{path}: {self.unreadable[path]}")
        return self.links.get(self._resolve(path), ABSENT)

    def stat(self, path):
        """Root's own file, unless it is told otherwise; a process's program and root lead to where they point."""
        path = re.sub(r"^/proc/\d+/root(?=/|$)", "", path)
        if path in self.unreadable:
            return Unknown(f"{path}: {self.unreadable[path]}")
        if path in self.stats:
            return self.stats[path]
        if path.startswith("/proc/") and path in self.links:
            return self.stat(self.links[path])
        if not path:
            return FileStat(0, 0o40755, (0, 0, 2))
        return FileStat(0, 0o100755, (0, 0, zlib.crc32(path.encode()))) if self.exists(path) else ABSENT

    def same_files(self, one, other):
        return one == other or not {one, other} & self.own_tables

    def head(self, path, most):
        content = self.read_bytes(path)
        return content.decode("utf-8", "surrogateescape")[:most] if isinstance(content, bytes) else content

    def inode(self, path):
        return self.inodes.get(path, 1 if self.exists(path) else ABSENT)

    def has_nvml(self):
        return self.library is not None

    def nvml(self, question):
        return _ask(nvml.Getters, question, self.library)

    def set_nvml(self, order):
        answer = _ask(nvml.Setters, order, self.library)
        if isinstance(answer, Unknown):
            raise HostError(answer.reason)

    def exists(self, path):
        path = self._resolve(path)
        return path in self.files or path in self.links or any(self._below(path))

    def size(self, path):
        content = self.read_bytes(path)
        return len(content) if isinstance(content, bytes) else content

    def tail(self, path, limit):
        content = self.read_bytes(path)
        if not isinstance(content, bytes):
            return content
        text = content[-limit:].decode("utf-8", "replace")
        return text.partition("\n")[2] if len(content) > limit else text

    def mode(self, path):
        path = self._resolve(path)
        return self.modes.get(path, 0o644 if path in self.files else ABSENT)

    def set_mode(self, path, mode):
        self.writes.append((path, mode))
        self.modes[path] = mode

    def installed(self, program):
        return any(argv[0] == program for argv in self.answers)

    def query(self, *argv):
        if not allowed(argv):
            raise ForbiddenQueryError(" ".join(argv))
        return self._answer(argv)

    def batch(self, commands):
        """One program for several commands: here each answers for itself, unless the batch as a whole has an answer."""
        found = batch(commands)
        if found is None:
            raise ForbiddenQueryError(str(commands))
        whole = self.answers.get(found[0])
        if whole is not None:
            return whole(found[1]) if callable(whole) else whole
        return dcb_batched([self._answer(command) for command in commands])

    def _answer(self, argv):
        answer = self.answers.get(tuple(argv))
        if answer is None:
            return Unknown(f"{argv[0]} is not installed")
        return answer() if callable(answer) else answer

    def uid(self):
        return self._uid

    def now(self):
        return 1000.0

    def uptime(self):
        return self.up_seconds

    def run(self, *argv, seconds=60.0):
        self.writes.append(argv)
        answer = self._answer(argv)
        if isinstance(answer, Unknown):
            raise HostError(answer.reason)
        if answer.rc:
            raise HostError(f"{' '.join(argv)}: {answer.error}")
        return answer

    def attempt(self, *argv, seconds=60.0):
        self.writes.append(argv)
        return self._answer(argv)

    def free_bytes(self, path):
        return self.free

    def set(self, path, value):
        path = self._resolve(path)
        self.writes.append((path, value))
        if path not in self.files:
            raise HostError(f"cannot write {path}: {errno.errorcode[errno.ENOENT]}")
        self.files[path] = value + "\n"

    def put(self, path, content, mode=0o644):
        self.writes.append((path, content))
        self.files[path] = content

    def append(self, path, line, mode=0o640):
        old = self.files.get(path, b"")
        self.files[path] = (old.encode() if isinstance(old, str) else old) + line.encode() + b"\n"

    def rename(self, path, target):
        self.files[target] = self.files.pop(path)

    def symlink(self, path, target):
        self.writes.append((path, target))
        self.links[path] = target

    def remove(self, path):
        self.writes.append((path, None))
        self.files.pop(path, None)
        self.links.pop(path, None)

    def make_directory(self, path):
        self.writes.append((path, "mkdir"))

    def remove_directory(self, path):
        self.writes.append((path, "rmdir"))

    def sleep(self, seconds):
        pass

    @contextmanager
    def lock(self, path, seconds):
        self.locked += 1
        yield


def _ask(kind, question, library):
    """A question to NVML, without a process of its own but through JSON all the same."""
    try:
        return json.loads(json.dumps(question(kind(library))))
    except nvml.NvmlError as error:
        return Unknown(f"NVML: {error}")


def dcb_batched(answers):
    """What ``dcb -j -f -b -`` prints where the single shows would have printed these."""
    unknown = next((answer for answer in answers if isinstance(answer, Unknown)), None)
    if unknown is not None:
        return unknown
    objects = [answer.stdout.strip() for answer in answers if answer.rc == 0]
    told = [(number, answer.stderr) for number, answer in enumerate(answers, 1) if answer.rc]
    errors = "".join(f"{said.rstrip()}\nCommand failed -:{number}\n" for number, said in told)
    return Output(1 if told else 0, ",".join(objects) + "\n", errors)


def start(host, pid, name, *held, exe=None, uid=0):
    """A process that holds files open, of a program that lies where it should; ``uid`` is whose it is."""
    exe = f"/usr/bin/{name}" if exe is None else exe
    ids = f"\t{uid}" * 4
    host.files |= {f"/proc/{pid}/comm": f"{name[:15]}\n", f"/proc/{pid}/status": f"Name:\t{name}\nUid:{ids}\n"}
    host.files |= {exe.removesuffix(" (deleted)"): "program"}
    host.links |= {f"/proc/{pid}/exe": exe, **{f"/proc/{pid}/fd/{3 + n}": file for n, file in enumerate(held)}}


def ok(value):
    """A command that answers with text, or with JSON of anything else; the last line has its end, as tools print it."""
    text = value if isinstance(value, str) else json.dumps(value)
    return Output(0, text if text.endswith("\n") or not text else text + "\n", "")


def failed(stderr, rc=1):
    return Output(rc, "", stderr)
