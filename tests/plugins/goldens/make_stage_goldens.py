"""Writes what PyTorch makes of ten prompts with a small model of the FLUX kind, stage by stage.

    make_stage_goldens.py FOLDER [OUT]        (default: stages/ beside this file)

FOLDER is a diffusers pipeline folder. Everything is computed in float32 on the CPU by transformers
and diffusers. OUT/stages.json holds the prompts, seeds, noise levels and, for each prompt, the PSNR
in decibels between PyTorch's own bfloat16 picture and its float32 picture. OUT/stages.safetensors:

    ids.clip (11, 77), eos.clip (11), ids.t5 (11, 64), pooled (11, D)
                                 for all prompts; the last row is the empty prompt
    latents.<i>, pictures.<i>    final latent (1, 16, 32, 32); decoded picture in [0, 1], not
                                 rounded, every 4th row and column, (64, 64, 3)
    first.*                      one prompt in full: clip and t5 states; the latent, noise level and
                                 velocity of one step; the output of every block at that step (of
                                 image and joint tokens every 2nd)

Sampling: ComfyUI's noise (torch.randn from the seed, on the CPU), its "simple" schedule over the
discrete flow table with the scheduler config's shift, Euler steps, guidance against the empty
prompt.
"""

import argparse
import json
import os

import torch
from diffusers import AutoencoderKL, FluxPipeline, FluxTransformer2DModel
from safetensors.torch import save_file
from transformers import AutoTokenizer, CLIPTextModel, T5EncoderModel

torch.set_grad_enabled(False)
STEPS, GUIDANCE, STAGE_STEP = 28, 3.0, 10
PROMPTS = [  # (text, seed)
    (
        "a red house on the left and a pine tree on the right on green grass, "
        "a sunny day with a yellow sun",
        1,
    ),
    ("a snowman in the middle in the snow, a starry night sky with a full moon", 42),
    ("a yellow sailboat in the middle on the sea, sunset with a yellow sun", 2**32),
    ("a blue castle in the middle in a meadow under a clear blue sky", 2**32 + 7),
    (
        "a lighthouse on the left and a white sailboat on the right at sea, a cloudy sky",
        123456789012345,
    ),
    ("a cactus in the middle in the desert, night with a crescent moon", 2**63 - 1),
    (
        "a pink rocket on the left and a blue tent on the right on the sand, a starry night sky",
        2**63 + 11,
    ),
    ("a whale in the middle on the sea, a sunny day with a yellow sun", 2**64 - 1),
    (
        "an orange mushroom on the left and a round tree on the right on green grass, a sunset sky",
        0,
    ),
    ("A Purple balloon, high over: snow & sand?!", 8566257),
]


def noise_levels(shift):
    """ComfyUI's "simple" schedule: every (1000 / steps)-th level of the table, from the top; 0."""
    t = torch.arange(1, 1001, dtype=torch.float32) / 1000
    table = shift * t / (1 + (shift - 1) * t)
    return torch.tensor([float(table[-(1 + int(i * 1000 / STEPS))]) for i in range(STEPS)] + [0.0])


class Pipeline:
    """The parts of the folder in one element type."""

    def __init__(self, folder, dtype):
        part = lambda name: os.path.join(folder, name)
        self.dtype = dtype
        self.clip = CLIPTextModel.from_pretrained(part("text_encoder"), dtype=dtype).eval()
        self.t5 = T5EncoderModel.from_pretrained(part("text_encoder_2"), dtype=dtype).eval()
        self.flow = FluxTransformer2DModel.from_pretrained(
            part("transformer"), torch_dtype=dtype
        ).eval()
        self.vae = AutoencoderKL.from_pretrained(part("vae"), torch_dtype=dtype).eval()
        with open(os.path.join(folder, "scheduler", "scheduler_config.json")) as file:
            self.levels = noise_levels(json.load(file)["shift"])

    def encode(self, clip_ids, t5_ids):
        """(pooled, context, CLIP's last state) of rows of ids."""
        clip = self.clip(clip_ids)
        return clip.pooler_output, self.t5(t5_ids).last_hidden_state, clip.last_hidden_state

    def velocity(self, x, level, pooled, context):
        batch, channels, height, width = x.shape
        ids = FluxPipeline._prepare_latent_image_ids(
            batch, height // 2, width // 2, "cpu", torch.float32
        )
        v = self.flow(
            hidden_states=FluxPipeline._pack_latents(x, batch, channels, height, width).to(
                self.dtype
            ),
            timestep=level.expand(batch),
            pooled_projections=pooled,
            encoder_hidden_states=context,
            txt_ids=torch.zeros(context.shape[1], 3),
            img_ids=ids,
            return_dict=False,
        )[0]
        return FluxPipeline._unpack_latents(v.float(), height * 8, width * 8, 8)

    def sample(self, noise, pooled, context):
        """All steps of all prompts; the last row of the conditioning is that of the empty prompt.
        Also gives the latents before step STAGE_STEP."""
        x, kept, count = noise, None, len(noise)
        pooled = torch.cat([pooled[:-1], pooled[-1:].expand(count, -1)])
        context = torch.cat([context[:-1], context[-1:].expand(count, -1, -1)])
        for i in range(STEPS):
            if i == STAGE_STEP:
                kept = x.clone()
            prompted, empty = self.velocity(
                torch.cat([x, x]), self.levels[i], pooled, context
            ).chunk(2)
            x = x + (self.levels[i + 1] - self.levels[i]) * (empty + GUIDANCE * (prompted - empty))
            print(f"{self.dtype} step {i + 1}", flush=True)
        return x, kept

    def decode(self, latent):
        config = self.vae.config
        z = latent / config.scaling_factor + config.shift_factor
        return (
            self.vae.decode(z.to(self.dtype)).sample[0].permute(1, 2, 0).float() / 2 + 0.5
        ).clamp(0, 1)


