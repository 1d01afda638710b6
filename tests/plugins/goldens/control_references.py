"""What the goldens of ControlNets of FLUX.1 and of Stable Diffusion 3 and 3.5 are made by (make_control_goldens.py), and
what those of all families share: a picture as a hint, and where results are put."""

import math
import os

import torch
import torch.nn.functional as F
from diffusers import AutoencoderKL, FluxControlNetModel, FluxPipeline, FluxTransformer2DModel, SD3ControlNetModel
from PIL import Image

import seeded_weights
from make_sd3_goldens import make_transformer, velocity as sd3_velocity
from make_workflow_goldens import sample, shifted_levels

torch.set_grad_enabled(False)
WIDTH = 24
LEVELS = torch.tensor([0.9, 0.55, 0.125])
expected, shapes = {}, {}


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_hint(out):
    """A picture (1, 50, 70, 3) of bytes over 255, and its mask (1, 50, 70): 1 where it is drawn anew."""
    smooth = F.interpolate(randn(1, 1, 4, 5, 7), (50, 70), mode="bicubic")[0].permute(1, 2, 0)
    pixels = (127 + 60 * smooth).clamp(0, 255).byte()
    pixels[..., 3] = 255
    pixels[10:30, 20:60, 3] = 0
    Image.fromarray(pixels.numpy(), "RGBA").save(os.path.join(out, "hint.png"), optimize=True)
    floats = pixels.float() / 255
    return floats[None, ..., :3], 1 - floats[None, ..., 3]


def centre_cropped(picture, height, width):
    """(B, C, H, W) with the aspect of height and width, as ComfyUI cuts it."""
    rows, columns = picture.shape[2:]
    x = y = 0
    if columns / rows > width / height:
        x = round((columns - columns * (width / height) / (columns / rows)) / 2)
    else:
        y = round((rows - rows * (columns / rows) / (width / height)) / 2)
    return picture[:, :, y : rows - y, x : columns - x]


def resized(picture, height, width, mode="nearest-exact"):
    return F.interpolate(centre_cropped(picture, height, width), (height, width), mode=mode)


def put_residuals(name, rows):
    """rows: for each step, for each block."""
    for i, parts in enumerate(zip(*rows)):
        expected[f"{name}.{i}"] = torch.stack(parts)


def side_by_side(residuals):
    return torch.cat(list(residuals), dim=2)


# ---- FLUX.1 ----

FLUX = dict(
    patch_size=1,
    in_channels=64,
    attention_head_dim=24,
    num_attention_heads=2,
    joint_attention_dim=WIDTH,
    pooled_projection_dim=20,
    axes_dims_rope=[16, 4, 4],
)


def even(x):
    """Odd sides are completed by the first row and column, as ComfyUI does."""
    return F.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2), mode="circular")


def flux_tokens(x):
    return FluxPipeline._pack_latents(x, *x.shape)


