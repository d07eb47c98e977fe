"""Ask and tell: the same as the compiled loop, with anyone's gradients; states; ways that cannot be mixed."""

import threading

import numpy as np
import pytest

from halfwidth import Auto, FixedBatchMeans
from halfwidth.errors import Busy, HalfInterrupted, InputError, NotEnoughData
from halfwidth.learners.auto.asking import add_up
from halfwidth.learners.warm_start import collect_rows
from halfwidth.problems import problem


def gradients_of(world, points, rows):
    found = np.empty((len(points), len(rows), world.dim))
    for at, point in enumerate(points):
        for i, row in enumerate(rows):
            world.gradient(point, row, world.params, found[at, i])
    return found


def hessian_of(world, point, rows):
    total, u = np.zeros((world.dim, world.dim)), np.empty(world.dim)
    for row in rows:
        w, c = world.hessian(point, row, world.params, u)
        total += w * np.outer(u, u) + c * np.eye(world.dim)
    return total


def sums(gradients):
    return gradients.sum(axis=1).tolist()


def drive(learner, world, n, *, hessian, told=np.asarray, seed=4):
    rng, state = np.random.default_rng(seed), np.array(world.state_0)
    while learner.n_seen < n:
        request = learner.ask()
        assert learner.ask() is request
        rows = np.empty((request.rows, world.row_size))
        collect_rows(world, rng, np.array(request.theta), state, rows)
        gradients = told(gradients_of(world, request.points, rows))
        learner.tell(request, gradients, hessian=hessian_of(world, request.points[1], rows) if hessian else None)
    return learner


