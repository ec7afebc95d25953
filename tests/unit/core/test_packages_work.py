"""What a rehearsal chooses, what the tasks are given, and what a module says before and after them."""

import json
from dataclasses import replace

import pytest

from gpufab_cli.module_utils import idle
from gpufab_cli.module_utils.change import ABSENT, Impact, Unknown
from gpufab_cli.module_utils.converge import Order, Status
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.host import Output
from gpufab_cli.module_utils.packages import module as packages_module
from gpufab_cli.module_utils.packages import work as working
from gpufab_cli.module_utils.packages.feature import NCCL as FEATURE
from gpufab_cli.module_utils.packages.feature import OFED
from gpufab_cli.module_utils.packages.impact import RELOAD
from gpufab_cli.module_utils.packages.plan import plan
from gpufab_cli.module_utils.packages.recipe import recipe
from gpufab_cli.module_utils.packages.seen import Database, Module, Package
from gpufab_cli.module_utils.packages.transaction import (
    RefusedError,
    Transaction,
    choose,
    leftovers,
    mixed,
    said,
    surprising,
    whole,
    with_scripts,
)
from gpufab_cli.module_utils.packages.want import NcclWant
from gpufab_cli.module_utils.schema import decode
from tests.fakes import FakeHost
from tests.unit.core.packages_node import DOCA, INBOX, NCCL, ROCKY, UBUNTU, as_wanted, closure_of, fresh

NCCLS = ("2.28.3-1+cuda13.0", "2.27.5-2+cuda12.9", "2.27.5-1+cuda13.0", "2.27.5-1+cuda12.9")
MADE = recipe(NCCL, UBUNTU)
MKDIR = ("mkdir", "-p", "-m", "755", "/etc/apt/keyrings")
RELOAD_UNITS = ("systemctl", "daemon-reload")
PREF = "/etc/apt/preferences.d/gpufab-ofed.pref"


def test_a_pair_gets_one_version_that_both_are_offered_in():
    offered = {"libnccl2": NCCLS, "libnccl-dev": NCCLS[2:]}
    assert choose(MADE, Database(), offered) == dict.fromkeys(("libnccl2", "libnccl-dev"), "2.27.5-1+cuda12.9")


def test_what_is_there_in_the_wanted_version_stays_in_its_revision():
    there = Database({"libnccl2": Package("2.27.5-1+cuda12.9")})
    offered = dict.fromkeys(("libnccl2", "libnccl-dev"), NCCLS)
    assert choose(MADE, there, offered)["libnccl-dev"] == "2.27.5-1+cuda12.9"
    assert choose(MADE, Database(), offered)["libnccl-dev"] == "2.27.5-2+cuda12.9"


@pytest.mark.parametrize(
    ("want", "offered", "words"),
    [
        (
            NCCL,
            {"libnccl2": ("2.18.5-1",)},
            "no source offers libnccl2 and libnccl-dev 2.27.5-*+cuda12.9; offered: 2.18.5-1",
        ),
        (DOCA, {"doca-ofed": ("3.1.0-1",)}, "no source offers doca-ofed 3.2.0; offered: 3.1.0-1"),
        (INBOX, {}, "no source offers rdma-core"),
    ],
)
def test_what_no_source_offers_is_refused_by_name(want, offered, words):
    with pytest.raises(RefusedError) as refused:
        choose(recipe(want, UBUNTU), Database(), offered)
    assert str(refused.value) == words


def test_the_distribution_s_version_is_never_a_vendor_s():
    offered = {root.name: ("2510mlnx60-1", "50.0-2") for root in recipe(INBOX, UBUNTU).roots}
    there = Database({"rdma-core": Package("2510mlnx60-1"), "perftest": Package("24.01-1")})
    found = choose(recipe(INBOX, UBUNTU), there, offered)
    assert found["rdma-core"] == "50.0-2"
    assert "perftest" not in found  # whichever version of its own the distribution has


@pytest.mark.parametrize("version", [None, "2.22.3"])
def test_the_distribution_s_nccl_is_chosen_though_the_vendor_s_is_there_and_newer(version):
    made = recipe(NcclWant("distribution", version), UBUNTU)
    there = Database({"libnccl2": Package("2.22.3-1+cuda12.6")})
    offered = dict.fromkeys(("libnccl2", "libnccl-dev"), ("2.22.3-1+cuda12.6", "2.22.3-1"))
    assert choose(made, there, offered) == {"libnccl2": "2.22.3-1", "libnccl-dev": "2.22.3-1"}


