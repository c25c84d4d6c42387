"""What can go wrong, beside `OSError`."""


class RanwayError(Exception):
    """Something that the caller can act on, such as a directory that holds something else than results."""


class ScenarioError(RanwayError, ValueError):
    """A scenario is wrong. A line for each fault: file:line:column, key, what is wrong, what would be right."""
