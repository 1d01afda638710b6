"""Writes what PyTorch makes of the workflows of graphs/ that begin with a picture, have two stages
or areas, or go through the autoencoder by tiles.

    make_pipeline_goldens.py [GRAPHS] [OUT]     (default: graphs/ of this repository, pipelines/
                                                 beside this file)

Needs torch, diffusers, transformers, safetensors and Pillow from PyPI; runs on the CPU in float32.
The rules (levels of a denoise below 1, noise masks, tiles and their weights) are ComfyUI's, written
down here once more. OUT/pipelines.safetensors, with every 4th row and column of pictures in [0, 1]:

    image_to_image, inpainting, outpainting, area_composition, two_stages, tiled_decode
                                     the pictures
    latents.tiled, latents.mask      graphs/scene.png through VAEEncodeTiled (tiles of 128, overlap
                                     32), in the denoiser's units; the noise mask of outpainting
"""

import json
import os
import sys

import torch
import torch.nn.functional as F
from PIL import Image
from safetensors.torch import save_file

from make_stage_goldens import Pipeline, tokens

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
GRAPHS = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "../../../graphs")
OUT = sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "pipelines")
FOLDER = os.path.join(GRAPHS, "models/diffusers/tiny-scenes")
TILE, OVERLAP = 128, 32


class Graph:
    """Literals of a workflow, by titles of nodes."""

    def __init__(self, name):
        with open(os.path.join(GRAPHS, name + ".json")) as file:
            self.nodes = {
                node.get("_meta", {}).get("title", key): node["inputs"]
                for key, node in json.load(file).items()
            }

    def __getitem__(self, title):
        return self.nodes[title]


class Model(Pipeline):
    def __init__(self):
        super().__init__(FOLDER, torch.float32)
        with open(os.path.join(FOLDER, "scheduler", "scheduler_config.json")) as file:
            self.shift = json.load(file)["shift"]

    def simple(self, steps, denoise):
        """ComfyUI's "simple" levels; of a denoise below 1 the last of more steps."""
        whole = steps if denoise > 0.9999 else int(steps / denoise)
        t = torch.arange(1, 1001, dtype=torch.float32) / 1000
        table = self.shift * t / (1 + (self.shift - 1) * t)
        levels = [float(table[-(1 + int(i * 1000 / whole))]) for i in range(whole)] + [0.0]
        return levels[-(steps + 1) :]

    def texts(self, graph):
        texts = [graph["prompt"]["text"], graph["negative prompt"]["text"]]
        clip_ids, _ = tokens(FOLDER, "tokenizer", texts, 77)
        t5_ids, _ = tokens(FOLDER, "tokenizer_2", texts, 64)
        pooled, context, _ = self.encode(clip_ids, t5_ids)
        return pooled, context

    def draw(self, graph, title, latent, mask=None):
        """A KSampler with Euler steps. latent: in the denoiser's units. mask: of its cells."""
        node = graph[title]
        assert node["sampler_name"] == "euler" and node["scheduler"] == "simple"
        pooled, context = self.texts(graph)
        noise = torch.randn(
            latent.shape, generator=torch.Generator("cpu").manual_seed(node["seed"])
        )
        levels = self.simple(node["steps"], node["denoise"])
        at = lambda level: level * noise + (1 - level) * latent
        x = at(levels[0])
        for level, following in zip(levels, levels[1:]):
            seen = x if mask is None else x * mask + at(level) * (1 - mask)
            prompted, empty = self.velocity(
                torch.cat([seen, seen]), torch.tensor(level), pooled, context
            ).chunk(2)
            denoised = seen - level * (empty + node["cfg"] * (prompted - empty))
            if mask is not None:
                denoised = denoised * mask + latent * (1 - mask)
            x = x + (x - denoised) / level * (following - level)
        return x

    def raw_mean(self, pictures):
        """(1, h, w, 3) in [0, 1] to the autoencoder's units."""
        return self.vae.encode(pictures.movedim(-1, 1) * 2 - 1).latent_dist.mode()

    def scaled(self, raw):
        return (raw - self.vae.config.shift_factor) * self.vae.config.scaling_factor

    def raw(self, latent):
        return latent / self.vae.config.scaling_factor + self.vae.config.shift_factor

    def picture(self, latent):
        image = self.vae.decode(self.raw(latent)).sample
        return ((image + 1) / 2).clamp(0, 1).movedim(1, -1)


