"""``vrik solve``: recordings to solved bodies, as files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from vrik.cli import console
from vrik.cli.options import Columns, PersonOptions, check_settings, plain_name
from vrik.config import PipelineConfig
from vrik.errors import RecordingError, UsageError

if TYPE_CHECKING:
    from vrik.frames import Calibration, PoseFrame, PoseSequence, TrackerFrame
    from vrik.pipeline import Pipeline
    from vrik.sources.recording import RecordingSource

FORMATS = ("npz", "jsonl", "mcap")


@dataclass(frozen=True, slots=True)
class Config:
    """Solve recordings into whole skeletons, as fast as possible, and write them to files.

    The same recording and settings give the same result. Each frame depends on itself and on earlier
    ones only; the person is measured first, on the whole recording, or, for trackers files with a
    T-pose of their own, on that and the first two seconds.
    """

    files: Annotated[Positional[tuple[Path, ...]], arg(metavar="FILE")]
    """Recordings of any kind that vrik reads."""

    output: Annotated[Path, arg(name="output", aliases=["-o"], metavar="OUT")]
    """File to write, ending in .npz, .jsonl or .mcap; a folder when there are several recordings."""

    format: str = ""
    """npz, jsonl or mcap; else the ending of OUT says it."""

    columns: Columns = None
    """For a table of numbers: the file that says what its columns hold, else one that lies beside it."""

    person: Annotated[PersonOptions, arg(name="")] = field(default_factory=PersonOptions)
    """Who is in the recording."""

    pipeline: Annotated[PipelineConfig, arg(name="")] = field(default_factory=PipelineConfig)
    """Settings of the stages."""

    json: bool = False
    """Print one JSON document about what was done."""


def run(config: Config) -> int:
    """Solve file after file."""
    check_settings(config.pipeline)
    targets = _targets(config)
    console.warm_up()
    reports = []
    for source, target in targets:
        report = _solve(source, target, config)
        reports.append(report)
        if not config.json:
            _print(report)
    if config.json:
        console.print_json(reports if len(reports) > 1 else reports[0])
    return 0


def _print(report: dict[str, Any]) -> None:
    """One recording's report, for a person."""
    print(f"{report['target']}: {report['frames']} frames of {report['source']}")
    print(f"  body: {report['stature_m']:.2f} m; worn: {', '.join(report['roles'].values())}")
    print(f"  measured: {', '.join(report['measured']) or 'nothing'}")
    print(f"  assumed: {', '.join(report['assumed']) or 'nothing'}")
    for role, error in report["reach_error_mm"].items():
        print(f"  {role}: {error['mean']:.1f} mm from its device on average, {error['worst']:.1f} at worst")
    for note in report["notes"]:
        print(f"  note: {note}")


def _targets(config: Config) -> list[tuple[Path, Path]]:
    """What is written where.

    Raises:
        UsageError: If that cannot be told from the flags.
        RecordingError: If there is no such folder to write into.
    """
    if not config.files:
        raise UsageError("name at least one recording: vrik solve FILE -o OUT.npz")
    kinds = ", ".join(FORMATS)
    if config.format and config.format not in FORMATS:
        raise UsageError(f"--format {config.format} is unknown; choose one of {kinds}")
    if len(config.files) == 1 and not config.output.is_dir():
        kind = config.format or config.output.suffix.lower().removeprefix(".")
        if kind not in FORMATS:
            raise UsageError(
                f"cannot tell how to write {config.output}: end it in one of {kinds}, or give --format"
            )
        if not config.output.parent.is_dir():
            raise RecordingError(f"there is no folder {config.output.parent}; make it first")
        return [(config.files[0], config.output)]
    if not config.format:
        raise UsageError(f"writing into the folder {config.output} needs --format, one of {kinds}")
    targets = [(file, config.output / f"{plain_name(file)}.{config.format}") for file in config.files]
    if len({target for _, target in targets}) < len(targets):
        raise UsageError("two of the recordings have the same name; solve them into different folders")
    try:
        config.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordingError(
            f"cannot make the folder {config.output} ({error.strerror or error}); choose another"
        ) from error
    return targets