def test_what_is_half_done_is_done_anew_in_the_best_version():
    there = Database({"libnccl2": Package("2.27.5-1+cuda12.9", whole=False)})
    assert choose(MADE, there, dict.fromkeys(("libnccl2", "libnccl-dev"), NCCLS))["libnccl2"] == "2.27.5-2+cuda12.9"
    made = recipe(INBOX, UBUNTU)
    packages = {root.name: Package("50.0-2", whole=root.name != "rdma-core") for root in made.roots}
    assert choose(made, Database(packages), {"rdma-core": ("50.0-2",)}) == {"rdma-core": "50.0-2"}


def test_what_another_stack_leaves_goes_or_becomes_the_distribution_s():
    pinned = closure_of(DOCA)
    packages = {name: Package(version) for name, version in pinned.items()} | {"libibverbs1": Package("2510mlnx60-1")}
    packages |= {"mlnx-fw-updater": Package("25.10"), "bash": Package("5.2")}
    offered = {"libibverbs1": ("2510mlnx60-1", "50.0-2"), "mlnx-fw-updater": ("25.10",)}
    left = leftovers(recipe(INBOX, UBUNTU), pinned, Database(packages), ["rdma-core"], offered)
    assert left == {
        "doca-ofed": "",
        "mlnx-ofed-kernel-dkms": "",
        "libibverbs1": "50.0-2",
        "mlnx-fw-updater": "",
    }


def test_the_set_is_what_its_roots_depend_on_and_no_more():
    own = {"doca-ofed": ("3.2.0-1",), "rdma-core": ("2510mlnx60-1",), "cuda-toolkit": ("12.9",)}
    final = {"doca-ofed": "3.2.0-1", "rdma-core": "50.0-2", "cuda-toolkit": "12.9", "libc6": "2.39"}
    reached = ["rdma-core", "libc6"]
    assert whole(["doca-ofed", *reached], final, own) == {"doca-ofed": "3.2.0-1"}
    # an installed rdma-core of the distribution would do for the resolver, and not for the stack
    assert mixed(reached, final, own) == {"rdma-core": "2510mlnx60-1"}


def test_a_package_of_somebody_else_s_that_would_go_is_a_surprise():
    database = Database({"mlnx-ofed-all": Package("24.10-1")})
    made = recipe(DOCA, UBUNTU)
    assert list(surprising(made, ["openmpi-bin", "mlnx-ofed-all", "old"], database, {"old": "1"})) == ["openmpi-bin"]


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (
            Output(100, "", "E: Failed to fetch x  Hash Sum mismatch\nE: Unable to fetch"),
            "Failed to fetch x Hash Sum mismatch",
        ),
        (
            Output(100, " a : Depends: b (= 1) but it is not\n", "E: Unable to correct problems, you have held"),
            "a : Depends: b (= 1) but it is not",
        ),
        (
            Output(1, "", "Error: \n Problem: x\n  - nothing provides y needed by x\n"),
            "- nothing provides y needed by x",
        ),
        (
            Output(1, "", "Error: Failed to download metadata for repo 'r'\n"),
            "Failed to download metadata for repo 'r'",
        ),
        # 63: packages for a kernel that has left the archive
        (
            Output(
                100,
                "The following packages have unmet dependencies:\n mlnx-ofed-kernel-modules : Depends: "
                "linux-modules-extra-5.15.0-130-generic but it is not installable\n",
                "E: Unable to correct problems, you have held broken packages.\n",
            ),
            "mlnx-ofed-kernel-modules : Depends: linux-modules-extra-5.15.0-130-generic but it is not installable",
        ),
        # 67: somebody's hold
        (
            Output(100, "", "E: Held packages were changed and -y was used without --allow-change-held-packages.\n"),
            "Held packages were changed and -y was used without --allow-change-held-packages.",
        ),
        (Output(7, "", ""), "exit 7"),
    ],
)
def test_what_a_package_manager_says_is_told_in_one_line(output, line):
    assert " ".join(said(output).split()) == line


def todo(monkeypatch, want, seen, transaction):
    """The work for what is planned, the rehearsal played."""
    monkeypatch.setattr(working, "rehearse", lambda *_: transaction)
    return working.work(FakeHost(), seen, Devices(), want, plan(seen, Devices(), want).steps)


