#!/usr/bin/env python3
"""Procedural training data: random solids, ray-cast to colour, mask and depth.

A solid is a smooth union of signed distances on a 64^3 grid over [-1, 1]^3 (y up, z towards
the viewer). Views are orthographic; the solid's longer visible side is 0.92 of the picture.
Everything follows from the seed.

    python3 shapes.py data --chunks 23 --shapes 120 [--first-seed 0]
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from embreex import rtcore_scene
from embreex.mesh_construction import TriangleMesh
from numpy.random import Generator
from skimage.measure import marching_cubes

from distances import (
    GRID,
    POINTS,
    Array,
    capsule,
    cylinder,
    ellipsoid,
    radial,
    random_rotation,
    rounded_box,
    smooth_union,
    torus,
    waves,
)

Field = tuple[list[Array], float]  # signed distances of the parts [P], blend radius

VIEW_SIZE = 96
VIEWS = 3
FILL = 0.92
SIDES = (-1, 1)


# --- kinds of solids --------------------------------------------------------------------------


def animal(rng: Generator) -> Field:
    """Four-legged, body along x."""
    u = rng.uniform
    length, girth = u(0.3, 0.6), u(0.14, 0.3)
    x, y, head = length * u(0.8, 1.15), u(0.05, 0.4), u(0.1, 0.22)
    snout = (x + head * u(1.1, 1.8), y - u(0, 0.1), 0)
    parts = [
        ellipsoid((0, 0, 0), (length, girth, girth * u(0.7, 1.1))),
        capsule((length * 0.6, 0, 0), (x, y, 0), girth * 0.7, head * 0.7),
        ellipsoid((x, y, 0), (head * u(1, 1.5), head, head * u(0.8, 1.1))),
        capsule((x + head * 0.5, y - 0.02, 0), snout, head * 0.5, head * 0.3),
    ]
    parts += animal_legs(rng, length, girth)
    for side in SIDES:
        ear = (head * 0.3, head * u(0.3, 0.9), head * 0.25)
        parts.append(ellipsoid((x - head * 0.3, y + head * 0.9, side * head * 0.6), ear))
    if rng.random() < 0.8:
        tip = (-length - u(0.1, 0.4), u(-0.3, 0.4), 0)
        parts.append(capsule((-length * 0.9, 0, 0), tip, u(0.03, 0.09), u(0.02, 0.06)))
    return parts, u(0.04, 0.12)


def animal_legs(rng: Generator, length: float, girth: float) -> list[Array]:
    """Four legs of two segments each."""
    u = rng.uniform
    radius, reach = u(0.04, 0.09), u(0.3, 0.6)
    parts = []
    for end in SIDES:
        for side in SIDES:
            hip_x = end * length * u(0.55, 0.75)
            knee = (hip_x + u(-0.12, 0.12), -girth * 0.3 - reach * 0.55, side * girth * 0.6)
            foot = (knee[0] + u(-0.1, 0.1), -girth * 0.3 - reach, side * girth * 0.6)
            hip = (hip_x, -girth * 0.3, side * girth * 0.55)
            parts.append(capsule(hip, knee, radius * 1.4, radius))
            parts.append(capsule(knee, foot, radius, radius * 0.8))
    return parts


def biped(rng: Generator) -> Field:
    """Upright figure or toy, mirrored in x."""
    u = rng.uniform
    girth, height, head = u(0.18, 0.32), u(0.2, 0.4), u(0.14, 0.34)
    y = height + head * 0.7
    parts = [
        ellipsoid((0, 0, 0), (girth, height, girth * u(0.6, 1))),
        ellipsoid((0, y, 0), (head * u(0.8, 1.1), head, head * u(0.8, 1.1))),
        ellipsoid(
            (0, y - head * 0.15, head * 0.85), (head * 0.3, head * 0.25, head * u(0.15, 0.5))
        ),
    ]
    arm, lift = u(0.05, 0.11), u(-0.5, 0.4)
    for side in SIDES:
        parts += biped_limbs(rng, side, (girth, height), (arm, lift))
        if rng.random() < 0.6:
            ear = (head * 0.3, head * u(0.3, 0.9), head * 0.2)
            parts.append(ellipsoid((side * head * 0.75, y + head * 0.7, 0), ear))
    return parts, u(0.02, 0.1)


def biped_limbs(
    rng: Generator, side: int, body: tuple[float, float], arm: tuple[float, float]
) -> list[Array]:
    """Arm, leg and foot of one side; body is (girth, height), arm is (radius, lift)."""
    u = rng.uniform
    (girth, height), (radius, lift) = body, arm
    hand = (side * (girth + u(0.1, 0.3)), height * 0.5 + lift, u(-0.1, 0.3))
    ankle = (side * girth * u(0.5, 0.8), -height - u(0.1, 0.4), 0)
    hip = (side * girth * 0.5, -height * 0.6, 0)
    foot = (side * girth * 0.6, -height - 0.3, radius)
    return [
        capsule((side * girth * 0.8, height * 0.5, 0), hand, radius * 1.1, radius),
        capsule(hip, ankle, radius * 1.4, radius * 1.1),
        ellipsoid(foot, (radius * 1.3, radius, radius * 2)),
    ]


def lathe(rng: Generator) -> Field:
    """Vase, bowl, cup: a turned profile, sometimes hollow, with a handle or a plate."""
    u = rng.uniform
    heights = np.linspace(-0.75, 0.75, 6)
    radii = np.convolve(np.pad(u(0.1, 0.6, 6), 1, "edge"), [0.25, 0.5, 0.25], "valid")
    y, half = POINTS[:, 1], u(0.4, 0.8)
    wall = radial(POINTS, 1) - np.interp(y, heights, radii)
    body = np.maximum(wall * 0.8, np.abs(y) - half)
    if rng.random() < 0.4:
        body = np.maximum(body, -np.maximum(wall + u(0.04, 0.1), -(y + half - 0.1)))
    parts = [body.astype(np.float32)]
    if rng.random() < 0.4:
        centre = (np.interp(0, heights, radii), u(-0.2, 0.2), 0)
        parts.append(torus(centre, u(0.15, 0.28), u(0.03, 0.06), 2))
    if rng.random() < 0.3:
        parts.append(cylinder((0, -half, 0), u(0.4, 0.7), 0.04, 1))
    return parts, 0.02


def furniture(rng: Generator) -> Field:
    """Loose boxes, or a stool or chair."""
    u = rng.uniform
    if rng.random() < 0.5:
        first = rounded_box((0, 0, 0), u(0.1, 0.5, 3), u(0.01, 0.08))
        boxes = range(rng.integers(0, 4))
        more = [rounded_box(u(-0.35, 0.35, 3), u(0.1, 0.5, 3), u(0.01, 0.08)) for _ in boxes]
        return [first, *more], 0.015
    (width, depth), y = u(0.25, 0.5, 2), u(-0.3, 0.1)
    parts = [rounded_box((0, y, 0), (width + 0.05, u(0.04, 0.15), depth + 0.05), 0.03)]
    for x in SIDES:
        for z in SIDES:
            parts.append(cylinder((x * width, y - 0.3, z * depth), u(0.03, 0.06), 0.3, 1))
    if rng.random() < 0.7:
        parts.append(rounded_box((0, y + 0.35, -depth), (width, 0.35, 0.05), 0.03))
    return parts, 0.015


def vehicle(rng: Generator) -> Field:
    """Body, cabin and four wheels."""
    u = rng.uniform
    length, height, width = u(0.5, 0.75), u(0.1, 0.2), u(0.2, 0.35)
    cabin = (length * u(0.3, 0.6), 0.16, width * 0.9)
    parts = [
        rounded_box((0, 0, 0), (length, height, width), u(0.04, 0.1)),
        rounded_box((u(-0.2, 0.1), height + 0.12, 0), cabin, 0.08),
    ]
    wheel = u(0.1, 0.17)
    for x in (-0.65, 0.65):
        for z in SIDES:
            parts.append(cylinder((x * length, -height, z * width), wheel, 0.05, 2))
    return parts, 0.02


def blobs(rng: Generator) -> Field:
    """A few blended ellipsoids."""
    u = rng.uniform
    count = range(rng.integers(2, 8))
    parts = [ellipsoid(u(-0.4, 0.4, 3), u(0.12, 0.4, 3), random_rotation(rng)) for _ in count]
    return parts, u(0.02, 0.2)


def lump(rng: Generator) -> Field:
    """Rock, fruit or head."""
    u = rng.uniform
    body = ellipsoid((0, 0, 0), u(0.4, 0.75, 3))
    parts = [body + waves(POINTS, rng, u(2, 5)) * u(0.02, 0.15)]
    if rng.random() < 0.5:
        parts.append(capsule((0, 0.4, 0), (u(-0.1, 0.1), 0.85, 0), 0.04, 0.03))
    return parts, 0.1


def plate(rng: Generator) -> Field:
    """Flat thing: an irregular outline, extruded along z."""
    u = rng.uniform
    flat = POINTS * np.float32([1, 1, 0])
    radii = np.float32([u(0.3, 0.7), u(0.3, 0.7), 1])
    k0 = np.linalg.norm(flat / radii, axis=1)
    outline = k0 * (k0 - 1) / (np.linalg.norm(flat / radii**2, axis=1) + 1e-6)
    outline = outline + waves(flat, rng, u(3, 8)) * u(0, 0.2)
    return [np.maximum(outline, np.abs(POINTS[:, 2]) - u(0.05, 0.2))], 0.02


KINDS: list[tuple[Callable[[Generator], Field], float]] = [
    (animal, 0.26),
    (biped, 0.16),
    (lathe, 0.16),
    (furniture, 0.10),
    (vehicle, 0.06),
    (blobs, 0.10),
    (lump, 0.10),
    (plate, 0.06),
]


# --- mesh, colour, views ----------------------------------------------------------------------


@dataclass(frozen=True)
class Solid:
    """A triangle mesh: vertices and normals [V, 3], faces [T, 3], part of each vertex [V]."""

    vertices: Array
    faces: Array
    normals: Array
    parts: Array
    kind: int


def random_field(rng: Generator) -> tuple[Array, Array, int]:
    """Distance [G, G, G], nearest part [G^3] and kind of a random solid."""
    kind = int(rng.choice(len(KINDS), p=[share for _, share in KINDS]))
    parts, blend = KINDS[kind][0](rng)
    distance = parts[0]
    for part in parts[1:]:
        distance = smooth_union(distance, part, blend)
    if rng.random() < 0.5:
        distance = distance + waves(POINTS, rng, rng.uniform(8, 22), 8) * rng.uniform(0, 0.025)
    return distance.reshape(GRID, GRID, GRID), np.stack(parts).argmin(0), kind


def close_at_walls(distance: Array) -> Array:
    """Keep the solid off the grid's walls, so that its surface is closed."""
    inner = np.s_[1:-1, 1:-1, 1:-1]
    closed = np.maximum(distance, 0.02)
    closed[inner] = distance[inner]
    return closed


