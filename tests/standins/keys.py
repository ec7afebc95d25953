"""Throw-away keys that sign repositories. They live as long as the folder they are in."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.lab.shell import run


@dataclass(frozen=True)
class Key:
    """A key pair without passphrase in a keyring of its own."""

    home: Path
    name: str

    def gpg(self, *argv: str) -> str:
        """Runs gpg with this key as the default one and gives its stdout."""
        return _gpg(self.home, "--local-user", self.name, *argv)

    @property
    def public(self) -> str:
        """The public key, ASCII-armoured."""
        return _gpg(self.home, "--armor", "--export", self.name)

    @property
    def fingerprint(self) -> str:
        """40 hexadecimal digits."""
        lines = _gpg(self.home, "--with-colons", "--fingerprint", self.name).splitlines()
        return next(line.split(":")[9] for line in lines if line.startswith("fpr:"))


def _gpg(home: Path, *argv: str) -> str:
    command = ["gpg", "--homedir", str(home), "--batch", "--yes", "--quiet", "--pinentry-mode", "loopback"]
    return run([*command, "--passphrase", "", *argv])


@contextmanager
def keyring(home: Path, *names: str) -> Iterator[list[Key]]:
    """Makes keys; the folder must be a short path, for the agent's socket lies in it. The agent ends with the block."""
    home.mkdir(mode=0o700, parents=True)
    try:
        for name in names:
            _gpg(home, "--quick-generate-key", f"{name} (stand-in) <{name}@gpufab.invalid>", "rsa3072", "sign", "never")
        yield [Key(home, f"{name}@gpufab.invalid") for name in names]
    finally:
        run(["gpgconf", "--homedir", str(home), "--kill", "all"])
