"""pytest's side of the suite: which tests there are for which node and port, and what a test is given.

Every node is read once, before its tests, and several nodes at once. What cannot be read is skipped with its reason; a
run in which nothing failed but something was skipped exits 3, for unknown is not a pass. A test that compares nothing
fails, and so does a run without a test.
"""

import os
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpufab_cli.compile.fabric import load_fabric
from gpufab_cli.errors import Exit
from gpufab_cli.verify import power
from gpufab_cli.verify.compare import comparing
from gpufab_cli.verify.expected import Card, Link, Node, Port, nodes
from gpufab_cli.verify.port import PortReading
from gpufab_cli.verify.reading import Reading, UnreachableError, UnreadableError, read_all
from gpufab_cli.verify.results import UNREACHABLE, Results, check_name

NODES = pytest.StashKey[tuple[Node, ...]]()
UNLOCKED = pytest.StashKey[dict[str, str]]()
READINGS = pytest.StashKey[dict[str, Reading | UnreachableError]]()
RESULTS = pytest.StashKey[Results]()
CHECKED = pytest.StashKey[set[tuple[str, str]]]()
"""Each host with each feature that some test proves on it."""

Subject = Node | Port | Link | Card
PARTS = {"port": "ports", "link": "links", "card": "cards"}
"""Fixtures of what a node has several of, and where it has them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say which fabric and which of its hosts."""
    group = parser.getgroup("gpufab")
    group.addoption(
        "--fabric", type=Path, default=Path(os.environ.get("GPUFAB_FABRIC", "fabric.yml")), help="The file."
    )
    group.addoption("--limit", metavar="PATTERN", help="Only these hosts.")
    group.addoption("--results", type=Path, help="Write every result to this file, as JSON.")


def pytest_configure(config: pytest.Config) -> None:
    """Load what is expected."""
    config.addinivalue_line("markers", "manages(name): only for ports that are wanted to have this setting")
    config.addinivalue_line("markers", "wishes(feature, key...): what it proves; only for nodes that are to have it")
    config.addinivalue_line("markers", "of_gpus(name...): only for nodes that are to have any of these on some GPU")
    declared = load_fabric(config.getoption("--fabric"), config.getoption("--limit"))
    config.stash[NODES] = nodes(declared)
    config.stash[UNLOCKED] = {host: why.words for host, why in declared.unlocked.items()}
    config.stash[READINGS] = {}
    results = config.stash[RESULTS] = Results()
    config.pluginmanager.register(results)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test a node, or one a port that is wanted to have what the test looks at."""
    nodes = metafunc.config.stash[NODES]
    kind = next((PARTS[name] for name in PARTS if name in metafunc.fixturenames), None)
    if kind is not None:
        names = [mark.args[0] for mark in metafunc.definition.iter_markers("manages")]
        parts = [part for node in nodes for part in getattr(node, kind)]
        wanted = [part for part in parts if all(part.wanted(name) is not None for name in names)]
        metafunc.parametrize("subject", wanted, ids=str, indirect=True)
    else:
        paths = [mark.args for mark in metafunc.definition.iter_markers("wishes")]
        gpus = [name for mark in metafunc.definition.iter_markers("of_gpus") for name in mark.args]
        nodes = tuple(
            node
            for node in nodes
            if all(node.wishes_for(path) for path in paths)
            and (not gpus or any(power.wanted(node.wishes["dvfs"], name) for name in gpus))
        )
        metafunc.parametrize("subject", nodes, ids=str, indirect=True)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let ``-k`` know checks by the names that the results have."""
    item.extra_keyword_matches.add(check_name(item.nodeid))


def subject_of(item: pytest.Item) -> Subject | None:
    """The node or the part of it that a test is about; None when there is none, for nothing is wanted to have it."""
    callspec: Any = getattr(item, "callspec", None)
    found = callspec.params.get("subject") if callspec else None
    return found if isinstance(found, Subject) else None


def features_of(item: pytest.Item) -> Iterator[str]:
    """The features that a test says something of."""
    for mark in item.iter_markers("wishes"):
        yield mark.args[0]


