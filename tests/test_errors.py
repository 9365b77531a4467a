"""The tree of errors."""

from __future__ import annotations

import pickle

import pytest

import napsets as ns


@pytest.mark.parametrize(
    ("error", "parents"),
    [
        (ns.InvalidInputError, (ns.NapsetsError, ValueError)),
        (ns.FileFormatError, (ns.InvalidInputError, ns.NapsetsError, ValueError)),
        (ns.NotCalibratedError, (ns.NapsetsError, RuntimeError)),
        (ns.MissingDependencyError, (ns.NapsetsError, ImportError)),
        (ns.NapsetsWarning, (UserWarning,)),
    ],
)
def test_each_error_is_also_what_python_would_raise(error, parents):
    assert all(issubclass(error, parent) for parent in parents)


def test_a_missing_dependency_names_package_and_extra_even_from_another_process():
    error = pickle.loads(pickle.dumps(ns.MissingDependencyError("torch", "gnn")))
    assert str(error) == "this needs the package 'torch'; install it with: pip install 'napsets[gnn]'"
    assert (error.package, error.extra) == ("torch", "gnn")
