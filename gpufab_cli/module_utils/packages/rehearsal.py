"""A rehearsal: find out what would be done, and have it downloaded, in folders that are gone afterwards.

The order is one for all package managers; how each looks, resolves and downloads is its own (apt.py, dnf.py).
"""

from abc import ABC, abstractmethod
from typing import Dict, Iterable, List, Mapping, Tuple

from ..host import Host
from .database import installed
from .kernel import running
from .made_for import other_kernel
from .platforms import FIRMWARE_UPDATER, Platform
from .recipe import Recipe
from .seen import Database
from .transaction import (
    Offered,
    RefusedError,
    Transaction,
    after,
    choose,
    coming_back,
    leftovers,
    mixed,
    scratch,
    surprising,
    whole,
)


class Rehearsal(ABC):
    """One rehearsal of one set."""

    def __init__(
        self, host: Host, recipe: Recipe, platform: Platform, database: Database, pinned: Dict[str, str]
    ) -> None:
        self._host, self._recipe, self._platform = host, recipe, platform
        self._database, self._pinned = database, pinned
        self._now = installed(host, platform)
        self._folder = scratch(recipe.name)

    def run(self) -> Transaction:
        """What would be done.

        Raises:
            RefusedError: it could not be done whole.
        """
        self._lay_out()
        offered = self._offered()
        roots = choose(self._recipe, self._database, offered)
        members = self._members(roots)
        own = self._own(members)
        first = self._resolve(roots) if own else Transaction()
        wanted = self._wanted(roots, members, offered, own, first)
        final = first if own and wanted == roots else self._resolve(wanted)
        self._check(final)
        along = self._along(final)
        self._fetch(wanted, own)
        closure = self._closure(members, after(self._now, {**final.install, **roots}, final.remove), own)
        asked = {name: version for name, version in wanted.items() if version}
        more = {name: version for name, version in closure.items() if final.install.get(name) == version}
        return Transaction({**asked, **more}, final.remove, closure, along, final.install)

    @abstractmethod
    def _lay_out(self) -> None:
        """Make the folders, and read the sources into them.

        Raises:
            RefusedError: the set's own cannot be read, or is signed by another key.
        """

    @abstractmethod
    def _offered(self) -> Offered:
        """What all sources offer of the roots and of what is there."""

    @abstractmethod
    def _own(self, names: Iterable[str]) -> Offered:
        """What the set's repository offers, of these names at least; nothing where it has none."""

    @abstractmethod
    def _reached(self, roots: Mapping[str, str]) -> List[str]:
        """What the roots, by version where one was chosen, depend on within the set's repository."""

    @abstractmethod
    def _resolve(self, wanted: Mapping[str, str]) -> Transaction:
        """What comes and goes when packages are asked for by version; "": that one is to go.

        Raises:
            RefusedError: it cannot be had.
        """

    @abstractmethod
    def _taken_along(self, going: Tuple[str, ...]) -> Iterable[str]:
        """All that goes when these do."""

    @abstractmethod
    def _foreign_holds(self, found: Transaction) -> Iterable[str]:
        """In words, of the packages that come or go those that somebody else wants to stay as they are."""

    @abstractmethod
    def _fetch(self, wanted: Mapping[str, str], own: Offered) -> None:
        """Download, with every signature and hash checked.

        Raises:
            RefusedError: one is wrong, or the disk is full.
        """

    def _members(self, roots: Mapping[str, str]) -> List[str]:
        """What may belong to the set: its roots, those that are already there too, and what they depend on."""
        names = {root.name: roots.get(root.name, "") for root in self._recipe.roots}
        return [*names, *(self._reached(names) if self._recipe.repository is not None else ())]

    def _wanted(
        self, roots: Dict[str, str], members: List[str], offered: Offered, own: Offered, first: Transaction
    ) -> Dict[str, str]:
        """What is to be asked for: the roots, of which ``first`` comes, and what would else stay another's."""
        kept = {root.name for root in self._recipe.roots} if self._recipe.pinned else set(roots)
        then = after(self._now, {**first.install, **roots}, first.remove)
        ours = mixed(members, then, own)
        kept |= {*whole(members, then, own), *ours}
        return {**leftovers(self._recipe, self._pinned, self._database, kept, offered), **ours, **roots}

    def _check(self, found: Transaction) -> None:
        surprises = sorted(surprising(self._recipe, found.remove, self._database, self._pinned))
        if surprises:
            raise RefusedError(f"it would remove {', '.join(surprises)}")
        held = sorted(self._foreign_holds(found))
        if held:
            raise RefusedError(f"{held[0]}, and not by gpufab")
        if FIRMWARE_UPDATER in found.install and not self._recipe.burns:
            raise RefusedError(f"it would bring {FIRMWARE_UPDATER} along, which burns firmware unasked")
        if self._recipe.modules == "prebuilt" and any(name.endswith("-dkms") for name in found.install):
            raise RefusedError("it builds modules by DKMS: say modules: dkms")
        wrong = other_kernel(found.install, running(self._host)) if self._recipe.modules else ""
        if wrong:
            raise RefusedError(wrong)

    def _along(self, final: Transaction) -> Tuple[str, ...]:
        """What the removal takes with it, which comes first: packages that depend on what goes and come back after."""
        return coming_back(self._taken_along(final.remove), final.remove, final.install) if final.remove else ()

    def _closure(self, members: List[str], then: Dict[str, str], own: Offered) -> Dict[str, str]:
        """The packages of the repository that are then there; without one the roots."""
        if not self._recipe.pinned:
            return {}
        if self._recipe.repository is None:
            return {name: then[name] for name in members if name in then}
        return whole(members, then, own)
