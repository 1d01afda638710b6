"""Files beside a UNet for flux_headers.py: LoRAs by the names of kohya's scripts, and upscalers. Needs nothing but Python.

Modules and shapes of LoRAs are those of unet_files.json (make_unet_files.py), named as diffusers names them; lcm_lora_sdxl, of rank 64,
has linear layers and convolutions of the UNet, epiNoiseoffset_v2 linear layers of the UNet and the text encoder, of a rank that no
published file gives here. Upscalers: RealESRGAN's RRDBNet, 23 blocks of 64 channels that grow by 32, as its README has them, anime_6B's 6 of them;
x2 reads pictures folded to 12 channels.
"""

import re

RESNET = {"in_layers.2": "conv1", "emb_layers.1": "time_emb_proj", "out_layers.3": "conv2", "skip_connection": "conv_shortcut"}
LEVEL = 3  # blocks of a level


def diffusers_name(module):
    """Of a UNet's module; None of what is not in a level."""
    found = re.match(r"(input_blocks|middle_block|output_blocks)\.(\d+)\.?(.*)", module)
    if found is None:
        return None
    side, number, rest = found[1], int(found[2]), found[3]
    if side == "middle_block":
        part = "attentions.0" if number == 1 else f"resnets.{number // 2}"
        return inside(f"mid_block.{part}", rest)
    level, place = divmod(number - (side == "input_blocks"), LEVEL)
    at = f"{'down' if side == 'input_blocks' else 'up'}_blocks.{level}"
    layer, _, rest = rest.partition(".")
    if rest in ("op", "conv"):
        return f"{at}.{'downsamplers' if rest == 'op' else 'upsamplers'}.0.conv"
    if side == "input_blocks" and number == 0:
        return None
    return inside(f"{at}.{'resnets' if layer == '0' else 'attentions'}.{place}", rest)


def inside(at, rest):
    return f"{at}.{RESNET.get(rest, rest)}"


def pair(module, shape, rank):
    """Of a linear layer or a convolution: what goes down has its window."""
    rows, columns, *window = shape
    return {
        f"{module}.alpha": ("F16", ()),
        f"{module}.lora_down.weight": ("F16", (rank, columns, *window)),
        f"{module}.lora_up.weight": ("F16", (rows, rank, *([1] * len(window)))),
    }


def unet_lora(tensors, rank, convolutions=True):
    """tensors: {name: (type, shape)} of a checkpoint."""
    out = {}
    for name, (_, shape) in tensors.items():
        module = name.removeprefix("model.diffusion_model.").removesuffix(".weight")
        there = diffusers_name(module) if module + ".weight" in name and name.startswith("model.") else None
        is_window = len(shape) == 4 and shape[2] > 1
        if there and len(shape) in (2, 4) and (convolutions or (not is_window and ".resnets." not in there)):
            out |= pair("lora_unet_" + there.replace(".", "_"), shape, rank)
    return out


def text_lora(tensors, rank, prefix="cond_stage_model.transformer."):
    out = {}
    for name, (_, shape) in tensors.items():
        if name.startswith(prefix) and ".layers." in name and len(shape) == 2:
            module = name.removeprefix(prefix).removesuffix(".weight")
            out |= pair("lora_te_" + module.replace(".", "_"), shape, rank)
    return out


def real_esrgan(channels_in, width=64, growth=32, blocks=23):
    out = {}

    def conv(name, rows, columns):
        out[f"{name}.weight"], out[f"{name}.bias"] = ("F32", (rows, columns, 3, 3)), ("F32", (rows,))

    conv("conv_first", width, channels_in)
    for block in range(blocks):
        for dense in (1, 2, 3):
            for number in range(1, 6):
                rows = width if number == 5 else growth
                conv(f"body.{block}.rdb{dense}.conv{number}", rows, width + (number - 1) * growth)
    for name in ("conv_body", "conv_up1", "conv_up2", "conv_hr"):
        conv(name, width, width)
    conv("conv_last", 3, width)
    return out


def files(known):
    """{file: what makes its tensors}; known: files of the same kind that there are."""
    base = lambda: known["checkpoints/v1-5-pruned-emaonly-fp16"]()  # noqa: E731
    return {
        "loras/epiNoiseoffset_v2": lambda: unet_lora(base(), 32, False) | text_lora(base(), 32),
        "loras/lcm_lora_sdxl": lambda: unet_lora(known["checkpoints/sd_xl_base_1.0"](), 64),
        "upscale_models/RealESRGAN_x4plus": lambda: real_esrgan(3),
        "upscale_models/RealESRGAN_x4plus_anime_6B": lambda: real_esrgan(3, blocks=6),
        "upscale_models/RealESRGAN_x2": lambda: real_esrgan(12),
    }
