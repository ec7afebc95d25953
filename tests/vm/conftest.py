"""One machine for all tests here. Each test begins with it as it was kept after an apply, or freshly booted."""

import os
from collections.abc import Iterator

import pytest

from tests.vm import image, requirements, timeline
from tests.vm.machine import Machine
from tests.vm.site import Site

HONEST = "virtual machines without KVM: DCB settings are stored by the tier's own module, not enforced on the wire"
_boots: dict[str, dict[str, float]] = {}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not _boots:
        return
    terminalreporter.section("virtual machines")
    terminalreporter.write_line(HONEST)
    terminalreporter.write_line("seconds after the kernel began:")
    terminalreporter.write_line(timeline.table(_boots))


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest):
    """Prints a line past pytest's capture: builds and boots take minutes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def line(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{text}", flush=True)  # noqa: T201

    return line


@pytest.fixture(scope="session")
def disk(say):
    """The image. Where it cannot be had, developers may go without; CI may not."""
    reason = requirements.missing()
    if reason and os.environ.get("CI"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)
    return image.ensure(say)


class World:
    """The machine, its fabric, and what state the machine is in."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.machine = site.machines[0]
        self.state = ""
        self.kept: set[str] = set()

    def to(self, state: str) -> None:
        """Bring the machine to a state that was kept; `begin` says that a test changes it."""
        if self.state != state:
            self.machine.load(state)
            self.site.reach()
            self.state = state

    def keep(self, state: str) -> None:
        self.machine.save(state)
        self.state = state
        self.kept.add(state)

    def boot(self, name: str, cmdline: str = "") -> str:
        """Reboot, wait until nothing is left to start, note when what happened; give systemd's state."""
        if cmdline or self.machine.cmdline:
            self.machine.power_cycle(cmdline)
        else:
            self.machine.reboot()
        state = self.machine.settle()
        _boots[name] = timeline.read(self.machine.guest)
        return state


@pytest.fixture(scope="session")
def world(disk, say, tmp_path_factory) -> Iterator[World]:
    """A machine that has booted, and nothing of gpufab on it."""
    folder = tmp_path_factory.mktemp("vm")
    machine = Machine(disk, folder)
    try:
        say(f"booting a machine (console: {machine.console})")
        machine.start()
        machine.wait_up()
        machine.settle()
        world = World(Site(folder, [machine]))
        world.keep("fresh")
        yield world
    finally:
        machine.close()


@pytest.fixture
def fresh(world: World) -> World:
    """The machine as it was before the first apply."""
    world.to("fresh")
    world.state += ", changed"
    return world


@pytest.fixture(scope="session")
def first_apply(world: World, say):
    """What the first apply said; the machine is kept as that left it."""
    world.to("fresh")
    say("lock, render, apply")
    world.site.cli("lock", "--timeout", "300")
    world.site.cli("render")
    done = world.site.apply(rc=None)
    if done.returncode == 0:
        world.keep("applied")
    return done


@pytest.fixture
def applied(world: World, first_apply) -> World:
    """The machine as the first apply left it."""
    if "applied" not in world.kept:
        pytest.fail(f"the first apply: exit {first_apply.returncode}\n{first_apply.stdout}{first_apply.stderr}")
    world.to("applied")
    world.state += ", changed"
    return world


@pytest.fixture
def sh(world: World):
    """A script as root on the machine."""
    return world.machine.guest.root