@pytest.mark.parametrize("hessian", [True, False], ids=["hessian", "gradients"])
@pytest.mark.parametrize(
    ("name", "settings", "n"), [("swap-game", {"rho": 0.5}, 38_400), ("seed-logistic", {"dim": 2}, 6_400)]
)
def test_the_same_rows_give_the_same_interval_as_the_compiled_loop(name, settings, n, hessian):
    """Of the game so many that theta goes to the linearisation point at refreshes: the average is of before that."""
    world = problem(name, **settings)
    watcher, watched = FixedBatchMeans(2), FixedBatchMeans(2)
    compiled = Auto(world, gradient_only=not hessian, seed=4, watchers=[watched]).run(n)
    told = Auto(dim=2, seed=4, chunk_rows=64, watchers=[watcher], theta_0=world.theta_0)
    drive(told, world, n, hessian=hessian, told=np.asarray if hessian else sums)
    one, other = compiled.result(), told.result()
    np.testing.assert_allclose(other.params, one.params, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(other.bse, one.bse, rtol=1e-10)
    np.testing.assert_allclose(told.theta_bar, compiled.theta_bar, rtol=1e-10, atol=1e-12)
    assert one.law.nu == pytest.approx(other.law.nu, rel=1e-10)
    assert watcher.n_seen == told.n_seen == n
    np.testing.assert_allclose(watcher.covariance(), watched.covariance(), rtol=1e-8)


@pytest.mark.parametrize("told", [sums, list, tuple, np.asfortranarray], ids=lambda told: told.__name__)
def test_gradients_are_told_in_any_form(told):
    world = problem("swap-game", rho=0.5)
    rows, other = (drive(Auto(dim=2), world, 2_560, hessian=False, told=form) for form in (np.asarray, told))
    np.testing.assert_allclose(other.theta, rows.theta, rtol=1e-10)
    np.testing.assert_allclose(other.theta_bar, rows.theta_bar, rtol=1e-10)


def test_a_told_run_resumes_to_the_bit():
    world = problem("swap-game", rho=0.5)
    rng, state = np.random.default_rng(4), np.array(world.state_0)
    whole, part = Auto(dim=2, seed=1), Auto(dim=2, seed=1)
    for at in range(60):
        request = whole.ask()
        rows = np.empty((request.rows, 2))
        collect_rows(world, rng, np.array(request.theta), state, rows)
        gradients = gradients_of(world, request.points, rows)
        whole.tell(request, gradients)
        if at == 37:
            part = Auto.from_state(part.to_state())
        part.tell(part.ask(), gradients)
    np.testing.assert_array_equal(part.theta, whole.theta)
    np.testing.assert_array_equal(part.result().covariance, whole.result().covariance)


def test_reading_between_ask_and_tell_changes_no_bit():
    """Chunks are planned several at a time; reading ends a plan early."""
    rng, left, read = np.random.default_rng(4), Auto(dim=2, seed=1), Auto(dim=2, seed=1)
    for at in range(90):
        request, same = left.ask(), read.ask()
        if at % 3:
            read.to_state()
        np.testing.assert_array_equal(same.points, request.points)
        np.testing.assert_array_equal(same.theta, request.theta)
        noise = rng.standard_normal((request.rows, 2))
        gradients = request.points[:, None, :] - 0.5 * request.theta + noise
        left.tell(request, gradients)
        read.tell(same, gradients)
        if at % 5 == 0:
            read.to_state()
    one, other = left.result(), read.result()
    np.testing.assert_array_equal(one.params, other.params)
    np.testing.assert_array_equal(one.covariance, other.covariance)


@pytest.mark.parametrize("resumed", [False, True])
def test_an_optimiser_of_one_s_own_gets_least_squares_and_an_interval(resumed):
    rng, truth = np.random.default_rng(0), np.array([1.0, -1.0, 0.5])
    learner, theta, kept = Auto(dim=3), np.zeros(3), []
    for k in range(800):
        X = rng.standard_normal((64, 3))
        y = X @ truth + rng.standard_normal(64)
        error = X @ theta - y
        learner.tell(theta=theta, gradients=error[:, None] * X, hessian=X.T @ X)
        kept.append((X, y))
        theta = theta - 0.2 / np.sqrt(k + 1.0) * (error @ X) / 64
        if resumed and k == 500:
            learner = Auto.from_state(learner.to_state())
    result = learner.result()
    used = kept[len(kept) - result.n // 64 :]
    X, y = (np.concatenate(column) for column in zip(*used, strict=True))
    assert not result.feedback.detected
    np.testing.assert_allclose(result.params, np.linalg.lstsq(X, y, rcond=None)[0], rtol=1e-9)
    np.testing.assert_allclose(result.bse, 1.0 / np.sqrt(result.n), rtol=0.35)
    assert result.interval().covers(truth).sum() >= 2


def test_the_ways_to_drive_it_cannot_be_mixed():
    world = problem("iid-linear", dim=2)
    rows = np.zeros((10, 3))
    with pytest.raises(InputError, match=r"driven by run\(...\) and cannot go on by consume"):
        Auto(world).run(10).consume(rows)
    with pytest.raises(InputError, match="cannot go on by run"):
        Auto(world).consume(rows).run(10)
    asked = Auto(world)
    asked.ask()
    with pytest.raises(InputError, match=r"cannot go on by tell\(theta"):
        asked.tell(theta=np.zeros(2), gradients=np.zeros((64, 2)), hessian=np.eye(2))


def test_what_is_told_is_checked_before_anything_is_taken_in():
    learner = Auto(dim=2)
    request = learner.ask()
    p = len(request.points)
    with pytest.raises(InputError, match=rf"gradients must have shape \({p}, 64, 2\), or \({p}, 2\)"):
        learner.tell(request, np.zeros((p, 63, 2)))
    with pytest.raises(InputError, match=rf"gradients must have shape .*; got \({p + 1}, 64, 2\)"):
        learner.tell(request, [np.zeros((64, 2))] * (p + 1))
    with pytest.raises(InputError, match="gradients must be finite"):
        learner.tell(request, np.full((p, 2), np.nan))
    with pytest.raises(InputError, match="gradients must be finite"):
        learner.tell(request, [np.full((64, 2), np.nan)] * p)
    with pytest.raises(InputError, match="hessian must have shape"):
        learner.tell(request, np.zeros((p, 2)), hessian=np.zeros(2))
    assert learner.n_seen == 0
    learner.tell(request, np.ones((p, 2)))
    with pytest.raises(InputError, match="request must be the one that ask"):
        learner.tell(request, np.ones((p, 2)))
    with pytest.raises(InputError, match="hessian must be given with every tell, or with none"):
        learner.tell(learner.ask(), np.ones((len(learner.ask().points), 2)), hessian=np.eye(2))
    with pytest.raises(InputError, match="tell takes a request"):
        learner.tell(gradients=np.ones((64, 2)))
    with pytest.raises(InputError, match="hessian must be given with a theta of your own"):
        Auto(dim=2).tell(theta=np.zeros(2), gradients=np.ones((64, 2)))
    with pytest.raises(InputError, match="either a problem or dim"):
        Auto()
    with pytest.raises(InputError, match="feedback must be None, 'none' or 'detect'"):
        Auto(dim=2, feedback="maybe")
    with pytest.raises(NotEnoughData):
        learner.result()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, list, tuple, lambda rows: rows.sum(axis=1)])
