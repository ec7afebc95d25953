"""A node whose systemd keeps drop-ins and starts services with them, in memory."""

from gpufab_cli.module_utils.host import HostError, Output
from gpufab_cli.module_utils.limits.files import LOGINS, drop_in, limit
from gpufab_cli.module_utils.limits.want import LimitsWant
from gpufab_cli.module_utils.queries import MEMORY_LIMIT
from tests.fakes import FakeHost, ok

WANT = LimitsWant("unlimited", ("slurmd", "sshd", "ssh", "docker"))
UNITS = ("slurmd.service", "ssh.service")
FILES = {LOGINS, *(drop_in(unit) for unit in UNITS)}
ALIASES = {"sshd.service": "ssh.service"}
PAM = "@include common-auth\nsession    required     pam_limits.so\n"


def limits(soft, hard=None):
    head = "Limit                     Soft Limit           Hard Limit           Units     \n"
    return head + f"Max locked memory         {soft:<20} {hard or soft:<20} bytes     \n"


class SystemdHost(FakeHost):
    """``own``: the limit that units have without a drop-in, in bytes; ``deaf``: units that keep their limit."""

    def __init__(self, own="8388608", login="unlimited", units=UNITS):
        super().__init__({"/run/systemd/system": "", "/etc/pam.d/sshd": PAM, "/proc/self/limits": limits(login)})
        self.loaded = dict.fromkeys(units, own)
        self.own, self.deaf = own, set()
        for pid in range(100, 100 + len(units)):
            self.files[f"/proc/{pid}/limits"] = limits(own)

    def pid(self, unit):
        return 100 + list(self.loaded).index(unit)

    def running(self, unit):
        return self.read(f"/proc/{self.pid(unit)}/limits").split()[-3]

    def stop(self, unit):
        del self.files[f"/proc/{self.pid(unit)}/limits"]

    def _answer(self, argv):
        if argv[:3] == ("systemctl", "show", MEMORY_LIMIT):
            return self._show(ALIASES.get(argv[3], argv[3]))
        return super()._answer(argv)

    def _show(self, unit):
        if unit not in self.loaded:
            return ok(f"Id={unit}\nLoadState=not-found\nActiveState=inactive\nMainPID=0\n")
        there = f"/proc/{self.pid(unit)}/limits" in self.files
        pid, value = self.pid(unit) if there else 0, self.loaded[unit]
        return ok(f"Id={unit}\nLoadState=loaded\nMainPID={pid}\nLimitMEMLOCK={value}\nLimitMEMLOCKSoft={value}\n")

    def run(self, *argv, seconds=60.0):
        self.writes.append(argv)
        if argv == ("systemctl", "daemon-reload"):
            self.loaded = {unit: self._configured(unit) for unit in self.loaded}
        elif argv[:2] == ("systemctl", "restart"):
            self._restart(argv[2])
        else:
            raise HostError(" ".join(argv))
        return Output(0, "", "")

    def _configured(self, unit):
        text = self.read(drop_in(unit))
        if not isinstance(text, str) or unit in self.deaf:
            return self.own
        size = text.rpartition("=")[2]
        return size if size == "infinity" else limit(size)

    def _restart(self, unit):
        value = "unlimited" if self.loaded[unit] == "infinity" else self.loaded[unit]
        self.files[f"/proc/{self.pid(unit)}/limits"] = limits(value)
