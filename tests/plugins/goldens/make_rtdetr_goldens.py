"""Writes what RT-DETR 4 of rtdetr_reference.py makes with small random weights, and what ComfyUI's node makes of that.

    make_rtdetr_goldens.py [OUT]        (default: rtdetr/ beside this file)

Needs torch and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their tensors
(seeded_weights.py; some are twice that, so that pictures count), so only shapes are written, and what comes out:

    shapes.json             {model: {seed: [shape, name of the tensor]}}, or {name: shape} where both are the same
    expected.safetensors    "H.W.*": inputs and outputs for pictures of so many pixels (plugins/detection/rtdetr.h); "pictures"
                            (2, H, W, 3), and the "first" of them, of which "found.I.boxes" (N, 4), "found.I.scores" and "found.I.labels" (N) are what is
                            found above a score of THRESHOLD, best first
"""

import json
import os
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import rtdetr_reference as rtdetr
from seeded_weights import seeded

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
QUERIES, THRESHOLD = 20, 0.855
STAGES = [(16, 8, 16, 1, False, False, 3, 2), (16, 8, 32, 2, True, False, 3, 2), (32, 8, 32, 2, True, True, 5, 3), (32, 8, 48, 1, True, True, 5, 2)]


def seed_of(name):
    """Those of statistics are around 1."""
    return name.replace("bn.weight", "bn_norm.weight")


def is_doubled(name):
    return name.startswith("backbone.") and name.endswith("conv.weight")


def model():
    made = rtdetr.Rtdetr((8, 16), STAGES, 32, 48, 2, 40, 3, quality=16)
    state, shapes = {}, {}
    for name, tensor in made.state_dict().items():
        if name.endswith("num_batches_tracked"):
            state[name] = tensor
            continue
        state[name] = seeded(seed_of(name), tuple(tensor.shape)) * (2 if is_doubled(name) else 1)
        shapes[seed_of(name)] = list(tensor.shape) if seed_of(name) == name else [list(tensor.shape), name]
    made.load_state_dict(state)
    return made.eval(), shapes


def picture(count, height, width, seed):
    return torch.rand((count, 3, height, width), generator=torch.Generator().manual_seed(seed))


def main(out):
    made, shapes = model()
    expected = {}
    for height, width in ((64, 160), (96, 96)):
        at = f"{height}.{width}."
        seen = picture(1, height, width, height)
        expected[at + "picture"] = seen.permute(0, 2, 3, 1)
        expected[at + "anchors"], expected[at + "valid"] = rtdetr.anchors(height, width)
        expected[at + "logits"], expected[at + "boxes"] = made(seen, QUERIES)
    pictures = picture(2, 30, 44, 3)
    expected["pictures"] = pictures.permute(0, 2, 3, 1)
    expected["first"] = expected["pictures"][:1]
    for i in range(2):
        seen = F.interpolate(pictures[i : i + 1], (640, 640), mode="bilinear", align_corners=False)
        logits, boxes = made(seen, 300)
        scores, best = logits.sigmoid().flatten().topk(300)
        chosen = boxes[0][best // 80]
        corners = torch.cat((chosen[:, :2] - 0.5 * chosen[:, 2:], chosen[:, :2] + 0.5 * chosen[:, 2:]), 1) * torch.tensor([44.0, 30, 44, 30])
        kept = scores > THRESHOLD
        print("found", int(kept.sum()), "kinds", len(set((best % 80)[kept].tolist())), scores[:3].tolist(), (scores[:-1] - scores[1:]).min().item())
        expected[f"found.{i}.boxes"] = torch.cat((corners[:, :2], corners[:, 2:] - corners[:, :2]), 1)[kept]
        expected[f"found.{i}.scores"], expected[f"found.{i}.labels"] = scores[kept], (best % 80)[kept].int()
    os.makedirs(out, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    with open(os.path.join(out, "shapes.json"), "w") as file:
        rows = ",\n".join(f"  {json.dumps(key)}: {json.dumps(shape)}" for key, shape in shapes.items())
        file.write(f'{{\n "small": {{\n{rows}\n }}\n}}\n')


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "rtdetr"))
