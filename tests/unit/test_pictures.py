"""`result.plot()`: what is drawn, for a few coefficients and for many, and where each part comes from."""

import itertools
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import halfwidth as hw
from halfwidth.equation import BatchStore, Equation
from halfwidth.equation.prefix import prefix_trail
from halfwidth.errors import InputError, MissingExtra, UnknownName
from halfwidth.inference.pictured import settling_of
from halfwidth.inference.trail import MOST_LOOKS, influence_trail, looks
from halfwidth.models.kept_rows import KeptRows
from halfwidth.plots.coefficients import DOUBTED, FAR, MOST_SHOWN, chosen, draw_coefficients
from halfwidth.plots.settling import MOST_NAMED


def rendered(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).draw()
    return figure


def titles(figure):
    return [axes.get_title() for axes in figure.axes]


def panel(figure, beginning):
    return next(axes for axes in figure.axes if axes.get_title().startswith(beginning))


def left_labels(axes):
    return [label.get_text() for label in axes.get_yticklabels()][::-1]


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(5)
    n = 12_000
    table = pd.DataFrame(rng.standard_normal((n, 3)), columns=["steady", "null", "moving"])
    slope = np.where(np.arange(n) < n / 2, 0.0, 0.12)
    table["y"] = 1.0 + table["steady"] + slope * table["moving"] + rng.standard_normal(n)
    table["late"] = (rng.random(n) < 1.0 / (1.0 + np.exp(-0.5 * table["steady"]))).astype(int)
    return table


@pytest.fixture(scope="module")
def result(frame):
    return hw.fit(frame, formula="y ~ steady + null + moving + I(2 * null)").inference()


def test_doubts_are_marked_and_arrows_stand_for_far_coefficients(result):
    figure = rendered(result.plot())
    axes = panel(figure, "coefficients")
    assert left_labels(axes) == [
        "Intercept", "steady", "null  ! unidentified", "moving  ! unstable", "I(2 * null)  ! unidentified",
    ]  # fmt: skip
    colours = [label.get_color() for label in axes.get_yticklabels()][::-1]
    assert [colour == DOUBTED for colour in colours] == [False, False, True, True, True]
    marks = {int(line.get_ydata()[0]): line.get_marker() for line in axes.get_lines() if len(line.get_xdata()) == 1}
    assert [marks[y] for y in range(5)][::-1] == [">", ">", "x", "D", "x"]
    assert axes.get_xlim()[1] <= 1.1 * FAR
    legend = {text.get_text() for text in axes.get_legend().get_texts()}
    assert {"zero is outside", "no interval", "goes on beyond 12"} <= legend
    beside = [text.get_text() for text in axes.texts]
    assert beside == [f"{t:,.0f}" for t in result.tvalues[["steady", "Intercept"]]]  # from the bottom
    assert figure._suptitle.get_text() == f"linear regression, 12,000 rows, score-batches, status {result.status}"


def test_a_coefficient_that_changes_leaves_the_funnel_and_the_others_stay_in_it(frame):
    found = hw.fit(frame, formula="y ~ steady + null + moving").inference()
    axes = panel(rendered(found.plot("settling")), "how they settled")
    band = axes.collections[0].get_paths()[0].vertices
    lines = {line.get_label(): line for line in axes.get_lines()}
    x, y = lines["moving"].get_data()
    half = np.array([np.abs(band[np.isclose(band[:, 0], at), 1]).max() for at in x])
    assert np.mean(np.abs(y[:-1]) > half[:-1]) > 0.5
    assert all(abs(lines[name].get_ydata()[-1]) < 1e-6 for name in ("Intercept", "steady", "null", "moving"))


def test_a_steady_coefficient_is_inside_the_funnel_as_often_as_it_says():
    """400 coefficients after a quarter of the rows: 0.95 give or take 0.033, three standard deviations."""
    inside, narrow = [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1_000, 3))
        core = hw.LinearRegression().partial_fit(X, X[:, 0] + rng.standard_normal(1_000)).inference().core
        told = settling_of(core, core.trail, 0.95)
        at = int(np.argmin(np.abs(told.rows - 250)))
        inside += (np.abs(told.distances[at]) <= told.half_width[at]).tolist()
        narrow += (np.abs(told.distances[at]) <= 0.7 * told.half_width[at]).tolist()
    assert abs(np.mean(inside) - 0.95) < 0.033
    assert abs(np.mean(narrow) - 0.95) > 0.033  # the negative control


