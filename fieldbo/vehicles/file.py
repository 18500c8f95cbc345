"""Vehicle files, and the link that each describes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fieldbo.errors import InputError, UnknownNameError
from fieldbo.mission.files import made, read_toml
from fieldbo.validation import validated
from fieldbo.vehicles.kinds import LINKS, VEHICLES
from fieldbo.vehicles.remote.link import Link
from fieldbo.vehicles.remote.settings import VehicleFile


@dataclass(frozen=True)
class LoadedVehicleFile:
    """A vehicle file and the link that it describes.

    Attributes
    ----------
    content : mapping
        The file's content as written, except that relative files in ``[link]`` have become absolute.
    settings : VehicleFile
        The content after checking.
    kind : str
        Kind of the link.
    link : Link
    """

    content: Mapping[str, Any]
    settings: VehicleFile
    kind: str
    link: Link

    @classmethod
    def of(cls, content: Mapping[str, Any], where: str) -> LoadedVehicleFile:
        """Check the content of a vehicle file; errors name `where`."""
        settings = validated(VehicleFile, content, where)
        link = made(LINKS, settings.link, f"{where}: link")
        return cls(content, settings, str(settings.link["kind"]), link)

    @property
    def bare(self) -> bool:
        """Whether only the kind of link is given, as by ``--vehicle mqtt``."""
        return dict(self.content) == {"format": 1, "link": {"kind": self.kind}}

    @classmethod
    def read(cls, name: str) -> LoadedVehicleFile:
        """Read a vehicle file; the name of a kind of link stands for that link with its defaults.

        Raises
        ------
        InputError
            The file cannot be read, or its content is not valid.
        """
        if name in LINKS.names():
            return cls.of({"format": 1, "link": {"kind": name}}, f"--vehicle {name}")
        if not name.endswith(".toml") and not Path(name).exists():
            names = [*LINKS.names(), *VEHICLES.names()]
            raise UnknownNameError.of("vehicle", name, names, where="or a vehicle file: NAME.toml")
        return cls.of(_with_absolute_files(read_toml(Path(name)), Path(name).resolve().parent), name)

    @classmethod
    def for_record(cls, name: str) -> LoadedVehicleFile:
        """Read a vehicle file that a record is to hold.

        Raises
        ------
        InputError
            As for `read`, or the file has values that JSON cannot express.
        """
        file = cls.read(name)
        try:
            json.dumps(file.content, allow_nan=False)
        except (ValueError, TypeError) as error:
            raise InputError(
                f"the file holds a number or a date that a record cannot hold: {error}",
                expected="finite numbers, text and tables",
                where=name,
                fix="omit bounds that are infinite, for example low and high in [reports]",
            ) from None
        return file


def _with_absolute_files(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return a vehicle file's content with the ``*_file`` keys of ``[link]`` relative to its folder."""
    link = content.get("link")
    if not isinstance(link, dict):
        return dict(content)
    files = {
        key: str(folder / Path(value).expanduser())
        for key, value in link.items()
        if key.endswith("_file") and isinstance(value, str)
    }
    return {**content, "link": {**link, **files}}