def test_a_refused_tell_leaves_no_trace(form, bad):
    """One number of many that is not finite, at any request of a plan."""
    rng, left, refused = np.random.default_rng(4), Auto(dim=2, seed=1), Auto(dim=2, seed=1)
    for _ in range(60):
        request, same = left.ask(), refused.ask()
        gradients = request.points[:, None, :] + rng.standard_normal((request.rows, 2))
        spoilt = gradients.copy()
        spoilt[-1, 17, 1] = bad
        with pytest.raises(InputError, match=f"gradients must be finite; got .*{bad}"):
            refused.tell(same, form(spoilt))
        left.tell(request, form(gradients))
        refused.tell(same, form(gradients))
    np.testing.assert_array_equal(refused.theta, left.theta)
    np.testing.assert_equal(refused.to_state(), left.to_state())


@pytest.mark.parametrize("kind", [np.float32, np.int64])
def test_gradients_of_any_real_type_are_added_up(kind):
    whole = np.random.default_rng(4).integers(-9, 9, (2, 64, 3)).astype(np.float64)
    sums = np.full((2, 3), np.nan)
    add_up(whole.astype(kind), np.ones(64), sums)
    np.testing.assert_array_equal(sums, whole.sum(axis=1))


def test_finite_gradients_whose_squares_are_not_are_taken():
    sums = np.zeros((2, 3))
    add_up(np.full((2, 3), 1e200), np.ones(64), sums)
    np.testing.assert_array_equal(sums, 1e200)
    with pytest.raises(InputError, match="masked"):
        add_up(np.ma.masked_less(np.zeros((2, 64, 3)), 1.0), np.ones(64), sums)


class FaultyWatcher(FixedBatchMeans):
    """Fails once, in the middle of a call."""

    def take(self, thetas):
        raise RuntimeError("disk full")


@pytest.mark.parametrize("own", [False, True], ids=["request", "own-theta"])
def test_a_tell_that_ends_halfway_leaves_an_object_that_refuses(own):
    learner = Auto(dim=2, watchers=[FaultyWatcher(2)])
    if own:
        told = {"theta": np.zeros(2), "gradients": np.ones((64, 2)), "hessian": np.eye(2)}
    else:
        request = learner.ask()
        told = {"request": request, "gradients": np.ones((len(request.points), 2))}
    with pytest.raises(RuntimeError, match="disk full"):
        learner.tell(**told)
    for call in (learner.ask, learner.to_state, learner.result):
        with pytest.raises(HalfInterrupted):
            call()


def test_two_threads_in_one_conversation_raise():
    learner, inside, leave = Auto(dim=2), threading.Event(), threading.Event()

    class Slow(FixedBatchMeans):
        def take(self, thetas):
            inside.set()
            leave.wait(30.0)
            return super().take(thetas)

    learner.watchers = (Slow(2),)
    request = learner.ask()
    thread = threading.Thread(target=lambda: learner.tell(request, np.ones((len(request.points), 2))))
    thread.start()
    assert inside.wait(30.0)
    with pytest.raises(Busy):
        learner.ask()
    with pytest.raises(Busy):
        learner.tell(request, np.ones((len(request.points), 2)))
    leave.set()
    thread.join()
    assert learner.n_seen == 64


