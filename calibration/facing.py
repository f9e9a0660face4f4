"""Which way somebody faces, and what lies to their left and right."""

from __future__ import annotations

import numpy as np

from calibration.samples import Samples
from vrik import quat
from vrik.arrays import Bools, Floats, Points, Quats

FORWARD = np.array([0.0, 0.0, -1.0])
UP = np.array([0.0, 1.0, 0.0])

LEVEL_MIN = 0.8
"""Horizontal share of the view direction that counts as looking ahead (37 degrees up or down)."""

UPRIGHT_MIN = 0.6
"""Vertical share of the head's up axis that counts as not lying down."""


def yaw_of(rotation: Quats) -> Floats:
    """Heading of headset poses (n, 4) about +Y, positive to the left. [rad]

    Looking steeply down or up, the top of the head tells the heading instead of the view direction.
    """
    forward = quat.rotate(rotation, FORWARD)
    up = quat.rotate(rotation, UP)
    steep = np.clip((np.abs(forward[..., 1]) - 0.7) / 0.25, 0.0, 1.0)[..., None]
    sign = np.where(forward[..., 1:2] > 0.0, -1.0, 1.0)
    heading = (1.0 - steep) * forward + steep * sign * up
    return np.asarray(np.arctan2(-heading[..., 0], -heading[..., 2]))


def looks_ahead(rotation: Quats) -> Bools:
    """Which headset poses (n, 4) are level enough to tell left from right."""
    forward = quat.rotate(rotation, FORWARD)
    up = quat.rotate(rotation, UP)
    return np.asarray((np.hypot(forward[..., 0], forward[..., 2]) > LEVEL_MIN) & (up[..., 1] > UPRIGHT_MIN))


def from_head(samples: Samples, head: int) -> Points:
    """(n, k, 3) devices as the headset's wearer sees them: to the right, up, behind. [m]"""
    yaw = yaw_of(samples.rotation[:, head])
    away = samples.position - samples.position[:, head : head + 1]
    return quat.rotate(yaw_rotation(-yaw)[:, None], away)


def yaw_rotation(yaw_rad: Floats) -> Quats:
    """(n,) headings to (n, 4) turns about +Y."""
    half = 0.5 * np.asarray(yaw_rad, np.float64)
    q = np.zeros((*half.shape, 4))
    q[..., 0] = np.cos(half)
    q[..., 2] = np.sin(half)
    return q
