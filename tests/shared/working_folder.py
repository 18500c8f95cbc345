"""Files that a test writes, changes and looks over in its working folder."""

from pathlib import Path


def write(file, content):
    """Write text or bytes; folders are made."""
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def edit(file, old, new):
    text = Path(file).read_text()
    assert old in text, f"{old!r} is not in {file}"
    write(file, text.replace(old, new, 1))


def everything():
    """Return every path below the working folder, with what files hold."""
    return {p: p.read_bytes() if p.is_file() else None for p in Path().rglob("*")}
