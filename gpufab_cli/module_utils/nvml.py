"""NVML by ctypes, behind the doors of :mod:`.host`: getters for a Reader, setters too for a Host.

Every question is asked in a child process within a time limit: a GPU that has fallen off the bus can make a call of
the library hang for good. Names, constants and units are those of nvml.h.
"""

import ctypes
import json
import os
import select
import signal
import time
from contextlib import suppress
from typing import Any, Callable, List, Optional, Tuple, Union

from .change import ABSENT, Absent, Unknown
from .texts import parse_json

LIBRARY = "libnvidia-ml.so.1"

NOT_SUPPORTED, DRIVER_NOT_LOADED, FUNCTION_NOT_FOUND, GPU_IS_LOST = 3, 9, 13, 15
CLOCK_GRAPHICS, CLOCK_MEM = 0, 2
MILLIWATTS = 1000
_NAME_LENGTH = 96  # NVML_DEVICE_NAME_V2_BUFFER_SIZE
_CLOCKS = 1024  # more than any GPU has; H100 has some 120
_CHUNK = 65536

Handle = ctypes.c_void_p


class NvmlError(Exception):
    """A call that NVML refused, by its return code."""

    def __init__(self, function: str, code: int, words: str) -> None:
        super().__init__(f"{function}: {words}")
        self.code = code


class Getters:
    """What can be read of a GPU. Power is in milliwatts, clocks are in MHz, as NVML has them."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._call("nvmlInit_v2")

    def _call(self, function: str, *arguments: Any) -> None:
        found = getattr(self._library, function, None)
        code = found(*arguments) if found is not None else FUNCTION_NOT_FOUND  # the library is older than the function
        if code:
            raise NvmlError(function, code, self._words(code))

    def _words(self, code: int) -> str:
        text = self._library.nvmlErrorString
        text.restype = ctypes.c_char_p
        said = text(code)
        return said.decode() if isinstance(said, bytes) else f"error {code}"

    def handle(self, pci: str) -> Handle:
        """The GPU at a PCI address."""
        found = Handle()
        self._call("nvmlDeviceGetHandleByPciBusId_v2", pci.encode(), ctypes.byref(found))
        return found

    def name(self, gpu: Handle) -> str:
        """The product's name."""
        text = ctypes.create_string_buffer(_NAME_LENGTH)
        self._call("nvmlDeviceGetName", gpu, text, ctypes.c_uint(_NAME_LENGTH))
        return text.value.decode()

    def number(self, function: str, gpu: Handle, *arguments: int) -> int:
        """What a getter of one unsigned number gives."""
        return self._numbers(function, gpu, arguments, (ctypes.c_uint,))[0]

    def pair(self, function: str, gpu: Handle) -> Tuple[int, int]:
        """What a getter of two unsigned numbers gives."""
        first, second = self._numbers(function, gpu, (), (ctypes.c_uint, ctypes.c_uint))
        return first, second

    def reasons(self, gpu: Handle) -> int:
        """Why the clocks are not higher, a bit each. The older name of the call is in every release."""
        return self._numbers("nvmlDeviceGetCurrentClocksThrottleReasons", gpu, (), (ctypes.c_ulonglong,))[0]

    def clocks(self, function: str, gpu: Handle, *arguments: int) -> Tuple[int, ...]:
        """A list of clocks, ascending."""
        size = ctypes.c_uint(_CLOCKS)
        found = (ctypes.c_uint * size.value)()
        self._getter(function)(gpu, *map(ctypes.c_uint, arguments), ctypes.byref(size), found)
        return tuple(sorted(set(found[: size.value])))

    def _numbers(self, function: str, gpu: Handle, arguments: Any, kinds: Any) -> List[int]:
        found = [kind() for kind in kinds]
        self._getter(function)(gpu, *map(ctypes.c_uint, arguments), *map(ctypes.byref, found))
        return [item.value for item in found]

    def _getter(self, function: str) -> Callable[..., None]:
        if not function.startswith("nvmlDeviceGet"):
            raise ValueError(f"{function} does not only look")
        return lambda *arguments: self._call(function, *arguments)


class Setters(Getters):
    """What can be set on a GPU as well."""

    def set(self, function: str, gpu: Handle, *arguments: int) -> None:
        """A setter that takes unsigned numbers."""
        self._call(function, gpu, *map(ctypes.c_uint, arguments))

    def set_mig(self, gpu: Handle, on: bool) -> None:
        """MIG mode. NVML tells apart whether it refuses, and whether it could not switch at once."""
        status = ctypes.c_uint()
        self._call("nvmlDeviceSetMigMode", gpu, ctypes.c_uint(on), ctypes.byref(status))


def library() -> Optional[Any]:
    """The library; None where the node has none."""
    try:
        return ctypes.CDLL(LIBRARY)
    except OSError:
        return None


def ask(kind: Callable[[Any], Any], question: Callable[[Any], Any], seconds: float) -> Union[Any, Absent, Unknown]:
    """What a question gives, as JSON data; ABSENT without the library, Unknown when it fails or takes too long."""
    loaded = library()
    if loaded is None:
        return ABSENT
    text = _in_child(lambda: _answer(kind, question, loaded), seconds)
    if text is None:
        return Unknown(f"NVML did not answer within {seconds:.0f} s")
    try:
        answer = parse_json(text)
    except ValueError:
        return Unknown("NVML ended the process that asked it")
    return Unknown(answer["error"]) if "error" in answer else answer["value"]


def _answer(kind: Callable[[Any], Any], question: Callable[[Any], Any], loaded: Any) -> str:
    try:
        return json.dumps({"value": question(kind(loaded))})
    except NvmlError as error:
        return json.dumps({"error": f"NVML: {error}"})


def _in_child(work: Callable[[], str], seconds: float) -> Optional[str]:
    """What the work gives, done in a child; None when it takes longer. A child that is stuck for good must not keep
    open what somebody reads to its end, such as an audit's connection.
    """
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        with suppress(BaseException):
            nothing = os.open(os.devnull, os.O_RDWR)
            for standard in range(3):
                os.dup2(nothing, standard)
            with os.fdopen(writing, "w") as stream:
                stream.write(work())
            status = 0
        os._exit(status)
    os.close(writing)
    try:
        return _until_closed(reading, time.monotonic() + seconds)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        # A child that is stuck in the driver cannot be waited for; it is left to init.
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def _until_closed(reading: int, deadline: float) -> Optional[str]:
    found: List[bytes] = []
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        chunk = os.read(reading, _CHUNK)
        if not chunk:
            return b"".join(found).decode()
        found.append(chunk)
