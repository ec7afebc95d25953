"""Over random nodes: as wanted plans nothing; what is planned is all there is to plan; what is refused is told."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.features import SEEN_TYPES
from gpufab_cli.module_utils.packages import files
from gpufab_cli.module_utils.packages.plan import UNTRIED, files_to_write, plan
from gpufab_cli.module_utils.packages.recipe import recipe
from gpufab_cli.module_utils.packages.seen import Database, Package
from gpufab_cli.module_utils.schema import decode, encode
from gpufab_cli.module_utils.snapshot import dumps, loads
from tests.unit.core.packages_node import (
    DOCA,
    INBOX,
    MLNX,
    NCCL,
    ROCKY,
    STATE,
    UBUNTU,
    as_wanted,
    closure_of,
    fresh,
    snapshot,
)

wants = st.sampled_from([DOCA, MLNX, INBOX, NCCL])
platforms = st.sampled_from([UBUNTU, ROCKY])
packages = st.builds(
    Package,
    version=st.sampled_from(["2.27.5-1+cuda12.9", "2.28.3-1+cuda13.0", "3.2.0-125000", "2410mlnx54-1", "50.0-2"]),
    held=st.booleans(),
)
names = st.sampled_from(
    ["libnccl2", "libnccl", "libnccl-dev", "rdma-core", "doca-ofed", "doca-all", "mlnx-ofed-all", "mlnx-fw-updater"]
)
databases = st.builds(
    Database,
    packages=st.dictionaries(names, packages, max_size=5),
    broken=st.sampled_from([{}, {"bash": "unpacked"}]),
    holder=st.sampled_from(["", "", "apt (process 7)"]),
)


@st.composite
def nodes(draw):
    """A wish and a node: some of it as for this wish, some as for another, some of nobody's making."""
    want, platform = draw(wants), draw(platforms)
    base = draw(st.sampled_from([as_wanted, fresh]))(draw(wants), platform)
    own = fresh(want, platform)
    texts = {**own.files, **{path: text for path, text in base.files.items() if draw(st.booleans())}}
    noise = {path: draw(st.sampled_from([texts[path], "other", ABSENT])) for path in own.files}
    database = draw(st.sampled_from([base.database]) | databases)
    kernel = draw(st.sampled_from([STATE, replace(STATE, headers=False), replace(STATE, secure_boot=Unknown("EPERM"))]))
    return want, replace(own, files=noise, database=database, kernel=kernel if own.kernel else None)


def made(seen, want):
    """The node once the planned step is made: what the tasks write, remove and install."""
    platform, recipes = seen.platform, recipe(want, seen.platform)
    closure = closure_of(want, platform)
    gone = {n for n, p in seen.database.packages.items() if n in recipes.forbidden or recipes.strange(n, p.version)}
    pinned = files.closure(recipes.name, platform, f"{seen.files[files.pins_path(recipes.name, platform)]}\n")
    gone |= set() if recipes.pinned else {n for n, v in pinned.items() if n in seen.database.packages}
    held = platform.manager == "apt"
    installed = {name: package for name, package in seen.database.packages.items() if name not in gone}
    installed |= {root.name: installed.get(root.name, Package("50.0-2")) for root in recipes.roots}
    installed |= {name: Package(version, held) for name, version in closure.items()}
    texts = files_to_write(seen, recipes, platform, closure)
    written = {path: text.rstrip("\n") if text else ABSENT for path, text in texts.items()}
    return replace(seen, files={**seen.files, **written}, database=replace(seen.database, packages=installed))


@given(nodes())
def test_planned_changes_made_leave_nothing_to_plan(node):
    want, seen = node
    first = plan(seen, Devices(), want)
    if first.steps:
        assert not plan(made(seen, want), Devices(), want).steps


@given(nodes())
def test_a_plan_is_one_step_that_names_each_value_once_and_differs(node):
    want, seen = node
    found = plan(seen, Devices(), want)
    assert len(found.steps) <= 1
    for step in found.steps:
        assert len({change.path for change in step.changes}) == len(step.changes)
        assert all(change.current != change.desired for change in step.changes)
        assert bool(step.blocked) is any(finding.code != UNTRIED for finding in found.findings)


@given(nodes())
def test_an_unreadable_database_is_never_work_that_could_be_made(node):
    want, seen = node
    found = plan(replace(seen, database=Unknown("hangs")), Devices(), want)
    assert all(step.unknowns for step in found.steps)
    assert found.steps


@given(nodes())
def test_what_was_seen_survives_its_journey(node):
    want, seen = node
    name = "nccl" if want is NCCL else "ofed"
    assert loads(dumps(snapshot(name, seen)), SEEN_TYPES).seen[name] == seen
    assert decode(type(want), encode(want)) == want
