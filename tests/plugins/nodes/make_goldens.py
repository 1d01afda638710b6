"""Writes goldens.safetensors and pipeline/ beside this file: what workflows over tiny random models give.

    make_goldens.py        (needs torch, torchsde, diffusers, transformers, tokenizers, scipy; x86-64 with AVX2)

The models are those of ../goldens/make_random_models.py; the samplers are written out in
../samplers/sampler_reference.py and method_reference.py. The rest, ComfyUI's way from a seed to a latent, is written here in PyTorch: noise,
levels, latent units, masks, guidance. pipeline/ holds the tokenizers and the small JSON files of a diffusers folder whose
weights are those of ../goldens/random. Goldens are named after the test that reads them; "in.*" are inputs.
"""
import json
import os
import sys
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
import torchsde
from diffusers import AutoencoderKL, FluxPipeline, FluxTransformer2DModel
from safetensors.torch import save_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import CLIPTextConfig, CLIPTextModelWithProjection, T5Config, T5EncoderModel

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../goldens"), os.path.join(HERE, "../samplers")]
from make_random_models import randn, shake  # noqa: E402
from method_reference import METHODS  # noqa: E402
from sampler_reference import SAMPLERS  # noqa: E402

torch.set_grad_enabled(False)
FLUX_SCALE, FLUX_SHIFT = 0.3611, 0.1159
goldens = {}

# --- models


def flux(guided):
    """As make_random_models.py makes them."""
    config = dict(patch_size=1, in_channels=16, num_layers=2, num_single_layers=2, attention_head_dim=20, num_attention_heads=2,
                  joint_attention_dim=24, pooled_projection_dim=32, axes_dims_rope=[16, 2, 2])
    plain = shake(FluxTransformer2DModel(**config, guidance_embeds=False), 1)
    if not guided:
        return plain
    model = shake(FluxTransformer2DModel(**config, guidance_embeds=True), 2)
    model.load_state_dict(plain.state_dict(), strict=False)
    return model