def test_sixty_coefficients_can_be_read(tmp_path):
    rng = np.random.default_rng(1)
    names = [f"a_rather_long_name_of_column_{j:02d}" for j in range(60)]
    X = pd.DataFrame(rng.standard_normal((2_000, 60)), columns=names)
    found = hw.LinearRegression().fit(X, 0.05 * X.iloc[:, 0] + rng.standard_normal(2_000)).inference()
    figure = rendered(found.plot(path=tmp_path / "many.png"))
    axes, renderer = panel(figure, "coefficients"), figure.canvas.get_renderer()
    boxes = [label.get_window_extent(renderer) for label in axes.get_yticklabels()]
    assert len(boxes) == 61
    assert all(below.y1 <= above.y0 + 1.0 for below, above in itertools.pairwise(boxes))
    assert min(box.x0 for box in boxes) >= 0.0
    named = [text.get_text() for text in panel(figure, "how they settled").get_legend().get_texts()]
    assert len(named) == MOST_NAMED + 2
    assert named[-2] == f"{61 - MOST_NAMED} others"
    assert (tmp_path / "many.png").read_bytes().startswith(b"\x89PNG")


def test_of_hundreds_the_doubted_and_the_largest_are_drawn():
    rows = [{"name": str(j), "status": "ok", "t": float(j)} for j in range(200)]
    rows[3] |= {"status": "rare", "t": None}
    kept = [row["name"] for row in chosen(rows)]
    assert len(kept) == MOST_SHOWN
    assert kept == ["3", *(str(j) for j in range(200 - MOST_SHOWN + 1, 200))]


def test_an_interval_that_is_cut_has_an_arrow_at_its_end():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    row = {"name": "x", "status": "rare", "coef": 5.0, "std_err": 1.0, "ci_lower": -20.0, "ci_upper": 30.0, "t": 5.0}
    draw_coefficients(axes, [row], 0.95)
    marks = {line.get_marker(): line.get_xdata()[0] for line in axes.get_lines() if len(line.get_xdata()) == 1}
    assert marks == {"<": -FAR, ">": FAR, "D": 5.0}


def test_points_that_are_not_shown_are_counted():
    rng = np.random.default_rng(3)
    x = rng.standard_normal(3_000)
    found = hw.LinearRegression().fit(x[:, None], x + rng.standard_t(2, 3_000)).inference()
    axes = panel(rendered(found.plot("residuals")), "residuals")
    points = max(axes.get_lines(), key=lambda line: len(line.get_xdata()))
    low, high = axes.get_ylim()
    hidden = np.count_nonzero((points.get_ydata() < low) | (points.get_ydata() > high))
    named = [text.get_text() for text in axes.get_legend().get_texts()]
    assert hidden > 0
    assert any(text.endswith(f"; {hidden} farther out are not shown") for text in named)


def test_no_line_of_the_settling_panel_is_cut(frame):
    axes = panel(rendered(hw.fit(frame, formula="y ~ steady + null + moving").inference().plot("settling")), "how")
    reach = axes.get_ylim()[1]
    assert all(np.nanmax(np.abs(line.get_ydata())) < reach for line in axes.get_lines() if len(line.get_ydata()))
    assert axes.get_yscale() == "symlog"


def test_residuals_and_calibration_come_from_the_sample(frame):
    linear = hw.fit(frame, formula="y ~ steady").inference()
    assert len(linear.kept.fitted) <= 4_096
    residuals = panel(rendered(linear.plot(["residuals", "calibration"])), "residuals")
    assert residuals.get_title() == f"residuals of a sample of {len(linear.kept.fitted):,} rows"
    logistic = hw.fit(frame, formula="late ~ steady", family="logistic").inference()
    figure = rendered(logistic.plot(("residuals", "calibration")))
    assert titles(figure) == ["residuals of all 12,000 rows", "calibration on all 12,000 rows"]
    (errors,) = panel(figure, "calibration").containers
    x, y = errors.lines[0].get_data()
    assert len(x) == 20
    assert np.abs(x - y).max() < 0.08
    assert not [line for line in panel(figure, "residuals").get_lines() if line.get_marker() == "."]


def test_a_wrong_model_is_seen_in_the_bins(frame):
    """The negative control: a parabola fitted by a line leaves means that are not zero."""
    bent = frame.assign(y=frame["y"] + frame["steady"] ** 2)
    means = hw.fit(bent, formula="y ~ steady").inference().kept.table().residual_bins
    straight = hw.fit(frame, formula="y ~ steady").inference().kept.table().residual_bins
    assert np.mean(np.abs(means.mean) > means.half) > 0.6
    assert np.mean(np.abs(straight.mean) > straight.half) < 0.3


def test_the_share_below_a_quantile_is_its_calibration(frame):
    found = hw.fit(frame, formula="y ~ steady", family="quantile", quantile=0.9).inference()
    table = found.kept.table()
    assert table.reference == 0.9
    assert np.average(table.calibration_bins.mean) == pytest.approx(0.9, abs=0.01)


def test_weighted_bins_against_their_definition():
    rng = np.random.default_rng(0)
    fitted, weight = np.repeat([0.0, 1.0], 20), rng.uniform(0.5, 2.0, 40)
    observed = fitted + rng.standard_normal(40)
    bins = KeptRows(fitted, observed, weight, True).table().calibration_bins
    for j, value in enumerate((0.0, 1.0)):
        w, y = weight[fitted == value], observed[fitted == value]
        mean = np.average(y, weights=w)
        assert (bins.x[j], bins.mean[j]) == pytest.approx((value, mean))
        assert bins.half[j] == pytest.approx(2.0 * np.sqrt(np.sum(w**2 * (y - mean) ** 2)) / w.sum())


