"""Features of vector files, as GDAL reads them: layers, archives, and what is missing beside a shapefile."""

from __future__ import annotations

import gzip
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
import shapely

from fieldbo.errors import InputError
from fieldbo.mission.areas import named
from fieldbo.mission.vector_content import FORMATS, GEOJSON, KML, SUFFIXES, check_complete, check_content

SEVERAL = (".gpx", *KML)
"""Suffixes of files whose layers are parts of one."""

_SHAPEFILE = frozenset((".shp", ".dbf", ".prj", ".cpg"))


@dataclass(frozen=True, eq=False)
class Features:
    """The features of one layer of a file, as they are in it.

    Attributes
    ----------
    layer : str
        Name by which it is chosen.
    where : str
        File and layer, for errors.
    crs : str or None
        What the file says.
    geometries : sequence of shapely geometry
        None where a feature has none.
    names : list of str
        Of the features; empty where they have none.
    notes : tuple of str
        What GDAL said.
    """

    layer: str
    where: str
    crs: str | None
    geometries: Sequence[Any]
    names: list[str]
    notes: tuple[str, ...]


def read_features(path: Path, chosen: str | None, option: str) -> list[Features]:
    """Return the layers of a vector file or of an archive, or the chosen one.

    Parameters
    ----------
    path : Path
    chosen : str, optional
        Name of a layer.
    option : str
        The option that names the file, for errors.

    Raises
    ------
    InputError
        The file can't be read, not as a whole, or would have GDAL open others.
    """
    check_content(path, option)
    with _damage_named(path, option), _opened(path, option) as sources:
        return _read_sources(sources, chosen, path, option)


@contextmanager
def _damage_named(path: Path, option: str) -> Iterator[None]:
    """Turn what a library raises for a damaged file, beyond its own errors, into an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(
            f"{path.name} is damaged, or of a form that fieldbo can't read: {type(error).__name__}",
            expected=FORMATS,
            where=option,
            fix="export it again from a GIS",
        ) from error


def _read_sources(sources: Sequence[_Source], chosen: str | None, path: Path, option: str) -> list[Features]:
    gdal = _Gdal(option)
    listed = [(source, layer) for source in sources for layer in gdal.list_layers(source)]
    alike = Counter(layer for _, layer in listed)
    labels = [
        layer if alike[layer] == 1 else f"{source.member.rpartition('.')[0] or layer}"
        for source, layer in listed
    ]
    if chosen is not None and chosen not in labels:
        raise InputError(
            f"{path.name} has no layer {chosen!r}", expected=f"one of {', '.join(labels)}", where=option
        )
    features = list[Features]()
    for source in sources:
        mine = [k for k, (its, _) in enumerate(listed) if its is source]
        some = [k for k in mine if chosen in (None, labels[k])]
        if not some:
            continue
        read = {
            k: gdal.read(source, listed[k][1], labels[k])
            for k in (mine if source.suffix in SEVERAL else some)
        }
        features += [read[k] for k in some]
        if source.suffix in (*KML, *GEOJSON, ".shp"):
            with source.stream() as stream:
                everything = [g for f in read.values() for g in f.geometries]
                check_complete(stream, source.suffix, everything, path.name, option)
    return features


@dataclass(frozen=True)
class _Source:
    """A file that GDAL reads: the user's, or one of an archive."""

    path: Path
    address: str  # as GDAL takes it
    suffix: str
    member: str = ""
    restored: bool = False  # GDAL has to make its index

    @contextmanager
    def stream(self) -> Iterator[IO[bytes]]:
        """Open the file's bytes."""
        with ExitStack() as stack:
            if self.member:
                archive = stack.enter_context(zipfile.ZipFile(self.path))
                yield stack.enter_context(archive.open(self.member))
            elif self.path.suffix.lower() == ".gz":
                packed: Any = stack.enter_context(self.path.open("rb"))
                yield gzip.GzipFile(fileobj=packed)  # type: ignore[misc]
            else:
                yield stack.enter_context(self.path.open("rb"))


@contextmanager
def _opened(path: Path, option: str) -> Iterator[list[_Source]]:
    """Find the files to read: one, or those in an archive. Shapefiles without an index get one, in a copy."""
    suffix = path.suffix.lower()
    whole = path.absolute()  # not WFS:..., with a file of that name
    with ExitStack() as stack:
        if suffix == ".gz":
            yield [_Source(path, f"/vsigzip/{whole}", Path(path.stem).suffix.lower())]
        elif zipfile.is_zipfile(path):
            found = [
                _Source(path, f"/vsizip/{whole}/{member}", PurePosixPath(member).suffix.lower(), member)
                for member in _find_members(path, option)
            ]
            yield [_with_index(source, stack) for source in found]
        else:
            yield [_with_index(_Source(path, str(whole), suffix), stack)]


def _find_members(path: Path, option: str) -> list[str]:
    """Return the files of an archive that can be read, at any depth."""
    with zipfile.ZipFile(path) as archive:
        names = [n for n in archive.namelist() if not n.startswith("__MACOSX/") and "/._" not in f"/{n}"]
    databases = {n[: n.index(".gdb/") + 4] for n in names if ".gdb/" in n}
    files = [n for n in names if ".gdb/" not in n and PurePosixPath(n).suffix.lower() in SUFFIXES]
    if archives := [n for n in names if n.lower().endswith((".zip", ".shz", ".kmz"))]:
        raise InputError(
            f"{path.name} holds an archive: {archives[0]}",
            expected=FORMATS,
            where=option,
            fix="unpack it first",
        )
    if not files and not databases:
        raise InputError(
            f"{path.name} holds no file that can be read, only {', '.join(names[:5]) or 'nothing'}",
            expected=FORMATS,
            where=option,
        )
    return [*files, *sorted(databases)]


