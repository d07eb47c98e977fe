"""What is in the pictures: lines that can be told apart, legends beside the data, labels that fit."""

import itertools

import pytest

from halfwidth.paper.panels import EXACT, sheet
from halfwidth.plots import sheet as sheets
from halfwidth.plots import study
from halfwidth.plots.sheet import RATE, Line, Panel, Sheet, draw_sheet
from halfwidth.plots.style import new_figure, ramp


@pytest.fixture
def drawn(monkeypatch):
    """The figures that are drawn, instead of files."""
    figures = []
    for module in (sheets, study):
        monkeypatch.setattr(module, "save", lambda figure, *_, **__: figures.append(rendered(figure)))
    return figures


def study_rows(*methods):
    scores = {"coverage": 0.9, "coverage_of_mean": 1.0, "mis_ratio": 1.2, "sigma_error": 3.0}
    about = {"problem": "iid-linear", "params": {"dim": 2}, "learner": "capped", "eta": 0.5, "exponent": 0.505}
    about |= {"replicates": 20, "level": 0.95}
    return [about | scores | {"method": name, "step": step} for name in methods for step in (500, 1_000, 2_000)]


def tick_labels(figure, axis):
    figure.draw_without_rendering()
    low, high = axis.get_view_interval()
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    return [tick.label1.get_text() for tick in ticks if low <= tick.get_loc() <= high and tick.label1.get_text()]


def look(line):
    return line.get_color(), line.get_marker(), str(line._unscaled_dash_pattern)


def texts_over(figure, axes):
    """Legends that lie on the axes."""
    renderer = figure.canvas.get_renderer()
    legends = [*figure.legends, *(axis.get_legend() for axis in axes if axis.get_legend() is not None)]
    boxes = [legend.get_window_extent(renderer) for legend in legends]
    assert boxes
    return [box for box in boxes for axis in axes if box.overlaps(axis.get_window_extent(renderer))]


def rendered(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).draw()
    return figure


def test_methods_with_equal_scores_do_not_hide_one_another(drawn, tmp_path):
    methods = [f"method-{i}" for i in range(9)]
    study.plot_study(study_rows(*methods), tmp_path / "study.png")
    figure = drawn[0]
    for panel in figure.axes:
        lines = panel.get_lines()[: len(methods)]
        assert len({look(line) for line in lines}) == len(methods)
        assert len({line.get_xdata()[0] for line in lines}) == len(methods)
        assert max(line.get_xdata()[0] for line in lines) < 1.1 * 500
        assert tick_labels(figure, panel.xaxis) == ["500", "1k", "2k"]
    assert not texts_over(figure, figure.axes)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == methods


def test_the_rows_of_a_single_method_stay_where_they_are(drawn, tmp_path):
    study.plot_study(study_rows("obm"), tmp_path / "study.png")
    assert list(drawn[0].axes[0].get_lines()[0].get_xdata()) == [500, 1_000, 2_000]


def paper_rows(dims, names):
    scores = dict.fromkeys(EXACT, 0.5)
    about = {"model": "linear", "level": 0.95, "replicates": 200, "reference_runs": 500}
    grid = itertools.product(dims, names, (500, 50_000))
    return [about | scores | {"dim": dim, "name": name, "step": step} for dim, name, step in grid]


def test_a_sheet_tells_values_by_colour_and_methods_by_line(drawn, tmp_path):
    dims, names = (2, 5, 10, 20, 30, 50), ("BM", "Boot", "auto")
    draw_sheet(sheet(paper_rows(dims, names), "s", "title", EXACT, "dim", "model"), tmp_path)
    figure = drawn[0]
    shown = [text.get_text() for text in figure.legends[0].get_texts()]
    assert shown == [*(f"d = {dim}" for dim in dims), *names, RATE]
    coverage = figure.axes[1].get_lines()[: len(dims) * len(names)]
    assert len({look(line) for line in coverage}) == len(dims) * len(names)
    assert len({look(line)[1:] for line in coverage}) == len(names)
    assert not texts_over(figure, figure.axes)


def test_a_sheet_of_one_method_has_a_line_of_its_own_for_every_value(drawn, tmp_path):
    draw_sheet(sheet(paper_rows((2, 5, 50), ("BM",)), "s", "title", EXACT, "dim", "model"), tmp_path)
    figure = drawn[0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["d = 2", "d = 5", "d = 50", RATE]
    assert len({look(line)[1:] for line in figure.axes[1].get_lines()[:3]}) == 3
    low, high = figure.axes[1].get_ylim()
    assert (round(low, 3), round(high, 3)) == (0.48, 1.02)  # no coverage is below one half


def test_the_ramp_brightens_step_by_step():
    light = [0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b, _ in ramp(6)]
    assert all(after - before > 0.04 for before, after in itertools.pairwise(light))
    assert light[-1] < 0.75
    assert len(ramp(1)) == 1


def test_logarithmic_axes_have_few_plain_labels():
    from halfwidth.plots.style import log_ticks

    for low, high, labels in (
        (500, 2_000, ["500", "1k", "2k"]),
        (1e3, 1e7, ["1k", "10k", "100k", "1M", "10M"]),
        (8, 13, ["8", "9", "10", "12"]),
        (22, 24, ["22", "23", "24"]),
    ):
        figure, axes = new_figure(1, 1)
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        log_ticks(axes.xaxis)
        assert tick_labels(figure, axes.xaxis) == labels


def test_a_sheet_shades_the_bands_of_its_lines_and_names_its_references(drawn, tmp_path):
    steps = [1_000, 10_000, 100_000]
    line = Line(steps, [0.1, 0.0, -0.1], "d = 2", 0, half_band=[0.05, 0.02, 0.01])
    panels = [Panel("slopes", "slope", [line], references=[(steps, [-0.1] * 3), (steps, [-0.2] * 3)])]
    draw_sheet(Sheet("s", "title", 1, panels, "theory"), tmp_path)
    (axis,) = drawn[0].axes
    (band,) = axis.collections
    low, high = band.get_paths()[0].vertices[:, 1].min(), band.get_paths()[0].vertices[:, 1].max()
    assert (low, high) == pytest.approx((-0.11, 0.15))
    assert [list(drawn_line.get_ydata()) for drawn_line in axis.get_lines()] == [
        [-0.1] * 3,
        [-0.2] * 3,
        [0.1, 0.0, -0.1],
    ]
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == ["d = 2", "theory"]