def host_of(item: pytest.Item) -> str:
    """The host that a test is about, or ""."""
    if isinstance(item, NotLocked):
        return item.host
    subject = subject_of(item)
    return subject.host if subject else ""


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> Generator[None, None, None]:
    """Read the nodes that are left after ``-k``. Of one that cannot be reached a single test stands for all."""
    items[:] = [item for item in items if subject_of(item)]
    config.stash[CHECKED] = {(host_of(item), feature) for item in items for feature in features_of(item)}
    yield
    unlocked = [
        NotLocked.from_parent(session, name="locked", host=host, why=why)
        for host, why in config.stash[UNLOCKED].items()
    ]
    if not items and not unlocked:
        items.append(NothingChecked.from_parent(session, name="something_checked", expression=config.option.keyword))
        return
    hosts = {host_of(item) for item in items}
    if not config.option.collectonly:
        config.stash[READINGS] = read_all([node for node in config.stash[NODES] if node.host in hosts])
    items[:] = [*_without_unreachable(items, config.stash[READINGS]), *unlocked]


class NotLocked(pytest.Item):
    """Stands for a host of which nobody can say what is wanted, for the lock lacks it: all of it is unknown."""

    def __init__(self, *, host: str, why: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.host, self._why = host, why

    def runtest(self) -> None:
        """Skip, with the reason."""
        pytest.skip(self._why)


class NothingChecked(pytest.Item):
    """Stands for a run that would check nothing, and fails: it proves nothing, and must not look as if it did."""

    def __init__(self, *, expression: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._expression = expression

    def runtest(self) -> None:
        """Fail.

        Raises:
            AssertionError: always.
        """
        why = f"-k {self._expression}: no check matches" if self._expression else "nothing is wanted of these hosts"
        raise AssertionError(f"nothing was checked: {why}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:  # noqa: ARG002
        """The one line."""
        return str(excinfo.value)


def _without_unreachable(
    items: Sequence[pytest.Item], readings: dict[str, Reading | UnreachableError]
) -> Iterator[pytest.Item]:
    told: set[str] = set()
    for item in items:
        host = host_of(item)
        if host not in told:
            yield item
        if isinstance(readings.get(host), UnreachableError):
            told.add(host)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    """A value that cannot be read is unknown: skipped, with the reason. A test that compares nothing fails."""
    try:
        with comparing():
            yield
    except UnreadableError as error:
        pytest.skip(str(error))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Name what the test is about, for every report."""
    subject = subject_of(item)
    rail = subject.rail if isinstance(subject, (Port, Link, Card)) else ""
    item.user_properties += [("host", host_of(item)), ("port", rail)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the results, and make the exit code tell the unknown from the proven."""
    results = session.config.stash[RESULTS]
    path = session.config.getoption("--results")
    if path:
        results.write(path)
    if session.exitstatus == pytest.ExitCode.OK and results.unknown:
        session.exitstatus = int(Exit.UNKNOWN)


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> Subject:
    """The node, or the part of it, that the test is about."""
    found: Subject = request.param
    return found


@pytest.fixture
def node(subject: Node) -> Node:
    """The node that the test is about."""
    return subject


@pytest.fixture
def port(subject: Port) -> Port:
    """The port that the test is about."""
    return subject


@pytest.fixture
def link(subject: Link) -> Link:
    """The link that the test is about."""
    return subject


@pytest.fixture
def card(subject: Card) -> Card:
    """The port whose card's firmware the test is about."""
    return subject


@pytest.fixture
def unchecked(request: pytest.FixtureRequest, node: Node) -> list[str]:
    """The features that are wanted of the node and that no test says anything of."""
    checked = request.config.stash[CHECKED]
    return [feature for feature in node.wishes if (node.host, feature) not in checked]


@pytest.fixture
def reading(request: pytest.FixtureRequest, subject: Subject) -> Reading:
    """What was read of the node that the test is about."""
    found = request.config.stash[READINGS][subject.host]
    if isinstance(found, UnreachableError):
        request.node.user_properties.append((UNREACHABLE, "yes"))
        pytest.skip(str(found))
    return found


@pytest.fixture
def seen(reading: Reading, port: Port) -> PortReading:
    """What was read of the port that the test is about."""
    return PortReading(reading, port)
