"""Everything vrik raises on purpose.

    VrikError                     one sentence for a person: found, expected, what to do
    ├── UsageError                the command or a setting is malformed            (exit code 2)
    ├── RecordingError            a file cannot be used                            (exit code 1)
    │   ├── UnknownFormatError    no importer recognises it
    │   ├── DamagedRecordingError it is recognised but broken before the first frame
    │   ├── UnsupportedVersionError  written by a newer vrik
    │   └── NoUsableFramesError   readable, but nothing in it is tracked
    ├── CalibrationError          no body can be made of what was seen             (exit code 1)
    ├── PriorError                weights of a prior cannot be used                (exit code 1)
    └── NetworkError              no target can be reached at the start            (exit code 1)

A wrong argument from code is a ``ValueError``.
"""


class VrikError(Exception):
    """Base of all errors with a message that is meant for the user."""

    exit_code = 1


class UsageError(VrikError):
    """A flag, URL or setting that does not parse."""

    exit_code = 2


class RecordingError(VrikError):
    """A recording cannot be read, written or used."""


class UnknownFormatError(RecordingError):
    """No importer recognises the content."""


class DamagedRecordingError(RecordingError):
    """The format is known, but the file is broken before its first frame."""


class UnsupportedVersionError(RecordingError):
    """The file states a format version that this program does not know."""


class NoUsableFramesError(RecordingError):
    """The file is readable, but no device in it is ever tracked."""


class CalibrationError(VrikError):
    """No believable body can be made of the frames at hand."""


class PriorError(VrikError):
    """A file of prior weights is missing, damaged or for another version."""


class NetworkError(VrikError):
    """None of the targets can be sent to."""
