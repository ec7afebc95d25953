"""Work on many hosts at once, in threads; results as they come."""

import queue
import threading
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

T = TypeVar("T")


def each(hosts: Collection[str], work: Callable[[str], T], forks: int) -> Iterator[T]:
    """What the work gives for each host, in the order in which it ends, at most ``forks`` hosts at a time.

    Whoever takes the results sets the pace. No thread outlives the iterator by more than the work it is at.

    Raises:
        BaseException: what the work raised: a bug, shown here rather than a host that never ends.
    """
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.Queue[tuple[T] | BaseException] = queue.Queue(maxsize=forks)
    for host in hosts:
        waiting.put(host)

    def loop() -> None:
        while True:
            try:
                host = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((work(host),))
            except BaseException as error:
                done.put(error)

    for _ in range(min(forks, len(hosts))):
        threading.Thread(target=loop, daemon=True).start()
    try:
        for _ in hosts:
            item = done.get()
            if isinstance(item, BaseException):
                raise item
            yield item[0]
    finally:
        # Left early: no host is begun any more, and there is room for what the threads still put.
        _empty(waiting)
        _empty(done)


def _empty(items: "queue.SimpleQueue[str] | queue.Queue[tuple[T] | BaseException]") -> None:
    while True:
        try:
            items.get_nowait()
        except queue.Empty:
            return
