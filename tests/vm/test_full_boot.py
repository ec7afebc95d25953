"""Boots that are not as they should be: turned off by the operator, a tool that hangs, Python elsewhere, umask 077."""

import pytest

from tests.vm import ports_of, timeline
from tests.vm.site import RAILS

pytestmark = [pytest.mark.vm, pytest.mark.vm_full]

RESTORES = "systemctl list-units --all --plain --no-legend 'gpufab-restore*'"
_HANGS = """\
#!/bin/sh
trap '' TERM
while :; do sleep 1; done
"""


def ports():
    return [f"rail{number}" for number in range(RAILS)]


def test_the_kernels_command_line_turns_restores_off(applied, sh):
    assert applied.boot("restore=0", "gpufab.restore=0") == "running"
    assert [ports_of.state(sh, port) for port in ports()] == [(False, [])] * RAILS
    applied.site.audit(rc=1)
    assert applied.boot("restore again") == "running"
    assert all(ports_of.lossless(sh, port) for port in ports())


def test_umask_077(fresh, sh):
    sh("echo 'Defaults umask=0077, umask_override' >/etc/sudoers.d/umask && chmod 0440 /etc/sudoers.d/umask")
    assert sh("umask").strip() == "0077"
    site = fresh.site
    site.cli("lock", "--timeout", "300")
    site.cli("render")
    site.apply()
    modes = sh("stat -c '%a %n' /etc/ucx /etc/gpufab /usr/local/lib/gpufab /usr/local/bin/gpufab-bind")
    assert {line.split()[0] for line in modes.splitlines()} == {"755"}, modes
    sh("runuser -u nobody -- gpufab-bind --help")
    site.cli("verify")
    sh("chmod 0700 /etc/ucx")
    site.audit(rc=1)
    site.cli("verify", rc=1)


@pytest.mark.parametrize("tool", ["dcb", "ethtool"])
def test_a_tool_that_hangs_does_not_hold_up_the_boot_for_ever(applied, sh, tool):
    sh(f"path=$(command -v {tool}); mv $path $path.real; cat >$path <<'END'\n{_HANGS}END\nchmod 755 $path")
    applied.boot(f"{tool} hangs")
    found = timeline.read(applied.machine.guest)
    assert found["early ended"] - found["early begun"] < 60 + 120 + 40  # wait, work, SIGTERM to the last SIGKILL
    assert "gpufab-restore@late.service" in sh("systemctl --failed --no-legend --plain")


def test_python_elsewhere(fresh, sh):
    site = fresh.site
    sh("mkdir -p /opt/py/bin && cp -L /usr/bin/python3 /opt/py/bin/python3")
    sh("for p in /usr/bin/python3*; do mv $p ${p%/*}/away-${p##*/}; done")
    site.edit("connection: {user", "connection: {python: /opt/py/bin/python3, user", render=False)
    try:
        site.cli("lock", "--timeout", "300")
        site.cli("render")
        site.apply()
        assert fresh.boot("python elsewhere") == "running"
        site.audit()
        assert all(ports_of.lossless(sh, port) for port in ports())
        sh("gpufab-bind --help")
    finally:
        site.edit("connection: {python: /opt/py/bin/python3, user", "connection: {user", render=False)
        site.cli("render")


def test_the_clock_set_back(applied, sh):
    sh("date -s '2001-01-01 00:00:00'; dcb pfc set dev rail0 prio-pfc 3:off; systemctl start gpufab-restore@late")
    assert ports_of.lossless(sh, "rail0")
    applied.site.audit()
