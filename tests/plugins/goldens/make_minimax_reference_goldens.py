"""Writes what PyTorch makes of references with tiny models of MiniMax H3: the encoder, the autoencoders and the
transformer of diffusers and transformers, put together by the pieces of the publishers' pipeline for references.

    make_minimax_reference_goldens.py [OUT]       (default: minimax_references/ beside this file)

Needs what make_minimax_keyframe_goldens.py and make_h3_sound_goldens.py need. All weights follow from the names of their
tensors (seeded_weights.py); the shapes are those of minimax_keyframes/, h3_vae/, h3_sound/ and minimax/. Pictures are scaled
as ComfyUI's node does, shown as the autoencoder's mean, clean; sounds are "sound.waveform" (32,000 points a second) and
"fast.waveform" (44,100, one channel) of h3_sound/.

    wide.png                a picture of 160 x 96, shown in 96 x 64
    expected.safetensors    "frames" are ten pictures of a video, 40 x 32, of which 30 are linked, thrice the same, and 22 shown in 32 x 32. Of a
                            video of 22 pictures, "NAME.states" is what the encoder makes of the references and the prompt,
                            "NAME.spans" which of its tokens are pictures', "NAME.video" and "NAME.audio" the end of 3
                            steps of Euler's method from the noise of seed 7, drawn for the video, then for the audio. NAME is "mixed": wide.png and
                            one.png of minimax_keyframes/, the video with the fast sound, the other sound; or "guided": wide.png, the first five
                            pictures of the video, the other sound, and as guides one.png at picture 7 and the first two moments of the other sound at the last picture
"""

import os
import sys

import numpy
import torch
import torchaudio
from diffusers import AutoencoderKLMiniMaxH3Audio
from diffusers.modular_pipelines.minimax_h3 import MiniMaxH3AudioReference, MiniMaxH3ImageReference, MiniMaxH3VideoReference
from diffusers.modular_pipelines.minimax_h3.before_denoise import MiniMaxH3Ref2VAPrepareLayoutStep, MiniMaxH3SetTimestepsStep, patchify_video_latents
from diffusers.modular_pipelines.minimax_h3.encoders import MiniMaxH3Ref2VATextEncoderStep
from PIL import Image
from safetensors.torch import load_file, save_file

import make_h3_sound_goldens as heard
import make_h3_vae_goldens as autoencoders
import make_minimax_goldens as models
import make_minimax_keyframe_goldens as keyframes
import seeded_weights
from make_qwen21_goldens import shipped_tokenizer
from transformers import Qwen2VLImageProcessorPil

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
PROMPT = "the fox of <Picture 1> runs as in <Video 1>"
HEIGHT, WIDTH, FRAMES, SOUND = keyframes.HEIGHT, keyframes.WIDTH, keyframes.FRAMES, keyframes.SOUND
LEAST = 56 * 56
expected = {}


class Tokenizer:
    """As transformers has it."""

    def __init__(self):
        self.own = shipped_tokenizer()

    def __call__(self, text, add_special_tokens):
        return {"input_ids": self.own.encode(text, add_special_tokens=add_special_tokens).ids}

    def convert_tokens_to_ids(self, token):
        return {"<|vision_start|>": 151652, "<|vision_end|>": 151653, "<|image_pad|>": 151655, "<|video_pad|>": 151656}[token]


def sound_model():
    model = AutoencoderKLMiniMaxH3Audio(encoder_dim=8, latent_dim=512, decoder_dim=128)
    model.load_state_dict({name: heard.seeded(name, tensor) for name, tensor in model.state_dict().items()})
    return model.eval()


def sound_latent(model, waveform, rate):
    """(1, 32, 2, T) in the transformer's units."""
    wave = torchaudio.functional.resample(waveform.double(), rate, 32000).float().expand(1, 2, -1)
    mean = model.encode(wave[0][:, None], return_dict=False)[0].mode().transpose(0, 1)[None]
    return (mean - heard.by_channel(heard.LATENTS_MEAN)) / heard.by_channel(heard.LATENTS_STD)


def scaled(picture, width, height):
    """(H, W, 3) from 0 to 1, by Pillow."""
    cut = Image.fromarray((picture.numpy() * 255.0).clip(0, 255).astype(numpy.uint8))
    return torch.from_numpy(numpy.array(cut.resize((width, height), Image.Resampling.LANCZOS))).float() / 255


