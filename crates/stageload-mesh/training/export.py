#!/usr/bin/env python3
"""Turn a checkpoint of train.py into the fp16 safetensors file that the product loads.

python3 export.py shape_prior.pt ../weights/shape_prior.safetensors
"""

import argparse
import hashlib
import json
from pathlib import Path

from safetensors.torch import save_file

from model import ShapePrior, parameter_count
from train import load_weights


def export(checkpoint: Path, output: Path) -> int:
    """Check that the checkpoint fits the network, write it; returns the parameter count."""
    network = ShapePrior()
    load_weights(network, checkpoint)
    tensors = {key: value.half().contiguous() for key, value in network.state_dict().items()}
    info = {
        "licence": "MIT, The Stageload authors",
        "checkpoint_sha256": hashlib.sha256(checkpoint.read_bytes()).hexdigest(),
    }
    # A single key: the writer does not keep the order of several, and the file is checksummed.
    save_file(tensors, output, {"info": json.dumps(info)})
    return parameter_count(network)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    count = export(arguments.checkpoint, arguments.output)
    print(f"{arguments.output}: {count} parameters")


if __name__ == "__main__":
    main()
