"""Writes what PyTorch draws by pictures through IP-Adapters, with tiny UNets of Stable Diffusion 1.5 and SDXL.

    make_ip_adapter_goldens.py [OUT]        (default: ip_adapter/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the
names of their tensors (seeded_weights.py); UNets, texts and autoencoder are those of make_unet_goldens.py, the tower
that of make_unclip_goldens.py. Image projections are those of diffusers, and so are the attentions of "plain"; what the
node pack ComfyUI_IPAdapter_plus has besides (weights by transformer, scaled keys, masks) is written down here. Files:

    shapes.json             {adapter: {name of the tensor: shape}}: "plain", "plus" and "full" for the first UNet,
                            "plain_xl" and "plus_xl" for SDXL's
    expected.safetensors    "pictures" and "mask" are inputs; "plus.tokens" and so on what the files make of the first
                            picture; "plain_drawn.latent" and so on what is drawn
"""

import json
import math
import os
import sys

import torch
from diffusers.models.attention_processor import AttnProcessor2_0, IPAdapterAttnProcessor2_0
from safetensors.torch import save_file

import make_unclip_goldens as pictures_of
import make_unet_goldens as unets
import seeded_weights

F = torch.nn.functional
expected, shapes = {}, {}
WIDTH, TOKENS, HEAD = 64, 16, 64


def cross_attentions(model):
    """Names of the attentions to the text in the order of files, and of the transformer that each is in."""
    names = [name.removesuffix(".processor") for name in model.attn_processors if "attn2" in name]
    ways = {"down": 0, "mid": 1, "up": 2}  # the order of evaluation
    found = list(dict.fromkeys(name.split(".transformer_blocks")[0] for name in names))
    transformers = sorted(found, key=lambda name: ways[name.split("_")[0]])
    return names, [transformers.index(name.split(".transformer_blocks")[0]) for name in names], transformers


def projection(kind, context):
    if kind == "plain":
        return {"proj.weight": [4 * context, WIDTH], "proj.bias": [4 * context], "norm.weight": [context], "norm.bias": [context]}
    if kind == "full":
        return {
            "proj.0.weight": [WIDTH, WIDTH],
            "proj.0.bias": [WIDTH],
            "proj.2.weight": [context, WIDTH],
            "proj.2.bias": [context],
            "proj.3.weight": [context],
            "proj.3.bias": [context],
        }
    inner = HEAD
    told = {"latents": [1, TOKENS, inner], "proj_in.weight": [inner, WIDTH], "proj_in.bias": [inner]}
    for i in range(4):
        for norm in (f"layers.{i}.0.norm1", f"layers.{i}.0.norm2", f"layers.{i}.1.0"):
            told |= {f"{norm}.weight": [inner], f"{norm}.bias": [inner]}
        told |= {
            f"layers.{i}.0.to_q.weight": [HEAD, inner],
            f"layers.{i}.0.to_kv.weight": [2 * HEAD, inner],
            f"layers.{i}.0.to_out.weight": [inner, HEAD],
            f"layers.{i}.1.1.weight": [4 * inner, inner],
            f"layers.{i}.1.3.weight": [inner, 4 * inner],
        }
    return told | {
        "proj_out.weight": [context, inner],
        "proj_out.bias": [context],
        "norm_out.weight": [context],
        "norm_out.bias": [context],
    }


def adapter_file(name, kind, model):
    """The parts of a file as they are published."""
    context = model.config.cross_attention_dim
    told = {f"image_proj.{key}": shape for key, shape in projection(kind, context).items()}
    for i, attention in enumerate(cross_attentions(model)[0]):
        rows = model.get_submodule(attention).to_k.weight.shape[0]
        for matrix in "kv":
            told[f"ip_adapter.{2 * i + 1}.to_{matrix}_ip.weight"] = [rows, context]
    shapes[name] = told
    parts = {"image_proj": {}, "ip_adapter": {}}
    for key, shape in told.items():
        part, rest = key.split(".", 1)
        parts[part][rest] = seeded_weights.seeded(key, tuple(shape))
    return parts


def loaded(kind, model, files):
    """The image projections of diffusers; its attentions are set, too."""
    model._load_ip_adapter_weights(files, low_cpu_mem_usage=False)
    return model.encoder_hid_proj.image_projection_layers


