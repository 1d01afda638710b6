"""Writes data/conditioning.safetensors beside this file: a conditioning as ComfyUI's SaveConditioning saves it, by the package
safetensors: the text's numbers, other tensors under their names, those of a list with numbers, and the rest as JSON.

    make_conditioning_goldens.py        (needs torch, safetensors)
"""
import json
import pathlib

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).parent
draw = lambda seed, *shape: torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
tensors = {
    "conditioning": draw(1, 1, 5, 8),
    "pooled_output": draw(2, 1, 6).half(),
    "mask": draw(3, 1, 2, 3).bfloat16(),
    "reference_latents.0": draw(4, 1, 2, 2, 2),
    "reference_latents.1": draw(5, 1, 2, 1, 3),
}
options = {"guidance": 3.5, "set_area_to_bounds": True, "reference_latents_method": "index", "strength": 0.25}
(HERE / "data").mkdir(exist_ok=True)
save_file(tensors, HERE / "data/conditioning.safetensors", metadata={"conditioning_options": json.dumps(options)})