def test_a_mean_in_place_of_a_sum_is_named():
    """Steps along it are 64 times too long; such runs asked for more rows, again and again."""
    rng, learner = np.random.default_rng(0), Auto(dim=2, chunk_rows=64)

    def request_and_rows():
        request, X = learner.ask(), rng.standard_normal((64, 2))
        y = X.sum(axis=1) + rng.standard_normal(64)
        return request, [(X @ point - y) @ X for point in request.points], X.T @ X

    def tell_means():
        while learner.n_seen < 10_000:
            request, gradients, hessian = request_and_rows()
            learner.tell(request, gradients, hessian / 64)

    with pytest.raises(InputError, match=r"hessian must be summed over the 64 rows.*gradients change by 64 times"):
        tell_means()
    seen = learner.n_seen
    learner.tell(*request_and_rows())  # the request is still open, and a sum is welcome
    assert learner.n_seen == seen + 64


def test_gradients_that_are_means_are_refused_beside_a_summed_hessian():
    """Such runs were `not-settled`, whatever the number of rows."""
    rng = np.random.default_rng(0)

    def told(gradient_rows, hessian_rows):
        learner = Auto(dim=2)
        for _ in range(100):
            request = learner.ask()
            x = rng.standard_normal((request.rows, 2))
            y = x @ np.ones(2) + rng.standard_normal(request.rows)
            gradients = [(x @ point - y) @ x / gradient_rows for point in request.points]
            learner.tell(request, gradients, x.T @ x / hessian_rows)
        return learner

    for name, gradient_rows, hessian_rows in (("gradients", 64, 1), ("hessian", 1, 64)):
        with pytest.raises(InputError, match=f"{name} must be summed over the 64 rows.*looks like a mean"):
            told(gradient_rows, hessian_rows)
    assert told(1, 1).n_seen == 6_400  # negative control


def test_a_loss_that_bends_later_on_is_no_mean():
    """Once theta has moved from the point, and sums were seen to be alike, what is 64 times as large is the loss."""
    rng = np.random.default_rng(0)

    def told(first):
        learner = Auto(dim=2)
        for at in range(100):
            request = learner.ask()
            x = rng.standard_normal((request.rows, 2))
            y = x @ np.ones(2) + rng.standard_normal(request.rows)
            bend = 1.0 if at < first else 64.0
            learner.tell(request, [bend * (x @ point - y) @ x for point in request.points], x.T @ x)
        return learner

    assert told(first=20).n_seen == 100 * 64
    with pytest.raises(InputError, match="looks like a mean"):  # negative control
        told(first=0)


def test_a_learner_without_a_problem_says_how_it_is_driven():
    for call in (lambda one: one.consume(np.ones((5, 3))), lambda one: one.run(10)):
        with pytest.raises(InputError, match=r"has no problem.*drive it by ask\(\) and tell\(\)"):
            call(Auto(dim=2))
    with pytest.raises(InputError, match=r"problem must be a Problem, as .*; got 'swap-game'"):
        Auto("swap-game")
    state = Auto(problem("swap-game"), seed=1).run(2_000).to_state()
    with pytest.raises(InputError, match="problem must be given: this is the state of a run on 'swap-game'"):
        Auto.from_state(state)
    request = (learner := Auto(dim=2)).ask()
    with pytest.raises(InputError, match="hessian must be finite; got nan"):
        learner.tell(request, np.zeros((len(request.points), 2)), [[np.nan, 0.0], [0.0, 1.0]])


@pytest.mark.parametrize(("factor", "status"), [(1.0, "ok"), (1.3, "hessian-mismatch"), (0.8, "hessian-mismatch")])
def test_a_told_hessian_that_gradients_contradict_is_doubted(factor, status):
    """With 1.3 times the right one 98 of 100 such runs were ok, and covered 0.87 of the time."""
    rng, learner = np.random.default_rng(0), Auto(dim=2, seed=0)
    while learner.n_seen < 20_000:
        request = learner.ask()
        y = 1.0 + rng.standard_normal((request.rows, 2))
        learner.tell(request, [(point - y).sum(axis=0) for point in request.points], factor * request.rows * np.eye(2))
    result = learner.result()
    assert result.status == status
    if status != "ok":
        assert f"by {1.0 / factor:.3g} times" in result.diagnostics.warnings[0]


def test_a_request_cannot_be_changed():
    """A theta that was moved in place before it was told went unnoticed, 800 standard errors off."""
    request = Auto(dim=2).ask()
    for array in (request.theta, request.points):
        with pytest.raises(ValueError, match="read-only"):
            array -= 1.0
