"""vrik turns the poses of VR devices into a whole moving skeleton.

Everything public is a name of this package: ``from vrik import Pipeline, TrackerFrame``. Names are
looked up when they are first used, so that ``import vrik`` itself loads neither numpy nor numba.
``docs/api.md`` lists them with one line each.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibration import calibrate as calibrate
    from recordings import Recording as Recording
    from recordings import RecordingInfo as RecordingInfo
    from recordings import RecordingWriter as RecordingWriter
    from recordings import ReplayClock as ReplayClock
    from recordings import open_recording as open_recording
    from recordings import read_all as read_all
    from recordings import read_poses as read_poses
    from recordings import sample as sample
    from recordings.exporters.poses import write_npz as write_npz
    from solvers import Chain as Chain
    from solvers import ChainConfig as ChainConfig
    from solvers import ChainPose as ChainPose
    from solvers import ChainSolution as ChainSolution
    from solvers import Hinge as Hinge
    from solvers import SwingTwist as SwingTwist
    from solvers import Target as Target
    from solvers import register_solver as register_solver
    from solvers import solve_chain as solve_chain
    from solvers import solve_many as solve_many
    from solvers.fitted import FittedPrior as FittedPrior
    from solvers.guess import Guess as Guess
    from solvers.prior import Prior as Prior
    from solvers.prior import RulesPrior as RulesPrior
    from vrik.body import BodyModel as BodyModel
    from vrik.config import ConditionConfig as ConditionConfig
    from vrik.config import PipelineConfig as PipelineConfig
    from vrik.config import SolveConfig as SolveConfig
    from vrik.config import SpaceConfig as SpaceConfig
    from vrik.config import SteppingConfig as SteppingConfig
    from vrik.errors import CalibrationError as CalibrationError
    from vrik.errors import DamagedRecordingError as DamagedRecordingError
    from vrik.errors import NetworkError as NetworkError
    from vrik.errors import NoUsableFramesError as NoUsableFramesError
    from vrik.errors import PriorError as PriorError
    from vrik.errors import RecordingError as RecordingError
    from vrik.errors import UnknownFormatError as UnknownFormatError
    from vrik.errors import UnsupportedVersionError as UnsupportedVersionError
    from vrik.errors import UsageError as UsageError
    from vrik.errors import VrikError as VrikError
    from vrik.frames import ROLES as ROLES
    from vrik.frames import BodyTargets as BodyTargets
    from vrik.frames import Calibration as Calibration
    from vrik.frames import DeviceClass as DeviceClass
    from vrik.frames import DeviceState as DeviceState
    from vrik.frames import PoseFrame as PoseFrame
    from vrik.frames import PoseSequence as PoseSequence
    from vrik.frames import TrackedDevice as TrackedDevice
    from vrik.frames import TrackerFrame as TrackerFrame
    from vrik.frames import TrackerSequence as TrackerSequence
    from vrik.frames import TrackingResult as TrackingResult
    from vrik.loop import Loop as Loop
    from vrik.pipeline import Pipeline as Pipeline
    from vrik.pipeline import solve_all as solve_all
    from vrik.pose import Pose as Pose
    from vrik.sinks import Sink as Sink
    from vrik.sinks import SinkStats as SinkStats
    from vrik.sinks import open_sink as open_sink
    from vrik.skeleton import BONES as BONES
    from vrik.skeleton import Skeleton as Skeleton
    from vrik.sources import PoseSource as PoseSource
    from vrik.sources.recording import RecordingSource as RecordingSource
    from vrik.warm import warm_up as warm_up

    __version__: str

_HOME = {
    "vrik.pose": ("Pose",),
    "vrik.skeleton": ("BONES", "Skeleton"),
    "vrik.body": ("BodyModel",),
    "vrik.frames": (
        "ROLES",
        "BodyTargets",
        "Calibration",
        "DeviceClass",
        "DeviceState",
        "PoseFrame",
        "PoseSequence",
        "TrackedDevice",
        "TrackerFrame",
        "TrackerSequence",
        "TrackingResult",
    ),
    "vrik.config": ("ConditionConfig", "PipelineConfig", "SolveConfig", "SpaceConfig", "SteppingConfig"),
    "vrik.errors": (
        "CalibrationError",
        "DamagedRecordingError",
        "NetworkError",
        "NoUsableFramesError",
        "PriorError",
        "RecordingError",
        "UnknownFormatError",
        "UnsupportedVersionError",
        "UsageError",
        "VrikError",
    ),
    "vrik.pipeline": ("Pipeline", "solve_all"),
    "vrik.loop": ("Loop",),
    "vrik.sources": ("PoseSource",),
    "vrik.sources.recording": ("RecordingSource",),
    "vrik.warm": ("warm_up",),
    "vrik.sinks": ("Sink", "SinkStats", "open_sink"),
    "calibration": ("calibrate",),
    "recordings": (
        "Recording",
        "RecordingInfo",
        "RecordingWriter",
        "ReplayClock",
        "open_recording",
        "read_all",
        "read_poses",
        "sample",
    ),
    "recordings.exporters.poses": ("write_npz",),
    "solvers": (
        "Chain",
        "ChainConfig",
        "ChainPose",
        "ChainSolution",
        "Hinge",
        "SwingTwist",
        "Target",
        "register_solver",
        "solve_chain",
        "solve_many",
    ),
    "solvers.guess": ("Guess",),
    "solvers.fitted": ("FittedPrior",),
    "solvers.prior": ("Prior", "RulesPrior"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [  # noqa: RUF022  # grouped as in docs/api.md
    "__version__",
    # poses, bones, bodies
    "BONES",
    "BodyModel",
    "Pose",
    "Skeleton",
    # what travels between the stages
    "ROLES",
    "BodyTargets",
    "Calibration",
    "DeviceClass",
    "DeviceState",
    "PoseFrame",
    "PoseSequence",
    "TrackedDevice",
    "TrackerFrame",
    "TrackerSequence",
    "TrackingResult",
    # the work
    "Loop",
    "Pipeline",
    "calibrate",
    "solve_all",
    "warm_up",
    # parts to call alone or to replace
    "Chain",
    "ChainPose",
    "ChainSolution",
    "FittedPrior",
    "Guess",
    "Hinge",
    "Prior",
    "RulesPrior",
    "SwingTwist",
    "Target",
    "register_solver",
    "solve_chain",
    "solve_many",
    # settings
    "ChainConfig",
    "ConditionConfig",
    "PipelineConfig",
    "SolveConfig",
    "SpaceConfig",
    "SteppingConfig",
    # recordings and streams
    "PoseSource",
    "Recording",
    "RecordingInfo",
    "RecordingSource",
    "RecordingWriter",
    "ReplayClock",
    "Sink",
    "SinkStats",
    "open_recording",
    "open_sink",
    "read_all",
    "read_poses",
    "sample",
    "write_npz",
    # errors
    "CalibrationError",
    "DamagedRecordingError",
    "NetworkError",
    "NoUsableFramesError",
    "PriorError",
    "RecordingError",
    "UnknownFormatError",
    "UnsupportedVersionError",
    "UsageError",
    "VrikError",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("vrik")
    elif name in _MODULE_OF:
        from importlib import import_module

        value = getattr(import_module(_MODULE_OF[name]), name)
    else:
        raise AttributeError(f"module 'vrik' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def _check_companions() -> None:
    """Refuse to run with somebody else's ``solvers``, ``calibration`` or ``recordings``.

    Raises:
        ImportError: Naming the file that was found instead of vrik's own.
    """
    home = _folder(_folder(__file__))
    for name in ("solvers", "calibration", "recordings"):
        loaded = sys.modules.get(name)
        if loaded is not None:
            found = getattr(loaded, "__file__", None)
        else:
            spec = find_spec(name)
            found = spec.origin if spec is not None and spec.has_location else None
        own = os.path.join(home, name)
        if found is None:
            raise ImportError(f"vrik's own package {name!r} is missing from {home}; reinstall vrik")
        if _folder(found) != own:
            raise ImportError(
                f"vrik needs its own package {name!r} from {own}, but Python finds {found} first; "
                f"rename that one or start Python where it is not on the path"
            )


def _folder(path: str) -> str:
    return os.path.dirname(os.path.normcase(os.path.realpath(path)))


_check_companions()
