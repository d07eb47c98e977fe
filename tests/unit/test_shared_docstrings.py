"""Docstrings completed from the base class: own entries win, the order is that of the signature."""

import inspect

from halfwidth.docstrings import share_arguments, share_parameters

LAST = """
    Attributes
    ----------
    n_seen : int
        Rows seen.

    Raises
    ------
    InputError
        Something is wrong.
"""


class Base:
    __doc__ = f"""A base.

    Parameters
    ----------
    dim : int
        The dimension,
        on two lines.
    seed : int
        The seed.
{LAST}
    """

    def __init__(self, dim, seed=0):
        self.dim, self.seed = dim, seed


def test_arguments_of_the_base_class_are_added_in_the_order_of_the_signature():
    class Child(Base):
        """A child.

        Text between.

        Notes
        -----
        One formula.
        """

        def __init__(self, dim, *, own=1, **options):
            super().__init__(dim, **options)

    Child.__doc__ = "\n".join(line[4:] if line.startswith("        ") else line for line in Child.__doc__.split("\n"))
    share_parameters(Child, "    **options\n        What `Base` takes.\n")
    expected = f"""A child.

    Text between.

    Parameters
    ----------
    dim : int
        The dimension,
        on two lines.
    **options
        What `Base` takes.
{LAST}
    Notes
    -----
    One formula.
    """
    assert Child.__doc__ == inspect.cleandoc(expected) + "\n"


def test_entries_of_the_class_itself_win():
    class Child(Base):
        __doc__ = """A child.

    Parameters
    ----------
    seed : int
        Another seed.
    """

    share_parameters(Child)
    assert "Another seed." in Child.__doc__
    assert "The seed." not in Child.__doc__
    assert Child.__doc__.index("dim : int") < Child.__doc__.index("seed : int")


def test_the_nearest_documented_base_is_taken():
    class Mixin:
        """A mixin."""

    class Child(Mixin, Base):
        """A child."""

    share_parameters(Child)
    assert "The dimension," in Child.__doc__


def test_without_docstrings_nothing_happens():
    class Child(Base):
        pass

    Child.__doc__ = None
    share_parameters(Child)
    assert Child.__doc__ is None


def test_arguments_of_methods_are_described_once():
    @share_arguments("""
        eta, y : ndarray
            Predictors and targets.
        level : float
            The level.
    """)
    class Shared:
        def slope(self, eta, y):
            """Return the slope.

            Returns
            -------
            ndarray
                The slope.
            """

        def bounds(self, alpha, level):
            """Return bounds.

            Parameters
            ----------
            alpha : float
                Own.
            level : float
                Own too.
            """

        def silent(self, eta):
            pass

    assert Shared.slope.__doc__ == (
        "Return the slope.\n\nParameters\n----------\neta, y : ndarray\n    Predictors and targets.\n\n"
        "Returns\n-------\nndarray\n    The slope.\n"
    )
    assert Shared.bounds.__doc__ == (
        "Return bounds.\n\nParameters\n----------\nalpha : float\n    Own.\nlevel : float\n    Own too.\n"
    )
    assert Shared.silent.__doc__ is None


def test_what_methods_return_is_described_once():
    @share_arguments(
        returns="""
        Self
            The object itself.
    """
    )
    class Chained:
        def go(self):
            """Go on."""

        def state(self):
            """Return the state.

            Returns
            -------
            dict
                The state.
            """

        @classmethod
        def build(cls):
            """Build one."""

        def _inner(self):
            """Say nothing about it."""

    assert Chained.go.__doc__ == "Go on.\n\nReturns\n-------\nChained\n    The object itself.\n"
    assert Chained.build.__doc__ == "Build one.\n\nReturns\n-------\nChained\n    The object itself.\n"
    assert "dict" in Chained.state.__doc__
    assert "Chained" not in Chained.state.__doc__
    assert Chained._inner.__doc__ == "Say nothing about it."
