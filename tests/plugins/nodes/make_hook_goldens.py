"""Writes hook_goldens.safetensors beside this file: runs over the tiny random FLUX whose conditionings have LoRA hooks.

    make_hook_goldens.py        (needs what make_goldens.py needs)

The predictions of separately patched copies of the model, mixed by hand. The rules of keyframes are ComfyUI's, written down here
once more: a keyframe takes over where its part of the way has begun, and holds for the evaluations that it is guaranteed.
"""
import copy
import os

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from make_goldens import HERE, flux, randn, run, simple, table, velocity

torch.set_grad_enabled(False)
LORAS = os.path.join(HERE, "../goldens/loras")
SHAPE = (1, 4, 6, 8)


def patched(model, *loras):
    """loras: (file, strength). A copy with up @ down added to its linear layers."""
    model = copy.deepcopy(model)
    modules = dict(model.named_modules())
    for name, strength in loras:
        state = load_file(os.path.join(LORAS, name + ".safetensors"))
        for key, down in state.items():
            if ".lora_A." not in key:
                continue
            module = key.split(".lora_A.")[0].removeprefix("base_model.model.").removeprefix("transformer.")
            if module in modules:
                modules[module].weight += strength * (state[key.replace(".lora_A.", ".lora_B.")] @ down)
    return model


def strengths_at(keyframes, sigmas):
    """keyframes: (strength, part of the way, guaranteed evaluations), sorted. The model's levels are 1 - part."""
    level = lambda keyframe: np.float32(1.0 if keyframe[1] <= 0 else 1.0 - keyframe[1])
    guaranteed = lambda keyframe: 0 if level(keyframe) > np.float32(max(sigmas)) else keyframe[2]
    now, used, given = 0, 0, []
    for sigma in np.float32(sigmas[:-1]):
        if used >= guaranteed(keyframes[now]):
            for i in range(now + 1, len(keyframes)):
                if level(keyframes[i]) < sigma:
                    break
                now, used = i, 0
                if guaranteed(keyframes[i]) > 0:
                    break
        used += 1
        given.append(float(keyframes[now][0]))
    return given


def main():
    goldens = {}
    model = flux(False)
    conds = {name: (randn(seed, 1, tokens, 24), randn(seed + 1, 1, 32))
             for name, seed, tokens in (("one", 20, 5), ("two", 22, 5), ("three", 24, 7))}
    seen = lambda of, name: lambda x, s: x - s * velocity(of, x, s, conds[name])
    cfg = lambda p, n: lambda x, s: n(x, s) + 3.0 * (p(x, s) - n(x, s))

    def golden(name, denoised, steps=4):
        goldens[name] = run("euler", simple(table(1.0), steps), SHAPE, 7, denoised)

    first, second = patched(model, ("diffusers", 0.6)), patched(model, ("peft", 1.0))
    both = patched(model, ("diffusers", 0.6), ("peft", -0.5))
    golden("apart", cfg(seen(first, "one"), seen(second, "two")))
    mean = lambda x, s: (seen(both, "one")(x, s) + seen(model, "three")(x, s)) / 2
    golden("mean", cfg(mean, seen(model, "two")))

    def scheduled(name, strength, keyframes, steps):
        sigmas = simple(table(1.0), steps)
        given = strengths_at(keyframes, sigmas)
        print(name, given)
        models = {s: patched(model, ("peft", strength * s)) for s in set(given)}
        at = {np.float32(sigma): models[s] for sigma, s in zip(sigmas, given)}
        golden(name, cfg(lambda x, s: seen(at[np.float32(s)], "one")(x, s), seen(model, "two")), steps)

    scheduled("keyframes", 1.5, [(1.0, 0.0, 1), (0.25, 0.3, 1), (0.0, 0.5, 1), (-0.5, 0.5, 1)], 6)
    index = torch.linspace(0, 1, 5).numpy()
    parts = torch.linspace(0.2, 0.8, 5).tolist()
    ways = {"linear": torch.linspace(0.2, 1.4, 5).numpy(), "ease_in": 1.2 * index**2 + 0.2,
            "ease_out": 1.2 * (1 - (1 - index) ** 2) + 0.2, "ease_in_out": 1.2 * ((1 - np.cos(index * np.pi)) / 2) + 0.2}
    for way, values in ways.items():
        frames = [(float(np.float32(v)), p, int(i == 0)) for i, (v, p) in enumerate(zip(values, parts))]
        scheduled(way, 1.0, frames, 6)
    save_file({name: tensor.float().contiguous() for name, tensor in goldens.items()},
              os.path.join(HERE, "hook_goldens.safetensors"))


if __name__ == "__main__":
    main()