def random_solid(rng: Generator) -> Solid | None:
    """Mesh of a random solid, or nothing when the field has no inside."""
    distance, part, kind = random_field(rng)
    distance = close_at_walls(distance)
    if distance.min() >= 0:
        return None
    vertices, faces, normals, _ = marching_cubes(distance, 0, spacing=(2 / (GRID - 1),) * 3)
    normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-6)
    i, j, k = np.clip(np.round(vertices / 2 * (GRID - 1)).astype(int), 0, GRID - 1).T
    parts = part[(i * GRID + j) * GRID + k]
    return Solid((vertices - 1).astype(np.float32), faces, normals, parts, kind)


def random_albedo(solid: Solid, rng: Generator) -> Array:
    """Vertex colours [V, 3] in 0..1: a palette by part, with stripes, mottling or patches."""
    u, vertices = rng.uniform, solid.vertices
    palette = u(0.05, 0.95, (solid.parts.max() + 1, 3))
    if rng.random() < 0.55:
        palette[:] = palette[0] * u(0.9, 1.1, (len(palette), 1))
    colour, pattern = palette[solid.parts], rng.random()
    if pattern < 0.3:
        stripes = np.sign(waves(vertices, rng, u(6, 25), 3))[:, None]
        colour = colour * (1 + 0.5 * stripes * u(0.2, 1))
    elif pattern < 0.6:
        colour = colour * (1 + waves(vertices, rng, u(5, 30), 5)[:, None] * u(0.3, 1.5))
    elif pattern < 0.75:
        patch = waves(vertices, rng, u(4, 15), 4) > u(-0.1, 0.3)
        colour = np.where(patch[:, None], colour, u(0, 1, 3))
    return np.clip(colour, 0.01, 1).astype(np.float32)


