"""The axis of a swept key."""

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from ranway import _select

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The swept values are ticks if they are so few, and so far apart as shares of the axis.
_MOST_TICKS, _CLOSEST_TICKS = 9, 0.08


class Axis(NamedTuple):
    """The positions of a swept key's values: numbers, possibly with a unit, or consecutive names."""

    label: str
    scale: str
    least: float
    places: dict[Any, float]
    names: list[str]

    @staticmethod
    def of(key: str, values: Sequence[Any]) -> "Axis":
        values = list(dict.fromkeys(values))
        parts = [re.fullmatch(r"([\d.]+) ?([A-Za-z/]+)", value) for value in values if isinstance(value, str)]
        units = {part[2] if part else None for part in parts}
        if not parts and not any(isinstance(value, bool) for value in values):
            numbers, label = [float(value) for value in values], key
        elif len(parts) == len(values) and len(units) == 1 and None not in units:
            numbers, label = [float(part[1]) for part in parts if part], f"{key} ({units.pop()})"
        else:
            places = {value: float(i) for i, value in enumerate(values)}
            return Axis(key, "names", 0, places, [_select.text(value) for value in values])
        positive = [number for number in numbers if number > 0]
        wide = bool(positive) and min(numbers) >= 0 and max(positive) >= 20 * min(positive)
        scale = "linear" if not wide else "log" if len(positive) == len(numbers) else "symlog"
        return Axis(label, scale, min(positive, default=0), dict(zip(values, numbers, strict=True)), [])

    def place(self, value: Any) -> float:
        return self.places[value]

    def dodge(self, line: int, lines: int) -> float:
        """By how much a line's points are moved aside, so that they do not hide those of others: of names only."""
        return (line - (lines - 1) / 2) * min(0.12, 0.6 / lines) if self.scale == "names" else 0.0

    def apply(self, ax: "Axes", room: int) -> None:
        """Draws the axis; `room` is the number of characters that fit below it."""
        ax.set_xlabel(self.label)
        if self.scale == "names":
            slanted = sum(len(name) + 2 for name in self.names) > room
            ax.set_xticks(list(self.places.values()), self.names)
            if slanted:
                for label in ax.get_xticklabels():
                    label.set(rotation=25, ha="right", rotation_mode="anchor")
            ax.margins(x=0.1)
        elif self.scale == "symlog":
            # The scale is linear from zero to the smallest value above it.
            ax.set_xscale("symlog", linthresh=self.least, linscale=0.5)
        else:
            ax.set_xscale(self.scale)
        if self.scale != "names" and 2 <= len(self.places) <= _MOST_TICKS:
            # The values themselves, unless they are too close.
            marks = sorted(self.places.values())
            at = [math.log(max(mark, self.least / 2)) if self.scale != "linear" else mark for mark in marks]
            if min(b - a for a, b in pairwise(at)) >= _CLOSEST_TICKS * (at[-1] - at[0]):
                ax.set_xticks(marks, [f"{mark:g}" for mark in marks])
                ax.set_xticks([], minor=True)
