"""Plain functions in, machine code out: built in, written by a user, or in plain Python."""

import ast
import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections import namedtuple
from pathlib import Path

import numba
import numpy as np
import pytest

import halfwidth
from halfwidth import CappedSGD, OverlappingBatchMeans, PowerStep, Problem, TruncatedSGD
from halfwidth.errors import InputError
from halfwidth.kernels import compile as compiled
from halfwidth.kernels.cache_key import described
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


def test_a_users_numba_functions_are_compiled_into_the_loop_and_plain_ones_are_not():
    def loop(gradient):
        return lambda theta, row, params, grad: gradient(theta, row, params, grad)

    assert isinstance(compiled.specialise(loop, numba.njit(gradient)), compiled.Kernel)
    assert not isinstance(compiled.specialise(loop, gradient), compiled.Kernel)


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


PACKAGE = Path(halfwidth.__file__).parent

FUNCTIONS = """
    from halfwidth.kernels.compile import jitable

    OFFSET = {offset}

    @jitable
    def helper(x):
        return x + OFFSET

    @jitable
    def compute(x):
        return 10.0 * helper(x)

    @jitable
    def other(x):
        return x - {other}
"""
LOOP = """
    import functions
    from halfwidth.kernels import compile as compiled

    def factory(compute):
        def loop(x):
            return compute(x)
        return loop

    kernel = compiled.specialise(factory, functions.compute)
    print(kernel(1.0), kernel.key, list(kernel._compiled.stats.cache_hits.values()))
"""


def run_python(folder, code):
    (folder / "script.py").write_text(textwrap.dedent(code))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(PACKAGE.parent)])}
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_edited_function_never_runs_as_stale_machine_code(tmp_path):
    """The kernel's own file does not change; a constant of a function that its function calls does."""

    def run(offset, other):
        (tmp_path / "functions.py").write_text(textwrap.dedent(FUNCTIONS.format(offset=offset, other=other)))
        value, key, hits = run_python(tmp_path, LOOP).split(maxsplit=2)
        return value, key, hits.strip()

    before, again, edited, beside = run("1.00", "1.00"), run("1.00", "1.00"), run("2.00", "1.00"), run("1.00", "3.00")
    assert (before[0], again[0], edited[0], beside[0]) == ("20.0", "20.0", "30.0", "20.0")
    assert before[1] == again[1] == beside[1] != edited[1]
    assert (before[2], edited[2]) == ("[]", "[]"), "nothing is on disk for code that was never compiled"
    assert again[2] == "[1]", "the second process must find the machine code on disk"
    assert beside[2] == "[1]", "a function that the kernel does not call is not in its key"


KEYS = """
    import {first}
    import {second}
    from halfwidth.learners import CappedSGD
    from halfwidth.problems import problem
    from halfwidth.watchers import {watchers}

    learner = CappedSGD(problem("iid-linear", dim=2))
    print(learner._drawing.key, {watchers}.extend_small.key)
"""


def keys(folder, first="halfwidth.problems", second="halfwidth.learners"):
    return run_python(folder, KEYS.format(first=first, second=second, watchers=WATCHER)).split()


WATCHER = "block_sums"


def test_keys_do_not_depend_on_the_order_of_imports(tmp_path):
    """Methods, models and problems that a kernel does not call mark functions of their own."""
    orders = [("halfwidth.problems", "numba"), ("halfwidth.methods", "halfwidth.models.sgd_engine")]
    assert keys(tmp_path, *orders[0]) == keys(tmp_path, *orders[1])


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("problems/row_losses.py", "residual = -row[dim]", "residual = 0.0 - row[dim]", (True, False)),
        ("kernels/products.py", "_WIDTH = 32", "_WIDTH = 16", (False, True)),
        ("kernels/products.py", "one = np.ones(1)", "one = np.full(1, 1.0)", (False, True)),
        ("problems/seed_logistic.py", "import annotations\n", "import annotations\n\nEDITED = True\n", (False, False)),
    ],
)
def test_an_edit_changes_the_keys_of_the_kernels_that_call_it(tmp_path, file, old, new, changed):
    """In a copy of the package; the second kernel calls BLAS through an overload, the first does not."""
    copy = tmp_path / "halfwidth"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    before = keys(tmp_path)
    text = (copy / file).read_text()
    assert old in text
    (copy / file).write_text(text.replace(old, new, 1))
    after = keys(tmp_path)
    assert tuple(a != b for a, b in zip(before, after, strict=True)) == changed


def test_a_value_that_cannot_be_in_a_key_is_refused():
    table = {"a": 1.0}

    @compiled.kernel
    def read(x):
        return table["a"] * x

    with pytest.raises(TypeError, match="a kernel reads 'table', and a dict cannot be part of its cache key"):
        _ = read.key


def test_renamed_fields_of_an_argument_are_another_signature():
    from numba import typeof

    one, other = namedtuple("Pair", "a b"), namedtuple("Pair", "b a")
    assert described(typeof((one(1.0, 2.0), 3))) != described(typeof((other(1.0, 2.0), 3)))
    assert described(typeof((one(1.0, 2.0), 3))) == described(typeof((one(5.0, 2.0), 4)))
    assert described(typeof(np.zeros(2))) != described(typeof(np.broadcast_to(np.zeros(1), 2)))


MOVED = """
    from typing import NamedTuple
    from halfwidth.kernels import compile as compiled
    {definition}

    @compiled.kernel
    def total(pair):
        return pair.a + 10.0 * pair.b

    print(total(Pair(1.0, 2.0)), list(total._compiled.stats.cache_hits.values()))
"""


def test_machine_code_is_compiled_again_when_the_class_of_an_argument_has_moved(tmp_path):
    """The kernel and the fields stay as they are; the index on disk must not refer to a class that is gone."""
    here = "class Pair(NamedTuple):\n        a: float\n        b: float"
    (tmp_path / "pairs.py").write_text(
        "from typing import NamedTuple\n\nclass Other(NamedTuple):\n    a: float\n    b: float\n"
    )
    scripts = [MOVED.format(definition=text) for text in (here, here, "from pairs import Other as Pair")]
    assert [run_python(tmp_path, script).strip() for script in scripts] == ["21.0 []", "21.0 [1]", "21.0 []"]


def kernels(tree):
    """Functions that are compiled: decorated ones, and those that a factory defines and returns."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        if {ast.unparse(decorator) for decorator in node.decorator_list} & {"kernel", "jitable"}:
            yield node
        returned = {ast.unparse(inner.value) for inner in node.body if isinstance(inner, ast.Return) and inner.value}
        yield from (inner for inner in node.body if isinstance(inner, ast.FunctionDef) and inner.name in returned)


def parameters_of(source):
    return {node.name: len(node.args.args) for node in kernels(ast.parse(source))}


def test_a_kernel_has_at_most_eight_parameters():
    """State, data and configuration enter a kernel as named tuples."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        found |= {f"{path.stem}.{name}": count for name, count in parameters_of(path.read_text()).items()}
    assert len(found) > 50
    assert {name: count for name, count in found.items() if count > 8} == {}


def test_parameters_of_kernels_are_counted():
    """The negative control of the test above."""
    source = (
        "@jitable\ndef f(a, b): ...\ndef factory(g):\n    def loop(a, b, c): ...\n    return loop\ndef plain(a): ..."
    )
    assert parameters_of(source) == {"f": 2, "loop": 3}
