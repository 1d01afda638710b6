"""Writes what diffusers makes with tiny ControlNets of Stable Diffusion 1.x, 2.x and SDXL, and with their UNets.

    make_unet_control_goldens.py [OUT]        (default: unet_control/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. Weights follow from the
names of their tensors (seeded_weights.py), and so do inputs (given()), so only shapes are written, and what comes out:

    shapes.json             {model: {name of the tensor in diffusers: shape}} of the ControlNets
    expected.safetensors    "sd1_square.control.middle" is a residual with a row for each step, (h, w, C), of which
                            every 17th number is kept; "sd1_square.out" what its UNet makes with given residuals;
                            "sd1_controlled.latent" the end of a guided run, ".picture" the picture
"""

import json
import math
import os
import sys

import torch
from diffusers import ControlNetModel, T2IAdapter
from safetensors.torch import save_file

import make_unet_goldens as unets
import unet_beside_goldens as beside
import seeded_weights
from control_references import resized
from make_unet_goldens import KINDS, POOLED, SD_SCALE, SDXL_SCALE, SIZES, WIDTHS
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
TIMES = torch.tensor([999.0, 431.0])
SHAPES = {"square": (2, 8, 8), "odd": (1, 5, 11), "one": (1, 8, 6)}
FILTERS = (8, 12, 16, 24)
KEPT = 17
expected, shapes = {}, {}


def given(name, *shape):
    """Numbers from -2 to 2."""
    count = torch.Size(shape).numel()
    return seeded_weights.seeded(name, (count, 1)).reshape(shape)


def told(kind, name):
    batch, height, width = SHAPES[name.rsplit("_", 1)[1]]
    states = WIDTHS.get(kind, 64)
    out = {"x": given(f"{name}.x", batch, 4, height, width), "context": given(f"{name}.context", 1, 5, states)}
    out["hint"] = given(f"{name}.hint", 1, 3, 8 * height, 8 * width)
    if kind in SIZES:
        out["y"] = given(f"{name}.y", 1, POOLED)
        out["sizes"] = 100 * given(f"{name}.sizes", 1, SIZES[kind])
    return out


def added(inputs, count):
    if "y" not in inputs:
        return None
    return {"text_embeds": inputs["y"].expand(count, -1), "time_ids": inputs["sizes"].expand(count, -1)}


def config_of(kind):
    config = dict(KINDS[kind])
    if kind in SIZES:
        config.update(
            addition_embed_type="text_time",
            addition_time_embed_dim=256,
            projection_class_embeddings_input_dim=POOLED + SIZES[kind] * 256,
        )
    return config | dict(cross_attention_dim=WIDTHS.get(kind, 64), conditioning_embedding_out_channels=FILTERS)


def make_control(kind):
    model = ControlNetModel(**config_of(kind))
    shapes[kind] = seeded_weights.load(model)
    return model


def residuals_of(model, x, time, context, hint, inputs):
    count = len(x)
    downs, middle = model(
        x,
        time,
        encoder_hidden_states=context.expand(count, -1, -1),
        controlnet_cond=rows_for(hint, count),
        added_cond_kwargs=added(inputs, count),
        return_dict=False,
    )
    return {f"control.output.{i}": down for i, down in enumerate(downs)} | {"control.middle": middle}


def drawn(unet, x, time, context, inputs, residuals):
    count = len(x)
    downs = [residuals[f"control.output.{i}"] for i in range(len(residuals) - 1)]
    return unet(
        x,
        time,
        encoder_hidden_states=context.expand(count, -1, -1),
        added_cond_kwargs=added(inputs, count),
        down_block_additional_residuals=downs,
        mid_block_additional_residual=residuals["control.middle"],
    ).sample


def keep_residuals(name, rows):
    for key in rows[0]:
        numbers = torch.stack([row[key].permute(0, 2, 3, 1) for row in rows])
        expected[f"{name}.{key}"] = numbers.reshape(len(rows), -1)[:, ::KEPT]


def forward(kind):
    model, unet = make_control(kind), unets.make_unet(kind)
    for shape in ("square", "odd"):
        name = f"{kind}_{shape}"
        inputs = told(kind, name)
        x, context = inputs["x"], inputs["context"]
        rows = [residuals_of(model, x, time, context, inputs["hint"], inputs) for time in TIMES]
        keep_residuals(name, rows)
        # Given ones of the same shapes; those of the first are for all items.
        with_all = {}
        for key, made in rows[0].items():
            batch, channels, height, width = made.shape
            batch = 1 if key == "control.output.0" else batch
            with_all[key] = given(f"{name}.{key}", batch, height, width, channels).permute(0, 3, 1, 2)
        expected[f"{name}.out"] = torch.stack([drawn(unet, x, time, context, inputs, with_all) for time in TIMES])


