"""Writes what PyTorch makes with a tiny LTX 2 of a video that passes pictures, and of one in a told voice, by ComfyUI's way of
LTXVAddGuide and LTXVReferenceAudio.

    make_ltx2_guide_goldens.py [OUT]        (default: ltx2_guides/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32, with the transformer and the
autoencoders of make_ltx2_whole_goldens.py. Three steps of Euler's method with guidance 3 from the noise of seed 7, drawn for the
video, then for the sound, at 24 pictures a second, of the texts "in.one.cross_attn" and "in.two.cross_attn":

    expected.safetensors    "pictures" are nine, 32 x 24 pixels; a video of 17 frames of 128 x 128 pixels passes them from its
                            beginning on, by 0.75, a quarter as large, with "weights", a mask of nine pictures of 10 x 6, and a
                            picture at its end, by 0.5: "guided.video" and "guided.audio" are its end and that of its sound
                            "voice.waveform" is a sound of 16000 points a second; "voice.video" and "voice.audio" are the end of a
                            video of 9 frames of 96 x 64 pixels that is told it, with a guidance of 2 towards it in the first two steps
"""

import os
import sys

import torch
from diffusers import AutoencoderKLLTX2Audio
from safetensors.torch import save_file

import make_ltx2_audio_goldens
import make_ltx2_whole_goldens
import make_ltxv_later_vae_goldens
from make_ltxv_guide_goldens import Biased, encoded, log_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
RATE, SIGMAS, SCALE, VOICE_SCALE, TEXT = 24, (1.0, 0.75, 0.5, 0.0), 3, 2, 24
FRAMES, SIDE = 3, 4  # of the video that passes pictures


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def velocity(model, tokens, sound, levels, sound_levels, text, coords, sound_coords):
    """Of both streams' tokens (1, T, C), at a level each; the other's greatest level is what they look at each other by."""
    return model(
        hidden_states=tokens,
        audio_hidden_states=sound,
        encoder_hidden_states=text[:, :, :TEXT],
        audio_encoder_hidden_states=text[:, :, TEXT:],
        timestep=1000 * levels[None],
        audio_timestep=1000 * sound_levels[None],
        sigma=1000 * levels.max()[None],
        audio_sigma=1000 * sound_levels.max()[None],
        num_frames=1,
        height=1,
        width=tokens.shape[1],
        fps=RATE,
        audio_num_frames=sound.shape[1],
        video_coords=coords,
        audio_coords=sound_coords,
        use_cross_timestep=True,
        return_dict=False,
    )


def of_frames(sound):
    """Tokens of a latent of sound (1, C, L, K)."""
    return sound.transpose(1, 2).flatten(2)


def noise_of(*shapes):
    generator = torch.Generator().manual_seed(7)
    return [torch.randn(*shape, generator=generator) for shape in shapes]


def step(x, denoised, here, there):
    return x + (x - denoised) / here * (there - here)