def test_apt_is_given_versions_holds_and_files(monkeypatch):
    pinned = closure_of(NCCL)
    found = todo(monkeypatch, NCCL, fresh(NCCL), Transaction(pinned, ("old",), pinned))
    assert found.install == (("libnccl-dev=2.27.5-1+cuda12.9", "libnccl2=2.27.5-1+cuda12.9"),)
    assert found.hold == (("apt-mark", "hold", "libnccl-dev", "libnccl2"),)
    assert found.remove == (("old",),)
    assert list(found.files) == [
        "/etc/apt/sources.list.d/gpufab-nccl.sources",
        "/etc/apt/keyrings/gpufab-nccl.asc",
        "/etc/apt/preferences.d/gpufab-nccl.pref",
    ]
    assert found.refresh[0][:2] == ("apt-get", "update")
    assert not (found.signers)
    assert not (found.restart)
    assert "files" not in json.loads(json.dumps(found.data))  # no task's


def test_files_are_written_replaced_and_removed_and_their_folders_are_for_everybody():
    host = FakeHost({"/etc/apt/a.list": "x", "/etc/apt/b.pref": "y"}, answers={MKDIR: Output(0, "", "")})
    files = {"/etc/apt/a.list": "", "/etc/apt/b.pref": "pins\n", "/etc/apt/keyrings/k.asc": "key\n"}
    working.declare(host, working.Work("apt", (), files=files))
    assert [host.read(path) for path in files] == [ABSENT, "pins", "key"]
    assert [write for write in host.writes if write[0] == "mkdir"] == [MKDIR]


def test_dnf_is_given_versions_the_key_and_no_holds(monkeypatch):
    pinned = closure_of(NCCL, ROCKY)
    found = todo(monkeypatch, NCCL, fresh(NCCL, ROCKY), Transaction(pinned, (), pinned))
    assert found.install == (("libnccl-2.27.5-1+cuda12.9", "libnccl-devel-2.27.5-1+cuda12.9"),)
    assert found.remove == ()
    assert found.signers[0]["path"] == "/etc/pki/rpm-gpg/gpufab-nccl.asc"
    assert not (found.hold)
    assert not (found.refresh)
    assert (found.fetch, found.stale) == ((), True)


@pytest.mark.parametrize(("platform", "early"), [(ROCKY, True), (UBUNTU, False)])
def test_what_comes_is_downloaded_before_anything_goes(monkeypatch, platform, early):
    """apt's rehearsal has downloaded into apt's own cache."""
    pinned = closure_of(NCCL, platform)
    found = todo(monkeypatch, NCCL, fresh(NCCL, platform), Transaction(pinned, ("old",), pinned))
    assert (bool(found.fetch), found.stale) == (early, not early)
    assert not early or found.fetch[0][-3:] == ("install", *found.install[0])


def test_a_lost_hold_is_set_again_without_asking_anybody():
    good = as_wanted(NCCL)
    packages = {**good.database.packages, "libnccl2": Package("2.27.5-1+cuda12.9")}
    seen = replace(good, database=Database(packages))
    found = working.work(FakeHost(), seen, Devices(), NCCL, plan(seen, Devices(), NCCL).steps)
    assert found.hold == (("apt-mark", "hold", "libnccl-dev", "libnccl2"),)
    assert not (found.install)
    assert not (found.files)
    assert not (found.refresh)


def test_a_driver_is_loaded_anew_by_its_service(monkeypatch):
    seen = as_wanted(DOCA, module=Module("A", "B", "/lib/modules/x/updates/y.ko"), reloads=True)
    assert working.work(FakeHost(), seen, Devices(), DOCA, plan(seen, Devices(), DOCA).steps).restart == ("openibd",)


class Played:
    """A node whose state is played: what is seen before and after the tasks."""

    def __init__(self, monkeypatch, feature, *states):
        self.host, states = FakeHost(answers=dict.fromkeys((MKDIR, RELOAD_UNITS), Output(0, "", ""))), list(states)
        self.host.files |= {"/etc/apt/sources.list.d/ubuntu.sources": "", "/etc/apt/preferences.d/ubuntu.pref": ""}
        self.feature = type(feature)(feature.name, feature.want_type)
        monkeypatch.setattr(self.feature, "gather", lambda *_: states.pop(0) if states[1:] else states[0])
        self.journal = lambda: [
            json.loads(line)["event"] for line in (self.host.read("/var/lib/gpufab/journal.jsonl") or "").splitlines()
        ]


