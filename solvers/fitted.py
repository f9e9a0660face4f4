"""A prior fitted on motion capture: a small network that says where the joints are."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from solvers.features import FEATURES_VERSION, NAMES, mirror_columns
from solvers.guess import Guess
from solvers.kernels import fitted as _kernels
from solvers.prior import Prior, RulesPrior
from vrik.arrays import Floats, Points
from vrik.body import BodyModel
from vrik.errors import PriorError
from vrik.frames import BodyTargets
from vrik.skeleton import BONES, MIRROR

FORMAT = "vrik.prior/1"
SHIPPED = Path(__file__).parent / "data" / "prior.npz"
"""The weights that come with vrik (docs/prior.md)."""

COLUMNS, SIGNS = mirror_columns()
FLIP = np.array([-1.0, 1.0, 1.0])

ARRAYS = ("low", "high", "w0", "b0", "w1", "b1", "w2", "b2")
TEXTS = ("format", "features_version", "subjects", "credit", "settings", "checksum")


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Three layers: features in, joints out.

    Args:
        arrays: float32: ``low`` and ``high`` (f,), between which features are kept; ``w0`` (f, h), ``w1``
            (h, h), ``w2`` (h, 66) and ``b0``, ``b1``, ``b2`` to match, with all scales in them.
        subjects: Whom they were fitted on.
        credit: What the data ask to be said.
        settings: How they were fitted, for people.
    """

    arrays: dict[str, Any]
    subjects: tuple[str, ...]
    credit: str
    settings: str = ""

    def save(self, path: Path) -> None:
        """Write them, layers as float16, with the version of the features and a checksum."""
        stored = {k: self.arrays[k].astype(np.float16 if k[0] == "w" else np.float32) for k in ARRAYS}
        with open(path, "wb") as file:
            np.savez_compressed(
                file,
                format=FORMAT,
                features_version=FEATURES_VERSION,
                subjects=np.array(self.subjects),
                credit=self.credit,
                settings=self.settings,
                checksum=_checksum(stored),
                **stored,
            )

    @classmethod
    def load(cls, path: Path) -> Weights:
        """Read and check a file.

        Raises:
            PriorError: If there is none, it is none of vrik's, is damaged, or is for other features.
        """
        try:
            with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                stored = {name: file[name] for name in (*ARRAYS, *TEXTS)}
        except FileNotFoundError as error:
            raise PriorError(f"there is no prior {path}; give rules, fitted or a file of weights") from error
        except Exception as error:  # whatever unpacking garbage raises
            raise PriorError(
                f"{path} is no file of prior weights, or a damaged one; make it with tools/fit_prior.py"
            ) from error
        if str(stored["format"]) != FORMAT or int(stored["features_version"]) != FEATURES_VERSION:
            raise PriorError(
                f"{path} is {stored['format']} for features version {stored['features_version']}, this vrik "
                f"reads {FORMAT} for version {FEATURES_VERSION}; make it again with tools/fit_prior.py"
            )
        arrays = {k: stored[k].astype(np.float32) for k in ARRAYS}
        if str(stored["checksum"]) != _checksum({k: stored[k] for k in ARRAYS}) or not _fits(arrays):
            raise PriorError(
                f"{path} is damaged: its numbers are not those it was written with; copy it anew"
            )
        subjects = tuple(str(name) for name in stored["subjects"])
        return cls(arrays, subjects, str(stored["credit"]), str(stored["settings"]))


class FittedPrior:
    """Guesses by a network of two hidden layers on the features of the frame and the last second.

    Args:
        weights: What was fitted; those that come with vrik when not given.

    Raises:
        PriorError: As for :meth:`Weights.load`.
    """

    features_version = FEATURES_VERSION
    feet_lead = True

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = Weights.load(SHIPPED) if weights is None else weights
        self._arrays = self.weights.arrays

    def fresh_state(self) -> Floats:
        """(2,) which feet were on the floor."""
        return np.zeros(2)

    def joints(self, features: Floats) -> Points:
        """What the network says: (..., f) features to (..., 22, 3) joints in the order of ``BONES``.

        Seen from the head joint, in the axes of its heading, over stature. The network is asked about the
        mirror image as well, and the mean taken: left and right are treated alike, and errors shrink.
        """
        seen, mirrored = self._network(features), self._network(features[..., COLUMNS] * SIGNS)
        joints: Points = 0.5 * (seen + mirrored[..., MIRROR, :] * FLIP)
        return joints

    def _network(self, features: Floats) -> Points:
        """One answer, as it comes."""
        a = self._arrays
        x = np.minimum(np.maximum(features.astype(np.float32), a["low"]), a["high"])
        x = _silu(x @ a["w0"] + a["b0"])
        x = _silu(x @ a["w1"] + a["b1"])
        out: Points = (x @ a["w2"] + a["b2"]).astype(np.float64)
        return out.reshape(*features.shape[:-1], len(BONES), 3)

    def guess(
        self,
        features: Floats,
        targets: BodyTargets,
        body: BodyModel,
        floor_y: float,
        state: Floats,
        out: Guess,
    ) -> None:
        """See :meth:`solvers.prior.Prior.guess`."""
        _kernels.guess(
            self.joints(features),
            targets.position,
            targets.rotation,
            targets.position_weight,
            body.tpose,
            body.stature_m,
            floor_y,
            state,
            *out.arrays(),
        )
        head, left, right = targets.position_weight[:3]
        both = min(head, left, right)
        out.confidence[:] = (both, both, min(head, left), min(head, right), both, both)


def open_prior(name: str) -> Prior:
    """The prior of that name: ``rules``, ``fitted``, or the path of a file of weights.

    Raises:
        PriorError: As for :meth:`Weights.load`.
    """
    if name == "rules":
        return RulesPrior()
    return FittedPrior(None if name == "fitted" else Weights.load(Path(name)))


def _silu(x: Any) -> Any:
    """x / (1 + exp(-x)), written so that nothing overflows."""
    return 0.5 * x * (1.0 + np.tanh(0.5 * x))


def _checksum(arrays: dict[str, Any]) -> str:
    """SHA-256 of all numbers as they are stored."""
    found = hashlib.sha256()
    for name in ARRAYS:
        found.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        found.update(np.ascontiguousarray(arrays[name]).tobytes())
    return found.hexdigest()


def _fits(arrays: dict[str, Any]) -> bool:
    """Whether the layers follow each other from our features to our joints, all finite."""
    width = [len(NAMES), len(arrays["b0"]), len(arrays["b1"]), 3 * len(BONES)]
    shapes: dict[str, tuple[int, ...]] = {"low": (width[0],), "high": (width[0],)}
    for i in range(3):
        shapes |= {f"w{i}": (width[i], width[i + 1]), f"b{i}": (width[i + 1],)}
    return all(arrays[k].shape == shape and np.isfinite(arrays[k]).all() for k, shape in shapes.items())