def make_guided(model, vae, texts, pictures, seen):
    small, whole = encoded(vae, pictures, 64, 64), encoded(vae, pictures[:1], 128, 128)
    latent = torch.zeros(1, 128, FRAMES + 3, SIDE, SIDE)
    latent[:, :, 3:5, ::2, ::2], latent[:, :, 5:] = small, whole
    is_token = torch.ones(6, SIDE, SIDE, dtype=torch.bool)
    is_token[3:5] = False
    is_token[3:5, ::2, ::2] = True
    kept = is_token.flatten()
    noise = torch.tensor([1, 1, 1, 0.25, 0.25, 0.5])
    # Where tokens begin and end, in pictures, rows and columns; those of small pictures are for two rows and two columns.
    begins, ends = torch.tensor([0.0, 1, 9, 0, 1, 16]), torch.tensor([1.0, 9, 17, 1, 9, 17])
    sides = 32.0 * torch.tensor([1, 1, 1, 2, 2, 1])
    frame, row, column = torch.meshgrid(torch.arange(6), torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    starts = torch.stack([begins[frame] / RATE, 32.0 * row, 32.0 * column])
    stops = torch.stack([ends[frame] / RATE, 32.0 * row + sides[frame], 32.0 * column + sides[frame]])
    coords = torch.stack([starts.flatten(1), stops.flatten(1)], -1)[None][:, :, kept]
    # The first frame of a guide is of its first picture, the second of the other eight.
    cells = torch.nn.functional.adaptive_avg_pool2d(seen[:, None], (2, 2)).flatten(1)
    weights = torch.cat([0.75 * cells[0], 0.75 * cells[1:].mean(0), torch.full((SIDE * SIDE,), 0.5)])
    own = int(kept.sum()) - len(weights)
    m = noise[None, None, :, None, None]
    x, sound = noise_of(latent.shape, (1, 4, 18, 4))
    with Biased(model, log_weights(own, weights)):
        for here, there in zip(SIGMAS, SIGMAS[1:]):
            seen_now = x * m + latent * (1 - m)
            tokens = seen_now.flatten(2).transpose(1, 2)[:, kept]
            levels = here * noise.repeat_interleave(SIDE * SIDE)[kept]
            sound_coords = model.audio_rope.prepare_audio_coords(1, 18, x.device)
            made = [
                velocity(model, tokens, of_frames(sound), levels, torch.full((18,), here), text, coords, sound_coords) for text in texts
            ]
            yes, no = made
            video = torch.zeros(1, kept.numel(), 128)
            video[:, kept] = no[0] + SCALE * (yes[0] - no[0])
            denoised = (seen_now - here * video.transpose(1, 2).reshape(x.shape)) * m + latent * (1 - m)
            heard = (no[1] + SCALE * (yes[1] - no[1])).unflatten(2, (4, 4)).transpose(1, 2)
            x = step(x, denoised, here, there)
            sound = step(sound, sound - here * heard, here, there)
    return x[:, :, :FRAMES].contiguous(), sound.contiguous()


def make_voiced(model, texts, voice):
    x, sound = noise_of((1, 128, 2, 2, 3), (1, 4, 10, 4))
    count, length = voice.shape[2], sound.shape[2]
    coords = model.rope.prepare_video_coords(1, 2, 2, 3, x.device, fps=RATE)
    own = model.audio_rope.prepare_audio_coords(1, length, x.device)
    before = model.audio_rope.prepare_audio_coords(1, count, x.device)
    # It ends a frame, of four hundredths of a second, before the video begins.
    both = torch.cat([before - before.max() - 0.04, own], 2)
    for here, there in zip(SIGMAS, SIGMAS[1:]):
        tokens, heard = x.flatten(2).transpose(1, 2), of_frames(sound)
        levels = torch.full((tokens.shape[1],), here)

        def clean(text, told):
            given = torch.cat([of_frames(voice), heard], 1) if told else heard
            sound_levels = torch.full((length,), here)
            if told:
                sound_levels = torch.cat([torch.zeros(count), sound_levels])
            made = velocity(model, tokens, given, levels, sound_levels, text, coords, both if told else own)
            return (tokens - here * made[0], heard - here * made[1][:, -length:])

        yes, no, without = clean(texts[0], True), clean(texts[1], True), clean(texts[0], False)
        towards = VOICE_SCALE if here > 0.6 else 0
        mixed = [n + SCALE * (y - n) + towards * (y - w) for y, n, w in zip(yes, no, without)]
        x = step(x, mixed[0].transpose(1, 2).reshape(x.shape), here, there)
        sound = step(sound, mixed[1].unflatten(2, (4, 4)).transpose(1, 2), here, there)
    return x.contiguous(), sound.contiguous()


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "ltx2_guides")
    os.makedirs(out, exist_ok=True)
    model = make_ltx2_whole_goldens.make_transformer()[0]
    make_ltxv_later_vae_goldens.CHANNELS = make_ltx2_whole_goldens.CHANNELS
    vae = make_ltxv_later_vae_goldens.make_2()
    make_ltxv_later_vae_goldens.seed(vae, {"encoder": True, "decoder": True})
    hearing = AutoencoderKLLTX2Audio(base_channels=16, num_res_blocks=1, latent_channels=4, mel_bins=16)
    make_ltx2_audio_goldens.seed(hearing, make_ltx2_audio_goldens.vae_name)
    texts = [randn(92, 1, 9, 2 * TEXT), randn(93, 1, 5, 2 * TEXT)]
    pictures = torch.rand(9, 24, 32, 3, generator=torch.Generator().manual_seed(5))
    seen = torch.rand(9, 6, 10, generator=torch.Generator().manual_seed(6))
    waveform = randn(4, 1, 2, 500) * 0.2
    voice = hearing.encode(make_ltx2_audio_goldens.spectrum(waveform), return_dict=False)[0].mode()
    mean, deviation = make_ltx2_audio_goldens.by_number(hearing, voice)
    expected = {"in.one.cross_attn": texts[0], "in.two.cross_attn": texts[1], "pictures": pictures, "weights": seen}
    expected["guided.video"], expected["guided.audio"] = make_guided(model, vae, texts, pictures, seen)
    expected["voice.waveform"] = waveform
    expected["voice.video"], expected["voice.audio"] = make_voiced(model, texts, (voice - mean) / deviation)
    save_file(expected, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.abs().mean():.4g}")


if __name__ == "__main__":
    main()