def test_before_the_tasks_nothing_is_said_to_be_made_and_after_them_each_is_proven(monkeypatch):
    pinned = closure_of(NCCL)
    monkeypatch.setattr(working, "rehearse", lambda *_: Transaction(pinned, (), pinned))
    node = Played(monkeypatch, FEATURE, fresh(NCCL), as_wanted(NCCL))
    outcome, work = packages_module.begin(node.host, node.feature, NCCL, Order())
    assert (outcome.steps, outcome.changed) == ((), False)
    assert work.files
    assert {path: node.host.files[path].decode() for path in work.files} == work.files
    steps = tuple(decode(packages_module.Step, item) for item in work.data["steps"])
    outcome, more = packages_module.prove(node.host, node.feature, NCCL, Order(), steps)
    assert [result.status for result in outcome.steps] == [Status.MADE]
    assert outcome.changed
    assert more is None
    assert RELOAD_UNITS in node.host.writes
    assert node.journal() == ["begin", "made"]


def test_what_did_not_stick_is_a_failure_by_name(monkeypatch):
    half = replace(as_wanted(NCCL), database=Database({"libnccl2": Package("2.27.5-1+cuda12.9", True)}))
    node = Played(monkeypatch, FEATURE, half)
    steps = plan(fresh(NCCL), Devices(), NCCL).steps
    outcome, _ = packages_module.prove(node.host, node.feature, NCCL, Order(), steps)
    assert [result.status for result in outcome.steps] == [Status.FAILED]
    assert "libnccl-dev is ABSENT, not 2.27.5-1+cuda12.9" in outcome.steps[0].reason


def test_a_restart_of_openibd_that_loads_nothing_is_a_failure(monkeypatch):
    before = as_wanted(DOCA, module=Module("A", "B", "/lib/modules/x/updates/y.ko"), reloads=True)
    after = replace(before, module=Module(ABSENT, "B", "/lib/modules/x/updates/y.ko"))
    node = Played(monkeypatch, OFED, after)
    outcome, _ = packages_module.prove(node.host, node.feature, DOCA, Order(), plan(before, Devices(), DOCA).steps)
    assert [(r.status, r.reason) for r in outcome.steps] == [
        (Status.FAILED, "did not stick: mlx5_core is ABSENT, not B")
    ]


def test_another_version_of_what_is_held_is_one_change_and_held_again(monkeypatch):
    """67: hold and version move together, and the hold is lifted of nothing that stays."""
    want = replace(NCCL, version="2.28.3")
    new = dict.fromkeys(closure_of(NCCL), "2.28.3-1+cuda12.9")
    seen = as_wanted(NCCL)
    (step,) = plan(seen, Devices(), want).steps
    assert not step.blocked
    found = todo(monkeypatch, want, seen, Transaction(new, (), new))
    assert found.install == (("libnccl-dev=2.28.3-1+cuda12.9", "libnccl2=2.28.3-1+cuda12.9"),)
    assert (found.release, found.hold) == ((), (("apt-mark", "hold", "libnccl-dev", "libnccl2"),))


def test_a_dry_run_on_a_host_without_source_and_package_is_work_to_do(monkeypatch):
    """70: nothing is missing that only a run would bring."""
    node = Played(monkeypatch, OFED, fresh(DOCA, available={}))
    outcome, _ = packages_module.begin(node.host, node.feature, DOCA, Order(check=True, allow=RELOAD))
    (result,) = outcome.steps
    assert result.status is Status.WOULD_MAKE
    assert {"packages.repository", "packages.version", "packages.pin"} <= {c.code for c in result.step.changes}


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ({"platform": Unknown("uname: hangs")}, "uname: hangs"),
        ({"module": Module("A", Unknown("modinfo: hangs"))}, "modinfo: hangs"),
    ],
)
def test_what_cannot_be_seen_is_not_made(monkeypatch, after, words):
    before = as_wanted(DOCA, module=Module("A", "B", "/lib/modules/x/updates/y.ko"), reloads=True)
    node = Played(monkeypatch, OFED, replace(before, **after))
    outcome, _ = packages_module.prove(node.host, node.feature, DOCA, Order(), plan(before, Devices(), DOCA).steps)
    assert [(r.status, r.reason) for r in outcome.steps] == [(Status.FAILED, f"cannot be proven: {words}")]


