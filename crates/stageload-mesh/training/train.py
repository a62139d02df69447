#!/usr/bin/env python3
"""Train the shape prior on the pictures of shapes.py; CPU is enough.

The run is set by its number of steps and its seed, not by time, so it can be repeated.
The first chunk of the data is held out for validation.

    python3 train.py data --output shape_prior.pt [--steps 12000] [--warm-start WEIGHTS]

With --steps 0 it only validates the given weights beside the classical constants.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor

from model import (
    RESOLUTION,
    ShapePrior,
    compose,
    inputs,
    parameter_count,
    poisson_u,
    shrink,
    shrink_mask,
)

BATCH = 24
WARM_UP = 100  # steps
LEARNING_RATE = 3e-3
WARM_START_RATE = 2.5e-3
WEIGHT_DECAY = 1e-3
GRADIENT_CLAMP = 0.08  # picture widths; a depth step larger than this is an occlusion edge
# (field resolution, log amplitude) of the shape-free albedo of `repaint`.
ALBEDO_FIELDS = ((3, 0.5), (6, 0.45), (16, 0.3))


@dataclass(frozen=True)
class Batch:
    """Pictures [B, C, n, n]: rgb in 0..1, mask of 0 and 1; root, front, back in picture widths."""

    rgb: Tensor
    mask: Tensor
    root: Tensor
    front: Tensor
    back: Tensor

    def flipped(self) -> "Batch":
        """Mirror left and right."""
        planes = (self.rgb, self.mask, self.root, self.front, self.back)
        return Batch(*(plane.flip(3) for plane in planes))


class Pictures:
    """All pictures at the network's resolution, kept small: bytes and half precision."""

    def __init__(self, paths: list[Path]) -> None:
        parts = [self.reduce(np.load(path)) for path in paths]
        columns = (torch.cat(column) for column in zip(*parts, strict=True))
        self.rgb, self.mask, self.root, self.front, self.back = columns

    def __len__(self) -> int:
        """Number of pictures."""
        return len(self.rgb)

    @staticmethod
    def reduce(chunk: "np.lib.npyio.NpzFile") -> tuple[Tensor, ...]:
        """Shrink one chunk to RESOLUTION and solve its silhouettes."""
        full = torch.from_numpy(chunk["mask"])[:, None].float()
        rgb = shrink(torch.from_numpy(chunk["rgb"]).permute(0, 3, 1, 2).float(), full)
        depth = torch.from_numpy(np.stack([chunk["front"], chunk["back"]], 1)).float()
        depth = shrink(depth, full).half()
        mask = shrink_mask(full)
        root = poisson_u(mask).sqrt().half()
        return rgb.round().clamp(0, 255).byte(), mask.bool(), root, depth[:, :1], depth[:, 1:]

    def take(self, index: Tensor) -> Batch:
        """The pictures at `index` [B]."""
        planes = (self.mask, self.root, self.front, self.back)
        return Batch(self.rgb[index].float() / 255, *(p[index].float() for p in planes))


# --- augmentation: all that changes the colours but not the shape -----------------------------


def expose(rgb: Tensor) -> Tensor:
    """Random gain by channel and gamma; one picture in five turns grey, some batches blur."""
    count = len(rgb)
    rgb = (rgb * (0.7 + 0.6 * torch.rand(count, 3, 1, 1))).clamp(0, 1)
    rgb = rgb ** (0.6 + 0.9 * torch.rand(count, 1, 1, 1))
    grey = torch.rand(count, 1, 1, 1) < 0.2
    rgb = torch.where(grey, rgb.mean(1, keepdim=True).expand_as(rgb), rgb)
    return F.avg_pool2d(rgb, 3, 1, 1) if torch.rand(1).item() < 0.4 else rgb