def random_view(rng: Generator) -> Array:
    """Rotation [3, 3]: mostly front, side or three-quarter, slightly from above, little roll."""
    azimuth = rng.normal(0, 0.5) + rng.choice(np.pi * np.array([0, 0.5, -0.5, 0.25, -0.25, 1]))
    elevation, roll = rng.normal(0.15, 0.25), rng.normal(0, 0.08)
    (ca, ce, cr), (sa, se, sr) = (f([azimuth, elevation, roll]) for f in (np.cos, np.sin))
    turn = np.array([[ca, 0, sa], [0, 1, 0], [-sa, 0, ca]])
    tilt = np.array([[1, 0, 0], [0, ce, -se], [0, se, ce]])
    return np.array([[cr, -sr, 0], [sr, cr, 0], [0, 0, 1]]) @ tilt @ turn


def framed(vertices: Array, rotation: Array) -> Array:
    """Turn, centre and scale the vertices into the 1-wide picture."""
    turned = (vertices @ rotation.T).astype(np.float32)
    low, high = turned[:, :2].min(0), turned[:, :2].max(0)
    turned[:, :2] -= (low + high) / 2
    turned *= FILL / (high - low).max()
    turned[:, 2] -= turned[:, 2].mean()
    return turned


def pixel_rays(size: int) -> Array:
    """Ray origins [size^2, 3] on the plane z = 0, row by row from the top."""
    line = ((np.arange(size) + 0.5) / size - 0.5).astype(np.float32)
    x, y = np.meshgrid(line, -line)
    return np.stack([x.ravel(), y.ravel(), np.zeros(size * size, np.float32)], 1)


