"""What holds in every test process: the standard library's `operator`, and property tests that can be repeated."""

import operator

from hypothesis import settings

# The repository has a folder `operator`. If it ever became a package it would hide the standard library's.
assert operator.add(1, 1) == 2
assert "joinery" not in str(operator.__file__)
assert "operator/operator" not in str(operator.__file__)

settings.register_profile("joinery", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("joinery")
