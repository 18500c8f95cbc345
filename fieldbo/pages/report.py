"""The page of a run, for somebody who gets it by e-mail: the answer, the map over time, and every order."""

from __future__ import annotations

import io
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

import fieldbo
from fieldbo._numerics.arrays import Array, Mask
from fieldbo.agent.unseen import vouches
from fieldbo.domain.obstacles import Region
from fieldbo.errors import InputError
from fieldbo.messages import order_number
from fieldbo.mission.files import write_output
from fieldbo.pages import field_map, tables
from fieldbo.pages.course import Course, Frame, evenly, replayed
from fieldbo.pages.field_map import VALUES
from fieldbo.pages.plane import Plane, Raster, plane_of, raster_of
from fieldbo.record.store import MISSION, RECORD, is_being_written
from fieldbo.results.words import question_text
from fieldbo.runs.export.tracks import stretches
from fieldbo.runs.replay import Recorded, read_run

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure


FILE = "report.html"
"""Name of a page in its run folder."""

_MOST_VALUES = 650_000  # sites times frames, of which a page of 8 MB holds the maps
_MOST_FRAMES = 400
_SCRIPTS = ("vendor/leaflet/leaflet.js", "static/map.js", "static/layers.js", "static/report.js")
_ENDINGS = (".html", ".htm")


def write_report(run: Path | str, out: Path | str | None = None) -> Path:
    """Write the page of a run, in place of an earlier one. The run may be in progress, or have crashed.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run in ``runs/``.
    out : Path or str, optional
        The file; by default ``report.html`` in the run folder.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        There is no such run, it has issued no order, or the file can't be written.
    RecordError
        The record is damaged, or of a newer version of fieldbo.
    """
    to = None if out is None else Path(out)
    if to is not None and to.suffix.lower() not in _ENDINGS:
        raise InputError(
            f"{str(out)!r} is not a web page",
            expected=f"a file that ends in {' or '.join(_ENDINGS)}",
            where="--out",
            fix=f"name it, for example, {(to / FILE) if to.is_dir() else to.with_suffix('.html')}",
        )
    recorded = read_run(run)
    to = recorded.folder / FILE if to is None else to
    content = report_page(recorded)
    write_output(to, content)
    return to