@dataclass(frozen=True)
class Hits:
    """Where the rays met the solid: inside [N], front and back depth [N], weights at hits."""

    inside: Array
    front: Array
    back: Array
    corners: Array  # [H, 3] vertex indices of the hit triangles
    weights: Array  # [H, 3] barycentric

    def at(self, values: Array) -> Array:
        """Interpolate vertex values [V, 3] at the hits: [H, 3]."""
        return (values[self.corners] * self.weights[..., None]).sum(1)


def cast(scene: rtcore_scene.EmbreeScene, origins: Array, direction: Array) -> dict[str, Array]:
    """Nearest hits of parallel rays."""
    directions = np.broadcast_to(np.float32(direction), origins.shape)
    return scene.run(np.ascontiguousarray(origins), np.ascontiguousarray(directions), output=1)


def trace(scene: rtcore_scene.EmbreeScene, faces: Array, rays: Array) -> Hits:
    """First surface seen from the front and from behind."""
    far = np.float32([0, 0, 3])
    front, back = cast(scene, rays + far, (0, 0, -1)), cast(scene, rays - far, (0, 0, 1))
    inside = (front["geomID"] != -1) & (back["geomID"] != -1)
    u, v = front["u"][inside], front["v"][inside]
    return Hits(
        inside,
        np.where(inside, 3 - front["tfar"], 0).astype(np.float32),
        np.where(inside, back["tfar"] - 3, 0).astype(np.float32),
        faces[front["primID"][inside]],
        np.stack([1 - u - v, u, v], 1),
    )


