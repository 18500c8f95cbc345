"""Films: a run step by step, as MP4 or GIF."""

import io
from pathlib import Path

import numpy as np
import pytest
import underway
from cell_runs import cell_run
from matplotlib.backends.backend_agg import FigureCanvasAgg
from page_runs import pond
from PIL import Image
from small_runs import QUESTIONS, small_run

import fieldbo
from fieldbo.domain.obstacles import Obstacle
from fieldbo.errors import InputError, UnknownNameError
from fieldbo.results.plot import Film, Moment, figures, films
from fieldbo.runs import film
from fieldbo.runs.folder import begin
from fieldbo.runs.steer import append, commands_file


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Make frames of few pixels."""
    monkeypatch.setattr(films, "DOTS_PER_INCH", 40)


@pytest.fixture
def unplaced(monkeypatch):
    """Leave a figure's layout as it is, which saves time."""
    monkeypatch.setattr(figures, "settled", lambda figure: figure.set_layout_engine("none"))


@pytest.fixture
def undrawn(monkeypatch, unplaced):
    """Change what a frame holds, but do not draw its pixels."""
    monkeypatch.setattr(FigureCanvasAgg, "draw", FigureCanvasAgg.get_renderer)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run that ended after seven steps."""
    few = {"agent": {"battery": 800, "max_steps": 7}, "model": {"learn": False}}
    mission = fieldbo.load_mission("lake-level-set", {"policy": {"kind": "truvar"}, **few})
    folder, record = begin(mission, tmp_path_factory.mktemp("runs") / "lake-1")
    with record:
        fieldbo.run(mission, record=record)
    return folder


@pytest.fixture(scope="module")
def replayed(folder):
    return film.replayed(folder / "run.sqlite", 1, lambda *_: None)


def test_there_is_a_moment_before_the_first_step_and_one_after_each(replayed):
    result, moments = replayed
    assert [now.steps for now in moments] == list(range(8))
    assert moments[0].observations == 0
    np.testing.assert_array_equal(moments[-1].mean, result.maps()["mean"].values.ravel())
    assert np.ptp(moments[0].mean) < np.ptp(moments[-1].mean)


def test_every_third_step_is_shown_and_the_last(folder):
    _, moments = film.replayed(folder / "run.sqlite", 3, lambda *_: None)
    assert [now.steps for now in moments] == [0, 3, 6, 7]


@pytest.mark.usefixtures("undrawn")
def test_a_frame_shows_the_path_the_readings_and_the_scores_up_to_its_moment(replayed):
    result, moments = replayed
    shown = Film(result, moments)
    for number in (5, 2):  # in any order
        shown.draw(number)
        lines = {line.get_label(): line for ax in shown.figure.axes for line in ax.lines}
        np.testing.assert_array_equal(lines["reading"].get_xydata(), result.sites[:number])
        np.testing.assert_array_equal(lines["path"].get_xydata(), result.path[: result.path_ends[number - 1]])
        np.testing.assert_array_equal(lines["vehicle"].get_xydata(), result.sites[number - 1 : number])
        np.testing.assert_array_equal(lines["F1"].get_ydata(), [s.f1 for s in result.curve[:number]])


def test_frames_are_alike_in_size_and_even_and_the_same_moment_gives_the_same_pixels(replayed):
    shown = Film(*replayed)
    first, other = shown.draw(1), shown.draw(7)
    assert first.shape == other.shape
    assert not any(side % 2 for side in first.shape[:2])
    assert not np.array_equal(first, other)
    np.testing.assert_array_equal(shown.draw(1), first)


@pytest.mark.each_choice
@pytest.mark.usefixtures("unplaced")
@pytest.mark.parametrize("name", ["line", "outline", "scattered", "continuous 2", "box"])
@pytest.mark.parametrize("question", ["level set", "maximum"])
def test_every_kind_of_domain_makes_a_film(name, question):
    result = small_run(name, question=QUESTIONS[question])
    mean = result.maps()["mean"].values.ravel()
    mean = mean if len(mean) == result.mission.world.domain.size else mean[np.isfinite(mean)]
    level_set = question == "level set"
    last = Moment(
        len(result.curve),
        len(result.observations),
        0,
        mean,
        mean - 1,
        mean + 1,
        result.answer.probability if level_set else None,
        None if level_set else result.answer.reported.point,
    )
    first = last._replace(steps=0, observations=0, mean=mean + 0.1)
    shown = Film(result, [first, last])
    assert not np.array_equal(shown.draw(0), shown.draw(1))


@pytest.mark.usefixtures("unplaced")
def test_a_gif_has_a_picture_for_each_moment_and_reports_its_progress(folder, tmp_path):
    told = []
    file = fieldbo.animate(
        folder, tmp_path / "a.gif", every=4, fps=5, on_progress=lambda *news: told.append(news)
    )
    with Image.open(file) as picture:
        assert picture.n_frames >= 3
        assert picture.info["duration"] == 200
        assert picture.info["loop"] == 0
    assert {doing for doing, _, _ in told} == {"replaying", "drawing"}
    assert told[-1] == ("drawing", 3, 3)


@pytest.mark.usefixtures("unplaced")
def test_an_mp4_plays_at_its_rate_and_holds_its_end(folder, tmp_path):
    import imageio_ffmpeg

    file = fieldbo.animate(folder, tmp_path / "a.mp4", every=4, fps=5)
    frames = imageio_ffmpeg.read_frames(str(file))
    facts = next(frames)
    assert facts["codec"] == "h264"
    assert facts["fps"] == 5
    assert len(list(frames)) == 3 + 10


def test_without_imageio_ffmpeg_a_film_is_a_gif_and_an_mp4_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setattr(film, "find_spec", lambda name: None)
    assert film.checked_format("", None) == "gif"
    for file, format in (("a.mp4", None), ("", "mp4")):
        with pytest.raises(InputError, match=r"(?s)pip install 'fieldbo\[film\]'"):
            film.checked_format(file, format)


@pytest.mark.usefixtures("unplaced")
def test_a_film_that_fails_leaves_no_file(folder, tmp_path, monkeypatch):
    def fail(self, number):
        raise RuntimeError("no more")

    monkeypatch.setattr(Film, "draw", fail)
    with pytest.raises(RuntimeError, match="no more"):
        fieldbo.animate(folder, tmp_path / "a.gif")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [{"every": 0}, {"fps": 0}, {"fps": float("nan")}, {"fps": 100}])
def test_a_rate_out_of_range_is_an_error(folder, wrong):
    with pytest.raises(InputError, match="every at least 1"):
        fieldbo.animate(folder, "a.gif", **wrong)


def test_an_unknown_format_is_an_error(folder):
    with pytest.raises(UnknownNameError, match=r"(?s)unknown format 'mp5'.*did you mean 'mp4'"):
        fieldbo.animate(folder, format="mp5")
    with pytest.raises(InputError, match=r"has the extension \.avi"):
        fieldbo.animate(folder, "a.avi")


def test_a_cell_has_no_map_to_film():
    with pytest.raises(InputError, match="factory cell"):
        Film(cell_run("chain", 3), [])


def test_a_run_without_a_step_is_an_error(tmp_path):
    folder, record = begin(
        fieldbo.load_mission("lake-level-set", {"policy": {"kind": "truvar"}}), tmp_path / "lake-1"
    )
    record.close()
    with pytest.raises(InputError, match="no step yet"):
        fieldbo.animate(folder, tmp_path / "a.gif")


# -- the command line ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_animate_writes_a_film_named_after_the_run(said, command, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "film in talk.gif" in said("animate", str(folder), "--every", "7", "--out", "talk.gif")
    assert Path("talk.gif").read_bytes().startswith(b"GIF8")
    monkeypatch.setattr(film, "find_spec", lambda name: None)
    text = said("animate", str(folder), "--every", "7")
    assert "imageio-ffmpeg is not installed" in text
    assert "film in lake-1.gif" in text


@pytest.mark.slow
def test_plot_writes_each_picture_of_a_run_whole(said, command, folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind in ("path", "ledger", "readings"):
        assert f"picture in lake-1-{kind}.png" in said("plot", str(folder), kind)
    said("plot", str(folder), "map", "--layer", "sd", "--out", "sd.pdf", "--style", "dark_background")
    assert Path("sd.pdf").read_bytes().startswith(b"%PDF")
    with Image.open(io.BytesIO(Path("lake-1-ledger.png").read_bytes())) as picture:
        assert picture.size[0] == 9 * 150
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "lake-1-ledger.png",
        "lake-1-path.png",
        "lake-1-readings.png",
        "sd.pdf",
    ]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["pth"], "unknown picture of a run 'pth'"),
        (["map", "--layer", "men"], "did you mean 'mean'"),
        (["path", "--layer", "mean"], "--layer was given for the picture path"),
        (["path", "--target", "0.9"], "--target was given for the picture path"),
        (["path", "--style", "dark"], "unknown style 'dark'"),
        (["path", "--out", "a.bmp"], "has the extension .bmp"),
        (["path", "--out", "nowhere/a.png"], "nowhere/a.png can't be written"),
    ],
)
def test_plot_says_what_is_wrong(command, folder, args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, error = command("plot", str(folder), *args)
    assert status == 2
    assert message in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("undrawn")
def test_an_area_is_shown_from_when_it_was_closed(tmp_path):
    mission = pond(tmp_path)
    area = Obstacle("buoys", corners=((72.0, 42.0), (78.0, 42.0), (78.0, 48.0)))
    vehicle = underway.Underway(mission)
    folder, record = begin(mission, tmp_path / "pond-1")

    def close(vehicle):
        if vehicle.count == 6:
            append(commands_file(record.file), underway.command("no-go", areas=(area,)))

    vehicle.on_poll = close
    with record:
        fieldbo.run(mission, [vehicle], record=record)
    result, moments = film.replayed(folder / "run.sqlite", 1, lambda *_: None)

    shown, seen = Film(result, moments), []
    for number, now in enumerate(moments):
        shown.draw(number)
        (drawn,) = (p for p in shown.figure.axes[0].patches if p.get_label() == "closed under way")
        assert drawn.get_visible() == bool(now.areas)
        seen.append(drawn.get_visible())
    assert seen == sorted(seen)
    assert not seen[0]
    assert seen[-1]
