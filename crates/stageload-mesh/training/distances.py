"""Signed distances on the generator's grid, and what joins and roughens them.

All return [P] for the grid's P points [P, 3]; what is made of them is in `shapes.py`.
"""

import numpy as np
from numpy.random import Generator

Array = np.ndarray

GRID = 64


def grid_points() -> Array:
    """Grid positions [GRID^3, 3], x slowest."""
    line = np.linspace(-1, 1, GRID).astype(np.float32)
    return np.stack(np.meshgrid(line, line, line, indexing="ij"), -1).reshape(-1, 3)


POINTS = grid_points()


def ellipsoid(centre: Array, radii: Array, rotation: Array | None = None) -> Array:
    """Approximate distance to an ellipsoid."""
    q = POINTS - np.float32(centre)
    if rotation is not None:
        q = q @ rotation
    k0 = np.linalg.norm(q / np.float32(radii), axis=1)
    k1 = np.linalg.norm(q / np.float32(radii) ** 2, axis=1) + 1e-6
    return k0 * (k0 - 1) / k1


def capsule(start: Array, end: Array, start_radius: float, end_radius: float) -> Array:
    """Distance to a segment thickened from one radius to another."""
    a, axis = np.float32(start), np.float32(end) - np.float32(start)
    t = np.clip(((POINTS - a) @ axis) / (axis @ axis + 1e-6), 0, 1)
    radius = start_radius + (end_radius - start_radius) * t
    return np.linalg.norm(POINTS - a - t[:, None] * axis, axis=1) - radius


def rounded_box(centre: Array, half: Array, radius: float) -> Array:
    """Distance to a box with rounded edges."""
    d = np.abs(POINTS - np.float32(centre)) - (np.float32(half) - radius)
    return np.linalg.norm(np.maximum(d, 0), axis=1) + np.minimum(d.max(1), 0) - radius


def radial(points: Array, axis: int) -> Array:
    """Distance [P] from the coordinate axis."""
    i, j = (k for k in range(3) if k != axis)
    return np.hypot(points[:, i], points[:, j])


def cylinder(centre: Array, radius: float, half: float, axis: int, edge: float = 0.02) -> Array:
    """Distance to a cylinder along a coordinate axis, edges rounded."""
    q = POINTS - np.float32(centre)
    side = radial(q, axis) - radius + edge
    caps = np.abs(q[:, axis]) - half + edge
    outside = np.hypot(np.maximum(side, 0), np.maximum(caps, 0))
    return np.minimum(np.maximum(side, caps), 0) + outside - edge


def torus(centre: Array, major: float, minor: float, axis: int) -> Array:
    """Distance to a ring around a coordinate axis."""
    q = POINTS - np.float32(centre)
    return np.hypot(radial(q, axis) - major, q[:, axis]) - minor


def smooth_union(a: Array, b: Array, k: float) -> Array:
    """Union of two distances, blended over k."""
    h = np.clip(0.5 + 0.5 * (b - a) / k, 0, 1)
    return b + (a - b) * h - k * h * (1 - h)


def waves(points: Array, rng: Generator, frequency: float, count: int = 6) -> Array:
    """Mean of random plane waves, about -1 to 1; [P]."""
    direction = rng.normal(size=(count, 3))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    direction *= frequency * rng.uniform(0.6, 1.4, (count, 1))
    phase = rng.uniform(0, 2 * np.pi, count).astype(np.float32)
    return np.sin(points @ direction.astype(np.float32).T + phase).mean(1)


def random_rotation(rng: Generator) -> Array:
    """Uniform rotation matrix [3, 3]."""
    w, x, y, z = (q := rng.normal(size=4)) / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ],
        np.float32,
    )
