"""Locked memory: files, what systemd makes of them, what runs; restarts only with consent."""

import pytest

from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import Finding, Impact, Pending, Unknown
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.features import FEATURES, SEEN_TYPES
from gpufab_cli.module_utils.limits.files import LOGINS, drop_in
from gpufab_cli.module_utils.limits.want import LimitsWant
from gpufab_cli.module_utils.queries import MEMORY_LIMIT
from gpufab_cli.module_utils.snapshot import dumps, loads
from tests.fakes import ok

from .limits_node import FILES, PAM, UNITS, WANT, SystemdHost, limits

LIMITS = FEATURES["limits"]
RESTARTS = Order(allow=frozenset({Impact.SERVICE_RESTART}))
D = "/etc/security/limits.d"


def audit(host, want=WANT):
    snapshot = planning.take(host, {"limits": LIMITS}, {"limits": want})
    assert loads(dumps(snapshot), SEEN_TYPES) == snapshot
    return planning.plan(LIMITS, snapshot, want)


def paths(plan):
    return {change.path for step in plan.steps for change in step.changes}


def run(host, want=WANT, order=RESTARTS):
    return converge(host, LIMITS, want, order)


def statuses(outcome):
    return {result.step.name: result.status for result in outcome.steps}


@pytest.fixture
def applied():
    host = SystemdHost()
    assert set(statuses(run(host)).values()) == {Status.MADE}
    return host


def test_files_are_made_for_logins_and_for_the_services_that_are_there():
    host = SystemdHost()
    assert statuses(run(host, order=Order())) == {
        "limits files": Status.MADE,
        "restart slurmd.service": Status.REFUSED,
        "restart ssh.service": Status.REFUSED,
    }
    assert host.read(LOGINS).splitlines()[1:] == ["* - memlock unlimited", "root - memlock unlimited"]
    assert host.read(drop_in("ssh.service")).splitlines()[1:] == ["[Service]", "LimitMEMLOCK=infinity"]
    assert {path for path in host.files if "gpufab-memlock" in path} == FILES


def test_a_service_that_runs_with_the_old_limit_is_pending_its_restart_and_needs_consent():
    host = SystemdHost()
    run(host, order=Order())
    found = audit(host)
    assert found.pending == tuple(
        Pending((unit, "memlock"), "8388608", "unlimited", Impact.SERVICE_RESTART, "limits.running") for unit in UNITS
    )
    assert [step.impact for step in found.steps] == [frozenset({Impact.SERVICE_RESTART})] * 2
    assert paths(found) == {(unit, "memlock") for unit in UNITS}


def test_with_consent_the_services_are_restarted_once(applied):
    assert [argv for argv in applied.writes if argv[:2] == ("systemctl", "restart")] == [
        ("systemctl", "restart", unit) for unit in UNITS
    ]
    assert audit(applied).clean
    writes = len(applied.writes)
    assert run(applied).steps == ()
    assert len(applied.writes) == writes


def test_check_mode_shows_what_a_run_changes_and_changes_nothing():
    host = SystemdHost()
    shown = run(host, order=Order(check=True, allow=RESTARTS.allow))
    assert host.writes == []
    assert [r.step.changes for r in shown.steps] == [r.step.changes for r in run(host).steps]


def test_a_service_that_does_not_run_needs_no_restart():
    host = SystemdHost()
    host.stop("slurmd.service")
    assert "restart slurmd.service" not in statuses(run(host))
    assert audit(host).clean


@pytest.mark.parametrize("running", ["65536", "8388608", "536870912"])  # 64, 8192 and 524288 KiB
def test_report_47_limits_are_too_low_whatever_the_files_say(applied, running):
    applied.files[f"/proc/{applied.pid('slurmd.service')}/limits"] = limits(running)
    assert paths(audit(applied)) == {("slurmd.service", "memlock")}


def test_a_soft_limit_below_the_hard_one_is_what_a_job_gets(applied):
    applied.files[f"/proc/{applied.pid('ssh.service')}/limits"] = limits("65536", "unlimited")
    (pending,) = audit(applied).pending
    assert pending.running == "65536:unlimited"


def test_damage_is_drift_and_exactly_that_is_repaired(applied):
    applied.files[drop_in("ssh.service")] = "[Service]\nLimitMEMLOCK=64K\n"
    del applied.files[LOGINS]
    assert paths(audit(applied)) == {(LOGINS,), (drop_in("ssh.service"),)}
    before = len(applied.writes)
    run(applied, order=Order())
    assert [write[0] for write in applied.writes[before:]] == [LOGINS, drop_in("ssh.service"), "systemctl"]
    assert audit(applied).clean


def test_a_drop_in_of_a_later_name_is_a_failure_by_name_and_undone():
    host = SystemdHost()
    host.deaf = {"slurmd.service"}
    (failed, *rest) = run(host).steps
    assert failed.status is Status.FAILED
    assert "slurmd.service/LimitMEMLOCK is 8388608, not unlimited" in failed.reason
    assert {result.status for result in rest} == {Status.NOT_BEGUN}
    assert not FILES & set(host.files)


def test_a_service_that_systemd_has_only_forked_yet_is_waited_for():
    host = SystemdHost()
    begun = []
    host._restart = begun.append
    host.sleep = lambda seconds: SystemdHost._restart(host, begun[-1])
    assert run(host).failures(check=False) == ()
    assert begun == list(UNITS)