def report_page(run: Recorded) -> bytes:
    """Return the page of a run: one HTML file that needs no other.

    Parameters
    ----------
    run : Recorded
        From `fieldbo.runs.export.read_run`.

    Examples
    --------
    >>> import tempfile
    >>> import fieldbo
    >>> from fieldbo.runs.export import read_run
    >>> from fieldbo.runs.folder import begin
    >>> mission = fieldbo.load_mission("lake-level-set", {"agent": {"battery": 100}})
    >>> with tempfile.TemporaryDirectory() as parent:
    ...     folder, record = begin(mission, Path(parent) / "lake-1")
    ...     with record:
    ...         result = fieldbo.run(mission, record=record)
    ...     report_page(read_run(folder))[:15]
    b'<!DOCTYPE html>'
    """
    domain = run.mission.world.domain
    plane = _plane(run)
    raster = raster_of(plane) if plane is not None and domain.dimension == 2 else None
    most = 0 if raster is None else max(2, min(_MOST_FRAMES, _MOST_VALUES // max(1, len(raster.shown))))
    course = replayed(run, most)
    return page("report.html", _SCRIPTS if plane else (), _content(course, plane, raster))


def _plane(run: Recorded) -> Plane | None:
    """Return the map of a run; None for a factory cell, whose axes are settings."""
    from fieldbo.results.cell_runs import cell_runs_of

    return None if cell_runs_of(run.mission).names else plane_of(run.mission.world.domain)


def _content(course: Course, plane: Plane | None, raster: Raster | None) -> dict[str, Any]:
    result, mission = course.result, course.result.mission
    came = tables.outcomes(course)
    header, rows = tables.readings(course)
    routes, moves = _routes(course)
    data = None if plane is None else _data(course, plane, raster, routes, moves)
    question = question_text(mission.question, mission.world.quantity)
    return {
        "title": f"{course.run.name}: {question}",
        "question": question[0].upper() + question[1:],
        "run": course.run.name,
        "mission": mission.title,
        "world": mission.world.title,
        "report": result.report(),
        "summary": result.summary(),
        "unfinished": _unfinished(course),
        "loss": course.run.loss,
        "data": data,
        "still": None if plane is None else still_of(course, plane, raster, routes),
        "quantity": mission.world.quantity.label,
        "steps": 0 if data is None else len(data["steps"]),
        "total_steps": len(result.curve),
        "pictures": list(_pictures(course, with_map=raster is not None)),
        "orders": tables.orders(course, came),
        "policies": tables.policies(course),
        "header": header,
        "readings": rows,
        "undone": tables.undone(course),
        "commands": tables.commands(course),
        "corrections": tables.corrections(course),
        "several_vehicles": len(mission.vehicles) > 1,
        "measured": not (vouches(mission) or mission.world.domain.continuous),
        "unit": mission.world.cost_unit,
        "origin": _origin(course.run),
        "version": fieldbo.__version__,
    }


def _unfinished(course: Course) -> str:
    """Return when the run stood as the page shows it; empty if it has ended."""
    if course.result.end_reason is not None:
        return ""
    at = datetime.fromisoformat(course.run.rows[-1].time_utc)
    running = is_being_written(course.run.folder / RECORD)
    state = "The run was still in progress." if running else "It was interrupted, and can be resumed."
    return f"Run not finished: as of {at:%Y-%m-%d %H:%M:%S} UTC. {state}"


def _origin(run: Recorded) -> dict[str, Any]:
    """Return how to repeat a run: seed, versions and mission. Settings of links may hold secrets: none."""
    description = run.description
    file = run.folder / MISSION
    return {
        "began": f"{run.began:%Y-%m-%d %H:%M} UTC",
        "seed": run.mission.seed,
        "policy": run.mission.policy_kind,
        "versions": {
            **description.get("versions", {}),
            "platform": description.get("platform", "not recorded"),
        },
        "plugins": [f"{p['distribution']} {p['version']}" for p in description.get("plugins", ())],
        "vehicles": sorted({_kind(vehicle) for vehicle in description.get("vehicles", ())}),
        "file": f"{run.name}/{MISSION}",
        "toml": file.read_text(encoding="utf-8") if file.is_file() else "",
    }


def _closed(course: Course, frame: Frame) -> int:
    """Return how many areas had been closed when the order of a frame was settled."""
    issued = 0 if frame.order is None else order_number(frame.order) + 1
    obeyed = (c for c in course.result.commands if not c.refused)
    return sum(len(command.areas) for command in obeyed if command.after <= issued)


def _kind(vehicle: Mapping[str, Any]) -> str:
    return str(vehicle.get("kind") or vehicle.get("link", {}).get("kind", "unknown"))


# -- the map -----------------------------------------------------------------------------------------------


def _data(
    course: Course, plane: Plane, raster: Raster | None, routes: list[Array], moves: list[list[int]]
) -> dict[str, Any]:
    result, mission = course.result, course.result.mission
    battery = sum(spec.battery for spec in mission.vehicles)
    came = tables.outcomes(course)
    frames = [frame for frame in course.frames if frame.layers]
    if raster is None:
        frames = [course.frames[k] for k in evenly(len(course.frames), _MOST_FRAMES)]
    nowhere = {"failure": np.full(mission.world.domain.size, np.nan)}  # before readings failed in some places
    unknown = nowhere if any("failure" in frame.layers for frame in frames) else {}
    known = field_map.earlier_readings(plane, mission)
    read = np.cumsum([0, *(len(getattr(event, "times_s", ())) for event in course.agent.history)])
    steps = []
    for frame in frames:
        steps.append(
            {
                "title": tables.title(course, frame, battery, mission.world.cost_unit),
                "facts": tables.facts(course, frame, came),
                "marks": {
                    "readings": len(known) + int(read[frame.events]),
                    "areas": _closed(course, frame),
                    "routes": [ends[frame.events] for ends in moves],
                    "vehicles": [plane.drawn(position)[0] for position in frame.positions],
                },
                "layers": {}
                if raster is None
                else field_map.frame_layers({**unknown, **frame.layers}, result.answer, raster.shown),
            }
        )
    maps = [frame.layers for frame in course.frames if frame.layers]
    return {
        "map": field_map.geometry(plane, raster),
        "areas": field_map.areas(plane, mission.world.no_go),
        "layers": [] if raster is None else field_map.layers(result, maps, raster),
        "places": field_map.places(plane, result),
        "routes": [plane.drawn(points) for points in routes],
        "readings": [*known, *field_map.readings(plane, result, tables.reading_words(course))],
        "steps": steps,
    }


def _routes(course: Course) -> tuple[list[Array], list[list[int]]]:
    """Return the points (k, d) of each vehicle's route, and how many of them there are after each event."""
    routes, counts = list[Array](), list[list[int]]()
    for number, spec in enumerate(course.result.mission.vehicles):
        points, ends = [spec.start], [1]
        for stretch in stretches(course.result, course.agent, number):
            points += [point for point, _ in stretch]
            ends.append(len(points))
        routes.append(np.array(points))
        counts.append(ends)
    return routes, counts


# -- pictures ----------------------------------------------------------------------------------------------


def _pictures(course: Course, *, with_map: bool) -> Iterator[dict[str, str]]:
    """Yield title, words and sources of the pictures: the curve and, where there is no map, path and maps."""
    from fieldbo.results import plot

    result = course.result
    if not result.curve:
        return
    cell = bool(result.cell_runs.names)
    drawn = {
        "curve": ("Score against cost", "The numbers are in the table of orders and in curve.csv."),
    }
    if not with_map:
        drawn = {
            "path": (
                "Settings over time" if cell else "Path and readings",
                "The numbers are in the tables below.",
            ),
            **drawn,
            "map": ("Estimate, uncertainty and answer", "The answer is above in words."),
        }
    for name, (title, words) in drawn.items():
        picture = getattr(plot, f"{name}_picture")
        yield {
            "title": title,
            "words": words,
            "wide": _embed(picture(result, "screen")),
            "narrow": _embed(picture(result, "column")),  # with letters that a phone shows large enough
        }


def _embed(figure: Figure) -> str:
    """Return a figure as the address of a picture in SVG."""
    from fieldbo.results import plot

    file = io.BytesIO()
    plot.save(figure, file, "svg")
    return f"data:image/svg+xml;base64,{b64encode(file.getvalue()).decode()}"


_HATCH, _LINES = 7, (0x55, 0xEE)
"""A hatching: pixels between its lines, and their greys; as in ``static/map.js``."""

WIDTH = 1000
"""Of the picture, in its own units."""


@dataclass(frozen=True)
class Still:
    """A picture in SVG.

    Attributes
    ----------
    height : float
        For a `WIDTH` of 1000.
    image : str
        The posterior mean as a data URL, hatched where nobody has inspected it; empty if there is none.
    hatched : bool
        Whether anything is.
    low, high : float
        Values at the ends of its colours.
    ground, obstacles : str
        Outline and obstacles, as paths.
    routes : tuple of str
        Points of each vehicle's route.
    readings, earlier : tuple of (float, float)
        Those of the run, and those with which it began.
    """

    height: float
    image: str
    hatched: bool
    low: float
    high: float
    ground: str
    obstacles: str
    routes: tuple[str, ...]
    readings: tuple[tuple[float, float], ...]
    earlier: tuple[tuple[float, float], ...]


def still_of(course: Course, plane: Plane, raster: Raster | None, routes: list[Array]) -> Still:
    """Return the last map of a run.

    Parameters
    ----------
    course : Course
    plane : Plane
    raster : Raster or None
    routes : list of (k, d) array
        Of each vehicle.
    """
    height = round(WIDTH * plane.ratio, 1)
    size = np.array([WIDTH, height])

    def placed(points: Array) -> list[list[float]]:
        return (plane.on_screen(points) * size).round(1).tolist() if len(points) else []

    def path(region: Region) -> str:
        rings = (r for part in shapely.get_parts(region) for r in (part.exterior, *part.interiors))
        lines = (placed(plane.whole(shapely.get_coordinates(ring)[:, :2])) for ring in rings)
        return "".join("M" + "L".join(f"{x},{y}" for x, y in line) + "Z" for line in lines)

    maps, domain = course.frames[-1].layers, course.result.mission.world.domain
    lacking = np.asarray(maps["class"] == 2) if "class" in maps else np.zeros(domain.size, bool)
    image, low, high = ("", 0.0, 0.0) if raster is None else _image(maps["mean"], lacking, raster)
    return Still(
        height=height,
        image=image,
        hatched=bool(lacking.any()),
        low=low,
        high=high,
        ground=path(plane.ground),
        obstacles="".join(
            path(obstacle.polygon) for obstacle in (*plane.obstacles, *course.result.mission.world.no_go)
        ),
        routes=tuple(" ".join(f"{x},{y}" for x, y in placed(route)) for route in routes),
        readings=tuple((x, y) for x, y in placed(course.result.sites)),
        earlier=tuple((x, y) for x, y in placed(course.result.mission.earlier.sites)),
    )


def _image(values: Array, hatched: Mask, raster: Raster) -> tuple[str, float, float]:
    """Return values (N,) as a PNG, hatched at some sites (N,), and the values at the ends of its colours."""
    from matplotlib import colormaps
    from matplotlib.image import imsave

    shown = values[raster.shown]
    finite = shown[np.isfinite(shown)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    share = (shown - low) / (high - low) if high > low else np.zeros(len(shown))
    colours = colormaps[VALUES](np.append(share, np.nan), bytes=True)  # the last one is transparent
    pixels, lines = colours[raster.pixels], np.indices(raster.pixels.shape).sum(axis=0) % _HATCH
    lacking = np.append(hatched[raster.shown], False)[raster.pixels]
    for line, grey in enumerate(_LINES):
        pixels[lacking & (lines == line), :3] = grey
    file = io.BytesIO()
    imsave(file, pixels, format="png", metadata={"Software": "fieldbo"})
    return f"data:image/png;base64,{b64encode(file.getvalue()).decode()}", low, high


# -- HTML from a template ----------------------------------------------------------------------------------
#
# Nothing that a mission, a record or a robot says is ever executed. Jinja escapes all text. Data for scripts
# is JSON that can't end its element. A content security policy allows the scripts and styles of this package
# by their hashes, and nothing else: no other script, and no request.

_STYLES = ("vendor/leaflet/leaflet.css", "static/page.css")
_ESCAPED = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def page(template: str, scripts: tuple[str, ...], content: Mapping[str, Any]) -> bytes:
    """Return a page that needs no other file.

    Parameters
    ----------
    template : str
        Name of a file in ``templates``.
    scripts : tuple of str
        Scripts of this package, in the order in which they run.
    content : mapping
        What the template shows. ``data`` is for scripts.
    """
    style, code = "\n".join(_asset(name) for name in _STYLES), [_asset(name) for name in scripts]
    text = (
        _environment()
        .get_template(template)
        .render(**content, style=style, scripts=code, policy=_policy([style], code))
    )
    return text.encode("utf-8", errors="replace")


def embedded(data: Any) -> str:
    r"""Return plain data as JSON for a ``<script type="application/json">`` element.

    Examples
    --------
    >>> print(embedded({"name": "</script><b>&"}))
    {"name":"\u003c/script\u003e\u003cb\u003e\u0026"}
    """
    return json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_ESCAPED)


def _policy(styles: list[str], scripts: list[str]) -> str:
    """Return a content security policy that allows these and images within the page."""
    allowed = {name: " ".join(map(_hash, texts)) for name, texts in (("style", styles), ("script", scripts))}
    return (
        f"default-src 'none'; script-src {allowed['script']}; style-src {allowed['style']}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@lru_cache(maxsize=16)
def _asset(name: str) -> str:
    return files("fieldbo.pages").joinpath(*name.split("/")).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("fieldbo.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["embedded"] = embedded
    return made
