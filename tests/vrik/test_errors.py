"""The tree of errors, and the exit codes it stands for."""

from __future__ import annotations

import inspect

import pytest

from vrik import errors

ALL = [e for _, e in inspect.getmembers(errors, inspect.isclass) if issubclass(e, Exception)]


@pytest.mark.parametrize("error", ALL)
def test_every_error_is_a_vrik_error_with_an_exit_code(error: type[errors.VrikError]) -> None:
    assert issubclass(error, errors.VrikError)
    assert error.exit_code == (2 if error is errors.UsageError else 1)


@pytest.mark.parametrize("error", ALL)
def test_the_tree_at_the_top_of_the_file_names_it(error: type[errors.VrikError]) -> None:
    assert error.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize(
    "error",
    [
        errors.UnknownFormatError,
        errors.DamagedRecordingError,
        errors.UnsupportedVersionError,
        errors.NoUsableFramesError,
    ],
)
def test_whatever_is_wrong_with_a_file_can_be_caught_as_one(error: type[errors.VrikError]) -> None:
    assert issubclass(error, errors.RecordingError)
