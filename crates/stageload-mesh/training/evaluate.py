#!/usr/bin/env python3
"""Compare the shape prior with the plain inflation on meshes it was never trained on.

Each mesh is rendered from four sides; picture and true matte go in, depth comes out. Errors are
in picture widths, normals in degrees; CD and F take the longest visible side as 2.

    python3 evaluate.py horse.obj:-z bunny.obj duck.glb [--weights shape_prior.safetensors]

A mesh's up axis is y unless the path ends in `:z` or `:-z`.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
import trimesh
from scipy import ndimage
from scipy.spatial import KDTree
from torch import Tensor

from model import ShapePrior, compose, inputs, poisson_u, shrink, shrink_mask
from shapes import FILL, Solid, View, random_albedo, render
from train import load_weights

Array = np.ndarray
Depths = tuple[Array, Array]  # front and back [n, n]
Predictor = Callable[[View], Depths]

SIZE = 192
SIDES = ((0, 10), (40, 15), (90, 5), (-60, 20))  # azimuth, elevation, degrees
SAMPLES = 6000  # points on each sheet
TO_SIDE_2 = 2 / FILL
SHIPPED = Path(__file__).resolve().parent.parent / "weights" / "shape_prior.safetensors"


def load_solid(argument: str) -> Solid:
    """Read a mesh, turn it y up and fit it into [-1, 1]^3."""
    path, _, up = argument.partition(":")
    mesh = trimesh.load(path, force="mesh")
    x, y, z = np.asarray(mesh.vertices, np.float32).T
    turned = {"": (x, y, z), "z": (x, z, -y), "-z": (x, -z, y)}[up]
    vertices = np.stack(turned, 1)
    vertices -= (vertices.max(0) + vertices.min(0)) / 2
    vertices /= np.abs(vertices).max()
    normals = trimesh.Trimesh(vertices, mesh.faces, process=False).vertex_normals
    parts = np.zeros(len(vertices), int)
    return Solid(vertices, np.asarray(mesh.faces), np.array(normals, np.float32), parts, 0)


def rotation(azimuth: float, elevation: float) -> Array:
    """View rotation [3, 3] from degrees."""
    (ca, ce), (sa, se) = (f(np.radians([azimuth, elevation])) for f in (np.cos, np.sin))
    turn = np.array([[ca, 0, sa], [0, 1, 0], [-sa, 0, ca]])
    return np.array([[1, 0, 0], [0, ce, -se], [0, se, ce]]) @ turn


def views(solid: Solid) -> list[View]:
    """Four seeded renderings."""
    pictures = []
    for seed, side in enumerate(SIDES):
        rng = np.random.default_rng(1000 + seed)
        mottling = 0.25 * random_albedo(solid, rng) + 0.88
        albedo = np.float32([0.75, 0.6, 0.45]) * mottling
        pictures.append(render(solid, np.clip(albedo, 0, 1), rotation(*side), rng, SIZE))
    return pictures


# --- predictions ------------------------------------------------------------------------------


def planes(view: View) -> tuple[Tensor, Tensor]:
    """Colour [1, 3, n, n] and mask [1, 1, n, n] as tensors."""
    rgb = torch.from_numpy(view.rgb).permute(2, 0, 1)[None]
    return rgb, torch.from_numpy(view.mask)[None, None].float()


def inflated(ratio: float) -> Predictor:
    """The plain inflation with one thickness ratio."""

    def predict(view: View) -> Depths:
        root = poisson_u(planes(view)[1]).sqrt()[0, 0].numpy()
        return root * ratio, -root * ratio

    return predict


def spread(values: Tensor, mask: Tensor) -> Tensor:
    """Carry the values inside the mask outwards to the nearest pixels, then enlarge to SIZE."""
    outside = mask[0, 0].numpy() < 0.5
    _, nearest = ndimage.distance_transform_edt(outside, return_indices=True)
    filled = values[0, 0].numpy()[tuple(nearest)]
    shape = (SIZE, SIZE)
    field = torch.from_numpy(filled)[None, None]
    return F.interpolate(field, size=shape, mode="bilinear", align_corners=False)


def learned(network: ShapePrior) -> Predictor:
    """The prior, averaged with its answer to the mirrored picture."""

    def predict(view: View) -> Depths:
        rgb, full = planes(view)
        mask = shrink_mask(full)
        features = (shrink(rgb, full), mask, poisson_u(mask).sqrt())
        straight = network(inputs(*features))
        mirrored = network(inputs(*(f.flip(3) for f in features)))
        both = zip(straight, mirrored, strict=True)
        mid, log_ratio = (spread((a + b.flip(3)) / 2, mask) for a, b in both)
        front, back = compose(mid, log_ratio, poisson_u(full).sqrt())
        return front[0, 0].numpy(), back[0, 0].numpy()

    return predict


# --- measures ---------------------------------------------------------------------------------


def surface_normals(depth: Array) -> Array:
    """Unit normals [n, n, 3] of a height field."""
    dy, dx = np.gradient(depth * SIZE)
    normals = np.stack([-dx, dy, np.ones_like(depth)], -1)
    return normals / np.linalg.norm(normals, axis=-1, keepdims=True)


def surface_points(depths: Depths, mask: Array) -> Array:
    """Points [2 SAMPLES, 3] spread by area over both sheets."""
    rng = np.random.default_rng(0)
    line = (np.arange(SIZE) + 0.5) / SIZE - 0.5
    x, y = np.meshgrid(line, -line)
    points = []
    for depth in depths:
        dy, dx = np.gradient(depth * SIZE)
        area = np.sqrt(1 + np.minimum(dx**2 + dy**2, 400)) * mask
        chosen = rng.choice(mask.size, SAMPLES, p=(area / area.sum()).ravel())
        points.append(np.stack([p.ravel()[chosen] for p in (x, y, depth)], 1))
    return np.concatenate(points)


def measures(prediction: Depths, view: View) -> dict[str, float]:
    """All errors of one prediction, after the shift along the view axis that fits best."""
    inner = view.mask & (ndimage.distance_transform_edt(view.mask) > 1.5)
    gap = (view.front + view.back) - (prediction[0] + prediction[1])
    front, back = (p + np.median(gap[inner]) / 2 for p in prediction)
    core = ndimage.binary_erosion(view.mask, iterations=4)
    cosine = (surface_normals(front) * surface_normals(view.front)).sum(-1)
    truth = surface_points((view.front, view.back), view.mask)
    ours = surface_points((front, back), view.mask)
    there = KDTree(truth).query(ours)[0] * TO_SIDE_2
    here = KDTree(ours).query(truth)[0] * TO_SIDE_2
    result = {
        "front": np.abs(front - view.front)[inner].mean(),
        "thickness": np.abs((front - back) - (view.front - view.back))[inner].mean(),
        "normal": np.degrees(np.arccos(np.clip(cosine, -1, 1)))[core].mean(),
        "CD": there.mean() + here.mean(),
    }
    for limit in (0.05, 0.1, 0.2):
        precision, recall = (there < limit).mean(), (here < limit).mean()
        result[f"F@{limit}"] = 2 * precision * recall / max(precision + recall, 1e-9)
    return {name: float(value) for name, value in result.items()}


def report(name: str, rows: list[dict[str, float]]) -> None:
    """Print the means of several results."""
    means = {key: np.mean([row[key] for row in rows]) for key in rows[0]}
    print(f"{name:24}", " ".join(f"{key} {value:.4f}" for key, value in means.items()))


@torch.no_grad()
def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("meshes", nargs="+")
    parser.add_argument("--weights", type=Path, default=SHIPPED)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    network = ShapePrior().eval()
    load_weights(network, arguments.weights)
    predictors = {f"inflation x {r}": inflated(r) for r in (0.8, 0.9, 1.0)}
    predictors["prior"] = learned(network)
    pictures = {path: views(load_solid(path)) for path in arguments.meshes}
    for name, predict in predictors.items():
        results = {p: [measures(predict(v), v) for v in vs] for p, vs in pictures.items()}
        report(name, [row for rows in results.values() for row in rows])
        for path, rows in results.items():
            report(f"  {Path(path).stem}", rows)


if __name__ == "__main__":
    main()