def _solve(path: Path, target: Path, config: Config) -> dict[str, Any]:
    """Solve one recording and write it; returns what there is to say about it."""
    from vrik.files import write_whole
    from vrik.pipeline import Pipeline
    from vrik.sources.recording import RecordingSource

    with console.reading(path):
        source = RecordingSource(path, config.columns)
    if target.exists() and target.samefile(path):
        raise UsageError(f"{target} is the recording itself; choose another name for the result")
    with console.reading(path):
        calibration = config.person.measure(source)
    pipeline = Pipeline(calibration, config.pipeline)
    kind = config.format or target.suffix.lower().removeprefix(".")
    tally = _Tally(calibration)
    try:
        with console.progress(f"solving {path}") as at:
            write_whole(target, lambda part: _write(kind, source, pipeline, tally, part, at))
    except OSError as error:
        raise RecordingError(f"cannot write {target}: {error.strerror or error}") from error
    return {
        "source": str(path),
        "target": str(target),
        "frames": tally.frames,
        "stature_m": calibration.body.stature_m,
        "roles": calibration.roles,
        "measured": calibration.measured,
        "assumed": calibration.assumed,
        "reach_error_mm": tally.errors(),
        "notes": (*source.recording.info.notes, *calibration.notes, *tally.doubts(), *_far(pipeline)),
    }


def _write(
    kind: str,
    source: RecordingSource,
    pipeline: Pipeline,
    tally: _Tally,
    part: Path,
    at: Callable[[int, int | None], None],
) -> None:
    """Solve piece by piece; no more than one piece is in memory."""
    from recordings.base import pieces
    from recordings.exporters import poses as exporters
    from vrik.pipeline import solve_all

    def pairs() -> Iterator[tuple[TrackerFrame, PoseFrame]]:
        for piece in pieces(source.recording, at):
            for frame in piece:
                pose = pipeline.step(frame)
                tally.add(pose.reach_error_m[None])
                yield frame, pose

    def solved() -> Iterator[PoseSequence]:
        for piece in pieces(source.recording, at):
            poses = solve_all(pipeline, piece)
            tally.add(poses.reach_error_m)
            yield poses

    if kind == "mcap":
        exporters.write_mcap(pairs(), pipeline.calibration.body, part)
    else:
        write = exporters.write_npz if kind == "npz" else exporters.write_jsonl
        write(solved(), part)


def _far(pipeline: Pipeline) -> list[str]:
    """A sentence for each device that was somewhere no body reaches."""
    return [
        f"the {role.replace('_', ' ')} device was out of the body's reach in {count} "
        f"frame{'' if count == 1 else 's'} and taken as not tracked there"
        for role, count in pipeline.out_of_reach.items()
    ]


DOUBTFUL_MM = 100.0
"""A bone this far from its device on average is no matter of noise or of bone lengths."""


class _Tally:
    """How far the bones stayed from their devices."""

    def __init__(self, calibration: Calibration) -> None:
        from vrik.frames import ROLES

        worn = set(calibration.roles.values())
        self._columns = {role: i for i, role in enumerate(ROLES) if role in worn}
        self._sum = dict.fromkeys(self._columns, 0.0)
        self._count = dict.fromkeys(self._columns, 0)
        self._worst = dict.fromkeys(self._columns, 0.0)
        self.frames = 0

    def add(self, error_m: Any) -> None:
        """(n, 13) distances of n frames; NaN where a role was not tracked. [m]"""
        self.frames += len(error_m)
        for role, column in self._columns.items():
            seen = error_m[:, column]
            seen = seen[seen == seen]
            if len(seen):
                self._sum[role] += float(seen.sum())
                self._count[role] += len(seen)
                self._worst[role] = max(self._worst[role], float(seen.max()))

    def errors(self) -> dict[str, dict[str, float]]:
        """Mean and worst distance of each role that was ever tracked. [mm]"""
        return {
            role: {"mean": 1000.0 * self._sum[role] / count, "worst": 1000.0 * self._worst[role]}
            for role, count in self._count.items()
            if count
        }

    def doubts(self) -> list[str]:
        """A sentence for each device that the body could not follow."""
        return [
            f"the {role.replace('_', ' ')} device is {error['mean'] / 10.0:.0f} cm on average from where "
            "the body can be: it may have lost tracking, or be worn elsewhere"
            for role, error in self.errors().items()
            if error["mean"] > DOUBTFUL_MM
        ]