def tokens(folder, name, texts, length):
    tokenizer = AutoTokenizer.from_pretrained(os.path.join(folder, name))
    return (
        tokenizer(
            texts, padding="max_length", max_length=length, truncation=True, return_tensors="pt"
        ).input_ids,
        tokenizer,
    )


def block_outputs(pipeline, run):
    """Runs run() and gives the output of every block of the transformer."""
    found, hooks = {}, []

    def keep(name):
        def hook(module, inputs, output):
            found[name] = output

        return hook

    for i, block in enumerate(pipeline.flow.transformer_blocks):
        hooks.append(block.register_forward_hook(keep(f"double.{i}")))
    for i, block in enumerate(pipeline.flow.single_transformer_blocks):
        hooks.append(block.register_forward_hook(keep(f"single.{i}")))
    result = run()
    for hook in hooks:
        hook.remove()
    return result, found


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    parser.add_argument(
        "out", nargs="?", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "stages")
    )
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    texts = [text for text, _ in PROMPTS] + [""]
    clip_ids, clip_tokenizer = tokens(args.folder, "tokenizer", texts, 77)
    t5_ids, _ = tokens(args.folder, "tokenizer_2", texts, 64)
    eos = (clip_ids == clip_tokenizer.eos_token_id).int().argmax(1)

    exact = Pipeline(args.folder, torch.float32)
    rounded = Pipeline(args.folder, torch.bfloat16)
    pooled, context, clip_state = exact.encode(clip_ids, t5_ids)
    pooled16, context16, _ = rounded.encode(clip_ids, t5_ids)
    keep = {
        "ids.clip": clip_ids.int(),
        "eos.clip": eos.int(),
        "ids.t5": t5_ids.int(),
        "pooled": pooled,
    }
    noise = torch.cat(
        [
            torch.randn(1, 16, 32, 32, generator=torch.Generator("cpu").manual_seed(seed))
            for _, seed in PROMPTS
        ]
    )
    latents, stages = exact.sample(noise, pooled, context)
    latents16, _ = rounded.sample(noise, pooled16, context16)
    record = []
    for i, (text, seed) in enumerate(PROMPTS):
        picture, picture16 = exact.decode(latents[i : i + 1]), rounded.decode(latents16[i : i + 1])
        psnr = -10 * torch.log10((picture16 - picture).pow(2).mean()).item()
        keep[f"latents.{i}"], keep[f"pictures.{i}"] = latents[i : i + 1], picture[::4, ::4]
        record.append({"prompt": text, "seed": seed, "bf16_psnr": round(psnr, 3)})
        print(f"{i}: {psnr:.2f} dB  {text}", flush=True)

    level, stage = exact.levels[STAGE_STEP], stages[:1]
    velocity, found = block_outputs(
        exact, lambda: exact.velocity(stage, level, pooled[:1], context[:1])
    )
    keep.update(
        {
            "first.clip": clip_state[:1],
            "first.t5": context[:1],
            "first.latent": stage,
            "first.level": level[None],
            "first.velocity": velocity,
        }
    )
    for name, (txt, img) in found.items():
        if name.startswith("double"):
            keep[f"first.{name}.txt"], keep[f"first.{name}.img"] = txt, img[:, ::2]
        else:
            keep[f"first.{name}"] = torch.cat([txt, img], 1)[:, ::2]

    save_file(
        {name: tensor.contiguous() for name, tensor in keep.items()},
        os.path.join(args.out, "stages.safetensors"),
    )
    with open(os.path.join(args.out, "stages.json"), "w") as file:
        json.dump(
            {
                "steps": STEPS,
                "guidance": GUIDANCE,
                "stage_step": STAGE_STEP,
                "sigmas": exact.levels.tolist(),
                "prompts": record,
            },
            file,
            indent=1,
        )
        file.write("\n")


if __name__ == "__main__":
    main()
