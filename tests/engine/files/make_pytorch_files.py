#!/usr/bin/env python3
"""Writes pytorch/*: the same tensors by torch.save in both formats and by safetensors, and files
that are refused. Needs torch, numpy and safetensors.

    make_pytorch_files.py tests/engine/files/pytorch
"""
import os
import sys
from collections import OrderedDict
from pathlib import Path

import numpy
import torch
from safetensors.torch import save_file

torch.manual_seed(7)
base = torch.randn(4, 6)
every = OrderedDict()
every["a.weight"] = torch.randn(2, 3)
every["a.bias"] = torch.nn.Parameter(torch.randn(3))
every["view"] = base[1:3]  # of a storage that is larger
every["same_storage"] = base.view(24)[2:5]
every["half"] = torch.randn(5).half()
every["bf16"] = torch.randn(5).bfloat16()
every["double"] = torch.randn(2, dtype=torch.float64)
for name in ("int64", "int32", "int16", "int8", "uint8"):
    every[name] = torch.arange(3).to(getattr(torch, name))
every["bool"] = torch.tensor([True, False, True])
every["scalar"] = torch.tensor(2.5)
every["empty"] = torch.zeros(0, 4)
every["thin"] = torch.randn(4, 2).t()[:, :1]  # strides of an axis of one element mean nothing
every._metadata = OrderedDict(version=1)


class Caller:
    def __reduce__(self):
        return os.system, ("true",)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    plain = {name: tensor.detach().clone().contiguous() for name, tensor in every.items()}
    save_file(plain, folder / "every.safetensors")
    trained = {
        "epoch": 3,
        "best": numpy.float64(0.5),
        "rate": 1e-4,
        "state_dict": every,
        "optimizer": {"state": {0: {"step": torch.ones(1)}}},
    }
    torch.save(trained, folder / "zip.ckpt")
    torch.save({"params_ema": every}, folder / "legacy.pth", _use_new_zipfile_serialization=False)
    torch.save(every, folder / "protocol_4.pt", pickle_protocol=4)
    torch.save({"x": torch.randn(4).to(torch.float8_e4m3fn), "y": torch.ones(2, dtype=torch.uint16)},
               folder / "untyped.pt")
    torch.save({"string_to_param": {"*": torch.randn(2, 4)}, "name": "one"}, folder / "nested.pt")
    torch.save({"w": torch.randn(3, 2).t()}, folder / "transposed.pt")
    torch.save({"w": torch.ones(2, dtype=torch.complex64)}, folder / "complex.pt")
    torch.save({"w": torch.ones(2), "x": Caller()}, folder / "calls.pt")
    torch.save({"w": Caller()}, folder / "calls.pth", _use_new_zipfile_serialization=False)


main(Path(sys.argv[1]))