class Attention(AttnProcessor2_0):
    """Attention to the text, and what adapters add: functions of the queries, by heads."""

    def __init__(self, adapters):
        super().__init__()
        self.adapters = adapters

    def __call__(self, attn, hidden_states, encoder_hidden_states=None, attention_mask=None, temb=None, *args, **kwargs):
        def heads(x):
            return x.view(len(x), -1, attn.heads, x.shape[-1] // attn.heads).transpose(1, 2)

        def attended(q, k, v):
            return F.scaled_dot_product_attention(heads(q), heads(k), heads(v)).transpose(1, 2).reshape(q.shape)

        q = attn.to_q(hidden_states)
        out = attended(q, attn.to_k(encoder_hidden_states), attn.to_v(encoder_hidden_states))
        for adapter in self.adapters:
            out = out + adapter(q, attended)
        return attn.to_out[0](out)


class Adapter:
    """One adapter at all attentions of a model. weights: by the transformer; swapped: of which the negative side sees
    the picture; tokens: of the positive and the negative side."""

    def __init__(self, parts, weights, tokens, swapped=(), scaling="V only", mask=None, end=0.0):
        self.parts, self.weights, self.tokens, self.swapped = parts, weights, tokens, swapped
        self.scaling, self.mask, self.end = scaling, mask, end
        self.side, self.level, self.grid = 0, 1e9, (6, 10)

    def at(self, index, transformer):
        return lambda q, attended: self.added(q, attended, index, transformer)

    def added(self, q, attended, index, transformer):
        weight = self.weights.get(transformer, 0.0)
        if weight == 0 or self.level < self.end:
            return 0
        positive, negative = self.tokens
        if transformer in self.swapped:
            positive, negative = positive * 0, positive
        tokens = (positive, negative)[self.side]  # (pictures, tokens, context), or a list of items
        k, v = (F.linear(tokens, self.parts["ip_adapter"][f"{2 * index + 1}.to_{matrix}_ip.weight"]) for matrix in "kv")
        factor = 1.0
        if "penalty" in self.scaling:
            weight = weight * k.shape[2] / 1280
        if self.scaling.startswith("K+V"):
            k, v = k * weight, v * weight
        elif self.scaling.startswith("K+mean"):
            mean = v.mean(dim=1, keepdim=True)
            k, v = k * weight, v - mean + mean * weight
        else:
            factor = weight
        if len(q) != len(k):
            k, v = (x.reshape(1, -1, x.shape[2]).expand(len(q), -1, -1) for x in (k, v))
        made = attended(q, k, v) * factor
        if self.mask is None:
            return made
        rows, columns = self.grid
        while rows * columns > q.shape[1]:
            rows, columns = math.ceil(rows / 2), math.ceil(columns / 2)
        return made * F.interpolate(self.mask[:, None], size=(rows, columns), mode="bilinear").view(1, -1, 1)


def put(model, adapters):
    names, transformers, _ = cross_attentions(model)
    own = dict.fromkeys(model.attn_processors, AttnProcessor2_0())
    for index, (name, transformer) in enumerate(zip(names, transformers)):
        own[name + ".processor"] = Attention([adapter.at(index, transformer) for adapter in adapters])
    model.set_attn_processor(own)


def guided(model, adapters, positive, negative, cfg):
    def one_side(side, level):
        for adapter in adapters:
            adapter.side, adapter.level = side, level

    def clean(x, level, side, conditioning):
        one_side(side, level)
        made = unets.predicted(model, x / math.sqrt(level**2 + 1), torch.tensor(unets.time_of(level)), *conditioning)
        return x - made * level

    def denoise(x, level):
        without = clean(x, level, 1, negative)
        return without + cfg * (clean(x, level, 0, positive) - without)

    return denoise


def draw(name, model, adapters, texts, steps, cfg, batch=1):
    if adapters is not None:
        put(model, adapters)
    levels = unets.normal(steps)
    noise = torch.randn(batch, 4, 6, 10, generator=torch.Generator().manual_seed(unets_seed())) * math.sqrt(1 + levels[0] ** 2)
    expected[f"{name}.latent"] = unets.euler(guided(model, adapters or [], *texts, cfg), noise, levels)


def unets_seed():
    return 7


def draw_plain(texts, seen, tower):
    """By diffusers alone: its projection and its attentions."""
    model = unets.make_unet("sd1")
    parts = adapter_file("plain", "plain", model)
    layers = loaded("plain", model, [parts])
    expected["plain.tokens"] = layers[0](seen.image_embeds[:1])
    for processor in model.attn_processors.values():
        if isinstance(processor, IPAdapterAttnProcessor2_0):
            processor.scale = [0.8]

    def predicted(_, x, time, states, embeds):
        return model(x, time, encoder_hidden_states=states, added_cond_kwargs={"image_embeds": [embeds[:, None]]}).sample

    unets.predicted, kept = predicted, unets.predicted
    embeds = seen.image_embeds[:1]
    draw("plain_drawn", model, None, [(texts[0], embeds), (texts[1], embeds * 0)], 4, 5.0)
    unets.predicted = kept
    # The attentions above say the same.
    model = unets.make_unet("sd1")
    whole = dict.fromkeys(range(6), 0.8)
    theirs = expected["plain_drawn.latent"]
    draw("plain_drawn", model, [Adapter(parts, whole, (layers[0](embeds), layers[0](embeds * 0)))], [(t,) for t in texts], 4, 5.0)
    assert torch.allclose(theirs, expected["plain_drawn.latent"], atol=2e-4), (theirs - expected["plain_drawn.latent"]).abs().max()
    expected["plain_drawn.latent"] = theirs


def draw_plus(texts, seen, tower, pictures, mask):
    model = unets.make_unet("sd1")
    parts, full = adapter_file("plus", "plus", model), adapter_file("full", "full", model)
    plus_layer, full_layer = loaded("plus", model, [parts, full])
    black = pictures_of.seen(tower, torch.zeros(1, 28, 28, 3)).hidden_states[-2]
    states = seen.hidden_states[-2]
    expected["plus.tokens"], expected["full.tokens"] = plus_layer(states[:1]), full_layer(states[:1])
    both = plus_layer(states), plus_layer(black).expand(2, -1, -1)
    model = unets.make_unet("sd1")
    ease_out = {t: 0.9 * (0.05 + 0.95 * t / 6) for t in range(6)}
    told = [(text,) for text in texts]
    masked = Adapter(parts, ease_out, both, scaling="K+mean(V) w/ C penalty", mask=mask, end=unets.level_at(999 * 0.5))
    # Both pictures beside each other, in a part of the picture and of the way, and another adapter in all of both.
    weak = {t: 0.6 * (0.2 if t < 2 else 1) for t in range(6)}
    other = Adapter(full, weak, (full_layer(states[:1]), full_layer(black)), scaling="K+V")
    draw("plus_drawn", model, [masked, other], told, 4, 4.0)
    # Each item of a batch by its own picture.
    each = Adapter(parts, dict.fromkeys(range(6), 1.0), both)
    draw("batch_drawn", model, [each], told, 2, 4.0, batch=2)
    mean = states / torch.norm(states, dim=0, keepdim=True)
    expected["combined"] = mean.mean(dim=0, keepdim=True)


def draw_sdxl(clips, seen, tower):
    model = unets.make_unet("sdxl")
    plain, plus = adapter_file("plain_xl", "plain", model), adapter_file("plus_xl", "plus", model)
    plain_layer, plus_layer = loaded("plain", model, [plain, plus])
    black = pictures_of.seen(tower, torch.zeros(1, 28, 28, 3)).hidden_states[-2]
    states, embeds = seen.hidden_states[-2], seen.image_embeds
    model = unets.make_unet("sdxl")
    sizes = torch.tensor([[48.0, 80, 0, 0, 48, 80]])
    texts = []
    for words in (True, False):
        (first, _), (second, pooled) = (unets.encode(clip, end, words, -2, False) for clip, end in zip(clips, (unets.CLIP_END, 0)))
        texts.append((torch.cat([first, second], dim=-1), pooled, sizes))
    # The style of one picture, and with it, precisely, another's: where SDXL composes, the negative side sees it.
    style = Adapter(plain, {6: 1.1}, (plain_layer(embeds[:1]), plain_layer(embeds[:1] * 0)))
    precise = Adapter(plus, {3: 0.7, 6: 0.7}, (plus_layer(states[1:]), plus_layer(black)), swapped=(3,))
    draw("xl_drawn", model, [style, precise], texts, 4, 6.0)
    # Style and composition by two pictures: the latter where it composes, against the same negative.
    tokens = plus_layer(states[:1]), plus_layer(black)
    composed = plus_layer(states[1:]), plus_layer(black)
    pair = [Adapter(plus, {6: 1.2}, tokens), Adapter(plus, {3: 0.8}, composed)]
    draw("composed_drawn", model, pair, texts, 2, 6.0)


def main(out):
    os.makedirs(out, exist_ok=True)
    torch.set_grad_enabled(False)
    tower, _ = pictures_of.make_tower()
    pictures = torch.randint(0, 256, (2, 28, 28, 3), generator=torch.Generator().manual_seed(3)) / 255
    mask = torch.rand(1, 17, 23, generator=torch.Generator().manual_seed(4))
    expected.update({"pictures": pictures, "mask": mask})
    seen = pictures_of.seen(tower, pictures)
    l, g = unets.make_clip("clip_l", 3, "quick_gelu"), unets.make_clip("clip_g", 32, "gelu")
    texts = [unets.encode(l, unets.CLIP_END, words, -1, True)[0] for words in (True, False)]
    middle = F.interpolate(mask[:, None, :, 3:20], size=(28, 28), mode="bicubic", antialias=True)
    expected["masked"] = pictures_of.seen(tower, pictures, middle).hidden_states[-2]
    draw_plain(texts, seen, tower)
    draw_plus(texts, seen, tower, pictures, mask)
    draw_sdxl((l, g), seen, tower)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        models = (
            f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(what)}' for key, what in tensors.items()) + "\n }"
            for name, tensors in shapes.items()
        )
        file.write("{\n" + ",\n".join(models) + "\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "ip_adapter"))
