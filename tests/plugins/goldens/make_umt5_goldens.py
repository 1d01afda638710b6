"""Writes what transformers and diffusers make with a tiny UMT5 encoder and tiny models of Wan: states, and latents of videos.

    make_umt5_goldens.py [OUT]        (default: umt5/ beside this file)

Needs torch, diffusers, transformers, sentencepiece and safetensors from PyPI; runs on the CPU in float32. All weights follow
from the names of their tensors (seeded_weights.py), so only shapes are written, and what comes out:

    spiece.model            SentencePiece's vocabulary, with padding 0, the end 1 and a piece for each byte, trained on the
                            sentences below
    shapes.json             {model: {name of the tensor in the publishers' files: shape}}: "text" is the encoder by
                            transformers' names, "high" and "low" are models of Wan, whose names begin so here alone; "{0-3}"
                            stands for each of these numbers
    expected.safetensors    "short.ids" and "long.ids" with their last_hidden; "one" and "two" are the states of the texts
                            without padding, "weighted" those of the weighted one; "video.latent" is the end of 3 steps of
                            Euler's method with guidance 3 by "high", "experts.latent" that of 2 steps by "high" and 2 by "low"
                            with guidance 3.5 and a shift of 5, of the noise of seed 7; "video.frames" and
                            "experts.frames" are each third row and column of what the autoencoder of
                            make_wan_vae_goldens.py makes of them.
                            "in.first.cross_attn", ".concat_latent_image", ".concat_mask" and ".penultimate" are a text and
                            a video whose first frame is given, "in.last" with another text, a mask of four channels and
                            fewer frames in it; "seen.latent" is what "seeing" draws of them, in 3 steps with guidance 3;
                            "followed.latent" what "following" does of "in.both" and "in.other", which give it the
                            latents of two videos and no mask. "frames.pictures", two of 20 x 28, are resized from their
                            middle to 32 x 48 pixels; "frames.first" and "frames.second" are what the autoencoder of Wan
                            makes of each, "frames.begun" of a video of nine frames that begins with both, "frames.both"
                            of one that also ends with them, "frames.padded" of one that begins with the first, all
                            others being the second, "frames.followed" of one of both in turn: what is not given is grey
"""

import io
import json
import os
import sys

import sentencepiece
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers import UMT5Config, UMT5EncoderModel

import make_wan_goldens as wan
import make_wan_vae_goldens as wan_vae
import make_workflow_goldens
import seeded_weights
from name_patterns import compressed

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
ONE, TWO, TOKENS = "a red fox walks through the deep snow", "blurred, ugly, слишком темно", 512
WEIGHTED = (("a ", 1.0), ("red fox", 1.4), (" walks", 1.0))  # "a (red fox:1.4) walks"
SUBJECTS = "a red fox|a small boat|an old man|the white cat|two children|the last train|a lighthouse".split("|")
DEEDS = "walks through|sails over|looks at|waits beside|runs along|leaves|shines on".split("|")
PLACES = "the deep snow|the quiet sea|a burning house|the long river|an empty street|the green hills|морской берег|红色的房子".split("|")
expected, shapes = {}, {}


def train(path):
    """Every subject does everything everywhere; 330 pieces, of which 256 are bytes."""
    sentences = [f"{who} {does} {where}" for who in SUBJECTS for does in DEEDS for where in PLACES]
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=written,
        vocab_size=330,
        model_type="unigram",
        byte_fallback=True,
        normalization_rule_name="identity",
        pad_id=0,
        eos_id=1,
        bos_id=2,
        unk_id=3,
        num_threads=1,
        minloglevel=2,
    )
    with open(path, "wb") as file:
        file.write(written.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())


def make_text(rows):
    model = UMT5EncoderModel(UMT5Config(vocab_size=rows, d_model=wan.TEXT, d_kv=8, num_heads=4, d_ff=56, num_layers=3))
    shapes["text"] = seeded_weights.load(model)
    # Bound to the first one.
    shapes["text"].pop("encoder.embed_tokens.weight", None)
    table = seeded_weights.seeded("shared.weight", (rows, wan.TEXT))
    model.shared.weight.copy_(table)
    model.encoder.embed_tokens.weight.copy_(table)
    return model.eval()


