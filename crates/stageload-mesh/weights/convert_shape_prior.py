#!/usr/bin/env python3
"""Convert a PyTorch checkpoint of the shape prior to `shape_prior.safetensors`, without torch.

A checkpoint is a zip of one pickle and raw storages. The pickle is read by an unpickler that
knows three names and refuses every other, so nothing in the file can run code.

    python3 convert_shape_prior.py CHECKPOINT.pt [--output shape_prior.safetensors]
"""

import argparse
import hashlib
import io
import json
import pickle
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

Array = np.ndarray


class StorageType:
    """Stands for torch.HalfStorage."""


def rebuild(storage: Array, offset: int, shape: tuple, stride: tuple, *_unused: object) -> Array:
    """Copy one contiguous tensor out of its storage."""
    size = int(np.prod(shape))
    expected = tuple(int(np.prod(shape[k + 1 :])) for k in range(len(shape)))
    if stride != expected:
        raise pickle.UnpicklingError(f"stride {stride} of a tensor {shape}")
    return storage[offset : offset + size].reshape(shape).copy()


class StateDictUnpickler(pickle.Unpickler):
    """Reads a flat state dict of fp16 tensors and nothing else."""

    NAMES = {  # noqa: RUF012
        ("torch._utils", "_rebuild_tensor_v2"): rebuild,
        ("torch", "HalfStorage"): StorageType,
        ("collections", "OrderedDict"): OrderedDict,
    }

    def __init__(self, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(io.BytesIO(archive.read(f"{root}/data.pkl")))
        self.archive, self.root = archive, root

    def find_class(self, module: str, name: str) -> object:
        """Only the three known names."""
        if (module, name) not in self.NAMES:
            raise pickle.UnpicklingError(f"{module}.{name} is not allowed")
        return self.NAMES[module, name]

    def persistent_load(self, key: tuple) -> Array:
        """Raw storage ("storage", type, name, device, length) as a flat array."""
        kind, storage_type, name, _device, length = key
        if kind != "storage" or storage_type is not StorageType:
            raise pickle.UnpicklingError(f"unknown storage {key}")
        return np.frombuffer(self.archive.read(f"{self.root}/data/{name}"), "<f2", count=length)


def read_checkpoint(data: bytes) -> dict[str, Array]:
    """State dict of a checkpoint, fp16."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        root = next(n for n in archive.namelist() if n.endswith("/data.pkl")).split("/")[0]
        return StateDictUnpickler(archive, root).load()


def main() -> None:
    """Command line."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--output", type=Path, default=here / "shape_prior.safetensors")
    arguments = parser.parse_args()
    data = arguments.checkpoint.read_bytes()
    tensors = read_checkpoint(data)
    info = {
        "licence": "MIT, The Stageload authors",
        "checkpoint_sha256": hashlib.sha256(data).hexdigest(),
    }
    save_file(tensors, arguments.output, {"info": json.dumps(info)})
    count = sum(t.size for t in tensors.values())
    print(f"{arguments.output}: {len(tensors)} tensors, {count} parameters")


if __name__ == "__main__":
    main()
