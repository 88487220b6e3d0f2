"""The one way in which a measurement fails."""


class CannotMeasure(Exception):
    """A program is missing, does not start, or answered what it must not. The text is for a person."""