def velocity(model, x, sigma, cond, guidance=None):
    batch, channels, height, width = x.shape
    ids = FluxPipeline._prepare_latent_image_ids(batch, height // 2, width // 2, "cpu", torch.float32)
    context, pooled = (t.expand(batch, *t.shape[1:]) for t in cond)
    v = model(hidden_states=FluxPipeline._pack_latents(x, batch, channels, height, width),
              timestep=torch.tensor([sigma], dtype=torch.float32).expand(batch),
              guidance=None if guidance is None else torch.tensor([guidance]).expand(batch), pooled_projections=pooled,
              encoder_hidden_states=context, txt_ids=torch.zeros(context.shape[1], 3), img_ids=ids, return_dict=False)[0]
    return FluxPipeline._unpack_latents(v, height * 8, width * 8, 8)


def shake_text_models():
    clip = CLIPTextConfig(vocab_size=60, hidden_size=32, intermediate_size=80, projection_dim=24, num_hidden_layers=2,
                          num_attention_heads=2, max_position_embeddings=12, hidden_act="gelu", eos_token_id=59, bos_token_id=58,
                          pad_token_id=0)
    t5 = T5Config(vocab_size=50, d_model=24, d_kv=16, d_ff=40, num_layers=2, num_heads=2, relative_attention_num_buckets=8,
                  relative_attention_max_distance=20, feed_forward_proj="gated-gelu", is_encoder_decoder=False, use_cache=False)
    return shake(CLIPTextModelWithProjection(clip), 6), shake(T5EncoderModel(t5), 7)


# --- noise levels of flows


def table(shift, steps=1000):
    t = torch.arange(1, steps + 1, dtype=torch.float32) / steps
    return shift * t / (1 + (shift - 1) * t)


def flux_table(mu):
    t = torch.arange(1, 10001, dtype=torch.float32) / 10000
    return np.exp(mu) / (np.exp(mu) + (1 / t - 1))


def simple(levels, steps):
    return [float(levels[-1 - int(k * (len(levels) / steps))]) for k in range(steps)] + [0.0]


# --- one run


class Brownian:
    """Draws as k-diffusion's BrownianTreeNoiseSampler makes them."""

    def __init__(self, shape, seed, sigmas):
        levels = torch.tensor(sigmas)
        self.tree = torchsde.BrownianTree(levels[levels > 0].min(), torch.zeros(shape), levels.max(), entropy=seed)

    def __call__(self, a, b):
        a, b = torch.tensor(a, dtype=torch.float32), torch.tensor(b, dtype=torch.float32)
        return (-self.tree(b, a) / (a - b).sqrt()).double().numpy()


def run(sampler, sigmas, shape, seed, denoised, latent=None, add_noise=True, mask=None, finite_first=False, negative=None,
        options=None):
    """denoised(x, sigma): the model with its guidance; negative: without the positive conditioning. latent: in the model's units;
    options: the sampler's own."""
    draw = lambda seed: torch.randn(shape, generator=torch.Generator().manual_seed(seed % 2**64))
    noise = draw(seed) if add_noise else torch.zeros(shape)
    kept_noise = draw(seed + 1) if sampler == "ddim" else noise
    clean = torch.zeros(shape) if latent is None else latent
    fresh = torch.Generator().manual_seed((seed + 1) % 2**64)
    brownian = Brownian(shape, seed, sigmas) if sampler.startswith("dpmpp") and "_sde" in sampler else None

    def seen(x, sigma, model=denoised):
        x = torch.from_numpy(np.asarray(x)).float()
        m = mask(sigma) if callable(mask) else mask
        if m is not None:
            x = x * m + (sigma * kept_noise + (1 - sigma) * clean) * (1 - m)
        d = model(x, sigma)
        return (d if m is None else d * m + clean * (1 - m)).double().numpy()

    x = sigmas[0] * noise + (1 - sigmas[0]) * clean
    # In single precision, as all levels are: ln((1 - sigma) / sigma) would see the difference.
    levels = [float(np.float32(0.9999))] + sigmas[1:] if finite_first and sigmas[0] >= 1 else list(sigmas)
    if sampler.startswith("uni_pc") and levels[-1] == 0:
        levels[-1] = 0.001
    steps = list(zip(levels[:-1], levels[1:]))
    draw_next = lambda: torch.randn(shape, generator=fresh).double().numpy()
    if sampler in METHODS:
        toy = SimpleNamespace(guided=seen, plain=lambda x, s: seen(x, s, negative), noise=brownian or (lambda a, b: draw_next()))
        end = METHODS[sampler](toy, x.double().numpy(), np.array(levels, dtype=np.float64), True, 1.0, **(options or {}))
    else:
        noises = (lambda: brownian(*steps.pop(0))) if brownian else draw_next
        end = SAMPLERS[sampler](seen, x.double().numpy(), np.array(levels, dtype=np.float64), noises, True, 1.0)
    return torch.from_numpy(end).float() / (1 - levels[-1])


def guided(model, positive, negative, cfg):
    """positive, negative: lists of ((context, pooled), strength)."""
    def mean(x, sigma, conds):
        total = sum(strength for _, strength in conds)
        return sum(strength * (x - sigma * velocity(model, x, sigma, cond)) for cond, strength in conds) / total

    def denoised(x, sigma):
        d = mean(x, sigma, positive)
        return d if cfg == 1 else mean(x, sigma, negative) + cfg * (d - mean(x, sigma, negative))
    return denoised


def sampler_cases():
    model = flux(False)
    conds = {name: (randn(seed, 1, tokens, 24), randn(seed + 1, 1, 32))
             for name, seed, tokens in (("one", 20, 5), ("two", 22, 5), ("three", 24, 7))}
    raw, mask = randn(30, 2, 4, 6, 8), torch.rand(1, 9, 11, generator=torch.Generator().manual_seed(31))
    for name, (context, pooled) in conds.items():
        goldens[f"in.{name}.cross_attn"], goldens[f"in.{name}.pooled_output"] = context, pooled
    goldens["in.latent"], goldens["in.mask"] = raw, mask
    one, two, three = ([(conds[name], 1.0)] for name in ("one", "two", "three"))
    shape, levels = (1, 4, 6, 8), table(1.0)

    def golden(name, sampler, sigmas, denoised, shape=shape, seed=7, **more):
        goldens[name] = run(sampler, sigmas, shape, seed, denoised, **more)

    plain, both = guided(model, one, two, 1), guided(model, one, two, 3.0)
    golden("euler", "euler", simple(levels, 4), plain)
    golden("guidance", "euler", simple(levels, 4), both)
    for sampler in ("heun", "dpmpp_2m", "euler_ancestral", "lms", "dpmpp_2s_ancestral", "ipndm"):
        golden(sampler, sampler, simple(levels, 5), both)
    for sampler in ("dpmpp_2m_sde", "dpmpp_3m_sde", "dpmpp_sde", "seeds_2", "seeds_3", "sa_solver", "exp_heun_2_x0_sde"):
        golden(sampler, sampler, simple(levels, 5), both, finite_first=True)
    for sampler in ("euler_ancestral_cfg_pp", "gradient_estimation_cfg_pp", "dpm_fast"):
        golden(sampler, sampler, simple(levels, 5), both, negative=guided(model, two, two, 1))
    sigmas = simple(levels, 6)
    golden("uni_pc", "uni_pc", sigmas[:-2] + sigmas[-1:], both)
    golden("large_seed", "euler", simple(levels, 2), plain, seed=2**64 - 1)

    scaled = (raw - FLUX_SHIFT) * FLUX_SCALE
    golden("denoise", "euler", simple(levels, int(4 / 0.6))[-5:], both, (2, 4, 6, 8), latent=scaled)
    small = F.interpolate(mask[:, None], size=(6, 8), mode="bilinear", align_corners=False)
    # At low levels, where these models are smooth: elsewhere the step that the last attempt's rounding
    # suggests leads to another picture. Some attempts are refused.
    low = torch.linspace(np.log(0.02), np.log(0.001), 3).exp().tolist() + [0.0]
    golden("dpm_adaptive", "dpm_adaptive", low, both, (2, 4, 6, 8), latent=scaled,
           options={"rtol": 0.002, "atol": 0.002, "h_init": 1.5})
    golden("mask", "euler", simple(levels, 4), plain, (2, 4, 6, 8), latent=scaled, mask=small)
    golden("mask_ddim", "ddim", simple(levels, 4), plain, (2, 4, 6, 8), latent=scaled, mask=small)
    golden("combine", "euler", simple(levels, 3), guided(model, [(conds["one"], 1.0), (conds["three"], 0.5)], two, 2.0))

    whole = simple(levels, 6)
    golden("advanced", "euler", whole[2:5], both, (2, 4, 6, 8), latent=scaled, add_noise=False)
    golden("given_levels", "euler", [1.0, 0.5, 0.25, 0.125, 0.0], plain)

    mu = (1.0 - 0.25) / (4096 - 256) * (512 * 384 / 256 - 256) + 0.25
    dev = flux(True)
    golden("flux_guidance", "euler", simple(flux_table(mu), 3),
           lambda x, sigma: x - sigma * velocity(dev, x, sigma, conds["one"], 2.0))
    step = lambda x, sigma: x - sigma * velocity(model, x, sigma, conds["one"])
    shifted = simple(table(3.0), 4)
    golden("shift", "euler", shifted, step)
    conditioning_cases(model, conds, raw, mask)


# --- areas, masks, times, and guidance of other kinds


def scoped_mean(model, entries, shape):
    """entries: (cond, weights (h, w), area (h, w, y, x) or None, (highest, lowest) sigma). Each is predicted on its own part."""
    def mean(x, sigma):
        total, weights = torch.zeros(shape), torch.full(shape[2:], 1e-37)
        for cond, weight, area, (start, end) in entries:
            if not end <= np.float32(sigma) <= start:
                continue
            h, w, top, left = area or (*shape[2:], 0, 0)
            there = (..., slice(top, top + h), slice(left, left + w))
            part = x[there]
            total[there] += (part - sigma * velocity(model, part, sigma, cond)) * weight[there[1:]]
            weights[there[1:]] += weight[there[1:]]
        return total / weights
    return mean


def caching(evaluate, threshold, start, end, every_one):
    """evaluate(x, sigma) left out where the sum of estimated changes stays below the threshold: EasyCache and LazyCache."""
    state = {"in": None, "out": None, "norm": None, "rate": None, "sum": 0.0, "added": None, "skipped": 0}
    some = lambda t: t[:1, ..., ::8, ::8].clone()

    def evaluated(x, sigma):
        if not np.float32(sigma) > np.float32(end):
            return evaluate(x, sigma)
        change, begun = None, np.float32(sigma) <= np.float32(start)
        if begun and state["in"] is not None:
            change = float((some(x) - state["in"]).abs().mean())
            if state["norm"] is not None and state["rate"] is not None:
                state["sum"] += state["rate"] * change / state["norm"]
                if state["sum"] < threshold and state["added"] is not None:
                    state["skipped"] += 1
                    return x + state["added"]
                state["sum"] = 0.0
        out = evaluate(x, sigma)
        state["added"] = out - x
        if begun or every_one:
            if state["norm"] is not None and change is not None:
                state["rate"] = float((some(out) - state["out"]).abs().mean()) / change
            state["in"], state["out"], state["norm"] = some(x), some(out), float(out.abs().mean())
        return out
    return evaluated, state


def conditioning_cases(model, conds, raw, mask):
    shape, levels = (1, 4, 6, 8), table(1.0)
    one, two, three = (conds[name] for name in ("one", "two", "three"))
    always, whole = (2.0, -1.0), torch.ones(6, 8)
    cfg = lambda positive, negative, scale: lambda x, s: negative(x, s) + scale * (positive(x, s) - negative(x, s))
    mean = lambda entries: scoped_mean(model, entries, shape)
    alone = {name: mean([(cond, whole, None, always)]) for name, cond in (("one", one), ("two", two), ("three", three))}

    def golden(name, denoised, steps=4, shape=shape, **more):
        goldens[name] = run("euler", simple(levels, steps), shape, 7, denoised, **more)

    area = (4, 4, 2, 4)
    inside = [(one, 0.7 * whole, area, always), (three, 0.5 * whole, None, always)]
    opposite = [(two, whole, None, always), (two, 0.7 * whole, area, always)]
    golden("areas", cfg(mean(inside), mean(opposite), 3.0))
    small = F.interpolate(mask[:, None], size=(6, 8), mode="bilinear", align_corners=False)[0, 0]
    golden("masked_text", cfg(mean([(one, 0.8 * small, None, always), (three, whole, None, always)]), alone["two"], 3.0))
    golden("ranges", cfg(mean([(one, whole, None, (1.0, 0.5)), (three, whole, None, (0.5, 0.0))]), alone["two"], 3.0))
    left = whole.clone()
    left[2:6, 4:8] = 0.3
    golden("default", cfg(mean([(one, 0.7 * whole, area, always), (three, left, None, always)]), mean(opposite), 3.0))

    p, n, t = alone["one"], alone["two"], alone["three"]
    golden("dual", lambda x, s: n(x, s) + 2.0 * (t(x, s) - n(x, s)) + 3.0 * (p(x, s) - t(x, s)))
    golden("dual_nested", lambda x, s: n(x, s) + 2.0 * (t(x, s) + 3.0 * (p(x, s) - t(x, s)) - n(x, s)))

    def perp(x, s):
        a, b = p(x, s) - t(x, s), n(x, s) - t(x, s)
        return t(x, s) + 3.0 * (a - 1.5 * (b - (b * a).sum() / (a * a).sum() * a))
    golden("perp_neg", perp)

    def rescaled(x, s):
        y = x / (s * s + 1)
        v = lambda d: (y - d) * (s * s + 1) ** 0.5 / s
        c, u = v(p(x, s)), v(n(x, s))
        m = u + 3.0 * (c - u)
        return y - (0.7 * m * c.std() / m.std() + 0.3 * m) * s / (s * s + 1) ** 0.5
    golden("rescale_cfg", rescaled)
    golden("cfg_override", lambda x, s: p(x, s) if s <= 0.5 else cfg(p, n, 3.0)(x, s))

    # 1 - m decides when a cell is drawn no more: m >= (t - t_last) / (t_first - t_last).
    scaled = (raw - FLUX_SHIFT) * FLUX_SCALE
    kept = lambda s: (small >= np.float32((s - 0.001) / (1.0 - 0.001))).float()
    plain = lambda x, s: x - s * velocity(model, x, s, one)
    golden("differential", plain, shape=(2, 4, 6, 8), latent=scaled, mask=kept)

    lazy, state = caching(cfg(p, n, 3.0), 2.5, 0.9, 0.1, True)
    golden("lazy_cache", lazy, steps=10)
    assert 1 < state["skipped"] < 8, state["skipped"]

    # The model's outputs of both texts; the negative one is measured, the norm is of both.
    easy, state = caching(lambda x, s: torch.cat([velocity(model, x, s, two), velocity(model, x, s, one)]), 2.5, 0.9, 0.1, False)
    def guided_easily(x, s):
        v = easy(x, s)
        u, c = x - s * v[:1], x - s * v[1:]
        return u + 3.0 * (c - u)
    golden("easy_cache", guided_easily, steps=10)
    assert 1 < state["skipped"] < 8, state["skipped"]

    # Velocities over continuous levels, by Euler's steps on x = picture + sigma noise.
    levels = torch.linspace(float(np.log(np.float32(0.1))), float(np.log(np.float32(10.0))), 1000).exp()
    sigmas = simple(levels, 4)
    x = torch.randn(shape, generator=torch.Generator().manual_seed(7)).double() * (1 + sigmas[0] ** 2) ** 0.5
    for s, to in zip(sigmas[:-1], sigmas[1:]):
        f = velocity(model, (x / (s * s + 1) ** 0.5).float(), 0.25 * float(np.log(np.float32(s))), one).double()
        d = x / (s * s + 1) - s * f / (s * s + 1) ** 0.5
        x = x + (x - d) / s * (to - s)
    goldens["continuous_v_prediction"] = x


# --- a whole pipeline

PROMPT = "a (red:1.3) house (by sea)"
SEGMENTS = [("a ", 1.0), ("red", 1.3), (" house ", 1.0), ("by sea", 1.1)]
CLIP_LENGTH, T5_LENGTH = 12, 16


def clip_tokenizer():
    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)]
    merges = [("e", "d</w>"), ("t", "h"), ("h", "o"), ("ho", "u"), ("r", "ed</w>"), ("s", "e</w>")]
    pieces = letters + [letter + "</w>" for letter in letters] + [a + b for a, b in merges]
    vocab = {piece: i for i, piece in enumerate(pieces)} | {"<|startoftext|>": 58, "<|endoftext|>": 59}
    assert len(vocab) == 60
    t = Tokenizer(models.BPE(vocab=vocab, merges=merges, continuing_subword_prefix="", end_of_word_suffix="</w>",
                             unk_token="<|endoftext|>", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 59), ("<|startoftext|>", 58), trim_offsets=False,
                                                    add_prefix_space=False)
    t.add_special_tokens(["<|startoftext|>", "<|endoftext|>"])
    return t