def states(model, ids):
    """Padded to 512 tokens that nobody sees; what is before the padding."""
    row = torch.tensor([ids + [0] * (TOKENS - len(ids))])
    mask = (torch.arange(TOKENS) < len(ids)).long()[None]
    return model(input_ids=row, attention_mask=mask).last_hidden_state[:, : len(ids)]


def completed(some):
    return torch.nn.functional.pad(some, (0, 0, 0, TOKENS - some.shape[1]))


def make_texts(model, tokens):
    end = [1]
    found = {"one": tokens.encode(ONE) + end, "two": tokens.encode(TWO) + end}
    for name, ids in found.items():
        expected[name] = states(model, ids)
    parts = [(i, weight) for text, weight in WEIGHTED for i in tokens.encode(text)] + [(1, 1.0)]
    plain, empty = states(model, [i for i, _ in parts]), states(model, end)
    empty = torch.nn.functional.pad(empty, (0, 0, 0, len(parts) - 1))
    weights = torch.tensor([weight for _, weight in parts])[None, :, None]
    expected["weighted"] = (plain - empty) * weights + empty


def make_rows(model, rows):
    for name, shape in (("short", (2, 7)), ("long", (1, 300))):
        ids = torch.randint(rows, shape, generator=torch.Generator().manual_seed(shape[1]))
        expected[f"{name}.ids"] = ids.int()
        expected[f"{name}.last_hidden"] = model(input_ids=ids).last_hidden_state


def make_transformer(kind, beside=0, sees=False):
    model = wan.WanTransformer3DModel(
        num_attention_heads=2,
        attention_head_dim=128,
        in_channels=wan.CHANNELS + beside,
        out_channels=wan.CHANNELS,
        text_dim=wan.TEXT,
        freq_dim=32,
        ffn_dim=80,
        num_layers=2,
        image_dim=wan.VISION if sees else None,
        added_kv_proj_dim=256 if sees else None,
        rope_max_seq_len=32,
    )
    shapes[kind] = seeded_weights.load(model, lambda name: f"{kind}.{wan.original(name)}")
    wan.own_processor(model)
    return model


LATENTS = make_workflow_goldens.AutoencoderKLQwenImage().config
MEANS, DEVIATIONS = (torch.tensor(numbers).view(1, -1, 1, 1, 1) for numbers in (LATENTS.latents_mean, LATENTS.latents_std))


def scaled(latents):
    """Of one video or of several beside each other."""
    return torch.cat([(part - MEANS) / DEVIATIONS for part in latents.split(wan.CHANNELS, 1)], 1)


def entry(name, seed, channels, mask=None, frames=3):
    """A conditioning, and what the model reads of it beside the point: the mask counts the other way there."""
    made = {"cross_attn": wan.randn(seed, 1, wan.TOKENS, wan.TEXT), "concat_latent_image": wan.randn(seed + 1, 1, channels, frames, 6, 8)}
    if mask is not None:
        made["concat_mask"] = mask
    made["penultimate"] = wan.randn(seed + 2, 1, wan.SEEN, wan.VISION)
    expected.update({f"in.{name}.{key}": tensor for key, tensor in made.items()})
    concat = scaled(made["concat_latent_image"])
    if mask is not None:
        given = F.pad(1 - mask, (0, 0, 0, 0, 0, frames - mask.shape[2]))
        concat = torch.cat([given.expand(-1, 4, -1, -1, -1), concat], 1)
    return made["cross_attn"], concat, made["penultimate"]


def draw_beside(model, positive, negative):
    x = wan.randn(7, 1, wan.CHANNELS, 3, 6, 8)
    levels = simple_levels(8.0, 3)
    for here, there in zip(levels, levels[1:]):
        yes, no = (wan.velocity(model, x, torch.tensor(here), *one) for one in (positive, negative))
        x = x + (no + 3 * (yes - no)) * (there - here)
    return x


