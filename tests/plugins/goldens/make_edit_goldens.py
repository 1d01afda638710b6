"""Writes what PyTorch makes of pictures that are changed with tiny models of Qwen-Image Edit and Edit-Plus.

    make_edit_goldens.py TOKENIZERS [OUT]        (default: edit/ beside this file)

TOKENIZERS and what is needed are as of make_workflow_goldens.py; so are the weights, which follow from the names of their
tensors, and the transformer and the autoencoder. Files:

    shapes.json             {"text": {name of the tensor as ComfyUI's file has it: shape}}: language model and vision tower
    one.png, two.png        the pictures
    expected.safetensors    "edit.ids" are the tokens of the prompt in its template, a picture being one; "edit.cross_attn"
                            every 16th of the states that are kept, "edit.shown" every 16th row and column of the latent
                            that is shown, "edit.latent" the end of 2 guided steps with CFGNorm, "edit.picture" the picture.
                            "plus." and so on the same of two pictures, unguided and without the picture that comes out,
                            "timed.latent" with the timestep 0 for them
"""

import json
import math
import os
import struct
import sys
import zlib

import torch
from diffusers import QwenImagePipeline, QwenImageTransformer2DModel
from safetensors.torch import save_file
from transformers.models.qwen2_5_vl.configuration_qwen2_5_vl import Qwen2_5_VLConfig
from transformers.models.qwen2_5_vl.modeling_qwen2_5_vl import Qwen2_5_VLModel

import make_vision_goldens as vision
import make_workflow_goldens as flows
import seeded_weights

torch.set_grad_enabled(False)
F = torch.nn.functional
HEAD, HEADS = 128, 2
PAD, START, END = 151655, 151652, 151653
SYSTEM = (
    "<|im_start|>system\nDescribe the key features of the input image (color, shape, size, texture, objects, background), "
    "then explain how the user's text instruction should alter or modify the image. Generate a new image that meets the "
    "user's requirements while maintaining consistency with the original input where appropriate.<|im_end|>\n"
)
PICTURE = "<|vision_start|><|image_pad|><|vision_end|>"
MEAN = torch.tensor([0.48145466, 0.4578275, 0.40821073])
DEVIATION = torch.tensor([0.26862954, 0.26130258, 0.27577711])
expected = {}


def write_png(path, pixels):
    """pixels (H, W, 3) of bytes."""
    height, width, _ = pixels.shape

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + row.numpy().tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def draw(out, name, height, width, seed):
    coarse = torch.rand(1, 3, 5, 4, generator=torch.Generator().manual_seed(seed))
    pixels = (F.interpolate(coarse, (height, width), mode="bicubic").clamp(0, 1)[0].permute(1, 2, 0) * 255).byte()
    write_png(os.path.join(out, name + ".png"), pixels)
    return pixels.float()[None] / 255


def scaled(picture, area, step=1):
    """As ComfyUI's nodes: (1, H, W, 3) by areas."""
    _, height, width, _ = picture.shape
    factor = math.sqrt(area / (height * width))
    size = [round(side * factor / step) * step for side in (height, width)]
    return F.interpolate(picture.permute(0, 3, 1, 2), size, mode="area").permute(0, 2, 3, 1)


def seen(model, picture):
    """What the vision tower makes of a picture, and its grid."""
    size = [round(side / 28) * 28 for side in picture.shape[1:3]]
    pixels = F.interpolate(picture.permute(0, 3, 1, 2), size, mode="bilinear").permute(0, 2, 3, 1)
    grid = vision.grid(*size)
    return model.visual(vision.patches((pixels - MEAN) / DEVIATION), torch.tensor([grid])).pooler_output, grid


def make_text():
    text = dict(
        vocab_size=151936,
        hidden_size=flows.WIDTH,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=HEADS,
        num_key_value_heads=1,
        rms_norm_eps=1e-6,
        head_dim=HEAD,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6, "mrope_section": [16, 24, 24]},
    )
    tower = dict(depth=8, hidden_size=64, intermediate_size=52, num_heads=16, out_hidden_size=flows.WIDTH)
    tower.update(fullatt_block_indexes=[7], window_size=112)
    config = Qwen2_5_VLConfig(
        text_config=text, vision_config=tower, image_token_id=PAD, vision_start_token_id=START, vision_end_token_id=END
    )
    model = Qwen2_5_VLModel(config)
    for layer in model.language_model.layers:  # heads of any size
        attention = layer.self_attn
        attention.head_dim, attention.scaling = HEAD, HEAD**-0.5
        attention.q_proj = torch.nn.Linear(flows.WIDTH, HEADS * HEAD)
        attention.k_proj = torch.nn.Linear(flows.WIDTH, HEAD)
        attention.v_proj = torch.nn.Linear(flows.WIDTH, HEAD)
        attention.o_proj = torch.nn.Linear(HEADS * HEAD, flows.WIDTH, bias=False)
    shapes = seeded_weights.load(model.visual, lambda name: f"visual.{name}")
    shapes.update(seeded_weights.load(model.language_model, lambda name: f"model.{name}"))
    return model.eval(), shapes


def encode(tokenizer, model, text, pictures):
    """The ids, a picture being one, and the states that are kept."""
    ids = tokenizer.encode(text).ids
    shown = [seen(model, picture) for picture in pictures]
    assert ids.count(PAD) == len(shown)
    whole, left = [], list(shown)
    for token in ids:
        whole += [PAD] * left.pop(0)[0].shape[0] if token == PAD else [token]
    whole = torch.tensor([whole])
    is_picture = whole == PAD
    grids = torch.tensor([grid for _, grid in shown])
    places, _ = model.get_rope_index(input_ids=whole, mm_token_type_ids=is_picture.int(), image_grid_thw=grids)
    embedded = model.language_model.embed_tokens(whole)
    embedded[is_picture] = torch.cat([tokens for tokens, _ in shown])
    states = model.language_model(inputs_embeds=embedded, position_ids=places, use_cache=False).last_hidden_state
    start = [i for i, token in enumerate(ids) if token == 151644][1]
    assert start + 3 == 64
    return torch.tensor([ids]).int(), states[:, start + 3 :]