def repaint(rgb: Tensor) -> Tensor:
    """Multiply by coloured fields that say nothing about shape, so that dark is not deep."""
    count, size = len(rgb), rgb.shape[-1]
    for cells, amplitude in ALBEDO_FIELDS:
        field = torch.randn(count, 3, cells, cells) * 0.5 + torch.randn(count, 1, cells, cells)
        field = F.interpolate(field, size=(size, size), mode="bicubic", align_corners=False)
        strength = amplitude * torch.rand(count, 1, 1, 1) * (torch.rand(count, 1, 1, 1) < 0.6)
        rgb = rgb * torch.exp(field * strength)
    return rgb


def spot(rgb: Tensor) -> Tensor:
    """Darken or lighten one soft round spot in two pictures out of five."""
    count, size = len(rgb), rgb.shape[-1]
    ramp = torch.linspace(-1, 1, size)
    x = ramp.view(1, 1, 1, size) - torch.randn(count, 1, 1, 1) * 0.25
    y = ramp.view(1, 1, size, 1) - torch.randn(count, 1, 1, 1) * 0.25
    radius = 0.08 + 0.4 * torch.rand(count, 1, 1, 1)
    bump = torch.exp(-(x**2 + y**2) / (2 * radius**2))
    tint = torch.randn(count, 3, 1, 1) * 0.5 + torch.randn(count, 1, 1, 1)
    chosen = torch.rand(count, 1, 1, 1) < 0.4
    return (rgb * torch.exp(-bump * tint * chosen)).clamp(0, 1.2)


def noise(rgb: Tensor) -> Tensor:
    """Add up to 3 % Gaussian noise."""
    return rgb + torch.randn_like(rgb) * 0.03 * torch.rand(len(rgb), 1, 1, 1)


def augmented(batch: Batch) -> Batch:
    """Mirror half of the batches and change the colours of all."""
    if torch.rand(1).item() < 0.5:
        batch = batch.flipped()
    rgb = noise(spot(repaint(expose(batch.rgb))))
    return Batch(rgb, batch.mask, batch.root, batch.front, batch.back)


# --- loss -------------------------------------------------------------------------------------


def aligned(front: Tensor, back: Tensor, truth: Batch) -> tuple[Tensor, Tensor]:
    """Shift each prediction along the view axis to the truth's mean depth."""
    area = truth.mask.sum((1, 2, 3), keepdim=True).clamp(min=1)
    gap = (truth.front + truth.back) - (front + back)
    shift = (gap * truth.mask).sum((1, 2, 3), keepdim=True) / area / 2
    return front + shift, back + shift


def depth_error(depth: Tensor, truth: Tensor, mask: Tensor) -> Tensor:
    """Mean absolute depth error over the mask, picture widths."""
    return ((depth - truth).abs() * mask).sum() / mask.sum().clamp(min=1)


def slope_error(depth: Tensor, truth: Tensor, mask: Tensor) -> Tensor:
    """Mean clamped error of depth differences over 1, 2 and 4 pixels in both directions."""
    total = depth.new_zeros(())
    difference = depth - truth
    for step in (1, 2, 4):
        for axis in (2, 3):
            length = depth.shape[axis] - step
            a, b = (x.narrow(axis, step, length) for x in (difference, mask))
            c, d = (x.narrow(axis, 0, length) for x in (difference, mask))
            both = b * d
            error = (a - c).abs().clamp(max=GRADIENT_CLAMP)
            total = total + (error * both).sum() / both.sum().clamp(min=1) / step
    return total / 6


def loss_terms(front: Tensor, back: Tensor, truth: Batch) -> Tensor:
    """Total, front error, back error, front slope error: [4]."""
    front, back = aligned(front, back, truth)
    front_error = depth_error(front, truth.front, truth.mask)
    back_error = depth_error(back, truth.back, truth.mask)
    front_slope = slope_error(front, truth.front, truth.mask)
    back_slope = slope_error(back, truth.back, truth.mask)
    total = front_error + 0.6 * back_error + 2 * front_slope + 0.5 * back_slope
    return torch.stack([total, front_error, back_error, front_slope])


def predicted(network: ShapePrior, batch: Batch) -> tuple[Tensor, Tensor]:
    """Front and back depth of a batch."""
    mid, log_ratio = network(inputs(batch.rgb, batch.mask, batch.root))
    return compose(mid, log_ratio, batch.root)


