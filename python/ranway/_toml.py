"""Converts Python values to TOML, the format of scenarios. Everything is written inline."""

import json
import os
from collections.abc import Mapping
from typing import Any

from ranway._errors import ScenarioError


def document(values: Mapping[str, Any]) -> str:
    """Returns a mapping as a TOML document, one line per key."""
    return "".join(f"{_text(key)} = {value(item, key)}\n" for key, item in values.items())


def value(item: Any, where: str) -> str:
    """Returns a value as TOML; `where` names it in errors. NumPy's numbers and arrays are treated like Python's."""
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
            raise ScenarioError(f"{where}: None is not allowed in a scenario; omit the key")
        case _:
            kind = type(item).__name__
            raise ScenarioError(f"{where}: {kind} is not allowed in a scenario; use a number, bool, str, list or dict")


def _text(text: Any) -> str:
    if not isinstance(text, str):
        raise ScenarioError(f"{text!r}: keys and paths of a scenario must be str")
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")