def forward_union():
    model, shapes["union"] = beside.make_union(config_of("sdxl"))
    for shape, kind in (("odd", beside.KIND), ("one", beside.KIND), ("one", None)):
        name = f"union_{shape}"
        inputs = told("sdxl", name)
        x, context, hint = inputs["x"], inputs["context"], inputs["hint"]
        rows = [
            beside.union_residuals(model, x, time, context, hint, added(inputs, 1), kind) for time in TIMES
        ]
        keep_residuals(name if kind is not None else f"{name}_alone", rows)


def forward_small():
    """One without transformers, which reads no text."""
    plain = dict(down_block_types=(unets.PLAIN,) * 3, mid_block_type="UNetMidBlock2D")
    model = ControlNetModel(**(config_of("sdxl") | plain))
    shapes["small"] = seeded_weights.load(model)
    inputs = told("sdxl", "small_odd")
    keep_residuals(
        "small_odd", [residuals_of(model, inputs["x"], time, inputs["context"], inputs["hint"], inputs) for time in TIMES]
    )


def forward_adapters():
    for kind in beside.ADAPTERS:
        model, shapes[kind] = beside.make_adapter(kind)
        for shape in ("square", "odd"):
            hint = told("sd1", f"{kind}_{shape}")["hint"]
            if kind == "xl":  # of sides that it takes
                hint = given(f"{kind}_{shape}.hint", 1, 3, *((side + 15) // 16 * 16 for side in hint.shape[2:]))
            keep_residuals(f"{kind}_{shape}", [beside.features(model, kind, hint)])
    # The UNets' own part, by residuals that are given.
    unet = unets.make_unet("sd1")
    inputs, sums = told("sd1", "adapted_square"), []
    for place, sides in (("input.2", (8, 8, 32)), ("input.5", (4, 4, 64))):
        sums.append(given(f"adapted_square.control.{place}", 2, *sides).permute(0, 3, 1, 2))
    told_all = dict(encoder_hidden_states=inputs["context"].expand(2, -1, -1))
    rows = []
    for time in TIMES:
        residuals = [one.clone() for one in sums]
        rows.append(unet(inputs["x"], time, down_intrablock_additional_residuals=residuals, **told_all).sample)
    expected["adapted_square.out"] = torch.stack(rows)


def picture():
    """Two pictures, (2, 3, 30, 44)."""
    return given("picture", 2, 30, 44, 3).permute(0, 3, 1, 2)


def rows_for(hint, count):
    return torch.stack([hint[i % len(hint)] for i in range(count)])


class UnionOf:
    """A ControlNet for several kinds of hints as one that is called like any."""

    def __init__(self, model):
        self.model = model

    def __call__(self, x, time, encoder_hidden_states, controlnet_cond, added_cond_kwargs, return_dict):
        made = beside.union_residuals(
            self.model, x, time, encoder_hidden_states, controlnet_cond, added_cond_kwargs
        )
        return [made[f"control.output.{i}"] for i in range(len(made) - 1)], made["control.middle"]


class Controlled:
    """A UNet with ControlNets beside it: (model, strength, hint, timestep below which it rests) each."""

    def __init__(self, unet, nets, text=None):
        """text: what the ControlNets read in place of the UNet's."""
        self.unet, self.nets, self.text = unet, nets, text

    def __call__(self, x, time, encoder_hidden_states, added_cond_kwargs):
        sums, inputs = {}, {}
        if added_cond_kwargs is not None:
            inputs = {"y": added_cond_kwargs["text_embeds"], "sizes": added_cond_kwargs["time_ids"]}
        features = []
        for model, strength, hint, last in self.nets:
            if float(time) < last:
                continue
            if isinstance(model, T2IAdapter):
                made = beside.features(model, "full", rows_for(hint, len(x)))
                features = [strength * each for each in made.values()]
                continue
            text = encoder_hidden_states if self.text is None else self.text.expand(len(x), -1, -1)
            for key, made in residuals_of(model, x, time, text, hint, inputs).items():
                sums[key] = sums.get(key, 0) + strength * made
        downs = [sums[f"control.output.{i}"] for i in range(len(sums) - 1)]
        return self.unet(
            x,
            time,
            encoder_hidden_states=encoder_hidden_states,
            added_cond_kwargs=added_cond_kwargs,
            down_block_additional_residuals=downs or None,
            mid_block_additional_residual=sums.get("control.middle"),
            down_intrablock_additional_residuals=features or None,
        )


def draw():
    vae = unets.make_vae()
    l, g = unets.make_clip("clip_l", 3, "quick_gelu"), unets.make_clip("clip_g", 32, "gelu")
    both = (True, False)
    hint = resized(picture(), 48, 80)
    turned = resized(picture().flip(3), 48, 80)

    # Two at once, one of them half the way, for three items of two hints.
    texts = [unets.encode(l, unets.CLIP_END, words, -1, True)[:1] for words in both]
    net = make_control("sd1")
    model = Controlled(unets.make_unet("sd1"), [(net, 0.3, hint, 0), (net, 0.2, turned, 499.5)])
    levels = unets.normal(4)
    noise = torch.randn(3, 4, 6, 10, generator=torch.Generator().manual_seed(7)) * math.sqrt(1 + levels[0] ** 2)
    latent = unets.euler(unets.denoiser(model, *texts, 7.0), noise, levels)
    unets.keep("sd1_controlled", vae, latent[:1], SD_SCALE)
    unets.expected["sd1_controlled.latent"] = latent

    # A ControlNet that reads no words, whichever the UNet reads.
    model = Controlled(unets.make_unet("sd1"), [(net, 0.3, hint, 0)], texts[1][0])
    unets.keep("worded_controlled", vae, unets.euler(unets.denoiser(model, *texts, 7.0), unets.noised(levels), levels), SD_SCALE)

    # A ControlNet that is a LoRA of the UNet, and an adapter beside one that is none.
    unet = unets.make_unet("sd1")
    lora, shapes["lora"] = beside.make_lora(config_of("sd1"), unet)
    adapter = beside.make_adapter("full")[0]
    for name, nets in (
        ("lora", [(lora, 0.3, hint, 0)]),
        ("adapted", [(adapter, 0.4, hint, 0)]),
        ("beside", [(adapter, 0.4, turned, 499.5), (net, 0.3, hint, 0)]),
    ):
        model = Controlled(unet, nets)
        latent = unets.euler(unets.denoiser(model, *texts, 7.0), unets.noised(levels), levels)
        unets.keep(f"{name}_controlled", vae, latent, SD_SCALE)

    sizes = torch.tensor([[48.0, 80, 0, 0, 48, 80]])
    texts = []
    for words in both:
        (first, _), (second, pooled) = (
            unets.encode(l, unets.CLIP_END, words, -2, False),
            unets.encode(g, 0, words, -2, False),
        )
        texts.append((torch.cat([first, second], dim=-1), pooled, sizes))
    model = Controlled(unets.make_unet("sdxl"), [(make_control("sdxl"), 0.3, hint, 0)])
    levels = unets.karras(4)
    latent = unets.dpmpp_2m(unets.denoiser(model, *texts, 6.0), unets.noised(levels), levels)
    unets.keep("sdxl_controlled", vae, latent, SDXL_SCALE)
    union = UnionOf(beside.make_union(config_of("sdxl"))[0])
    model = Controlled(unets.make_unet("sdxl"), [(union, 0.3, hint, 0)])
    latent = unets.dpmpp_2m(unets.denoiser(model, *texts, 6.0), unets.noised(levels), levels)
    unets.keep("union_controlled", vae, latent, SDXL_SCALE)
    expected.update({key: tensor for key, tensor in unets.expected.items() if key.split(".")[0].endswith("_controlled")})


def main(out):
    os.makedirs(out, exist_ok=True)
    for kind in ("sd1", "sd2", "sdxl"):
        forward(kind)
    forward_union()
    forward_small()
    forward_adapters()
    draw()
    with open(os.path.join(out, "shapes.json"), "w") as file:
        texts = (
            f' "{name}": {{\n'
            + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in compressed(tensors).items())
            + "\n }"
            for name, tensors in shapes.items()
        )
        file.write("{\n" + ",\n".join(texts) + "\n}\n")
    save_file(
        {name: tensor.clone().contiguous() for name, tensor in expected.items()},
        os.path.join(out, "expected.safetensors"),
    )
    for name, tensor in expected.items():
        print(f"{name:32} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "unet_control"))
