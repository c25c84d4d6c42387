"""Scenarios: from a file, a built-in name, TOML text or a dict."""

import json
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Self

from ranway import _ranway, _summary, _toml
from ranway._errors import ScenarioError

# The names in errors of scenarios that are not files.
_TEXT = "<text>"
_DICT = "<dict>"


class Scenario:
    """A scenario: network, flows, duration, and what to record; read and checked. Immutable.

    `source` is a scenario file, or the name of a built-in scenario (`ranway.builtin()`). `set` gives values to
    parameters and keys that the file leaves open, as the method of that name does afterwards.

    Raises `ScenarioError` (a `ValueError`) with one line per fault.
    """

    __slots__ = ("_loaded", "_overrides", "_source", "_text")

    def __init__(self, source: str | os.PathLike[str], set: Mapping[str, Any] | None = None) -> None:
        self._load(os.fspath(source), None, _overrides(set or {}))

    @classmethod
    def from_toml(cls, text: str, set: Mapping[str, Any] | None = None) -> Self:
        """Creates a scenario from TOML text. Its file names are relative to the working directory."""
        return cls._new(_TEXT, text, _overrides(set or {}))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], set: Mapping[str, Any] | None = None) -> Self:
        """Creates a scenario from a dict with the structure of a scenario file."""
        return cls._new(_DICT, _toml.document(values), _overrides(set or {}))

    def set(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """Returns the scenario with other values of parameters and keys.

        A key is a parameter (`loss=1e-3`) or a dotted path, which needs a mapping: `{"dumbbell.rate": "10 Mbit/s",
        "flows.*.cc": "bbr"}`; an element of an array is its name, its number, or `*` for all of them. What is set is no
        longer swept.
        """
        return self._new(self._source, self._text, [*self._overrides, *_overrides({**(values or {}), **more})])

    def sweep(self, axes: Mapping[str, Sequence[Any]] | None = None, /, **more: Sequence[Any]) -> Self:
        """Returns the scenario with every combination of these values as a point, in addition to its own sweep.

        Keys are those of `set`: `scenario.sweep({"dumbbell.queue": ["codel", "fq"]}, loss=[0, 1e-3])`.
        """
        overrides = list(self._overrides)
        for key, items in {**(axes or {}), **more}.items():
            values = items.tolist() if hasattr(items, "tolist") else items
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise ScenarioError(f"sweep({key}={items!r}): must be a list of at least one value")
            # The first value removes the key from the existing sweep, so that it is not swept twice.
            overrides += [*_overrides({key: values[0]}), *_overrides({f"sweep.{key}": list(values)})]
        return self._new(self._source, self._text, overrides)

    @property
    def title(self) -> str:
        """The one-line title."""
        return self._loaded.title

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of the sweep: each maps swept keys to values. A single empty one without a sweep."""
        points: list[dict[str, Any]] = json.loads(self._loaded.points())
        return points

    def __repr__(self) -> str:
        name = f"Scenario({self._source!r})" if self._text is None else f"Scenario({self._source})"
        return name + "".join(f".set({override})" for override in self._overrides)

    def _repr_html_(self) -> str:
        source = self._source if self._text is None else self._source.strip("<>")
        facts = [("set", ", ".join(self._overrides))] if self._overrides else []
        facts.append(("points", str(len(self.points))))
        return _summary.scenario_html(self.title or "Scenario", source, facts, self.points)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._new, (self._source, self._text, self._overrides)

    @classmethod
    def _new(cls, source: str, text: str | None, overrides: list[str]) -> Self:
        scenario = cls.__new__(cls)
        scenario._load(source, text, overrides)
        return scenario

    def _load(self, source: str, text: str | None, overrides: list[str]) -> None:
        self._source, self._text, self._overrides = source, text, overrides
        try:
            if text is None:
                self._loaded = _ranway.Loaded.load(source, overrides)
            else:
                self._loaded = _ranway.Loaded.parse(source, text, overrides)
        except ScenarioError as error:
            if source != _DICT:
                raise
            # A dict has no line numbers; the key is the position.
            raise ScenarioError(re.sub(rf"(?m)^{_DICT}:\d+:\d+: ", "", str(error))) from None
        for warning in self._loaded.warnings():
            warnings.warn(warning, stacklevel=3)


def _overrides(values: Mapping[str, Any]) -> list[str]:
    return [f"{key}={_toml.value(item, key)}" for key, item in values.items()]
