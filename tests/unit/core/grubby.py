"""What grubby does to boot loader entries, as its script for them has it (grubby-bls: update_args)."""

import re

ENTRIES = "/boot/loader/entries/"


def grubby(files, argv):
    """Run ``grubby --update-kernel=… --args=…`` or ``--remove-args=…`` on the entries among files."""
    verb, _, words = argv[2].partition("=")
    kernel = argv[1].partition("=")[2].rpartition("/")[2]
    for name in [name for name in files if name.startswith(ENTRIES)]:
        *head, options = files[name].splitlines()
        if kernel == "ALL" or any(line.endswith(f"/{kernel}") for line in head):
            line = options.partition(" ")[2]
            line = _added(line, words.split()) if verb == "--args" else _taken(line, words.split())
            files[name] = "\n".join([*head, f"options {line}"]) + "\n"


def _added(line, words):
    """What there is of a word's name goes first, whatever it says."""
    for word in words:
        line = _without(line, word.partition("=")[0])
    return " ".join([*line.split(), *words])


def _taken(line, words):
    for word in words:
        line = (
            " ".join(re.sub(rf"(^|\s){word}(\s|$)", " ", line, count=1).split())
            if "=" in word
            else _without(line, word)
        )
    return line


def _without(line, name):
    return " ".join(word for word in line.split() if word.partition("=")[0] != name)
