"""The kinds of watchers that have a state, and the watcher of any kind from its state."""

from __future__ import annotations

from halfwidth.errors import BadState
from halfwidth.state.schema import Schema
from halfwidth.watchers.base import State, Watcher


def watcher_kinds() -> dict[str, type[Watcher]]:
    """Every kind of watcher that has a state."""
    found, families = {}, [Watcher]
    while families:
        family = families.pop()
        if "SCHEMA" in vars(family):
            found[family.kind] = family
        families += family.__subclasses__()
    return found


def watcher_schemas() -> dict[str, Schema]:
    """The schemas of all watchers, by kind."""
    return {kind: watcher.SCHEMA for kind, watcher in watcher_kinds().items()}


def restored(state: State) -> Watcher:
    """The watcher of any kind that `to_state` described."""
    kind, kinds = state.get("kind"), watcher_kinds()
    if not isinstance(kind, str) or kind not in kinds:
        raise BadState.at("state.kind", f"be one of {', '.join(sorted(kinds))}", kind)
    return kinds[kind].from_state(state)
