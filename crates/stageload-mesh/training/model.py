"""The shape prior: a small U-Net that bends and thickens an inflated silhouette.

Lengths are in picture widths (the square frame is 1 wide), depth grows towards the viewer.
Tensors are [batch, channel, row, column] unless said otherwise.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

RESOLUTION = 64
CHANNELS = (8, 24, 48, 64)
IN_CHANNELS = 7
GROUPS = 4

POISSON_SOURCE = 4.0  # u = a^2 - r^2 on a disc of radius a, so sqrt(u) is a hemisphere
POISSON_COARSEST = 12
POISSON_SWEEPS = 60
POISSON_RHO = 0.995  # spectral radius the acceleration assumes


class ConvBlock(nn.Module):
    """Two 3x3 convolutions, each followed by GroupNorm and SiLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.a = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.b = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.n1 = nn.GroupNorm(GROUPS, outputs)
        self.n2 = nn.GroupNorm(GROUPS, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """[B, inputs, n, n] -> [B, outputs, n, n]."""
        return F.silu(self.n2(self.b(F.silu(self.n1(self.a(x))))))


class ShapePrior(nn.Module):
    """U-Net over the features of `inputs`; parameters are `d` down, `u` up, `o` output.

    The last layer starts at zero, so an untrained network is the plain inflation
    (mid surface 0, thickness ratio 1).
    """

    def __init__(self, channels: tuple[int, ...] = CHANNELS, inputs: int = IN_CHANNELS) -> None:
        super().__init__()
        down = zip((inputs, *channels[:-1]), channels, strict=True)
        self.d = nn.ModuleList(ConvBlock(i, o) for i, o in down)
        up = zip(channels[:0:-1], channels[-2::-1], strict=True)
        self.u = nn.ModuleList(ConvBlock(i + o, o) for i, o in up)
        self.o = nn.Conv2d(channels[0], 2, 1)
        nn.init.zeros_(self.o.weight)
        nn.init.zeros_(self.o.bias)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """[B, 7, n, n] -> mid surface (picture widths), log thickness ratio; [B, 1, n, n] each."""
        skips: list[Tensor] = []
        for block in self.d:
            x = block(F.avg_pool2d(x, 2) if skips else x)
            skips.append(x)
        for block, skip in zip(self.u, skips[-2::-1], strict=True):
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = block(torch.cat([x, skip], 1))
        y = self.o(x)
        return y[:, :1], y[:, 1:].clamp(-2.5, 1.5)


def neighbour_mean(u: Tensor) -> Tensor:
    """Mean of the four neighbours, zero beyond the picture; [B, 1, n, n]."""
    p = F.pad(u, (1, 1, 1, 1))
    vertical = p[..., :-2, 1:-1] + p[..., 2:, 1:-1]
    return (vertical + p[..., 1:-1, :-2] + p[..., 1:-1, 2:]) * 0.25


def relax(u: Tensor, mask: Tensor, source: float) -> Tensor:
    """Chebyshev-accelerated Jacobi sweeps of u = mean(neighbours) + source inside the mask."""
    previous = u
    weight = 1.0
    for k in range(POISSON_SWEEPS):
        if k == 1:
            weight = 1 / (1 - POISSON_RHO**2 / 2)
        elif k > 1:
            weight = 1 / (1 - POISSON_RHO**2 * weight / 4)
        step = (neighbour_mean(u) + source) * mask
        u, previous = weight * (step - previous) + previous, u
    return u


def poisson_u(mask: Tensor) -> Tensor:
    """Solve laplace(u) = -4 inside the mask, u = 0 outside, coarse to fine.

    Mask [B, 1, n, n] of 0 and 1; u in squared picture widths, same shape. sqrt(u) is the
    half thickness of the inflated silhouette.
    """
    sizes = [mask.shape[-1]]
    while sizes[-1] % 2 == 0 and sizes[-1] > POISSON_COARSEST:
        sizes.append(sizes[-1] // 2)
    u = None
    for size in reversed(sizes):
        level = mask if size == sizes[0] else (F.adaptive_avg_pool2d(mask, size) > 0.5).float()
        if u is None:
            u = torch.zeros_like(level)
        else:
            u = F.interpolate(u, size=(size, size), mode="bilinear", align_corners=False) * level
        u = relax(u, level, POISSON_SOURCE / (4 * size * size))
    return u.clamp(min=0)


def normalised_colour(rgb: Tensor, mask: Tensor) -> Tensor:
    """Colour with mean 0 and deviation 1/2 over the mask, 0 outside; [B, 3, n, n]."""
    area = mask.sum((2, 3), keepdim=True).clamp(min=1)
    mean = (rgb * mask).sum((2, 3), keepdim=True) / area
    variance = ((rgb - mean) ** 2 * mask).sum((1, 2, 3), keepdim=True) / (3 * area)
    return (rgb - mean) / variance.sqrt().clamp(min=0.03) * mask * 0.5


def inputs(rgb: Tensor, mask: Tensor, root: Tensor) -> Tensor:
    """Network features [B, 7, n, n]: colour x3, mask, 4 sqrt(u), y, x.

    rgb [B, 3, n, n] in 0..1, mask [B, 1, n, n] of 0 and 1, root = sqrt(u) in picture widths.
    y and x run from -1 (top, left pixel) to 1 (bottom, right pixel), 0 outside the mask.
    """
    ramp = torch.linspace(-1, 1, mask.shape[-1])
    y = ramp.view(1, 1, -1, 1) * mask
    x = ramp.view(1, 1, 1, -1) * mask
    return torch.cat([normalised_colour(rgb, mask), mask, root * 4, y, x], 1)


def compose(mid: Tensor, log_ratio: Tensor, root: Tensor) -> tuple[Tensor, Tensor]:
    """Front and back depth (picture widths) from the network's output and sqrt(u)."""
    half = root * log_ratio.exp()
    return mid + half, mid - half


def shrink(values: Tensor, mask: Tensor, size: int = RESOLUTION) -> Tensor:
    """Area-average the values inside the mask to [B, C, size, size]."""
    total = F.interpolate(values * mask, size=(size, size), mode="area")
    return total / F.interpolate(mask, size=(size, size), mode="area").clamp(min=1e-3)


def shrink_mask(mask: Tensor, size: int = RESOLUTION) -> Tensor:
    """Mask [B, 1, size, size] of the cells that are more than half covered."""
    return (F.interpolate(mask, size=(size, size), mode="area") > 0.5).float()


def parameter_count(network: nn.Module) -> int:
    """Number of scalars in the network."""
    return sum(math.prod(p.shape) for p in network.parameters())