def lit(
    scene: rtcore_scene.EmbreeScene, rng: Generator, positions: Array, normals: Array
) -> tuple[Array, Array]:
    """Diffuse and specular light [H] of a random lamp with sky light and perhaps shadows."""
    u = rng.uniform
    lamp = np.array(
        [rng.normal(0, 0.7), abs(rng.normal(0.6, 0.5)), abs(rng.normal(0.7, 0.4)) + 0.1]
    )
    lamp /= np.linalg.norm(lamp)
    ambient = u(0.2, 0.7)
    sky = ambient * (0.8 + 0.2 * normals[:, 1])
    diffuse = sky + (1 - ambient) * np.clip(normals @ lamp, 0, 1) * 1.3
    halfway = lamp + np.array([0, 0, 1])
    halfway /= np.linalg.norm(halfway)
    gloss = rng.choice([0, 0, 0.2, 0.5])
    specular = np.clip(normals @ halfway, 0, 1) ** u(8, 60) * gloss
    if rng.random() < 0.7:
        start = (positions + normals * 0.01).astype(np.float32)
        shadow = cast(scene, start, lamp)["geomID"] != -1
        diffuse, specular = np.where(shadow, sky, diffuse), np.where(shadow, 0, specular)
    return diffuse, specular


def develop(rng: Generator, albedo: Array, diffuse: Array, specular: Array) -> Array:
    """Colours [H, 3] in 0..1 as a camera might give them: exposure, tint, gamma, noise."""
    u = rng.uniform
    light = albedo * diffuse[:, None] * u(0.8, 1.3) * u(0.9, 1.1, 3) + specular[:, None]
    colour = np.clip(light, 0, 1) ** u(0.45, 1.0)
    return np.clip(colour + rng.normal(0, u(0, 0.03), colour.shape), 0, 1)


@dataclass(frozen=True)
class View:
    """rgb [n, n, 3] in 0..1, mask [n, n], front and back depth [n, n] in picture widths."""

    rgb: Array
    mask: Array
    front: Array
    back: Array


def render(
    solid: Solid, albedo: Array, rotation: Array, rng: Generator, size: int = VIEW_SIZE
) -> View:
    """Ray-cast one picture of the solid."""
    vertices = framed(solid.vertices, rotation)
    scene = rtcore_scene.EmbreeScene()
    TriangleMesh(scene, vertices[solid.faces])
    rays = pixel_rays(size)
    hits = trace(scene, solid.faces, rays)
    normals = hits.at(solid.normals) @ rotation.T
    normals /= np.linalg.norm(normals, axis=1, keepdims=True) + 1e-6
    if (normals[:, 2] < 0).mean() > 0.5:
        normals = -normals
    positions = rays[hits.inside]
    positions[:, 2] = hits.front[hits.inside]
    diffuse, specular = lit(scene, rng, positions, normals)
    rgb = np.zeros((size * size, 3), np.float32)
    rgb[hits.inside] = develop(rng, hits.at(albedo), diffuse, specular)
    square = (size, size)
    return View(
        rgb.reshape(size, size, 3),
        hits.inside.reshape(square),
        hits.front.reshape(square),
        hits.back.reshape(square),
    )


def write_chunk(path: Path, seed: int, shapes: int) -> int:
    """Render `shapes` solids, VIEWS pictures each, into one .npz; returns the picture count."""
    rng = np.random.default_rng(seed)
    views: list[View] = []
    kinds: list[int] = []
    while len(views) < shapes * VIEWS:
        solid = random_solid(rng)
        if solid is None:
            continue
        for _ in range(VIEWS):
            view = render(solid, random_albedo(solid, rng), random_view(rng), rng)
            if view.mask.mean() >= 0.04:
                views.append(view)
                kinds.append(solid.kind)
    np.savez_compressed(
        path,
        rgb=np.stack([(v.rgb * 255).astype(np.uint8) for v in views]),
        mask=np.stack([v.mask for v in views]),
        front=np.stack([v.front.astype(np.float16) for v in views]),
        back=np.stack([v.back.astype(np.float16) for v in views]),
        kind=np.array(kinds, np.uint8),
    )
    return len(views)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--chunks", type=int, default=23)
    parser.add_argument("--shapes", type=int, default=120, help="solids in a chunk")
    parser.add_argument("--first-seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.chunks):
        path, start = arguments.folder / f"chunk{seed:03}.npz", time.process_time()
        count = write_chunk(path, seed, arguments.shapes)
        print(f"{path}: {count} pictures, {time.process_time() - start:.1f} CPU s", flush=True)


if __name__ == "__main__":
    main()
