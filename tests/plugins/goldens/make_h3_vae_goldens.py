"""Writes what diffusers makes with a tiny video autoencoder of MiniMax H3.

    make_h3_vae_goldens.py [OUT]        (default: h3_vae/ beside this file)

Needs torch, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors in diffusers (seeded_weights.py), so only shapes are written, and what comes out. Latents called "z" are in the
autoencoder's units; pictures are (frames, height, width, 3), from -1 to 1 where
they are called "image", else from 0 to 1.

    shapes.json             {"vae": {name in diffusers: shape}}
    int8.safetensors        the publishers' matrices of the decoder's layers in int8
    expected.safetensors    "clip.z" and "pictures.z" are what a decoder reads of a clip and of two pictures, "clip.out" and
                            "pictures.out" what it makes, "clip.int8" what it makes of the clip by
                            these matrices; "short.image" and "still.image" are what an encoder reads, "short.mean" and
                            "still.mean" what it makes. "video.z" are twelve frames of a latent,
                            "video.whole" some pixels of the 39 frames they become; "wide.z" are seven, "wide.tiles" some pixels
                            of the 22 frames they become in tiles of 64 pixels that overlap by 32 or more; "cut.z" is its beginning of four frames, "cut.whole" the same
                            of 13 frames. "frames.half" are eleven pictures, "frames.whole" the latent of these, twice
                            one after another, in the diffusion model's units, and "frames.again" some pixels of
                            what it becomes; "frame.latent" is that of the first picture; "wide.frames" are two pictures, "wide.latent" their
                            latent in such tiles
"""

import json
import os
import sys

import torch
from diffusers import AutoencoderKLMiniMaxH3
from safetensors.torch import save_file

import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
HEAD = 64
FRAMES = [0, 3, 16, 17, 18, 21, 22, 38]
MEAN, DEVIATION = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
# Those of the published config.json, which the files' readers know.
LATENTS_MEAN = [0.858090341091156, -0.9606591463088989, 1.0661640167236328, -0.5090325474739075, -0.2727581858634949] + [
    -1.3675414323806763, -0.2553254961967468, -0.26907554268836975, -0.5376840829849243, -0.0464097298681736, 0.6657370328903198,
    0.19690127670764923, -0.5460608005523682, -0.4035342037677765, -0.23683024942874908, 0.25928452610969543, -0.30133944749832153,
    0.211341992020607, -1.1206848621368408, 0.3581933379173279, -0.04225143790245056, 0.2604829967021942, 0.22864092886447906,
    0.7056031823158264]
LATENTS_STD = [1.2223774194717407, 1.2767263650894165, 1.6831774711608887, 1.7549455165863037, 1.5636216402053833] + [
    2.194143533706665, 0.9653137922286987, 1.0569885969161987, 0.841948926448822, 0.7729952931404114, 1.8955937623977661,
    0.946841835975647, 0.7996809482574463, 0.44988900423049927, 0.7197399735450745, 0.6936293244361877, 2.961095094680786,
    2.7694199085235596, 3.0496184825897217, 2.1088054180145264, 3.276226282119751, 3.1627357006073, 2.2816812992095947,
    2.6127843856811523]


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def original(name):
    """The publishers' name of a tensor of AutoencoderKLMiniMaxH3; the parts of qkv are called differently."""
    for here, there in (
        ("encoder.down_blocks.", "encoder.down."),
        (".resnets.", ".block."),
        (".conv_shortcut.", ".nin_shortcut."),
        (".downsamplers.0.", ".downsample."),
        ("decoder.proj_in.", "decoder.x_embedder."),
        (".attn.to_out.0.", ".attn.to_out."),
        (".ff.net.0.proj.", ".ff.w1."),
        (".ff.net.2.", ".ff.w2."),
    ):
        name = name.replace(here, there)
    return name


def original_tensors(state):
    """Queries, keys and values of each head one after another in one tensor; of the MLP the gate first."""
    tensors = {}
    for name, tensor in state.items():
        if ".attn.to_q." in name:
            parts = [state[name.replace("to_q", part)] for part in ("to_q", "to_k", "to_v")]
            heads = [part.reshape(-1, HEAD, *part.shape[1:]) for part in parts]
            tensors[name.replace("to_q", "to_qkv")] = torch.cat(heads, dim=1).reshape(-1, *tensor.shape[1:])
        elif ".ff.net.0.proj." in name:
            value, gate = tensor.chunk(2)
            tensors[original(name)] = torch.cat([gate, value])
        elif ".attn.to_k." not in name and ".attn.to_v." not in name:
            tensors[original(name)] = tensor
    return tensors


def with_originals(state, tensors):
    """A state whose matrices of layers are those that the publishers' file has."""
    state = dict(state)
    for name in state:
        if ".attn.to_q." in name or ".attn.to_k." in name or ".attn.to_v." in name:
            part = ("to_q", "to_k", "to_v").index(name.split(".")[-2])
            whole = tensors[name.replace(name.split(".")[-2], "to_qkv")]
            state[name] = whole.reshape(-1, 3, HEAD, *whole.shape[1:])[:, part].reshape(-1, *whole.shape[1:])
        elif ".ff.net.0.proj." in name:
            gate, value = tensors[original(name)].chunk(2)
            state[name] = torch.cat([value, gate])
        else:
            state[name] = tensors[original(name)]
    return state


