"""Transcripts: what is typed, what comes back.

A line `$ command` is a call; what follows up to the next one is its stdout. `! ` begins a line of stderr, `? N` gives
the exit status if it is not 0. `#` in column 0 comments. `user$` calls as an ordinary user.
"""

from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parent / "transcripts"


@dataclass
class Exchange:
    line: int
    argv: list[str]
    uid: int
    stdout: str = ""
    stderr: str = ""
    rc: int = 0

    def __str__(self):
        return f"line {self.line}: {' '.join(self.argv)}"


@dataclass
class Transcript:
    name: str
    exchanges: list[Exchange] = field(default_factory=list)


def read(path):
    transcript = Transcript(path.stem)
    for number, line in enumerate(path.read_text().splitlines(keepends=True), 1):
        if line.startswith("#"):
            continue
        for prompt, uid in (("$ ", 0), ("user$ ", 1000)):
            if line.startswith(prompt):
                transcript.exchanges.append(Exchange(number, line.removeprefix(prompt).split(), uid))
                break
        else:
            last = transcript.exchanges[-1]
            if line.startswith("! "):
                last.stderr += line[2:]
            elif line.startswith("? "):
                last.rc = int(line[2:])
            else:
                last.stdout += line
    return transcript


def every():
    return [read(path) for path in sorted(FOLDER.glob("*.txt"))]
