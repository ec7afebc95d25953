"""What is missing is said with what to do about it."""

from tests.vm import requirements


def test_reasons(monkeypatch):
    monkeypatch.setattr(requirements.os, "geteuid", lambda: 0)
    monkeypatch.setattr(requirements.shutil, "which", lambda program: None if program == "mmdebstrap" else "/x")
    assert requirements.missing() == "virtual machines need mmdebstrap: apt-get install mmdebstrap"
    monkeypatch.setattr(requirements.shutil, "which", lambda program: "/x")
    assert requirements.missing() == ""
    monkeypatch.setattr(requirements.os, "geteuid", lambda: 1000)
    assert "root" in requirements.missing()
