"""A run as a film: the belief, the path and the vehicle step by step, and the curve below."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fieldbo._numerics.blas import on_one_blas_thread
from fieldbo.belief.confidence import moments as mean_and_sd
from fieldbo.errors import InputError
from fieldbo.messages import Observation
from fieldbo.mission.files import write_output
from fieldbo.record.record import Record
from fieldbo.record.store import record_file
from fieldbo.results.answers import LevelSetAnswer, OptimumAnswer, answer_of
from fieldbo.results.plot.choices import format_of
from fieldbo.results.plot.figures import interval95
from fieldbo.results.plot.films import Film, Moment
from fieldbo.results.result import Result
from fieldbo.runs.replay import mission_of
from fieldbo.runs.state import RunState

FORMATS = ("mp4", "gif")
"""File formats of films."""

_MP4_NEEDS = "imageio_ffmpeg"
_HOLD_S = 2.0  # how long the last moment stays
_QUALITY = ["-crf", "20", "-movflags", "+faststart"]  # sharp text; plays before it is loaded as a whole

Frame = NDArray[np.uint8]
Progress = Callable[[str, int, int], object]


def animate(
    run: Path | str,
    file: Path | str | None = None,
    *,
    format: str | None = None,
    fps: float = 8.0,
    every: int = 1,
    on_progress: Progress | None = None,
) -> Path:
    """Write a film of a run, which may be in progress or have been interrupted.

    The map shows the posterior mean with the path so far, its readings and the vehicle, and the estimated
    edge of a level set or the reported optimum; below, the scores against cost. Along one axis, the belief is
    a profile; with three or more, the path is drawn over the first two.

    Parameters
    ----------
    run : Path or str
        A run folder, the ``run.sqlite`` in it, or the name of a run in ``runs/``.
    file : Path or str, optional
        By default ``RUN.mp4`` in the current folder; a film appears there as a whole or not at all.
    format : {"mp4", "gif"}, optional
        By default that of the file's extension, or else MP4 if imageio-ffmpeg is installed.
    fps : float
        Moments per second. The last one is held for two seconds.
    every : int
        Show every so many steps; the last one is always shown.
    on_progress : Callable, optional
        Called with what is done (``"replaying"`` or ``"drawing"``), how much of it, and of how much.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        There is no such run or format, the run is in a factory cell or has no step, a number is out of range,
        MP4 is asked for without imageio-ffmpeg, or the file can't be written.
    RecordError
        The record is damaged.
    """
    if every < 1 or not 0 < fps <= 60:
        raise InputError(
            f"every = {every}, fps = {fps:g}", expected="every at least 1, fps above 0 and at most 60"
        )
    kind = checked_format(file or "", format)
    report = on_progress or (lambda doing, done, total: None)
    source = record_file(run)
    target = Path(file) if file else Path(f"{source.resolve().parent.name}.{kind}")
    outcome, moments = replayed(source, every, report)
    film = Film(outcome, moments)

    def frames() -> Iterator[Frame]:
        for number in range(len(moments)):
            frame = film.draw(number)
            yield frame
            report("drawing", number + 1, len(moments))
        for _ in range(round(_HOLD_S * fps)):
            yield frame

    content = (_gif if kind == "gif" else _mp4)(frames(), fps)
    write_output(target, content)
    return target


def checked_format(file: Path | str, format: str | None = None) -> str:
    """Return the format of a film: without a format or an extension MP4, or GIF without imageio-ffmpeg.

    Raises
    ------
    InputError
        There is no such format, or it can't be written.
    """
    there = find_spec(_MP4_NEEDS) is not None
    kind = format_of(
        file, format, "--out" if format is None else "--format", FORMATS if there else FORMATS[::-1]
    )
    if kind == "mp4" and not there:
        raise InputError(
            "MP4 needs imageio-ffmpeg, which is not installed",
            expected="the extra film, or a GIF",
            where="--format",
            fix="pip install 'fieldbo[film]', or choose --format gif",
        )
    return kind


@on_one_blas_thread
def replayed(record: Path, every: int, report: Progress) -> tuple[Result, Sequence[Moment]]:
    """Replay a record; return its result, and the moments after every so many steps."""
    with Record(record) as log:
        state, rows = RunState(mission_of(log), log.name), log.rows()
    moments, latest = [_moment(state)], 0
    for done, row in enumerate(rows):
        state.replay([row])
        steps = len(state.curve)
        if steps > latest and steps % every == 0:
            moments.append(_moment(state))
        latest = steps
        report("replaying", done + 1, len(rows))
    if not state.curve:
        raise InputError(
            f"{state.agent.run} has no step yet", expected="a run that settled at least one order"
        )
    end = _moment(state)
    if end.counts != moments[-1].counts:  # steps that `every` leaves out, or the trip home
        moments.append(end)
    return state.result(), moments


def _moment(state: RunState) -> Moment:
    """Return what the film shows of a state."""
    agent = state.agent
    surface, scale = agent.stated
    answer = answer_of(agent.mission, surface, scale, blinded=agent.blinded)
    low, high = interval95(surface, scale)
    return Moment(
        len(state.curve),
        sum(isinstance(event, Observation) for event in agent.history),
        len(agent.mission.world.no_go),
        np.array(mean_and_sd(surface, scale)[0]),
        np.array(low),
        np.array(high),
        np.array(answer.probability) if isinstance(answer, LevelSetAnswer) else None,
        np.array(answer.reported.point) if isinstance(answer, OptimumAnswer) else None,
    )


def _gif(frames: Iterator[Frame], fps: float) -> bytes:
    """Return a film as GIF, which repeats."""
    from PIL import Image

    pictures = [
        Image.fromarray(frame).convert("RGB").quantize(128, dither=Image.Dither.NONE) for frame in frames
    ]
    out = io.BytesIO()
    first, *others = pictures
    first.save(out, "GIF", save_all=True, append_images=others, duration=round(1000 / fps), loop=0)
    return out.getvalue()


def _mp4(frames: Iterator[Frame], fps: float) -> bytes:
    """Return a film as MP4 (H.264)."""
    import imageio_ffmpeg

    first = next(frames)
    with tempfile.TemporaryDirectory(prefix="fieldbo-") as folder:
        file = Path(folder) / "film.mp4"
        writer = imageio_ffmpeg.write_frames(
            str(file),
            (first.shape[1], first.shape[0]),
            pix_fmt_in="rgba",
            fps=fps,
            quality=None,
            macro_block_size=2,
            output_params=_QUALITY,
        )
        writer.send(None)
        writer.send(np.ascontiguousarray(first))
        for frame in frames:
            writer.send(np.ascontiguousarray(frame))
        writer.close()
        return file.read_bytes()
