"""Example data sets: fetched once, checked, cached; none is shipped."""
