"""What a format says when its library is not installed."""

from __future__ import annotations

from fieldbo.errors import InputError


def missing(name: str, library: str, extra: str) -> InputError:
    """Return the error for a format whose library is not installed."""
    return InputError(
        f"the format {name} needs {library}, which is not installed",
        expected=f"fieldbo with its extra {extra}",
        fix=f"python -m pip install 'fieldbo[{extra}]'",
    )
