#!/usr/bin/env python3
"""Write or check the fixtures that hold the product's port to this implementation.

python3 parity.py write      # after a new training run
python3 parity.py check      # the shipped weights still give the shipped numbers
"""

import argparse
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from model import RESOLUTION, ShapePrior, inputs, poisson_u

CRATE = Path(__file__).resolve().parent.parent
WEIGHTS = CRATE / "weights" / "shape_prior.safetensors"
FIXTURES = CRATE / "tests" / "fixtures"
TOLERANCE = 2e-5
NOTE = {"reference": "PyTorch on a CPU, fp32 arithmetic, weights as shipped (fp16)"}


def load_network() -> ShapePrior:
    """The shipped weights in fp32."""
    network = ShapePrior().eval()
    network.load_state_dict({k: v.float() for k, v in load_file(WEIGHTS).items()})
    return network


def plane(size: int = RESOLUTION) -> tuple[Tensor, Tensor]:
    """Pixel centres y (down) and x (right) in -1..1; [size, size]."""
    line = (torch.arange(size) + 0.5) / size * 2 - 1
    y, x = torch.meshgrid(line, line, indexing="ij")
    return y, x


def disc_mask() -> Tensor:
    """A disc of radius 0.4 picture widths; bytes of 0 and 1 [1, 1, n, n]."""
    y, x = plane()
    return (x**2 + y**2 < 0.8**2).byte()[None, None]


def blob_mask() -> Tensor:
    """A lobed blob with a hole, an island and a stem cut by the bottom edge; [1, 1, n, n]."""
    y, x = plane()
    angle, radius = torch.atan2(y, x), (x**2 + y**2).sqrt()
    body = radius < 0.5 + 0.15 * torch.sin(3 * angle + 0.5)
    hole = (x - 0.1) ** 2 + (y - 0.05) ** 2 < 0.12**2
    island = (x + 0.7) ** 2 + (y + 0.7) ** 2 < 0.15**2
    stem = ((x + 0.1).abs() < 0.15) & (y > 0)
    return ((body & ~hole) | island | stem).byte()[None, None]


def picture(mask: Tensor) -> Tensor:
    """A shaded, patterned picture [1, 3, n, n] of bytes on a grey ground."""
    y, x = plane()
    shade = 0.5 + 0.3 * torch.cos(2 * x + 0.5) - 0.2 * y
    tint = torch.tensor([0.95, 0.6, 0.35]).view(3, 1, 1)
    rgb = shade * tint * (0.85 + 0.15 * torch.sin(11 * x + 7 * y))
    return (torch.where(mask[0] > 0, rgb, 0.5) * 255).round().clamp(0, 255).byte()[None]


@torch.no_grad()
def prior_fixture() -> dict[str, Tensor]:
    """One pass of the prior: rgb and mask (bytes), root, input, mid, log_ratio (fp32)."""
    mask = blob_mask()
    rgb = picture(mask)
    root = poisson_u(mask.float()).sqrt()
    features = inputs(rgb.float() / 255, mask.float(), root)
    mid, log_ratio = load_network()(features)
    return {
        "rgb": rgb,
        "mask": mask,
        "root": root,
        "input": features,
        "mid": mid,
        "log_ratio": log_ratio,
    }


def poisson_fixture() -> dict[str, Tensor]:
    """Masks (bytes) and sqrt(u) (fp32) of a disc and a blob."""
    masks = {"disc": disc_mask(), "blob": blob_mask()}
    roots = {name: poisson_u(mask.float()).sqrt() for name, mask in masks.items()}
    named = {f"{name}_mask": mask for name, mask in masks.items()}
    return named | {f"{name}_root": root for name, root in roots.items()}


def compare(path: Path, values: dict[str, Tensor]) -> bool:
    """Print the largest difference of each tensor to the file's; true when all are close."""
    shipped, close = load_file(path), True
    for name, value in values.items():
        difference = (value.float() - shipped[name].float()).abs().max().item()
        close &= difference <= TOLERANCE
        low, high = value.min().item(), value.max().item()
        print(f"{path.name} {name}: {low:.4f} to {high:.4f}, off by {difference:.1e}")
    return close


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("write", "check"))
    action = parser.parse_args().action
    torch.set_num_threads(1)
    fixtures = {
        FIXTURES / "shape_prior_parity.safetensors": prior_fixture(),
        FIXTURES / "poisson_parity.safetensors": poisson_fixture(),
    }
    if action == "write":
        for path, values in fixtures.items():
            save_file(values, path, NOTE)
    close = [compare(path, values) for path, values in fixtures.items()]
    if not all(close):
        raise SystemExit(f"off by more than {TOLERANCE}")


if __name__ == "__main__":
    main()