def test_a_dry_run_rehearses_nothing_and_predicts(monkeypatch):
    monkeypatch.setattr(working, "rehearse", lambda *_: pytest.fail("rehearsed"))
    node = Played(monkeypatch, FEATURE, fresh(NCCL))
    outcome, work = packages_module.begin(node.host, node.feature, NCCL, Order(check=True))
    assert work is None
    assert [result.status for result in outcome.steps] == [Status.WOULD_MAKE]
    assert not node.host.writes


def test_a_refused_rehearsal_fails_before_anything_is_begun(monkeypatch):
    def refuse(*_):
        raise RefusedError("repository: NO_PUBKEY 1234")

    monkeypatch.setattr(working, "rehearse", refuse)
    node = Played(monkeypatch, FEATURE, fresh(NCCL))
    outcome, work = packages_module.begin(node.host, node.feature, NCCL, Order())
    assert work is None
    assert [(r.status, r.reason) for r in outcome.steps] == [
        (Status.FAILED, "repository: NO_PUBKEY 1234; nothing was changed")
    ]
    assert not node.host.writes


def test_what_is_blocked_or_not_consented_to_is_told_and_no_work(monkeypatch):
    blocked = fresh(DOCA, database=Database(holder="apt (process 7)"))
    node = Played(monkeypatch, OFED, blocked)
    outcome, work = packages_module.begin(node.host, node.feature, DOCA, Order())
    assert (work, [r.status for r in outcome.steps]) == (None, [Status.BLOCKED])
    driver = as_wanted(DOCA, module=Module("A", "B", "/lib/modules/x/updates/y.ko"), reloads=True)
    node = Played(monkeypatch, OFED, driver)
    outcome, work = packages_module.begin(node.host, node.feature, DOCA, Order(allow=frozenset({Impact.TRAFFIC})))
    assert (work, [r.status for r in outcome.steps]) == (None, [Status.REFUSED])
    assert "driver-reload" in outcome.steps[0].reason


@pytest.mark.parametrize("check", [True, False])
def test_a_vendor_s_packages_are_refused_or_wait_for_an_idle_node_in_check_mode_as_in_a_run(monkeypatch, check):
    monkeypatch.setattr(working, "rehearse", lambda *_: pytest.fail("rehearsed"))
    monkeypatch.setattr(idle, "users", lambda *_: ("python (process 7) computes on a GPU",))
    node = Played(monkeypatch, OFED, fresh(DOCA))
    outcome, work = packages_module.begin(node.host, node.feature, DOCA, Order(check=check))
    assert (work, [(r.status, r.reason) for r in outcome.steps]) == (
        None,
        [(Status.REFUSED, "needs --allow driver-reload,link-flap,service-restart,traffic")],
    )
    outcome, work = packages_module.begin(node.host, node.feature, DOCA, Order(check=check, allow=RELOAD))
    assert (work, [r.status for r in outcome.steps]) == (None, [Status.BUSY])
    assert not node.host.writes


NEWER = {**closure_of(DOCA), "rdma-core": "2510mlnx61-1"}


@pytest.mark.parametrize(
    ("order", "status"),
    [
        (Order(), Status.REFUSED),
        (Order(allow=RELOAD), Status.BUSY),
        (Order(busy_ok=True, allow=RELOAD), None),
    ],
)
def test_packages_that_come_with_a_mere_file_are_consented_to_before_it_is_begun(monkeypatch, order, status):
    """The pins are lost, and the repository offers others than when they were made."""
    monkeypatch.setattr(working, "rehearse", lambda *_: Transaction(NEWER, (), NEWER))
    monkeypatch.setattr(working, "installed", lambda *_: closure_of(DOCA))
    monkeypatch.setattr(idle, "users", lambda *_: ("python (process 7) computes on a GPU",))
    good = as_wanted(DOCA)
    node = Played(monkeypatch, OFED, replace(good, files={**good.files, PREF: ABSENT}))
    outcome, work = packages_module.begin(node.host, node.feature, DOCA, order)
    assert [result.status for result in outcome.steps] == ([] if status is None else [status])
    assert (work is None) is (status is not None)
    assert node.host.exists("/var/lib/gpufab/journal.jsonl") is (status is None)
    if work is not None:
        assert work.steps[0].impact == RELOAD


