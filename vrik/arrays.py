"""Names for the arrays that travel between stages; the shape is in the name, the unit in the docstring."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vec3: TypeAlias = NDArray[np.float64]
"""(3,) a point or direction. [m] unless said otherwise"""

Quat: TypeAlias = NDArray[np.float64]
"""(4,) unit quaternion (w, x, y, z)"""

Points: TypeAlias = NDArray[np.float64]
"""(..., 3) points or directions. [m] unless said otherwise"""

Quats: TypeAlias = NDArray[np.float64]
"""(..., 4) unit quaternions (w, x, y, z)"""

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

V3: TypeAlias = tuple[float, float, float]
"""What kernels pass around: three numbers, no array."""

Q4: TypeAlias = tuple[float, float, float, float]
"""A unit quaternion (w, x, y, z) inside kernels."""
