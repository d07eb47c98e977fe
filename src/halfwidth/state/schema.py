"""One schema for every saved state: what `from_state` and `load` check before anything is built.

A class states the fields of its own state next to its code:

    SCHEMA = Schema(
        "random-scaling",
        1,
        {
            "dim": Whole(1, doc="coefficients of an iterate"),
            "n_seen": Whole(doc="iterates seen"),
            "reference": Array(("dim",), doc="what the sums are relative to"),
        },
        relations=(Relation("have a zero `reference` before the first row", _starts_at_zero),),
    )

    validate(state, SCHEMA)

Fields are checked in the order in which they are declared, then the relations between them; a relation may rely on
every field, the rule of a dimension on the fields declared before its first use. A field that the schema does not name
is refused too. `kind` and `version` come first: a state of a newer version says so, an older one names the release
that can read it. Nothing in a state is evaluated as code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from halfwidth.errors import BadState, HalfwidthError
from halfwidth.state.fields import Field, Scope, State

Built = TypeVar("Built")

_OLDER = "written by an older release; finish the run with that release, or start again"
_NEWER = "written by a newer release of halfwidth; read it with that release"


@dataclass(frozen=True)
class Relation:
    """What must hold between fields: `rule` in words, after "must", and the test of it."""

    rule: str
    holds: Callable[[State], Any]

    def check(self, state: State, where: str) -> None:
        try:
            good = bool(self.holds(state))
        except Exception as error:  # whatever the numbers do to the test, they have failed it
            raise BadState(
                f"{where} must {self.rule}; testing that ended in {type(error).__name__}: {error}"
            ) from error
        if not good:
            raise BadState(f"{where} must {self.rule}; it does not: the state was altered, or is of another run")


@dataclass(frozen=True)
class Schema:
    """The fields of one kind of state; `kind` is None for parts that live inside another state only.

    Parameters
    ----------
    kind : str or None
        What the field `kind` must say.
    version : int or None
        What the field `version` must say.
    fields : mapping of str to Field
        The fields in the order in which they are checked.
    dims : mapping of str to callable
        Dimensions that are computed from fields: a function of the state.
    relations : tuple of Relation
        What must hold between fields.
    title : str
        What the state is of, for messages and the page of the file format.
    optional : tuple of str
        Fields that may be left out.
    settings : tuple of str
        Fields that rows never change.
    """

    kind: str | None
    version: int | None
    fields: Mapping[str, Field]
    dims: Mapping[str, Callable[[State], int]] = field(default_factory=dict)
    relations: tuple[Relation, ...] = ()
    title: str = ""
    optional: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.title:
            object.__setattr__(self, "title", f"state of kind {self.kind!r}")

    def check(self, state: Any, where: str = "state") -> None:
        """Raise `BadState` unless the state follows this schema."""
        if not isinstance(state, dict):
            raise BadState.at(where, f"be a {self.title}", state)
        self._check_head(state, where)
        head = () if self.kind is None else ("kind", "version")
        for name in state:
            if name not in self.fields and name not in head:
                raise BadState.at(f"{where}.{name}", f"not be there: no {self.title} has such a field", state[name])
        scope = Scope(state, self.dims)
        for name, rule in self.fields.items():
            if name in state:
                rule.check(state[name], f"{where}.{name}", scope)
            elif name not in self.optional:
                raise BadState(f"{where}.{name} must be there: every {self.title} has it, and it is missing")
        for relation in self.relations:
            relation.check(state, where)

    def _check_head(self, state: State, where: str) -> None:
        if self.kind is None:
            return
        if not isinstance(state.get("kind"), str) or state["kind"] != self.kind:
            raise BadState.at(f"{where}.kind", f"be {self.kind!r}", state.get("kind"))
        version = state.get("version")
        if isinstance(version, bool) or not isinstance(version, int):
            raise BadState.at(f"{where}.version", f"be {self.version}", version)
        assert self.version is not None
        if version != self.version:
            why = _NEWER if version > self.version else _OLDER
            raise BadState(f"{where} is a {self.title} of version {version}, this release reads {self.version}: {why}")

    @property
    def head(self) -> State:
        """What every state of this schema begins with."""
        return {"kind": self.kind, "version": self.version}

    def extended(self, **changes: Any) -> Schema:
        """The same schema with more fields (checked after the others), dimensions and relations, or another kind."""
        return Schema(
            changes.get("kind", self.kind),
            changes.get("version", self.version),
            {**self.fields, **changes.get("fields", {})},
            {**self.dims, **changes.get("dims", {})},
            self.relations + tuple(changes.get("relations", ())),
            changes.get("title", ""),
            self.optional + tuple(changes.get("optional", ())),
            self.settings + tuple(changes.get("settings", ())),
        )


def validate(state: Any, schema: Schema, where: str = "state") -> None:
    """Raise `BadState` unless the state follows the schema.

    Parameters
    ----------
    state : Any
        What was read, or given to `from_state`; nothing of it is believed before.
    schema : Schema
        What the class states about its own state.
    where : str
        How messages call the state.

    Raises
    ------
    BadState
        The message names the field, the rule and the value.
    """
    schema.check(state, where)


def same_settings(one: State, other: State, schema: Schema) -> bool:
    """Whether two states of this schema began alike."""
    return all(np.array_equal(one[name], other[name]) for name in schema.settings)


def build(kind: str, make: Callable[[], Built]) -> Built:
    """What `make` builds from a validated state; what a constructor still trips over is a bad state, too."""
    try:
        return make()
    except HalfwidthError:
        raise
    except Exception as error:
        raise BadState(f"nothing could be built from the state of {kind}: {type(error).__name__}: {error}") from error


class Stored:
    """A class that states its `SCHEMA` and restores itself from a state that satisfies it."""

    kind: ClassVar[str]
    SCHEMA: ClassVar[Schema]

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Restore what `to_state` described.

        Parameters
        ----------
        state : dict
            What `to_state` returned.

        Returns
        -------
        Self
            An object at the same row.

        Raises
        ------
        BadState
            The state breaks a rule of `SCHEMA`; nothing was built.
        """
        validate(state, cls.SCHEMA)
        return build(cls.kind, lambda: cls._restored(state))

    @classmethod
    def _restored(cls, state: State) -> Self:
        """Build the object from a state that was validated."""
        raise NotImplementedError


def close(a: float, b: float, tolerance: float = 1e-9) -> bool:
    """Whether two sums of the same integers agree up to rounding."""
    return abs(a - b) <= tolerance * max(abs(a), abs(b), 1.0)
