"""The exceptions of the package, in addition to `OSError`."""


class RanwayError(Exception):
    """An error that the caller can handle, such as a directory that does not contain results."""


class ScenarioError(RanwayError, ValueError):
    """An invalid scenario. One line per fault: file:line:column, key, the problem, what would be valid."""
