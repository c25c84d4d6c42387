"""Scenarios: from a file, a built-in name, TOML text or a dict."""

import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

from ranway import _jobs, _ranway, _summary, _toml
from ranway._errors import ScenarioError
from ranway._jobs import Job
from ranway._progress import Progress, shown, unpacked
from ranway._results import Results

# The names in errors of scenarios that are not files.
_TEXT = "<text>"
_DICT = "<dict>"


class Scenario:
    """A scenario: network, flows, duration, and what to record; read and checked. Immutable.

    `source` is a scenario file, or the name of a built-in scenario (`ranway.builtin()`). `set` sets
    parameters and keys, like the method of that name.

    A pickled scenario carries the contents of the files that it names, so it can run on machines without them.

    Raises `ScenarioError` (a `ValueError`) with one line per fault.
    """

    __slots__ = ("_files", "_loaded", "_overrides", "_source", "_text")

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
        "flows.*.cc": "bbr"}`; an element of an array is its name, its number, or `*` for all of them. A key that is
        set is no longer swept.
        """
        overrides = [*self._overrides, *_overrides({**(values or {}), **more})]
        return self._new(self._source, self._text, overrides, self._files)

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
        return self._new(self._source, self._text, overrides, self._files)

    @property
    def title(self) -> str:
        """The one-line title."""
        return self._loaded.title

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points of the sweep: each maps swept keys to values. A single empty one without a sweep."""
        points: list[dict[str, Any]] = json.loads(self._loaded.points())
        return points

    def jobs(self) -> list[Job]:
        """Returns all jobs, ordered by point and run: one for each repetition of each point of the sweep."""
        return [Job(point, run) for point, run in self._loaded.jobs()]

    def run(
        self,
        *,
        runs: int | None = None,
        seed: int | None = None,
        jobs: Iterable[Job | tuple[int, int]] | None = None,
        threads: int | None = None,
        progress: bool | Callable[[Progress], object] | None = True,
        out: str | os.PathLike[str] | None = None,
    ) -> Results:
        """Runs all jobs, or those of a list, and returns when they have finished.

        - `runs`, `seed`: repetitions of each point and the seed of all randomness, if not those of the scenario.
        - `jobs`: the jobs to run, in any order, as `Job`s or pairs (point, run); by default all. `ranway.merge` joins
          the results of several lists.
        - `threads`: the number of threads; by default one per core. It changes the speed and nothing else.
        - `progress`: a function that is called with the `Progress` from time to time, in this thread; or True for a bar
          with an estimate on standard error if that is a terminal; or None for no output.
        - `out`: a directory to write the results to, as `Results.write` does. Packet captures that the scenario
          requests (`record.pcap`) are written there only.

        Other Python threads continue meanwhile. Ctrl-C stops the run, which then writes nothing to `out`.

        Raises `ScenarioError`, `OSError` or `RanwayError`; `ValueError` for jobs that the scenario does not have.
        """
        scenario = self._varied(runs, seed)
        if threads is not None and threads < 1:
            raise ValueError(f"threads={threads}: must be at least 1")
        wanted = None if jobs is None else _jobs.texts(jobs)
        with shown(progress, scenario.title) as tell:
            return Results(_ranway.run(scenario._loaded, wanted, threads or 0, unpacked(tell), out))

    def _varied(self, runs: int | None, seed: int | None) -> Self:
        """Returns the scenario with another number of runs and another seed, if they are given."""
        changes = {key: value for key, value in (("runs", runs), ("seed", seed)) if value is not None}
        return self.set(changes) if changes else self

    def __repr__(self) -> str:
        name = f"Scenario({self._source!r})" if self._text is None else f"Scenario({self._source})"
        return name + "".join(f".set({override})" for override in self._overrides)

    def _repr_html_(self) -> str:
        source = self._source if self._text is None else self._source.strip("<>")
        facts = [("set", ", ".join(self._overrides))] if self._overrides else []
        facts.append(("points", str(len(self.points))))
        return _summary.scenario_html(self.title or "Scenario", source, facts, self.points)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._restore, (self._source, self._text, self._overrides, self._loaded.files())

    @classmethod
    def _restore(cls, source: str, text: str | None, overrides: list[str], files: dict[str, str]) -> Self:
        """Returns a scenario that another process has pickled. Its warnings were issued there."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return cls._new(source, text, overrides, files)

    @classmethod
    def _new(cls, source: str, text: str | None, overrides: list[str], files: dict[str, str] | None = None) -> Self:
        scenario = cls.__new__(cls)
        scenario._load(source, text, overrides, files)
        return scenario

    def _load(self, source: str, text: str | None, overrides: list[str], files: dict[str, str] | None = None) -> None:
        """Loads and checks the scenario. `files` has the contents of files that are not read from the disk."""
        self._source, self._text, self._overrides, self._files = source, text, overrides, files
        contents = (files or {}) if text is None else {**(files or {}), source: text}
        try:
            self._loaded = _ranway.Loaded.load(source, overrides, contents)
        except ScenarioError as error:
            if source != _DICT:
                raise
            # A dict has no line numbers; the key is the position.
            raise ScenarioError(re.sub(rf"(?m)^{_DICT}:\d+:\d+: ", "", str(error))) from None
        for warning in self._loaded.warnings():
            warnings.warn(warning, stacklevel=3)


def _overrides(values: Mapping[str, Any]) -> list[str]:
    return [f"{key}={_toml.value(item, key)}" for key, item in values.items()]