def tiled(samples, model, tile, overlap, ratio, channels):
    """One pass: tiles (rows, columns) whose weights fall to 1 / feather at their edges."""
    size = lambda n: round(n * ratio)
    sides = samples.shape[2:]
    out = torch.zeros(1, channels, size(sides[0]), size(sides[1]))
    if sides[0] <= tile[0] and sides[1] <= tile[1]:
        return model(samples)
    weights = torch.zeros_like(out)
    starts = [
        range(0, side - overlap, t - overlap) if side > t else [0] for side, t in zip(sides, tile)
    ]
    for top in starts[0]:
        for left in starts[1]:
            made = model(samples[:, :, top : top + tile[0], left : left + tile[1]])
            mask = torch.ones_like(made)
            feather = size(overlap)
            for axis in (2, 3):
                length = mask.shape[axis]
                if feather >= length:
                    continue
                for t in range(feather):
                    for at in (t, length - 1 - t):
                        mask.narrow(axis, at, 1).mul_((t + 1) / feather)
            place = (
                slice(None),
                slice(None),
                slice(size(top), size(top) + made.shape[2]),
                slice(size(left), size(left) + made.shape[3]),
            )
            out[place] += made * mask
            weights[place] += mask
    return out / weights


def tiled_decode(model, latent, tile, overlap):
    overlap, tile = min(overlap, tile // 4) // 8, tile // 8
    decode = lambda z: model.vae.decode(z).sample
    raw = model.raw(latent)
    shapes = [(tile * 2, tile // 2), (tile // 2, tile * 2), (tile, tile)]
    passes = [tiled(raw, decode, shape, overlap, 8, 3) for shape in shapes]
    return (((passes[0] + passes[1] + passes[2]) / 3 + 1) / 2).clamp(0, 1).movedim(1, -1)


def tiled_encode(model, pictures, tile, overlap):
    encode = lambda part: model.raw_mean(part.movedim(1, -1))
    shapes = [(tile, tile), (tile // 2, tile * 2), (tile * 2, tile // 2)]
    planes = pictures.movedim(-1, 1)
    passes = [tiled(planes, encode, shape, overlap, 1 / 8, 16) for shape in shapes]
    return model.scaled((passes[0] + passes[1] + passes[2]) / 3)


def of_cells(mask, latent):
    return F.interpolate(mask[None, None], size=latent.shape[2:], mode="bilinear")


def box(graph):
    """The mask of inpainting.json."""
    nothing, box, place = graph["nothing"], graph["all"], graph["mask"]
    mask = torch.full((nothing["height"], nothing["width"]), nothing["value"])
    mask[
        place["y"] : place["y"] + box["height"], place["x"] : place["x"] + box["width"]
    ] += box["value"]
    return mask


def outpainted(model, graph, scene):
    """ImageCrop, ImagePadForOutpaint, VAEEncodeForInpaint: latent and mask in pixels."""
    part, pad = graph["part"], graph["pad"]
    rows = slice(part["y"], part["y"] + part["height"])
    small = scene[:, rows, part["x"] : part["x"] + part["width"]]
    height, width = small.shape[1:3]
    whole = torch.full(
        (1, height + pad["top"] + pad["bottom"], width + pad["left"] + pad["right"], 3), 0.5
    )
    inner = (slice(pad["top"], pad["top"] + height), slice(pad["left"], pad["left"] + width))
    whole[(slice(None),) + inner] = small
    fade = torch.zeros(height, width)
    feather = pad["feathering"]
    for i in range(height):
        for j in range(width):
            d = min(
                i if pad["top"] else height,
                height - i if pad["bottom"] else height,
                j if pad["left"] else width,
                width - j if pad["right"] else width,
            )
            if d < feather:
                fade[i, j] = ((feather - d) / feather) ** 2
    mask = torch.ones(whole.shape[1:3])
    mask[inner] = fade
    grown = graph["encode"]["grow_mask_by"]
    kernel = torch.ones(1, 1, grown, grown)
    wide = F.conv2d(mask.round()[None, None], kernel, padding=-(-(grown - 1) // 2)).clamp(0, 1)
    kept = 1 - mask.round()
    blank = (whole - 0.5) * kept[None, :, :, None] + 0.5
    return (
        model.scaled(model.raw_mean(blank)),
        wide[0, 0, : mask.shape[0], : mask.shape[1]].round(),
    )


def cells_of(node):
    """Of ConditioningSetArea: rows and columns of the latent, its strength."""
    top, left = node["y"] // 8, node["x"] // 8
    rows = slice(top, top + node["height"] // 8)
    return rows, slice(left, left + node["width"] // 8), node["strength"]


def weight_of(area, shape):
    """The strength, which falls at borders that are not the picture's, over 8 cells or a quarter."""
    rows, columns, strength = area
    weight = torch.full((rows.stop - rows.start, columns.stop - columns.start), float(strength))
    for axis, (side, whole) in enumerate(zip((rows, columns), shape)):
        length = side.stop - side.start
        fade = min(8, length // 4)
        for t in range(fade):
            if side.start != 0:
                weight.narrow(axis, t, 1).mul_((t + 1) / fade)
            if side.stop != whole:
                weight.narrow(axis, length - 1 - t, 1).mul_((t + 1) / fade)
    return weight


def area_composition(model, graph):
    """A KSampler with Euler steps whose prompts have areas. The empty prompt, which has none, gets
    them as well; where several meet, predictions are averaged by weight."""
    node, size = graph["sampler"], graph["size"]
    texts = [graph["left text"]["text"], graph["right text"]["text"]]
    texts.append(graph["negative prompt"]["text"])
    clip_ids, _ = tokens(FOLDER, "tokenizer", texts, 77)
    t5_ids, _ = tokens(FOLDER, "tokenizer_2", texts, 64)
    pooled, context, _ = model.encode(clip_ids, t5_ids)
    rows, columns = size["height"] // 8, size["width"] // 8
    areas = [cells_of(graph["left"]), cells_of(graph["right"])]
    whole = (slice(0, rows), slice(0, columns), 1.0)
    prompted = [(0, areas[0]), (1, areas[1])]
    empty = [(2, whole), (2, areas[0]), (2, areas[1])]

    def predict(x, level, conds):
        total, weights = torch.zeros_like(x), torch.zeros(rows, columns)
        for text, area in conds:
            part = x[:, :, area[0], area[1]]
            made = model.velocity(
                part, torch.tensor(level), pooled[text : text + 1], context[text : text + 1]
            )
            weight = weight_of(area, (rows, columns))
            total[:, :, area[0], area[1]] += made * weight
            weights[area[0], area[1]] += weight
        return total / weights

    noise = torch.Generator("cpu").manual_seed(node["seed"])
    x = torch.randn((1, 16, rows, columns), generator=noise)
    levels = model.simple(node["steps"], node["denoise"])
    x = levels[0] * x
    for level, following in zip(levels, levels[1:]):
        without = predict(x, level, empty)
        velocity = without + node["cfg"] * (predict(x, level, prompted) - without)
        x = x + velocity * (following - level)
    return x


def main():
    os.makedirs(OUT, exist_ok=True)
    model = Model()
    with Image.open(os.path.join(GRAPHS, "scene.png")) as file:
        data = torch.frombuffer(bytearray(file.convert("RGB").tobytes()), dtype=torch.uint8)
        scene = data.reshape(1, file.height, file.width, 3).float() / 255
    encoded = model.scaled(model.raw_mean(scene))
    keep = {}

    graph = Graph("image_to_image")
    keep["image_to_image"] = model.picture(model.draw(graph, "sampler", encoded))

    graph = Graph("inpainting")
    mask = of_cells(box(graph), encoded)
    keep["inpainting"] = model.picture(model.draw(graph, "sampler", encoded, mask))

    graph = Graph("outpainting")
    blank, wide = outpainted(model, graph, scene)
    keep["latents.mask"] = wide[None, None]
    drawn = model.draw(graph, "sampler", blank, of_cells(wide, blank))
    keep["outpainting"] = model.picture(drawn)

    graph = Graph("area_composition")
    keep["area_composition"] = model.picture(area_composition(model, graph))

    graph = Graph("two_stages")
    size, larger = graph["size"], graph["larger"]
    first = torch.zeros(1, 16, size["height"] // 8, size["width"] // 8)
    first = model.draw(graph, "first stage", first)
    assert larger["upscale_method"] == "bilinear"
    second = F.interpolate(
        model.raw(first), size=(larger["height"] // 8, larger["width"] // 8), mode="bilinear"
    )
    keep["two_stages"] = model.picture(model.draw(graph, "second stage", model.scaled(second)))

    graph = Graph("tiled_decode")
    size, tiles = graph["size"], graph["picture"]
    latent = torch.zeros(1, 16, size["height"] // 8, size["width"] // 8)
    latent = model.draw(graph, "sampler", latent)
    keep["tiled_decode"] = tiled_decode(model, latent, tiles["tile_size"], tiles["overlap"])
    whole = model.picture(latent)
    psnr = -10 * torch.log10((keep["tiled_decode"] - whole).pow(2).mean()).item()
    print(f"tiled decode beside a whole one: {psnr:.2f} dB", flush=True)

    keep["latents.tiled"] = tiled_encode(model, scene, TILE, OVERLAP)
    stored = {
        name: (value if name.startswith("latents") else value[0, ::4, ::4]).contiguous()
        for name, value in keep.items()
    }
    save_file(stored, os.path.join(OUT, "pipelines.safetensors"))


if __name__ == "__main__":
    main()
