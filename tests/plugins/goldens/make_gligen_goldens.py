"""Writes unet/gligen.safetensors: what a UNet of Stable Diffusion 1.x draws with GLIGEN's boxes.

    make_gligen_goldens.py

Needs what make_unet_goldens.py needs, whose UNet "sd1" this is, with diffusers' gated attention; weights follow from the
names of tensors (seeded_weights.py). As in ComfyUI the negative conditioning sees the boxes of the positive one, where
diffusers shows it none, and a phrase is the last state at the text's end, under the final norm. All are ends of guided
runs of three steps, of a latent of 6 x 10 cells: "one" with a box, "several" with three, one of which reaches beyond the
picture, "mixed" of two positive conditionings of which only the first has boxes, "plain" without any.
"""

import os

import torch
from safetensors.torch import save_file

from make_unet_goldens import CLIP_END, CLIP_IDS, CLIP_START, LENGTH, denoiser, encode, euler, make_clip, make_unet, noised, normal, time_of

torch.set_grad_enabled(False)
MOST, STEPS, CFG, WIDTH, HEIGHT = 30, 3, 5.0, 10, 6


def phrase(clip, words):
    ids = [CLIP_START, *words, CLIP_END]
    out = clip.text_model(input_ids=torch.tensor([ids + [CLIP_END] * (LENGTH - len(ids))]))
    return out.last_hidden_state[0, len(ids) - 1]


def told(boxes):
    """boxes: (phrase, x, y, width, height) in cells."""
    places, seen, masks = torch.zeros(1, MOST, 4), torch.zeros(1, MOST, 64), torch.zeros(1, MOST)
    for i, (words, x, y, width, height) in enumerate(boxes):
        places[0, i] = torch.tensor([x / WIDTH, y / HEIGHT, (x + width) / WIDTH, (y + height) / HEIGHT])
        seen[0, i], masks[0, i] = words, 1
    return {"gligen": {"boxes": places, "positive_embeddings": seen, "masks": masks}}


def clean(model, text, boxes):
    def made(x, level):
        scale = (level**2 + 1) ** -0.5
        time = torch.tensor(time_of(level))
        # Without boxes it is the UNet as it is: diffusers leaves the attentions out.
        more = told(boxes) if boxes else None
        return x - level * model(x * scale, time, encoder_hidden_states=text, cross_attention_kwargs=more).sample

    return made


def main():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unet")
    model = make_unet("sd1", attention_type="gated")
    clip = make_clip("clip_l", 3, "quick_gelu")
    texts = [encode(clip, CLIP_END, words, -1, True)[0] for words in (True, False)]
    cat, nothing = phrase(clip, CLIP_IDS), phrase(clip, [])
    one = [(cat, 1, 1, 4, 3)]
    several = [*one, (nothing, 5, 0, 4, 6), (cat, 8, 4, 4, 4)]
    levels = normal(STEPS)

    def draw(positives, negative):
        parts = [clean(model, text, boxes) for text, boxes in positives]
        other = clean(model, *negative)

        def guided(x, level):
            conditioned = sum(part(x, level) for part in parts) / len(parts)
            unconditioned = other(x, level)
            return unconditioned + CFG * (conditioned - unconditioned)

        return euler(guided, noised(levels), levels)

    made = {
        "plain": draw([(texts[0], [])], (texts[1], [])),
        "one": draw([(texts[0], one)], (texts[1], one)),
        "several": draw([(texts[0], several)], (texts[1], several)),
        "mixed": draw([(texts[0], one), (texts[1], [])], (texts[1], one)),
    }
    save_file({name: latent.contiguous() for name, latent in made.items()}, os.path.join(here, "gligen.safetensors"))
    for name, latent in made.items():
        print(f"{name:10} {float(latent.norm()):.5g} changed by {float((latent - made['plain']).norm() / latent.norm()):.3g}")


if __name__ == "__main__":
    main()
