"""Unit tests cannot touch the host: the core's doors are bricked up unless a test is marked ``lab`` or ``process``."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is, nothing of the code.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

REPOSITORY = Path(__file__).resolve().parent.parent
FORBIDDEN = ("/sys", "/proc", "/etc/gpufab", "/var/lib/gpufab", "/run/gpufab")


@pytest.fixture(autouse=True)
def _no_host(request, monkeypatch):
    if {"lab", "process"} & set(request.keywords):
        return
    from gpufab_cli.module_utils import host, programs

    def run(argv, seconds, stdin=""):
        raise AssertionError(f"a unit test runs {argv}")

    original = host.Reader._path

    def path(self, name):
        full = original(self, name)
        if full.startswith(FORBIDDEN):
            raise AssertionError(f"a unit test opens {full}")
        return full

    monkeypatch.setattr(programs, "run", run)
    monkeypatch.setattr(host.Reader, "_path", path)


@pytest.fixture
def repository():
    return REPOSITORY


@pytest.fixture(autouse=True, scope="session")
def _plain_output():
    os.environ.pop("FORCE_COLOR", None)
    os.environ["NO_COLOR"] = "1"