def seen(pictures):
    """Patches of a picture (1, H, W, 3) or of two of a video, small ones enlarged, and the grid of them."""
    unit = 2 * keyframes.PATCH
    _, height, width, _ = pictures.shape
    if height * width < LEAST:
        more = (LEAST / (height * width)) ** 0.5
        sides = [int(numpy.ceil(side * more / unit)) * unit for side in (height, width)]
        pictures = torch.nn.functional.interpolate(pictures.permute(0, 3, 1, 2), size=sides, mode="bilinear").permute(0, 2, 3, 1)
    processor = Qwen2VLImageProcessorPil(patch_size=keyframes.PATCH, merge_size=2, do_resize=False, do_rescale=False, image_mean=[0.5] * 3, image_std=[0.5] * 3)
    made = [processor(images=[one.permute(2, 0, 1)], input_data_format="channels_first", return_tensors="pt") for one in pictures]
    patches = [one["pixel_values"].reshape(-1, 3, 2, keyframes.PATCH, keyframes.PATCH) for one in made]
    both = torch.stack([patches[0][:, :, 0], patches[-1][:, :, 1]], dim=2)
    return both.reshape(len(both), -1), made[0]["image_grid_thw"]


def states(model, references):
    """References with their pictures as they are shown; what the encoder makes of all, and the tags of its tokens."""
    step = MiniMaxH3Ref2VATextEncoderStep
    pictures = [seen(one.image[None]) for one in references if one.kind == "image"]
    videos, times, counts = [], [], []
    for one in references:
        if one.kind != "video":
            continue
        if len(one.frames) > 12:
            chosen, stamps = step._sample_video_condition_frames(one.frames, 24.0, 2.0, 2)
        else:  # the publishers' pipeline refuses it; ComfyUI repeats the picture
            chosen, stamps = [one.frames[0], one.frames[0]], [0.0]
        blocks = [seen(torch.stack(chosen[i : i + 2])) for i in range(0, len(chosen), 2)]
        videos.append((torch.cat([block[0] for block in blocks]), torch.cat([block[1] for block in blocks])))
        videos[-1][1][0, 0] = len(blocks)
        times.append(stamps)
        counts.append(int(blocks[0][1].prod()) // 4)
    ids, tags = step._build_presentation(Tokenizer(), PROMPT, references, [int(grid.prod()) // 4 for _, grid in pictures], counts, times)
    ids = torch.tensor([ids])
    kinds = (ids == 151655).int() + 2 * (ids == 151656).int()
    made = model(
        input_ids=ids,
        pixel_values=torch.cat([one[0] for one in pictures]),
        image_grid_thw=torch.cat([one[1] for one in pictures]),
        pixel_values_videos=torch.cat([one[0] for one in videos]),
        video_grid_thw=torch.cat([one[1][:1] for one in videos]),
        mm_token_type_ids=kinds,
        output_hidden_states=True,
        use_cache=False,
    )
    return made.hidden_states[50], torch.tensor(tags)


def guide_places(start, clips, sounds):
    """Places of guides: pictures (latent, picture) and sounds (latent, picture) of the video that begins at `start`."""
    video, audio = torch.zeros(0, 3, dtype=torch.float64), torch.zeros(0, 3, dtype=torch.float64)
    place = keyframes.place(0)
    columns = place[:, 2].unique()
    for _, picture in clips:
        video = torch.cat([video, place + torch.tensor([start + picture * 5 / 3, 0, 0])])
    for latent, picture in sounds:
        for column in (columns[0], columns[-1]):
            times = start + picture * 5 / 3 + torch.arange(latent.shape[3], dtype=torch.float64)
            audio = torch.cat([audio, torch.stack([times, 0 * times, 0 * times + column], dim=1)])
    return video, audio


def make(name, text, model, references, clips, sounds, guides=((), ())):
    context, tags = states(text, references)
    rows = [patchify_video_latents(latent, (1, 2, 2)) for latent in clips]
    heard_rows = [models.sound_rows(latent)[0] for latent in sounds]
    step = MiniMaxH3Ref2VAPrepareLayoutStep
    positions, tokens, video, audio_at, text_at, told, listened = step.build_ref2va_packed_sequence(
        tags, references, clips, heard_rows, FRAMES, HEIGHT // 16, WIDTH // 16, SOUND, (1, 2, 2), 2, 2, 0
    )
    start = float(positions[video[told], 0])
    more, more_heard = guide_places(start, *guides)
    total = len(positions)
    video = torch.cat([torch.arange(total, total + len(more)), video])
    audio_at = torch.cat([torch.arange(total + len(more), total + len(more) + len(more_heard)), audio_at])
    positions = torch.cat([positions, more, more_heard])
    tokens = torch.cat([tokens, torch.full((len(more),), 0), torch.full((len(more_heard),), 2)])
    told, listened = told + len(more), listened + len(more_heard)
    rows = torch.cat([patchify_video_latents(latent, (1, 2, 2)) for latent, _ in guides[0]] + rows)
    heard_rows = torch.cat([models.sound_rows(latent)[0] for latent, _ in guides[1]] + heard_rows)
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(1, 24, FRAMES, HEIGHT // 16, WIDTH // 16, generator=generator)
    audio = torch.randn(1, 32, 2, SOUND, generator=generator)

    def velocities(x, audio, levels):
        times, indices = MiniMaxH3SetTimestepsStep.build_row_timesteps(
            video, audio_at, told, listened, len(tags), 1 - levels[0], 1 - levels[1], max(1 - levels[0], 0.999), 1.0
        )
        out, audio_out = model(
            hidden_states=torch.cat([rows, patchify_video_latents(x, (1, 2, 2))])[None],
            audio_hidden_states=torch.cat([heard_rows, models.sound_rows(audio)[0]])[None],
            encoder_hidden_states=context,
            timestep=times,
            timestep_indices=indices,
            token_tags=tokens,
            position_ids=positions,
            video_indices=video,
            audio_indices=audio_at,
            text_indices=text_at,
            return_dict=False,
        )
        out = out[0, told:].reshape(FRAMES, HEIGHT // 32, WIDTH // 32, 24, 2, 2).permute(3, 0, 1, 4, 2, 5).reshape(x.shape)
        return -out, -audio_out[0, listened:].reshape(1, 2, SOUND, -1).permute(0, 3, 1, 2)

    made, made_audio = keyframes.euler(velocities, x, audio)
    expected[f"{name}.states"], expected[f"{name}.video"], expected[f"{name}.audio"] = context, made, made_audio
    begins = [i for i in range(len(tags)) if tags[i] == 0 and (i == 0 or tags[i - 1] == 1)]
    ends = [i + 1 for i in range(len(tags)) if tags[i] == 0 and tags[i + 1] == 1]
    expected[f"{name}.spans"] = torch.tensor([begins, ends]).T.int()
    print(f"{name}: the video begins at {start - len(tags):.6f}, of {len(tags)} tokens")


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "minimax_references")
    os.makedirs(out, exist_ok=True)
    wide = (seeded_weights.seeded("reference.wide", (96, 160, 3)).mul(8).clamp(-1, 1) * 127.5 + 127.5).div(32).round().mul(32).clamp(0, 255) / 255
    Image.fromarray((wide * 255).round().to(torch.uint8).numpy()).save(os.path.join(out, "wide.png"))
    frames = (seeded_weights.seeded("reference.frames", (10, 32, 40, 3)).mul(8).clamp(-1, 1) * 127.5 + 127.5).round() / 255
    expected["frames"] = frames
    one = keyframes.picture("keyframe.one")
    (text, _), (vae, _), model, sound = keyframes.make_text(), autoencoders.make(), models.make("whole"), sound_model()
    small = scaled(wide, WIDTH, HEIGHT)
    film = torch.stack([scaled(frame, 32, 32) for frame in torch.cat([frames, frames, frames])[:22]])
    waves = load_file(os.path.join(HERE, "h3_sound/expected.safetensors"))
    plain, fast = sound_latent(sound, waves["sound.waveform"], 32000), sound_latent(sound, waves["fast.waveform"], 44100)
    shown = lambda pictures: autoencoders.encode(vae, pictures)
    mixed = [MiniMaxH3ImageReference(small), MiniMaxH3ImageReference(one), MiniMaxH3VideoReference(film, audio=True), MiniMaxH3AudioReference(True)]
    make("mixed", text, model, mixed, [shown(small[None]), shown(one[None]), shown(film)], [fast, plain])
    guided = [MiniMaxH3ImageReference(small), MiniMaxH3VideoReference(film[:5]), MiniMaxH3AudioReference(True)]
    make("guided", text, model, guided, [shown(small[None]), shown(film[:5])], [plain], ([(shown(one[None]), 7)], [(plain[..., :2], 21)]))
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:16} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main()