def test_a_step_that_the_rehearsal_holds_back_takes_no_other_along(monkeypatch):
    """The pins are lost, what burns firmware would come in another version; and another driver is due."""
    monkeypatch.setitem(closure_of(DOCA), "mlnx-fw-updater", "25.10")
    want = replace(DOCA, firmware_updater=True)
    comes = {**closure_of(DOCA), "mlnx-fw-updater": "25.11"}
    monkeypatch.setattr(working, "rehearse", lambda *_: Transaction(comes, (), comes))
    monkeypatch.setattr(working, "installed", lambda *_: closure_of(DOCA))
    good = as_wanted(want, module=Module("A", "B", "/lib/modules/x/updates/y.ko"), reloads=True)
    node = Played(monkeypatch, OFED, replace(good, files={**good.files, PREF: ABSENT}))
    outcome, work = packages_module.begin(node.host, node.feature, want, Order(busy_ok=True, allow=RELOAD))
    assert [(r.step.name, r.status, r.reason) for r in outcome.steps] == [
        ("ofed packages", Status.REFUSED, "needs --allow firmware-reset")
    ]
    assert ([step.name for step in work.steps], work.restart, work.files) == (["ofed driver"], ("openibd",), {})


def test_of_whichever_set_a_vendor_s_packages_come_along_they_take_consent():
    """The site's own sources may offer them to the distribution's stack and to NCCL."""
    now = {"libibverbs1": "50.0-2", "rdma-core": "2510mlnx60-1", "libnccl2": "2.27.5-1+cuda12.9", "xpmem": "2.7-1"}
    for want, pinned, found, names in (
        (NCCL, {"libnccl2": "2.27.5-1+cuda12.9"}, Transaction({"libnccl2": "2.28.3-1+cuda12.9"}), ()),
        (NCCL, {}, Transaction(brings={"libibverbs1": "2510mlnx60-1"}), ("libibverbs1",)),
        (NCCL, {}, Transaction({"rdma-core": "2510mlnx60-1", "libnccl-dev": "2.27.5-1"}), ()),
        (INBOX, {}, Transaction({"libibverbs1": "50.0-3", "rdma-core": "50.0-3"}), ("rdma-core",)),
        (INBOX, {"xpmem": "2.7-1"}, Transaction(remove=("xpmem",)), ("xpmem",)),
        (DOCA, {}, Transaction({"xpmem": "2.8-1"}), ("xpmem",)),
    ):
        assert with_scripts(recipe(want, UBUNTU), pinned, now, found) == names


def test_a_mere_file_takes_no_consent(monkeypatch):
    pinned = closure_of(DOCA)
    monkeypatch.setattr(working, "rehearse", lambda *_: Transaction(pinned, (), pinned))
    monkeypatch.setattr(working, "installed", lambda *_: pinned)
    good = as_wanted(DOCA)
    node = Played(monkeypatch, OFED, replace(good, files={**good.files, PREF: ABSENT}))
    outcome, work = packages_module.begin(node.host, node.feature, DOCA, Order())
    assert (outcome.steps, list(work.files)) == ((), [PREF])


def test_files_that_are_no_longer_wanted_go(monkeypatch):
    seen = as_wanted(DOCA)
    found = todo(monkeypatch, INBOX, seen, Transaction({"rdma-core": "50.0-2"}, ("doca-ofed",), {}))
    gone = [path for path, text in found.files.items() if not text]
    assert gone == ["/etc/apt/sources.list.d/gpufab-ofed.sources", "/etc/apt/keyrings/gpufab-ofed.asc"]
    # 67: rdma-core stays, as the distribution's, which nothing holds
    assert found.release == (("apt-mark", "unhold", "doca-ofed", "mlnx-ofed-kernel-dkms", "rdma-core"),)
    new = closure_of(DOCA)
    back = Transaction(new, (), new, ("rdma-core",))
    want = replace(DOCA, profile="doca-roce")
    assert todo(monkeypatch, want, seen, back).release == (("apt-mark", "unhold", "rdma-core"),)
    assert set(found.files) - set(gone) == {"/etc/apt/preferences.d/gpufab-ofed.pref"}
    assert seen.files["/etc/apt/apt.conf.d/90gpufab-ofed"] is ABSENT