def flux_told(x, sigma, context, pooled, guidance):
    """x has even sides."""
    batch, _, height, width = x.shape
    return dict(
        timestep=sigma.expand(batch),
        encoder_hidden_states=context.expand(batch, -1, -1),
        pooled_projections=pooled.expand(batch, -1),
        guidance=None if guidance is None else torch.full((batch,), guidance),
        txt_ids=torch.zeros(context.shape[1], 3),
        img_ids=FluxPipeline._prepare_latent_image_ids(batch, height // 2, width // 2, "cpu", torch.float32),
        return_dict=False,
    )


def flux_residuals(control, x, sigma, context, pooled, hint, guidance=None, mode=None):
    """Of the double blocks, and of the single ones."""
    x, hint = even(x), even(hint)
    modes = {} if mode is None else {"controlnet_mode": torch.full((len(x), 1), mode)}
    hint = flux_tokens(hint.expand(len(x), *hint.shape[1:]))
    told = flux_told(x, sigma, context, pooled, guidance)
    doubles, singles = control(hidden_states=flux_tokens(x), controlnet_cond=hint, **modes, **told)
    return doubles or [], singles or []


def flux_velocity(model, x, sigma, context, pooled, guidance, doubles=None, singles=None):
    height, width = x.shape[2:]
    x = even(x)
    told = flux_told(x, sigma, context, pooled, guidance)
    out = model(
        hidden_states=flux_tokens(x),
        controlnet_block_samples=doubles,
        controlnet_single_block_samples=singles,
        **told,
    )[0]
    return FluxPipeline._unpack_latents(out, x.shape[2] * 8, x.shape[3] * 8, 8)[:, :, :height, :width]


def xlabs_name(name):
    """The original name of a tensor; queries, keys and values are parts of one."""
    for here, there in (
        ("controlnet_x_embedder", "pos_embed_input"),
        ("x_embedder", "img_in"),
        ("context_embedder", "txt_in"),
        ("time_text_embed.timestep_embedder.linear_1", "time_in.in_layer"),
        ("time_text_embed.timestep_embedder.linear_2", "time_in.out_layer"),
        ("time_text_embed.text_embedder.linear_1", "vector_in.in_layer"),
        ("time_text_embed.text_embedder.linear_2", "vector_in.out_layer"),
        ("transformer_blocks", "double_blocks"),
        ("norm1.linear", "img_mod.lin"),
        ("norm1_context.linear", "txt_mod.lin"),
        ("attn.to_out.0", "img_attn.proj"),
        ("attn.to_add_out", "txt_attn.proj"),
        ("attn.norm_added_q.weight", "txt_attn.norm.query_norm.scale"),
        ("attn.norm_added_k.weight", "txt_attn.norm.key_norm.scale"),
        ("attn.norm_q.weight", "img_attn.norm.query_norm.scale"),
        ("attn.norm_k.weight", "img_attn.norm.key_norm.scale"),
        ("ff_context.net.0.proj", "txt_mlp.0"),
        ("ff_context.net.2", "txt_mlp.2"),
        (".ff.net.0.proj", ".img_mlp.0"),
        (".ff.net.2", ".img_mlp.2"),
        ("input_hint_block.conv_in", "input_hint_block.0"),
        ("input_hint_block.conv_out", "input_hint_block.14"),
    ):
        name = name.replace(here, there)
    for part in "qkv":
        name = name.replace(f"attn.to_{part}.", "img_attn.qkv.").replace(f"attn.add_{part}_proj.", "txt_attn.qkv.")
    for i in range(6):
        name = name.replace(f"input_hint_block.blocks.{i}.", f"input_hint_block.{2 + 2 * i}.")
    return name


def third_of(name):
    """Which part a tensor is, of how many."""
    for i, part in enumerate("qkv"):
        if f".to_{part}." in name or f".add_{part}_proj." in name:
            return i, 3
    return 0, 1


def make_flux(vae, picture):
    model = FluxTransformer2DModel(num_layers=3, num_single_layers=4, guidance_embeds=True, **FLUX)
    shapes["flux"] = seeded_weights.load(model)
    union = FluxControlNetModel(num_layers=2, num_single_layers=3, guidance_embeds=True, num_mode=8, **FLUX)
    shapes["flux_union"] = seeded_weights.load(union)
    plain = FluxControlNetModel(num_layers=1, num_single_layers=0, **FLUX)
    shapes["flux_plain"] = seeded_weights.load(plain)
    pixels = FluxControlNetModel(
        num_layers=2, num_single_layers=0, conditioning_embedding_channels=16, **(FLUX | {"patch_size": 2})
    )
    shapes["flux_pixels"], state = {}, {}
    for name, tensor in pixels.state_dict().items():
        there, (begin, parts) = xlabs_name(name), third_of(name)
        shapes["flux_pixels"][there] = [parts * tensor.shape[0], *tensor.shape[1:]]
        whole = seeded_weights.seeded(there, tuple(shapes["flux_pixels"][there]))
        state[name] = whole[begin * tensor.shape[0] :][: tensor.shape[0]]
    pixels.load_state_dict(state)
    for name, control, guidance, mode, batch, sides in (
        ("flux_union", union, 2.5, 5, 1, (6, 6)),
        ("flux_plain", plain, None, None, 1, (5, 10)),
    ):
        x, context, pooled = randn(20, batch, 16, *sides), randn(21, 1, 5, WIDTH), randn(22, 1, 20)
        hint = randn(23, 1, 16, *sides)
        expected.update({f"{name}.x": x, f"{name}.context": context, f"{name}.y": pooled, f"{name}.hint": hint})
        expected[f"{name}.timestep"] = LEVELS
        if mode is not None:
            expected.update({f"{name}.mode": torch.tensor([mode]).int(), f"{name}.guidance": torch.tensor([guidance])})
        made = [flux_residuals(control, x, sigma, context, pooled, hint, guidance, mode) for sigma in LEVELS]
        put_residuals(f"{name}.control.double", [doubles for doubles, _ in made])
        put_residuals(f"{name}.control.single", [singles for _, singles in made])

    x, context, pooled = randn(24, 1, 16, 4, 6), randn(25, 1, 7, WIDTH), randn(26, 1, 20)
    doubles, singles = randn(27, 2, 1, 6, 48), randn(28, 3, 1, 6, 48)
    out = [flux_velocity(model, x, sigma, context, pooled, 3.5, list(doubles), list(singles)) for sigma in LEVELS]
    expected.update({"flux_drawn.x": x, "flux_drawn.context": context, "flux_drawn.y": pooled})
    expected.update({"flux_drawn.timestep": LEVELS, "flux_drawn.out": torch.stack(out)})
    expected["flux_drawn.control.double"], expected["flux_drawn.control.single"] = map(side_by_side, (doubles, singles))

    text, pooled = randn(29, 1, 6, WIDTH), randn(30, 1, 20)
    expected.update({"in.flux.cross_attn": text, "in.flux.pooled_output": pooled})
    small = resized(picture.permute(0, 3, 1, 2), 56, 72)
    hint = (vae.encode(2 * small - 1).latent_dist.mean - 0.1159) * 0.3611
    t = torch.arange(1, 10001, dtype=torch.float32) / 10000
    levels = math.exp(1.15) / (math.exp(1.15) + (1 / t - 1))
    sigmas = [levels[-1 - int(k * (len(levels) / 3))] for k in range(3)] + [torch.tensor(0.0)]

    # Two ControlNets with other numbers of residuals.
    def predict(x, sigma):
        doubles, singles = flux_residuals(union, x, sigma, text, pooled, hint, 2.5, 3)
        others, _ = flux_residuals(plain, x, sigma, text, pooled, hint)
        doubles = [0.05 * doubles[i // 2] + 0.03 * others[0] for i in range(3)]
        return flux_velocity(model, x, sigma, text, pooled, 2.5, doubles, [0.05 * one for one in singles])

    noise = torch.randn(2, 16, 7, 9, generator=torch.Generator().manual_seed(7))
    expected["flux.latent"] = sample(predict, noise * sigmas[0], sigmas)

    # Of pixels, and their residuals in turn; also beside the negative prompt.
    x, context, pooled_text = randn(31, 1, 16, 4, 6), randn(32, 1, 5, WIDTH), randn(33, 1, 20)
    shown = randn(34, 1, 3, 32, 48)
    expected.update({"flux_pixels.x": x, "flux_pixels.context": context, "flux_pixels.y": pooled_text})
    expected.update({"flux_pixels.timestep": LEVELS, "flux_pixels.hint": shown})

    def of_pixels(x, sigma, text, pooled, shown):
        told = flux_told(x, sigma, text, pooled, None)
        return pixels(hidden_states=flux_tokens(x), controlnet_cond=shown, **told)[0]

    put_residuals("flux_pixels.control.double", [of_pixels(x, sigma, context, pooled_text, shown) for sigma in LEVELS])
    hint = 2 * resized(picture.permute(0, 3, 1, 2), 48, 64) - 1
    other, other_pooled = randn(35, 1, 4, WIDTH), randn(36, 1, 20)
    expected.update({"in.flux_other.cross_attn": other, "in.flux_other.pooled_output": other_pooled})

    def guided(x, sigma):
        seen = []
        for words, vector in ((text, pooled), (other, other_pooled)):
            doubles = of_pixels(x, sigma, words, vector, hint)
            doubles = [doubles[i % 2] for i in range(3)]
            seen.append(flux_velocity(model, x, sigma, words, vector, 3.5, doubles))
        return seen[1] + 2 * (seen[0] - seen[1])

    noise = torch.randn(1, 16, 6, 8, generator=torch.Generator().manual_seed(7))
    expected["flux.pixels"] = sample(guided, noise * sigmas[0], sigmas)


# ---- Stable Diffusion 3 and 3.5 ----

SD3_WIDTH, SD3_POOLED, SD3_HIDDEN = 24, 20, 128


def sd3_residuals(control, x, sigma, context, pooled, hint):
    batch = len(x)
    return control(
        hidden_states=x,
        controlnet_cond=hint.expand(batch, *hint.shape[1:]),
        encoder_hidden_states=None if context is None else context.expand(batch, -1, -1),
        pooled_projections=pooled.expand(batch, -1),
        timestep=1000 * sigma.expand(batch),
        return_dict=False,
    )[0]


def make_sd3(vae, picture):
    told = dict(
        sample_size=16,
        in_channels=16,
        attention_head_dim=64,
        num_attention_heads=2,
        caption_projection_dim=SD3_HIDDEN,
        pooled_projection_dim=SD3_POOLED,
        pos_embed_max_size=8,
    )
    first = SD3ControlNetModel(num_layers=2, joint_attention_dim=SD3_WIDTH, **told)
    shapes["sd3_first"] = seeded_weights.load(first)
    large = SD3ControlNetModel(
        num_layers=1, joint_attention_dim=None, use_pos_embed=False, force_zeros_for_pooled_projection=False, **told
    )
    shapes["sd3_large"] = seeded_weights.load(large)
    models = {kind: make_transformer(kind) for kind in ("first", "large")}
    context, pooled = randn(40, 1, 5, SD3_WIDTH), randn(41, 1, SD3_POOLED)
    for name, control, sides in (("sd3_first", first, (6, 6)), ("sd3_large", large, (4, 8))):
        x, hint = randn(42, 1, 16, *sides), randn(43, 1, 16, *sides)
        # InstantX's are told a pooled text of zeros, by whoever calls them.
        seen, text = (models["large"].pos_embed(x), None) if name == "sd3_large" else (x, context)
        expected.update({f"{name}.hint": hint, f"{name}.y": pooled, f"{name}.timestep": 1000 * LEVELS})
        expected[f"{name}.tokens" if text is None else f"{name}.x"] = seen
        expected[f"{name}.x" if text is None else f"{name}.context"] = x if text is None else context
        put_residuals(
            f"{name}.control.double", [sd3_residuals(control, seen, sigma, text, pooled, hint) for sigma in LEVELS]
        )

    positive, negative = randn(44, 1, 7, SD3_WIDTH), randn(45, 1, 7, SD3_WIDTH)
    others = randn(46, 1, SD3_POOLED)
    expected.update({"in.sd3_one.cross_attn": positive, "in.sd3_one.pooled_output": pooled})
    expected.update({"in.sd3_two.cross_attn": negative, "in.sd3_two.pooled_output": others})
    small = resized(picture.permute(0, 3, 1, 2), 48, 64)
    noise = torch.randn(1, 16, 6, 8, generator=torch.Generator().manual_seed(7))

    def draw(model, residuals):
        def predict(x, sigma):
            with_text, without = (
                sd3_velocity(model, x, sigma, text, y, block_controlnet_hidden_states=residuals(x, sigma, text, y))
                for text, y in ((positive, pooled), (negative, others))
            )
            return without + 2.5 * (with_text - without)

        return sample(predict, noise, shifted_levels(3.0, 3))

    hint = vae.encode(2 * small - 1).latent_dist.mean * 1.5305
    zeros = torch.zeros_like(pooled)
    expected["sd3.latent"] = draw(
        models["first"],
        lambda x, sigma, text, _: [0.02 * one for one in sd3_residuals(first, x, sigma, text, zeros, hint)],
    )
    # The publisher's ControlNet of edges sees bytes.
    edges = (vae.encode(127.5 * small + 0.5).latent_dist.mean - 0.0609) * 1.5305
    embed = models["large"].pos_embed
    expected["sd3.canny"] = draw(
        models["large"],
        lambda x, sigma, _, y: [0.02 * one for one in sd3_residuals(large, embed(x), sigma, None, y, edges)],
    )


def make_kl():
    """That of Z-Image in workflows/shapes.json."""
    vae = AutoencoderKL(
        down_block_types=["DownEncoderBlock2D"] * 4,
        up_block_types=["UpDecoderBlock2D"] * 4,
        block_out_channels=[32] * 4,
        layers_per_block=1,
        latent_channels=16,
        norm_num_groups=32,
        use_quant_conv=False,
        use_post_quant_conv=False,
    )
    seeded_weights.load(vae)
    return vae