def t5_tokenizer():
    words = ["\u2581red", "\u2581house", "\u2581by", "\u2581night", "ght", "ou", "se"]
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("\u2581", -3.0)]
    pieces += [(chr(c), -6.0 - 0.01 * i) for i, c in enumerate(range(ord("a"), ord("z") + 1))]
    pieces += [(word, -4.0 - 0.1 * i) for i, word in enumerate(words)]
    t = Tokenizer(models.Unigram(pieces, unk_id=2))
    t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(r" {2,}"), " "), normalizers.Strip()])
    t.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always", split=True)
    t.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    t.add_special_tokens(["<pad>", "</s>", "<unk>"])
    return t


def write_json(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump(value, file, indent=1)
        file.write("\n")


def window(tokenizer, segments, start, end, padding, length):
    ids, weights = list(start), [1.0] * len(start)
    for text, weight in segments:
        part = tokenizer.encode(text, add_special_tokens=False).ids
        ids, weights = ids + part, weights + [weight] * len(part)
    ids = ids + [end]
    assert len(ids) <= length
    weights += [1.0] * (length - len(weights))
    return torch.tensor([ids + [padding] * (length - len(ids))]), torch.tensor(weights)[None, :, None]


def pipeline():
    folder = os.path.join(HERE, "pipeline")
    clip_tok, t5_tok = clip_tokenizer(), t5_tokenizer()
    for name, tokenizer, config in (
            ("tokenizer", clip_tok, {"tokenizer_class": "CLIPTokenizer", "bos_token": "<|startoftext|>", "eos_token": "<|endoftext|>",
                                     "pad_token": "<|endoftext|>", "unk_token": "<|endoftext|>", "model_max_length": CLIP_LENGTH}),
            ("tokenizer_2", t5_tok, {"tokenizer_class": "T5Tokenizer", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>",
                                     "model_max_length": T5_LENGTH})):
        write_json(os.path.join(folder, name, "tokenizer_config.json"), config)
        tokenizer.save(os.path.join(folder, name, "tokenizer.json"))
    write_json(os.path.join(folder, "model_index.json"), {
        "_class_name": "FluxPipeline", "scheduler": ["diffusers", "FlowMatchEulerDiscreteScheduler"],
        "text_encoder": ["transformers", "CLIPTextModel"], "text_encoder_2": ["transformers", "T5EncoderModel"],
        "tokenizer": ["transformers", "CLIPTokenizer"], "tokenizer_2": ["transformers", "T5TokenizerFast"],
        "transformer": ["diffusers", "FluxTransformer2DModel"], "vae": ["diffusers", "AutoencoderKL"], "image_encoder": [None, None]})
    write_json(os.path.join(folder, "scheduler/scheduler_config.json"), {
        "_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 2.0, "use_dynamic_shifting": False, "shift_terminal": None})

    clip, t5 = shake_text_models()
    ids, _ = window(clip_tok, SEGMENTS, [58], 59, 59, CLIP_LENGTH)
    end = int((ids[0] == 59).int().argmax())
    pooled = clip(ids, output_hidden_states=True).last_hidden_state[:, end]
    ids, weights = window(t5_tok, SEGMENTS, [], 1, 0, T5_LENGTH)
    empty, _ = window(t5_tok, [], [], 1, 0, T5_LENGTH)
    state, nothing = t5(ids).last_hidden_state, t5(empty).last_hidden_state
    context = torch.where(weights != 1, (state - nothing) * weights + nothing, state)
    goldens["pipeline.cross_attn"], goldens["pipeline.pooled_output"] = context, pooled

    model, cond = flux(False), (context, pooled)
    levels = simple(table(2.0), 4)
    latent = run("euler", levels, (1, 4, 6, 8), 5, guided(model, [(cond, 1.0)], None, 1))
    vae = shake(AutoencoderKL(in_channels=3, out_channels=3, down_block_types=["DownEncoderBlock2D"] * 2,
                              up_block_types=["UpDecoderBlock2D"] * 2, block_out_channels=[4, 8], layers_per_block=1, latent_channels=4,
                              norm_num_groups=2, scaling_factor=0.5, shift_factor=0.25, use_quant_conv=True,
                              use_post_quant_conv=True), 8)
    picture = (vae.decode(latent / 0.5 + 0.25).sample.permute(0, 2, 3, 1) / 2 + 0.5).clamp(0, 1)
    goldens["pipeline.latent"], goldens["pipeline.picture"] = latent, picture

    # From a picture: encoded, most of the way drawn anew.
    moments = vae.encode(picture.permute(0, 3, 1, 2) * 2 - 1).latent_dist.mean
    scaled = (moments - 0.25) * 0.5
    goldens["pipeline.encoded"] = scaled
    goldens["pipeline.redrawn"] = run("euler", simple(table(2.0), int(3 / 0.75))[-4:], (1, 4, 6, 8), 6,
                                      guided(model, [(cond, 1.0)], None, 1), latent=scaled)


if __name__ == "__main__":
    sampler_cases()
    pipeline()
    save_file({name: tensor.float().contiguous() for name, tensor in goldens.items()}, os.path.join(HERE, "goldens.safetensors"))
    for name in sorted(goldens):
        print(name, tuple(goldens[name].shape))