def test_the_trail_is_the_fit_to_the_first_rows(frame):
    """Every point of the trail of a linear model is least squares on the rows before it."""
    model = hw.fit(frame, formula="y ~ steady + moving")
    trail = model.inference().core.trail
    X = np.column_stack([np.ones(len(frame)), frame[["steady", "moving"]]])
    for rows, params in list(zip(trail.rows.astype(int), trail.params, strict=True))[::6]:
        exact = np.linalg.lstsq(X[:rows], frame["y"][:rows], rcond=None)[0]
        np.testing.assert_allclose(params, exact, rtol=1e-7, atol=1e-9)
    assert trail.rows[-1] == len(frame)
    np.testing.assert_allclose(trail.params[-1], model.inference().core.params, rtol=1e-9)


def test_a_level_that_comes_late_has_no_value_before(frame):
    late = frame.assign(kind=np.where(np.arange(len(frame)) < 9_000, "u", "v"))
    trail = hw.fit(late, formula="y ~ kind").inference().core.trail
    known = np.isfinite(trail.params[:, 1])
    assert not known[trail.rows <= 9_000].any()
    assert known[trail.rows > 9_100].all()


def test_passes_do_not_overlap(frame):
    found = hw.fit(frame, formula="late ~ steady", family="logistic", passes=2).inference()
    assert found.core.trail.rows[-1] == len(frame)
    assert (np.diff(found.core.trail.rows) > 0).all()


def test_the_penalty_enters_every_prefix():
    rng = np.random.default_rng(0)
    A = np.array([np.diag(rng.uniform(1.0, 2.0, 2)) for _ in range(6)])
    B, origin, P = rng.standard_normal((6, 2)), np.array([1.0, -1.0]), np.array([3.0, 0.0])
    centre = np.linalg.solve(A.sum(axis=0) + np.diag(P), B.sum(axis=0) + A.sum(axis=0) @ origin)
    trail = prefix_trail(Equation(A, B, np.full(6, 10.0)), origin, centre, np.eye(2), P)
    for i, k in enumerate((trail.rows / 10).astype(int)):
        rhs = B[:k].sum(axis=0) + A[:k].sum(axis=0) @ origin
        np.testing.assert_allclose(trail.params[i], np.linalg.solve(A[:k].sum(axis=0) + k / 6 * np.diag(P), rhs))


def test_looks_are_few_and_end_at_the_last_batch():
    after = looks(np.full(2_000, 32.0))
    assert len(after) <= MOST_LOOKS
    assert after[-1] == 1_999
    assert looks(np.array([5.0])).tolist() == [0]
    assert prefix_trail(Equation.of(BatchStore(2, 4)), np.zeros(2), np.zeros(2), np.eye(2)) is None


def test_influences_give_the_means_of_the_first_batches():
    rng = np.random.default_rng(0)
    batches = rng.standard_normal((10, 2))
    trail = influence_trail(batches.mean(axis=0), (batches - batches.mean(axis=0)) / 10, 1_000)
    for rows, params in zip(trail.rows, trail.params, strict=True):
        np.testing.assert_allclose(params, batches[: round(rows / 100)].mean(axis=0), atol=1e-12)


def test_results_of_learners_and_watchers_are_drawn_too():
    auto = hw.Auto(hw.problem("seed-linear", dim=3, epsilon=0.5), seed=0).run(5_000).result()
    assert titles(rendered(auto.plot())) == [
        "coefficients with 95% intervals",
        "how they settled: distance to the last value",
    ]
    watcher = hw.FixedBatchMeans(dim=2)
    watcher.update_many(np.random.default_rng(0).standard_normal((2_000, 2)))
    figure = rendered(watcher.result().plot(alpha=0.1))
    assert titles(figure) == ["coefficients with 90% intervals"]
    assert left_labels(figure.axes[0]) == ["theta[0]", "theta[1]"]
    assert figure._repr_png_().startswith(b"\x89PNG")
    with pytest.raises(InputError, match="nothing to draw for 'residuals'; it has coefficients"):
        watcher.result().plot("residuals")


def test_bad_arguments_are_named(result, tmp_path):
    with pytest.raises(UnknownName, match="no panel named 'calibrations'"):
        result.plot(["calibrations"])
    with pytest.raises(InputError, match="panels must name some of"):
        result.plot([])
    with pytest.raises(InputError, match=r"plot must end in \.png, \.svg or \.pdf"):
        result.plot(path=tmp_path / "picture.bmp")


def test_without_matplotlib_the_extra_is_named(result, monkeypatch):
    from halfwidth.plots import style

    monkeypatch.setattr(style, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"halfwidth\[plots\]"):
        result.plot()


def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, halfwidth as hw; hw.LinearRegression; hw.Auto; assert 'matplotlib' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