def hadamard(order):
    matrix, seed = torch.ones(1, 1, dtype=torch.float64), torch.ones(4, 4, dtype=torch.float64) - 2 * torch.eye(4, dtype=torch.float64).flip(0)
    while len(matrix) < order:
        matrix = torch.kron(matrix, seed)
    return matrix / order**0.5


def quantised(tensors):
    """Matrices of the layers in int8, turned, as ComfyUI's files have them; and what all tensors stand for."""
    stored, meant = {}, dict(tensors)
    for name, tensor in tensors.items():
        if ".transformer_blocks." not in name or tensor.dim() != 2:
            continue
        group = max(4**k for k in range(1, 5) if tensor.shape[1] % 4**k == 0)
        rotation = torch.kron(torch.eye(tensor.shape[1] // group, dtype=torch.float64), hadamard(group))
        turned = tensor.double() @ rotation.T
        scale = turned.abs().amax(1, keepdim=True).float() / 127
        stored[name] = (turned / scale.double()).round().to(torch.int8)
        stored[name + "_scale"] = scale
        told = json.dumps({"format": "int8_tensorwise", "convrot": True, "convrot_groupsize": group})
        stored[name.removesuffix("weight") + "comfy_quant"] = torch.frombuffer(bytearray(told.encode()), dtype=torch.uint8)
        meant[name] = (stored[name].double() * scale.double() @ rotation).float()
    return stored, meant


def make():
    model = AutoencoderKLMiniMaxH3(
        block_out_channels=(32, 32, 32, 32, 32, 64),
        layers_per_block=1,
        decoder_num_layers=2,
        decoder_num_attention_heads=1,
        latents_mean=LATENTS_MEAN,
        latents_std=LATENTS_STD,
    )
    state = {name: seeded_weights.seeded(name, tuple(tensor.shape)) for name, tensor in model.state_dict().items()}
    model.load_state_dict(state)
    model.eval()
    model.disable_tiling()
    return model, {name: list(tensor.shape) for name, tensor in state.items()}


def by_channel(numbers):
    return torch.tensor(numbers)[None, :, None, None, None]


def pictures(sample):
    """(B, 3, T, H, W) as the model has it -> (B T, H, W, 3) from 0 to 1, not clamped."""
    return (sample.permute(0, 2, 3, 4, 1).flatten(0, 1) * DEVIATION + MEAN).contiguous()


def sample(frames):
    """(T, H, W, 3) from 0 to 1 -> (1, 3, T, H, W) as the model has it."""
    return ((frames - MEAN) / DEVIATION).permute(3, 0, 1, 2)[None]


def clip(model, z):
    """A clip alone, without the frames that stand for nothing."""
    return (2 * pictures(model._decode_clip(z)[:, :, 3:]) - 1).contiguous()


def some(frames):
    numbers = [i for i in FRAMES if i < frames.shape[0]]
    return frames[numbers][:, ::3, 1::2].clamp(0, 1).contiguous()


def decode(model, z):
    return some(pictures(model.decode(z, return_dict=False)[0]))


def encode(model, frames):
    mean = model.encode(sample(frames), return_dict=False)[0].mode()
    return ((mean - by_channel(LATENTS_MEAN)) / by_channel(LATENTS_STD)).contiguous()


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "h3_vae")
    os.makedirs(out, exist_ok=True)
    model, shapes = make()
    one, two = randn(1, 1, 24, 7, 1, 2), randn(2, 2, 24, 2, 1)
    short, still = randn(3, 5, 32, 32, 3).clamp(-1, 1), randn(4, 1, 48, 32, 3).clamp(-1, 1)
    latent, half = randn(5, 1, 24, 12, 3, 3), torch.rand(11, 32, 48, 3, generator=torch.Generator().manual_seed(6))
    moments = lambda image: model._encode_clip(sample(image / 2 + 0.5))[:, :24].contiguous()
    expected = {
        "clip.z": one,
        "clip.out": clip(model, one),
        "pictures.z": two,
        "pictures.out": clip(model, two[:, :, None]),
        "short.image": short,
        "short.mean": moments(short),
        "still.image": still,
        "still.mean": moments(still),
        "video.z": latent,
        "video.whole": decode(model, latent),
        "cut.z": latent[:, :, :4].contiguous(),
        "cut.whole": decode(model, latent[:, :, :4]),
        "frames.half": half,
        "frames.whole": encode(model, torch.cat([half, half])),
        "frames.again": decode(model, model.encode(sample(torch.cat([half, half])), return_dict=False)[0].mode()),
        "frame.latent": encode(model, half[:1]),
    }
    model.enable_tiling(64, 64, 32, 32)
    wide, pair = randn(7, 1, 24, 7, 5, 6), torch.rand(2, 64, 96, 3, generator=torch.Generator().manual_seed(8))
    expected |= {"wide.z": wide, "wide.tiles": decode(model, wide), "wide.frames": pair, "wide.latent": encode(model, pair)}
    model.disable_tiling()
    state = model.state_dict()
    stored, meant = quantised(original_tensors(state))
    model.load_state_dict(with_originals(state, meant))
    expected["clip.int8"] = clip(model, one)
    save_file(stored, os.path.join(out, "int8.safetensors"))
    os.chmod(os.path.join(out, "int8.safetensors"), 0o644)
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({"vae": shapes}, file, indent=1)
        file.write("\n")
    save_file(expected, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)


if __name__ == "__main__":
    main()