def _with_index(source: _Source, stack: ExitStack) -> _Source:
    """Return a shapefile, or a copy of it if its index is missing: GDAL would write it beside the file."""
    name = PurePosixPath(source.member or source.path.as_posix())
    if source.suffix != ".shp":
        return source
    if source.member:
        with zipfile.ZipFile(source.path) as archive:
            beside = [replace(source, member=n) for n in archive.namelist()]
    else:
        beside = [replace(source, path=p) for p in source.path.parent.iterdir()]
    parts = dict[str, _Source]()
    for other in beside:
        its = PurePosixPath(other.member or other.path.as_posix())
        if its.with_suffix("") == name.with_suffix(""):
            parts[its.suffix.lower()] = other
    if ".shx" in parts:
        return source
    folder = Path(stack.enter_context(TemporaryDirectory()))
    for suffix in parts.keys() & _SHAPEFILE:
        with parts[suffix].stream() as stream:
            (folder / f"{name.stem}{suffix}").write_bytes(stream.read())
    return replace(source, address=str(folder / f"{name.stem}.shp"), restored=True)


class _Gdal:
    """What GDAL reads, through pyogrio.

    Raises
    ------
    InputError
        pyogrio is not installed.
    """

    def __init__(self, option: str) -> None:
        try:
            import pyogrio
        except ImportError:
            raise InputError(
                "reading vector files needs pyogrio, which is not installed",
                expected="the extra geo",
                where=option,
                fix="pip install 'fieldbo[geo]'",
            ) from None
        self._pyogrio, self._option = pyogrio, option

    def list_layers(self, source: _Source) -> list[str]:
        """Return the names of the layers that may hold geometries."""
        with self._errors(source), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # said again when the layer is read
            layers = self._pyogrio.list_layers(source.address).tolist()
        return [name for name, kind in layers if kind is not None]

    def read(self, source: _Source, layer: str, label: str) -> Features:
        """Return the features of a layer."""
        where = f"{source.path.name}, layer {label}"
        with self._errors(source), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            meta, _, wkb, fields = self._pyogrio.raw.read(source.address, layer=layer, force_2d=True)
        said = dict.fromkeys(str(w.message).split(". Further")[0] for w in caught)
        notes = [f"{where}: {text}" for text in said if not any(usual in text for usual in _USUAL)]
        column = next((k for k, name in enumerate(meta["fields"]) if str(name).lower() == "name"), None)
        count = 0 if wkb is None else len(wkb)
        names = [""] * count if column is None else [v if isinstance(v, str) else "" for v in fields[column]]
        geometries = self._parse([] if wkb is None else wkb, names, where)
        return Features(label, where, meta["crs"], geometries, names, tuple(notes))

    def _parse(self, wkb: Sequence[bytes | None], names: Sequence[str], where: str) -> list[Any]:
        """Return geometries, or raise an `InputError` that names those that can't be read."""
        geometries, wrong, reasons = list[Any](), list[int](), dict[str, None]()
        for number, code in enumerate(wkb):
            try:
                with np.errstate(invalid="ignore"):
                    geometries.append(shapely.from_wkb(code))
            except shapely.errors.ShapelyError as error:
                wrong.append(number)
                kind = None if code is None else _UNREADABLE.get(int.from_bytes(code[1:5], "little") % 1000)
                kind = "ring without a polygon" if "EOF" in str(error) else kind
                reasons[f"a {kind}" if kind else str(error).partition(": ")[2].strip() or str(error)] = None
        if wrong:
            raise InputError(
                f"{where}: feature {named(wrong, names)} is not valid: {'; '.join(reasons)}",
                expected="polygons whose rings end where they begin",
                where=self._option,
                fix="repair it in a GIS (QGIS: Fix geometries), or export it as polygons",
            )
        return geometries

    @contextmanager
    def _errors(self, source: _Source) -> Iterator[None]:
        """Raise what GDAL can't read as an `InputError`."""
        errors = self._pyogrio.errors
        before = self._pyogrio.get_gdal_config_option(_RESTORE)
        self._pyogrio.set_gdal_config_options({_RESTORE: "YES" if source.restored else None})
        try:
            yield
        except (
            errors.DataSourceError,
            errors.DataLayerError,
            errors.FeatureError,
            errors.GeometryError,
        ) as error:
            reason = str(error).replace(source.address, source.member or source.path.name).split(";")[0]
            raise InputError(
                f"{source.path.name} can't be read: {reason}", expected=FORMATS, where=self._option
            ) from None
        finally:
            self._pyogrio.set_gdal_config_options({_RESTORE: before})


_RESTORE = "SHAPE_RESTORE_SHX"
_USUAL = ("Non closed ring", "Measured (M) geometry")  # warnings of GDAL about what is checked here
_UNREADABLE = {15: "PolyhedralSurface", 16: "TIN", 17: "Triangle"}
