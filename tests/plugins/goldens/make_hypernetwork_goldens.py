"""Writes unet/hypernetworks.safetensors and unet/hypernetwork.pt: what a UNet draws whose keys and values hypernetworks
change.

    make_hypernetwork_goldens.py

Needs what make_unet_patch_goldens.py needs. Formula: ComfyUI's, written down here for diffusers' UNet: keys and values are
made of x + strength net(x), in attention to itself and to the text, wherever x is as wide as the file has networks for.
Weights follow from the names of the tensors. "sd1.<function>" is the end of a run with two layers under that function;
"sd1.norms" with layer norms, of hypernetwork.pt, which torch.save has written.
"""

import os
from collections import OrderedDict

import torch
import torch.nn as nn
from safetensors.torch import save_file

from make_unet_goldens import denoiser, euler, make_unet, normal
from make_unet_patch_goldens import CFG, STEPS, noised, texts
from seeded_weights import seeded

torch.set_grad_enabled(False)
INNER, STRENGTH = 16, 0.8
FUNCTIONS = {
    "linear": nn.Identity, "relu": nn.ReLU, "leakyrelu": nn.LeakyReLU, "elu": nn.ELU, "swish": nn.Hardswish,
    "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "softsign": nn.Softsign, "mish": nn.Mish,
}


def tensors_of(width, which, has_norms):
    """The state dict of one network."""
    made, sides, number = {}, [width, INNER, width], 0
    for reads, makes in zip(sides, sides[1:]):
        for kind, shape in (("weight", (makes, reads)), ("bias", (makes,))):
            made[f"linear.{number}.{kind}"] = seeded(f"{width}.{which}.linear.{number}.{kind}", shape)
        number += 1
        if has_norms:
            made[f"linear.{number}.weight"] = 1 + seeded(f"{width}.{which}.linear.{number}.weight", (makes,))
            made[f"linear.{number}.bias"] = seeded(f"{width}.{which}.linear.{number}.bias", (makes,))
            number += 1
    return made


def network(width, which, function, has_norms):
    tensors, layers = tensors_of(width, which, has_norms), []
    numbers = sorted({int(name.split(".")[1]) for name in tensors})
    for number in numbers:
        weight, bias = tensors[f"linear.{number}.weight"], tensors[f"linear.{number}.bias"]
        layer = nn.Linear(weight.shape[1], weight.shape[0]) if weight.ndim == 2 else nn.LayerNorm(len(weight))
        layer.load_state_dict({"weight": weight, "bias": bias})
        layers.append(layer)
        # The last layer of all has none behind it; where norms come behind, none is the last.
        if weight.ndim == 2 and number != numbers[-1]:
            layers.append(FUNCTIONS[function]())
    return nn.Sequential(*layers)


class Changed:
    def __init__(self, nets):
        self.nets = nets

    def __call__(self, attn, hidden_states, encoder_hidden_states=None, **__):
        told = hidden_states if encoder_hidden_states is None else encoder_hidden_states
        nets = self.nets.get(told.shape[-1])
        keys, values = [told + STRENGTH * net(told) for net in nets] if nets else (told, told)
        heads = lambda x: x.unflatten(-1, (attn.heads, -1)).transpose(1, 2)
        out = nn.functional.scaled_dot_product_attention(
            heads(attn.to_q(hidden_states)), heads(attn.to_k(keys)), heads(attn.to_v(values)))
        return attn.to_out[0](out.transpose(1, 2).flatten(2))


def draw(function, has_norms):
    model = make_unet("sd1")
    nets = {width: [network(width, which, function, has_norms) for which in (0, 1)] for width in (32, 64)}
    model.set_attn_processor(Changed(nets))
    levels = normal(STEPS)
    return euler(denoiser(model, *texts("sd1"), CFG), noised(levels), levels)


def main():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unet")
    made = {f"sd1.{function}": draw(function, False) for function in FUNCTIONS}
    made["sd1.norms"] = draw("mish", True)
    save_file({name: latent.contiguous() for name, latent in made.items()}, os.path.join(here, "hypernetworks.safetensors"))
    file = {width: tuple(OrderedDict(tensors_of(width, which, True)) for which in (0, 1)) for width in (32, 64)}
    told = {"activation_func": "mish", "is_layer_norm": True, "use_dropout": False, "activate_output": False, "step": 100}
    torch.save(file | told | {"name": "small", "layer_structure": [1, INNER / 64, 1]}, os.path.join(here, "hypernetwork.pt"))
    for name, latent in made.items():
        print(f"{name:20} {float(latent.norm()):.5g}")


if __name__ == "__main__":
    main()