def latent_of(vae, picture):
    """Of the part that whole cells cover, in the middle; in the transformer's units."""
    _, height, width, _ = picture.shape
    top, left = height % 8 // 2, width % 8 // 2
    pixels = picture[:, top : top + height // 8 * 8, left : left + width // 8 * 8]
    mean = vae.encode(pixels.permute(0, 3, 1, 2)[:, :, None] * 2 - 1).latent_dist.mean[:, :, 0]
    means, deviations = (torch.tensor(n).view(1, -1, 1, 1) for n in (vae.config.latents_mean, vae.config.latents_std))
    return (mean - means) / deviations


def packed(x):
    x = F.pad(x, (0, x.shape[3] % 2, 0, x.shape[2] % 2), mode="circular")
    return QwenImagePipeline._pack_latents(x, *x.shape), (1, x.shape[2] // 2, x.shape[3] // 2)


def velocity(model, x, sigma, context, shown):
    own, size = packed(x)
    others = [packed(latent) for latent in shown]
    out = model(
        hidden_states=torch.cat([own] + [tokens for tokens, _ in others], dim=1),
        timestep=sigma.expand(1),
        encoder_hidden_states=context,
        encoder_hidden_states_mask=torch.ones(context.shape[:2], dtype=torch.bool),
        img_shapes=[[size] + [other for _, other in others]],
        return_dict=False,
    )[0][:, : own.shape[1]]
    return QwenImagePipeline._unpack_latents(out, x.shape[2] * 8, x.shape[3] * 8, 8)[:, :, 0]


def transformer(**more):
    model = QwenImageTransformer2DModel(
        patch_size=2,
        in_channels=64,
        out_channels=16,
        num_layers=2,
        attention_head_dim=24,
        num_attention_heads=2,
        joint_attention_dim=flows.WIDTH,
        axes_dims_rope=[16, 4, 4],
        **more,
    )
    seeded_weights.load(model)
    return model


def norm_guided(x, sigma, positive, negative, cfg):
    """CFGNorm: no longer than the positive prediction, over the channels."""
    one, two = x - positive * sigma, x - negative * sigma
    guided = two + cfg * (one - two)
    lengths = [torch.linalg.vector_norm(p, dim=1, keepdim=True) for p in (one, guided)]
    guided = guided * (lengths[0] / (lengths[1] + 1e-8)).clamp(0, 1)
    return (x - guided) / sigma


def make_edit(tokenizer, text, vae, picture):
    template = SYSTEM + f"<|im_start|>user\n{PICTURE}{{}}<|im_end|>\n<|im_start|>assistant\n"
    read = scaled(picture, 1024 * 1024)
    shown = [latent_of(vae, read)]
    ids, positive = encode(tokenizer, text, template.format(flows.PROMPT), [read])
    _, negative = encode(tokenizer, text, template.format(" "), [read])
    expected.update({"edit.ids": ids, "edit.cross_attn": positive[:, ::16], "edit.shown": shown[0][:, :, ::16, ::16]})
    model = transformer()

    def predict(x, sigma):
        with_text, without = (velocity(model, x, sigma, states, shown) for states in (positive, negative))
        return norm_guided(x, sigma, with_text, without, 2.5)

    noise = torch.randn(1, 16, 6, 10, generator=torch.Generator().manual_seed(7))
    latent = flows.sample(predict, noise, flows.shifted_levels(3.1, 2))
    expected.update({"edit.latent": latent, "edit.picture": flows.picture_of(vae, latent)})


def make_plus(tokenizer, text, vae, pictures):
    """The second is the node's third."""
    prompt = f"Picture 1: {PICTURE}Picture 3: {PICTURE}{flows.PROMPT}"
    template = SYSTEM + "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
    shown = [latent_of(vae, scaled(picture, 1024 * 1024, 8)) for picture in pictures]
    ids, states = encode(tokenizer, text, template.format(prompt), [scaled(picture, 384 * 384) for picture in pictures])
    expected.update({"plus.ids": ids, "plus.cross_attn": states[:, ::16], "plus.shown": shown[1][:, :, ::16, ::16]})
    noise = torch.randn(1, 16, 6, 10, generator=torch.Generator().manual_seed(7))
    levels = flows.shifted_levels(3.1, 2)
    for name, model in (("plus", transformer()), ("timed", transformer(zero_cond_t=True))):
        latent = flows.sample(lambda x, sigma, m=model: velocity(m, x, sigma, states, shown), noise, levels)
        expected[f"{name}.latent"] = latent


def main(tokenizers, out):
    os.makedirs(out, exist_ok=True)
    tokenizer = flows.vocabulary_goldens.qwen(os.path.join(tokenizers, "qwen2.5"))
    text, shapes = make_text()
    vae = flows.make_vae()
    one, two = draw(out, "one", 36, 50, 1), draw(out, "two", 41, 30, 2)
    make_edit(tokenizer, text, vae, one)
    make_plus(tokenizer, text, vae, [one, two])
    with open(os.path.join(out, "shapes.json"), "w") as file:
        file.write('{\n "text": {\n' + ",\n".join(f'  "{name}": {json.dumps(what)}' for name, what in shapes.items()) + "\n }\n}\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.float().norm():.4g} {tensor.float().std():.4g}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "edit"))
