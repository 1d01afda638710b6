"""Writes what PyTorch makes of pictures and a text with tiny models of MiniMax H3: the encoder, the autoencoder and the
transformer of diffusers and transformers.

    make_minimax_keyframe_goldens.py [OUT]        (default: minimax_keyframes/ beside this file)

Needs what make_minimax_goldens.py and make_h3_vae_goldens.py need, and Pillow. All weights follow from the names of their tensors
(seeded_weights.py); the shapes of the last two are theirs.

    shapes.json             {"text": {tensor: shape}}
    one.png, two.png        a picture for the beginning and one for the end, 96 x 64
    expected.safetensors    of a video of 22 pictures, "NAME.states" is what the encoder makes of the pictures and the prompt, "NAME.spans" which of its
                            tokens are pictures', "NAME.video" and "NAME.audio" the end of 3 steps of Euler's method from the noise of
                            seed 7, drawn for the video, then for the audio; NAME is "both", or "last" without a picture for the beginning; "guided" is "last" with
                            the first one as a guide at picture 7. Pictures are shown
                            as the autoencoder's mean, clean
"""

import json
import math
import os
import sys

import numpy
import torch
from diffusers.modular_pipelines.minimax_h3.before_denoise import patchify_video_latents
from PIL import Image
from safetensors.torch import load_file, save_file
from transformers import Qwen2VLImageProcessorPil, Qwen3VLConfig, Qwen3VLModel

import make_h3_vae_goldens as autoencoders
import make_minimax_goldens as models
import seeded_weights
from name_patterns import compressed
from make_qwen21_goldens import shipped_tokenizer

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT = "a red fox in the snow, soft light"
VISION_START, VISION_END, IMAGE_PAD = 151652, 151653, 151655
HEIGHT, WIDTH, PICTURES, FRAMES, SOUND = 64, 96, 22, 7, 37
CELL, PATCH = 16, 4
expected = {}


def make_text():
    rope = {"rope_type": "default", "rope_theta": 5e6, "mrope_section": [24, 20, 20], "mrope_interleaved": True}
    text = dict(vocab_size=151936, hidden_size=models.TEXT, intermediate_size=32, num_hidden_layers=52, num_attention_heads=2, num_key_value_heads=1, head_dim=128, rms_norm_eps=1e-6, rope_parameters=rope)
    seen = dict(depth=1, hidden_size=64, intermediate_size=24, num_heads=16, patch_size=PATCH, out_hidden_size=models.TEXT, num_position_embeddings=16, deepstack_visual_indexes=[0])
    model = Qwen3VLModel(Qwen3VLConfig(text_config=text, vision_config=seen, image_token_id=IMAGE_PAD))
    return model, seeded_weights.load(model, lambda name: f"model.{name}")


def picture(name):
    """(H, W, 3) in steps of 1/255."""
    return (seeded_weights.seeded(name, (HEIGHT, WIDTH, 3)).mul(8).clamp(-1, 1) * 127.5 + 127.5).round() / 255


def states(model, shown):
    tokenizer = shipped_tokenizer()
    ids, tags = [], []
    for i in range(len(shown)):
        label = tokenizer.encode(f"<Picture {i + 1}>: ").ids
        seen = [VISION_START, *[IMAGE_PAD] * (HEIGHT // PATCH // 2 * (WIDTH // PATCH // 2)), VISION_END]
        ids, tags = ids + label + seen, tags + [1] * len(label) + [0] * len(seen)
    prompt = tokenizer.encode(PROMPT).ids
    ids, tags = torch.tensor([ids + prompt]), torch.tensor(tags + [1] * len(prompt))
    more = {}
    if shown:
        processor = Qwen2VLImageProcessorPil(patch_size=PATCH, merge_size=2, do_resize=False, do_rescale=False, image_mean=[0.5] * 3, image_std=[0.5] * 3)
        made = processor(images=[one.permute(2, 0, 1) for one in shown], input_data_format="channels_first", return_tensors="pt")
        more = dict(pixel_values=made["pixel_values"], image_grid_thw=made["image_grid_thw"], mm_token_type_ids=(ids == IMAGE_PAD).int())
    return model(input_ids=ids, output_hidden_states=True, use_cache=False, **more).hidden_states[50], tags


def place(frame):
    """Places of a picture's rows, counted from the end of the text."""
    rows, columns = HEIGHT // CELL // 2, WIDTH // CELL // 2
    root = math.sqrt(rows * columns * 4)
    side = lambda count: numpy.linspace(0.5 - count / root, 0.5 + count / root, count, endpoint=False) * 32
    return torch.tensor([[frame * 5 / 3, y, x] for y in side(rows) for x in side(columns)], dtype=torch.float64)


def velocities(model, x, audio, context, tags, levels, latents, frames):
    rows = torch.cat([patchify_video_latents(latent, (1, 2, 2)) for latent in latents])
    return models.velocities(model, x, audio, context, levels, tags=tags, references=(rows, torch.cat([place(frame) for frame in frames])))[:2]


def euler(step, x, audio):
    sigmas = [1.0, 0.95, 0.7, 0.0]
    for here, there in zip(sigmas, sigmas[1:]):
        heard, next_heard = models.sound_level(here), models.sound_level(there)
        out, audio_out = step(x, audio, (here, heard))
        x, audio = x + (there - here) * out, audio + (next_heard - heard) * audio_out
    return x, audio


def make(name, text, vae, model, shown, latents, frames):
    context, tags = states(text, shown)
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(1, 24, FRAMES, HEIGHT // CELL, WIDTH // CELL, generator=generator)
    audio = torch.randn(1, 32, 2, SOUND, generator=generator)
    step = lambda x, audio, levels: velocities(model, x, audio, context, tags, levels, latents, frames)
    video, audio = euler(step, x, audio)
    expected[f"{name}.states"], expected[f"{name}.video"], expected[f"{name}.audio"] = context, video, audio
    begins = [i for i in range(len(tags)) if tags[i] == 0 and (i == 0 or tags[i - 1] == 1)]
    ends = [i + 1 for i in range(len(tags)) if tags[i] == 0 and tags[i + 1] == 1]
    expected[f"{name}.spans"] = torch.tensor([begins, ends]).T.int()


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "minimax_keyframes")
    os.makedirs(out, exist_ok=True)
    pictures = [picture("keyframe.one"), picture("keyframe.two")]
    for name, one in zip(("one", "two"), pictures):
        Image.fromarray((one * 255).round().to(torch.uint8).numpy()).save(os.path.join(out, name + ".png"))
    (text, shapes), (vae, _), model = make_text(), autoencoders.make(), models.make("whole")
    latents = [autoencoders.encode(vae, one[None]) for one in pictures]
    make("both", text, vae, model, pictures, latents, [0, PICTURES - 1])
    make("last", text, vae, model, pictures[1:], latents[1:], [PICTURES - 1])
    make("guided", text, vae, model, pictures[1:], latents[::-1], [PICTURES - 1, 7])
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({"text": compressed(shapes)}, file, indent=1)
        file.write("\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:16} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main()