def make_videos_beside():
    first = torch.ones(1, 1, 3, 6, 8)
    first[:, :, :1] = 0
    last = torch.rand(1, 4, 2, 6, 8, generator=torch.Generator().manual_seed(60))
    seeing = make_transformer("seeing", 4 + wan.CHANNELS, True)
    expected["seen.latent"] = draw_beside(seeing, entry("first", 61, wan.CHANNELS, first), entry("last", 71, wan.CHANNELS, last))
    following = make_transformer("following", 2 * wan.CHANNELS, True)
    expected["followed.latent"] = draw_beside(following, entry("both", 81, 2 * wan.CHANNELS), entry("other", 91, 2 * wan.CHANNELS))


def make_frames():
    """ComfyUI's way: cut to the shape in the middle, then bilinear without a filter."""
    pictures = torch.rand(2, 20, 28, 3, generator=torch.Generator().manual_seed(5))
    expected["frames.pictures"] = pictures
    cut = round((20 - 28 * 32 / 48) / 2)  # rows above and below
    moved = pictures[:, cut : 20 - cut].movedim(-1, 1)
    pixels = F.interpolate(moved, size=(32, 48), mode="bilinear")
    vae = make_workflow_goldens.make_vae()
    for name, picture in zip(("first", "second"), pixels):
        expected[f"frames.{name}"] = vae.encode(2 * picture[None, :, None] - 1).latent_dist.mean
    (one, two), grey = pixels, torch.full_like(pixels[0], 0.5)
    videos = {
        "begun": [one, two] + [grey] * 7,
        "both": [one, two] + [grey] * 5 + [one, two],
        "padded": [one] + [two] * 8,
        "followed": [one, two] * 4 + [one],
    }
    for name, frames in videos.items():
        expected[f"frames.{name}"] = vae.encode(2 * torch.stack(frames, 1)[None] - 1).latent_dist.mean


def simple_levels(shift, steps):
    levels = [shift * t / (1 + (shift - 1) * t) for t in (i / 1000 for i in range(1, 1001))]
    return [levels[-(1 + int(i * 1000 / steps))] for i in range(steps)] + [0.0]


def draw(choose, levels, guidance):
    x, yes, no = wan.randn(7, 1, wan.CHANNELS, 3, 6, 8), completed(expected["one"]), completed(expected["two"])
    for step, (here, there) in enumerate(zip(levels, levels[1:])):
        with_text, without = (wan.velocity(choose(step), x, torch.tensor(here), text) for text in (yes, no))
        x = x + (without + guidance * (with_text - without)) * (there - here)
    return x


def make_decoded():
    model = wan_vae.AutoencoderKLWan(**wan_vae.VAE)
    seeded_weights.load(model, wan_vae.original)
    for name in ("video", "experts"):
        frames = wan_vae.frames_of(model, expected[f"{name}.latent"] * DEVIATIONS + MEANS)
        expected[f"{name}.frames"] = frames[:, ::3, ::3]


def main(out):
    os.makedirs(out, exist_ok=True)
    tokens = train(os.path.join(out, "spiece.model"))
    rows = tokens.get_piece_size() + 8  # as published, a few more than there are pieces
    text = make_text(rows)
    make_rows(text, rows)
    make_texts(text, tokens)
    high, low = make_transformer("high"), make_transformer("low")
    expected["video.latent"] = draw(lambda step: high, simple_levels(8.0, 3), 3.0)
    expected["experts.latent"] = draw(lambda step: high if step < 2 else low, simple_levels(5.0, 4), 3.5)
    make_decoded()
    make_videos_beside()
    make_frames()
    alone = draw(lambda step: high, simple_levels(5.0, 4), 3.5)
    print("experts and one alone differ by", float((expected["experts.latent"] - alone).norm() / alone.norm()))
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({kind: compressed(listed) for kind, listed in shapes.items()}, file, indent=1)
        file.write("\n")
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:20} {tuple(tensor.shape)} {tensor.float().norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "umt5"))
