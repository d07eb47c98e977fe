"""Plain functions in, machine code out: built in, written by a user, or in plain Python."""

import subprocess
import sys
import textwrap
import time

import numba
import numpy as np
import pytest

from halfwidth import CappedSGD, OverlappingBatchMeans, PowerStep, Problem, TruncatedSGD
from halfwidth.errors import InputError
from halfwidth.kernels import compile as compiled
from halfwidth.learners import SGD
from halfwidth.problems import problem


def gradient(theta, row, params, grad):
    residual = -row[2]
    for j in range(2):
        residual += theta[j] * row[j]
    for j in range(2):
        grad[j] = residual * row[j]


def curvature(theta, row, params):
    return row[0] * row[0] + row[1] * row[1]


def sample(rng, theta, state, params, row):
    y = rng.standard_normal()
    for j in range(2):
        row[j] = rng.standard_normal()
        y += row[j] * params[j]
    row[2] = y


def user_problem(wrap):
    return Problem(2, wrap(gradient), wrap(sample), wrap(curvature), row_size=3, params=[0.0, 1.0])


@pytest.mark.parametrize("learner", [SGD, CappedSGD, TruncatedSGD])
def test_a_users_functions_give_the_built_in_iterates(learner):
    """The same random numbers and the same arithmetic, up to rounding: sums may run in another order."""
    runs = [
        learner(which, step=PowerStep(0.5, 0.505), watchers=[OverlappingBatchMeans(2)], seed=7).run(700)
        for which in (problem("iid-linear", dim=2), user_problem(numba.njit), user_problem(lambda f: f))
    ]
    for other in runs[1:]:
        np.testing.assert_allclose(other.theta, runs[0].theta, rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(other.watchers[0].covariance(), runs[0].watchers[0].covariance(), rtol=1e-9)


def test_a_users_numba_functions_are_as_fast_as_built_in_ones():
    """Once compiled; a factor of three leaves room for a busy machine. Plain Python is a hundred times slower."""
    learners = [SGD(which, seed=1).run(10) for which in (problem("iid-linear", dim=2), user_problem(numba.njit))]
    best = []
    for learner in learners:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            learner.run(100_000)
            times.append(time.perf_counter() - start)
        best.append(min(times))
    assert best[1] < 3.0 * best[0]


def test_capped_sgd_asks_for_a_curvature():
    without = Problem(2, gradient, sample, row_size=3, params=[0.0, 1.0], name="mine")
    with pytest.raises(InputError, match="problem 'mine' has none; give Problem"):
        CappedSGD(without)
    assert SGD(without).run(5).n_seen == 5


def test_mixing_compiled_and_plain_functions_runs_as_plain_python():
    mixed = Problem(2, numba.njit(gradient), sample, row_size=3, params=[0.0, 1.0])
    np.testing.assert_allclose(
        SGD(mixed, seed=7).run(200).theta, SGD(user_problem(lambda f: f), seed=7).run(200).theta, rtol=1e-11
    )


def test_a_kernel_keeps_its_python_twin():
    @compiled.kernel
    def double(x):
        return 2.0 * x

    assert double.python(3.0) == 6.0


def test_a_long_compile_is_announced_and_a_short_one_is_not(monkeypatch, capsys):
    monkeypatch.setattr(compiled, "_ANNOUNCE_AFTER_SECONDS", 0.05)
    with compiled._announced("quick"):
        pass
    with compiled._announced("sgd_steps"):
        time.sleep(0.5)
    assert capsys.readouterr().err == "halfwidth: compiling sgd_steps; this takes a few seconds\n"


FUNCTIONS = """
    from halfwidth.kernels.compile import jitable

    @jitable
    def helper(x):
        return x + {constant}

    @jitable
    def compute(x):
        return 10.0 * helper(x)
"""
LOOP = """
    import functions
    from halfwidth.kernels import compile as compiled

    def factory(compute, fingerprint):
        def loop(x):
            fingerprint
            return compute(x)
        return loop

    kernel = compiled.specialise(factory, functions.compute)
    print(kernel(1.0), compiled._register_marked())

    @compiled.jitable
    def late(x):
        return functions.compute(x) + 0.5

    print(compiled.specialise(factory, late)(1.0), list(kernel._compiled.stats.cache_hits.values()))
"""


def test_an_edited_function_never_runs_as_stale_machine_code(tmp_path):
    """The kernel's own file does not change; only a function that its function calls does."""
    (tmp_path / "loop.py").write_text(textwrap.dedent(LOOP))

    def run(constant):
        (tmp_path / "functions.py").write_text(textwrap.dedent(FUNCTIONS.format(constant=constant)))
        out = subprocess.run([sys.executable, "loop.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
        first, second = out.stdout.splitlines()
        return first.split()[0], first.split()[1], second

    before, again, edited = run("1.00"), run("1.00"), run("2.00")
    assert (before[0], again[0], edited[0]) == ("20.0", "20.0", "30.0")
    assert before[1] == again[1] != edited[1]
    assert before[2] == "20.5 []"
    assert again[2] == "20.5 [1]", "the second process must find the machine code on disk"
    assert edited[2] == "30.5 []", "and must not, once the source is different"
