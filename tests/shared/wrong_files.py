"""Files with random mistakes, and what comes of them."""

from fieldbo.errors import FieldboError


def paths_in(content, at=(), *, arrays=False):
    """Yield the path of every key, tables and their keys alike; with `arrays`, of their elements, too."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield (*at, key)
        if isinstance(value, dict) or (arrays and isinstance(value, list)):
            yield from paths_in(value, (*at, key), arrays=arrays)


def holder(content, path):
    """Return the table or array that holds the last key of a path."""
    for key in path[:-1]:
        content = content[key]
    return content


def loaded(load, file):
    """Return what was loaded, or None and the error's message; any other kind of error gets through."""
    try:
        return load(file), ""
    except FieldboError as error:
        return None, str(error)