def held_out(pictures: Pictures) -> Iterator[Batch]:
    """The validation pictures in order."""
    for index in torch.arange(len(pictures)).split(60):
        yield pictures.take(index)


@torch.no_grad()
def validate(network: ShapePrior, pictures: Pictures) -> str:
    """Loss terms over the held-out pictures, as text."""
    terms = [loss_terms(*predicted(network, b), b) for b in held_out(pictures)]
    return describe(torch.stack(terms).mean(0))


@torch.no_grad()
def validate_constant(ratio: float, pictures: Pictures) -> str:
    """Loss terms of the plain inflation with one thickness ratio, as text."""
    terms = [loss_terms(b.root * ratio, -b.root * ratio, b) for b in held_out(pictures)]
    return describe(torch.stack(terms).mean(0))


def describe(terms: Tensor) -> str:
    """Name the terms of `loss_terms`."""
    names = ("loss", "front", "back", "slope")
    return " ".join(f"{n} {v:.4f}" for n, v in zip(names, terms.tolist(), strict=True))


# --- training ---------------------------------------------------------------------------------


def learning_rate(peak: float, step: int, steps: int) -> float:
    """Short linear warm-up, then a cosine down to a hundredth of the peak."""
    cosine = 0.5 * (1 + np.cos(np.pi * step / steps)) + 0.01
    return peak * min(1, (step + 1) / WARM_UP) * float(cosine)


def save(network: ShapePrior, path: Path) -> None:
    """Write the state dict in fp16."""
    torch.save({key: value.half() for key, value in network.state_dict().items()}, path)


def load_weights(network: ShapePrior, path: Path) -> None:
    """Read a state dict: a checkpoint written by `save`, or a safetensors file."""
    shipped = path.suffix == ".safetensors"
    state = load_file(path) if shipped else torch.load(path, weights_only=True)
    network.load_state_dict({key: value.float() for key, value in state.items()})


def train(network: ShapePrior, data: Pictures, held: Pictures, options: argparse.Namespace) -> None:
    """Run `options.steps` steps of AdamW, reporting and saving every `options.report` steps."""
    peak = WARM_START_RATE if options.warm_start else LEARNING_RATE
    optimiser = torch.optim.AdamW(network.parameters(), peak, weight_decay=WEIGHT_DECAY)
    start = time.time()
    for step in range(options.steps):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(peak, step, options.steps)
        batch = augmented(data.take(torch.randint(len(data), (BATCH,))))
        loss = loss_terms(*predicted(network, batch), batch)[0]
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        done = step + 1
        if done % options.report == 0 or done == options.steps:
            save(network, options.output)
            seconds = time.time() - start
            print(f"step {done} ({seconds:.0f} s): {validate(network, held)}", flush=True)


def parse_arguments() -> argparse.Namespace:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of chunk*.npz written by shapes.py")
    parser.add_argument("--output", type=Path, default=Path("shape_prior.pt"))
    parser.add_argument("--steps", type=int, default=12_000)
    parser.add_argument("--report", type=int, default=500, help="steps between reports")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2, help="changes the last digits")
    parser.add_argument("--warm-start", type=Path, help="continue from these weights")
    return parser.parse_args()


def main() -> None:
    """Load, report the classical baseline, train."""
    options = parse_arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    first, *others = sorted(options.data.glob("chunk*.npz"))
    held, data = Pictures([first]), Pictures(others)
    print(f"{len(data)} pictures, {len(held)} held out, {RESOLUTION} x {RESOLUTION}")
    for ratio in (0.4, 0.6, 0.8, 1.0):
        print(f"constant {ratio}: {validate_constant(ratio, held)}")
    network = ShapePrior()
    if options.warm_start:
        load_weights(network, options.warm_start)
    print(f"{parameter_count(network)} parameters: {validate(network, held)}", flush=True)
    train(network, data, held, options)


if __name__ == "__main__":
    main()
