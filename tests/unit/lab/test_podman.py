"""What podman makes of containers that do not keep still."""

import pytest

from gpufab_cli.lab import podman
from gpufab_cli.lab.errors import LabError


@pytest.fixture
def calls(monkeypatch):
    """The command lines that were run; each fails as long as there are words in ``calls.failures``."""

    class Calls(list):
        failures: tuple[str, ...] = ()

    made = Calls()

    def run(argv, **_):
        made.append(argv)
        if len(made) <= len(made.failures):
            raise LabError(made.failures[len(made) - 1])
        return ""

    monkeypatch.setattr(podman, "run", run)
    return made


def test_a_container_that_ends_while_it_is_killed_is_removed_the_second_time(calls):
    calls.failures = ("container state improper: stopped",)
    podman.remove("node")
    assert calls == [["podman", "rm", "--force", "--time", "1", "node"]] * 2


def test_a_container_that_cannot_be_removed_is_an_error(calls):
    calls.failures = ("storage is broken", "storage is broken")
    with pytest.raises(LabError, match="storage is broken"):
        podman.remove("node")


def test_the_runtime_follows_the_kernel_s_control_groups_and_costs_no_call(calls, monkeypatch, tmp_path):
    monkeypatch.setattr(podman, "_UNIFIED", tmp_path / "cgroup.controllers")
    monkeypatch.setattr(podman.shutil, "which", {"runc": "/usr/sbin/runc"}.get)
    assert podman.runtime() == ["--runtime", "runc"]
    monkeypatch.setattr(podman.shutil, "which", lambda _: None)
    with pytest.raises(LabError, match="needs runc"):
        podman.runtime()
    (tmp_path / "cgroup.controllers").touch()
    assert podman.runtime() == []
    assert calls == []