def test_a_service_that_keeps_its_limit_when_restarted_is_a_failure():
    host = SystemdHost()
    host._restart = lambda unit: None
    outcome = run(host)
    assert statuses(outcome)["restart slurmd.service"] is Status.FAILED
    assert statuses(outcome)["restart ssh.service"] is Status.NOT_BEGUN


def test_another_size_is_another_file_and_one_that_is_not_wanted_any_more_goes(applied):
    want = LimitsWant("64G", ("ssh",))
    assert set(statuses(run(applied, want)).values()) == {Status.MADE}
    assert applied.read(LOGINS).splitlines()[1] == "* - memlock 67108864"
    assert drop_in("slurmd.service") not in applied.files


def test_without_systemd_there_are_logins_and_no_services():
    host = SystemdHost(units=())
    del host.files["/run/systemd/system"]
    assert statuses(run(host)) == {"limits files": Status.MADE}


def test_a_systemd_that_does_not_answer_withholds_the_files():
    host = SystemdHost()
    host._show = lambda unit: Unknown("systemctl did not answer within 10 s")
    assert statuses(run(host)) == {"limits files": Status.UNKNOWN}
    assert not FILES & set(host.files)


def test_a_limit_that_cannot_be_read_is_unknown_and_nothing_is_restarted(applied):
    applied.unreadable[f"/proc/{applied.pid('ssh.service')}/limits"] = "Permission denied"
    found = audit(applied)
    assert found.pending == ()
    assert statuses(run(applied)) == {"restart ssh.service": Status.UNKNOWN}


def test_a_systemctl_that_prints_nonsense_is_unknown_and_not_a_service_that_is_missing():
    host = SystemdHost()
    host._show = lambda unit: ok("\x7fELF")
    assert statuses(run(host)) == {"limits files": Status.UNKNOWN}


# ---- logins ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "line", "counts"),
    [
        ("/etc/security/limits.conf", "* soft memlock 64", False),
        ("/etc/security/limits.conf", "@hpc hard memlock 64", True),
        ("/etc/security/limits.conf", "@hpc hard memlock unlimited", False),
        ("/etc/security/limits.conf", "# @hpc hard memlock 64", False),
        ("/etc/security/limits.conf", "#@hpc hard memlock 64", False),
        ("/etc/security/limits.conf", "@hpc Hard MEMLOCK 64 # of the old cluster", True),
        ("/etc/security/limits.conf", "@hpc hard nofile 64 # memlock 64", False),
        (f"{D}/20-site.conf", "*  -  memlock  64", False),
        (f"{D}/20-site.conf", "alice - memlock 64", True),
        (f"{D}/99-site.conf", "*  -  memlock  64", True),
        (f"{D}/99-site.conf", "*  -  memlock  -1", False),
        (f"{D}/99-site.conf", "*  -  nofile  64", False),
        (f"{D}/99-site.conf.bak", "*  -  memlock  64", False),
    ],
)
def test_entries_of_others_that_outweigh_gpufabs_are_named(applied, path, line, counts):
    applied.files[path] = f"{line}\n"
    whom = line.split()[0]
    wanted = (Finding("limits.other-entry", (path,), f"{whom} may lock 65536"),) if counts else ()
    assert audit(applied).findings == wanted


@pytest.mark.parametrize(
    ("files", "codes"),
    [
        ({"/etc/pam.d/sshd": "@include common-auth\nsession include system\n", "/etc/pam.d/system": PAM}, set()),
        ({"/etc/pam.d/sshd": "session substack password\n", "/etc/pam.d/password": PAM}, set()),
        ({"/etc/pam.d/sshd": "@include sshd\n# session required pam_limits.so\n"}, {"limits.pam"}),
        ({"/etc/pam.d/sshd": "session include gone\n"}, {"limits.pam"}),
    ],
)
def test_a_login_that_does_not_go_through_pam_limits_is_told(applied, files, codes):
    applied.files.update(files)
    assert {finding.code for finding in audit(applied).findings} == codes


def test_this_very_login_is_judged_by_what_it_has_whatever_the_files_say():
    host = SystemdHost(login="65536")
    run(host)
    (finding,) = audit(host).findings
    assert (finding.code, finding.evidence) == ("limits.login", "it may lock 65536, unlimited is wanted")


@pytest.mark.parametrize(
    ("conf", "told"),
    [
        ("SlurmctldHost=c1\n", True),
        ("PropagateResourceLimits=ALL\n", True),
        ("PropagateResourceLimitsExcept=MEMLOCK\n", False),
        ("propagateresourcelimits = NONE\n", False),
        ("PropagateResourceLimits=NOFILE,MEMLOCK\n", True),
        ("PropagateResourceLimitsExcept=NOFILE\n", True),
    ],
)
def test_slurm_that_gives_jobs_the_limits_of_the_submitting_shell_is_told(applied, conf, told):
    applied.files["/etc/slurm/slurm.conf"] = conf
    assert ({finding.code for finding in audit(applied).findings} == {"limits.slurm-propagates"}) == told


def test_the_query_is_on_the_allow_list_in_its_one_form():
    host = SystemdHost()
    assert host.query("systemctl", "show", MEMORY_LIMIT, "ssh.service").rc == 0
