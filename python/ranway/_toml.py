"""Python values as TOML, which is what scenarios are written in. Everything is written inline."""

import json
import os
from collections.abc import Mapping
from typing import Any

from ranway._errors import ScenarioError


def document(values: Mapping[str, Any]) -> str:
    """A mapping as a TOML document, a line for each key."""
    return "".join(f"{_text(key)} = {value(item, key)}\n" for key, item in values.items())


def value(item: Any, where: str) -> str:
    """A value as TOML; `where` names it in errors. NumPy's numbers and arrays are taken for Python's."""
    item = item.tolist() if hasattr(item, "tolist") else item
    match item:
        case bool():
            return "true" if item else "false"
        case int() | float():
            return repr(item)
        case str() | os.PathLike():
            return _text(os.fspath(item))
        case Mapping():
            return "{ " + ", ".join(f"{_text(key)} = {value(v, f'{where}.{key}')}" for key, v in item.items()) + " }"
        case list() | tuple():
            return "[" + ", ".join(value(v, f"{where}[{i}]") for i, v in enumerate(item)) + "]"
        case None:
            raise ScenarioError(f"{where}: a scenario has no None; leave the key out")
        case _:
            kind = type(item).__name__
            raise ScenarioError(f"{where}: {kind} is no value of a scenario; use a number, bool, str, list or dict")


def _text(text: Any) -> str:
    if not isinstance(text, str):
        raise ScenarioError(f"{text!r}: a scenario's keys and paths are str")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
