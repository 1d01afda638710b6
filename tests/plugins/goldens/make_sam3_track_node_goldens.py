"""Writes what SAM3_VideoTrack makes of a small video with a small random SAM 3.1, in ComfyUI's steps.

    make_sam3_track_node_goldens.py [OUT]        (default: sam3_track_nodes/ beside this file)

The detector and the texts are those of make_sam3_node_goldens.py, the tracker is that of make_sam3_tracker_goldens.py; how
things are found, followed, matched and left out is written down here after what ComfyUI does. Weights follow from their
names, but for some last layers of small heads, which are shifted and made larger: things differ then, and some are there:

    shapes.json             {"checkpoint": {name of the tensor: shape}}
    expected.safetensors    "frames" (N, 48, 64, 3), in bytes, and "first" (things, 48, 64), masks of the first; of each case "CASE.masks"
                            (N, things, SIDE, SIDE / 8), bytes of 8 pixels, "CASE.unsure", pixels whose logits are too near
                            to 0 to tell, counted over all; "CASE.scores"; "both.united" (frames, 48, 64), the first two things of every
                            third frame in one mask; "changed.NAME", weights that are not seeded ones
"""

import os
import sys

import numpy
import torch
import torch.nn.functional as F
from scipy import ndimage

import make_sam3_goldens as models
import make_sam3_node_goldens as nodes
import make_sam3_tracker_goldens as trackers

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
SIDE, HEIGHT, WIDTH, COUNT, SLOTS = nodes.SIDE, 48, 64, 10, 4
NONE = -1024.0
NEAR = 1e-4
CHOSEN = [0, 1]


def resized(x, size):
    """x (n, h, w)."""
    return F.interpolate(x[:, None], (size, size), mode="bilinear", align_corners=False)[:, 0]


def overlap(a, b):
    a, b = (a > 0).float().flatten(1), (b > 0).float().flatten(1)
    both, of_a, of_b = a @ b.T, a.sum(1)[:, None], b.sum(1)[None]
    return torch.maximum(both / (of_a + of_b - both).clamp(min=1), both / torch.minimum(of_a, of_b).clamp(min=1))


def without_holes(mask, most):
    def spots(which):
        labels, count = ndimage.label(which.numpy(), structure=numpy.ones((3, 3)))
        areas = numpy.bincount(labels.ravel(), minlength=count + 1)
        return torch.from_numpy(areas[labels])

    outside = mask <= 0
    mask = torch.where(outside & (spots(outside) <= most), 0.1, mask)
    inside = mask > 0
    return torch.where(inside & (spots(inside) <= min(int(inside.sum()) // 2, most)), -0.1, mask)


class Bank:
    """What is remembered: {frame: {memory, cells, pointers}}, each but cells a list of buckets."""

    def __init__(self):
        self.first, self.later = {}, {}


class Video:
    def __init__(self, detect, frames):
        self.detect, self.frames, self.changed = detect, frames, {}
        self.tracker = trackers.Tracker(detect.listed, SIDE, slots=SLOTS, changed=self.changed)
        self.grid, self.fine, self.wide = SIDE // models.PATCH, 4 * SIDE // models.PATCH, 16 * SIDE // models.PATCH

    def tell_apart(self, text, first):
        """Takes from codes and scores what all things have in common at the beginning, and makes the rest larger."""
        detector, root = self.detect.detector, self.tracker.root + "sam_mask_decoder."
        hidden, square = self.detect.hidden(self.frames[0])
        bias = self.detect.tracker.mask_decoder.pred_obj_score_head.proj_out.bias
        self.changed[root.replace("sam_mask", "interactive_sam_mask") + "pred_obj_score_head.layers.2.bias"] = bias.clone()
        for name, module, factor in (("segmentation_head.mask_predictor.mask_embed.layers.2", detector.mask_decoder.mask_embedder.layers[2], 16), ("dot_prod_scoring.hs_proj", detector.dot_product_scoring.query_proj, 64)):
            seen = []
            hook = module.register_forward_hook(lambda module, given, made: seen.append(made.flatten(0, -3)[-1]))
            models.found(detector, square, text)
            hook.remove()
            module.bias[:] = (module.bias - seen[-1].mean(0)) * factor
            module.weight[:] *= factor
            self.changed[f"detector.{name}.weight"], self.changed[f"detector.{name}.bias"] = module.weight.clone(), module.bias.clone()
        self.bank, self.nearest = Bank(), 1.0
        self.begin(0, hidden, (resized(first, SIDE) > 0.5).float())
        heads = {}
        original = self.tracker.w.head

        def head(x, name, inner, out):
            heads[name] = original(x, name, inner, out)
            return heads[name]

        self.tracker.w.head = head
        self.follow(1, self.detect.hidden(self.frames[1])[0], len(first))
        self.tracker.w.head = original
        for name, factor, more in ((root + "pred_obj_score_head", 8, 0.12), *((f"{root}output_hypernetworks_mlps.{i}", 4, 0) for i in range(trackers.TASKS))):
            made, at = heads[name], name + ".layers.2"
            weight, bias = (self.tracker.w(f"{at}.{kind}", *self.detect.listed[f"{at}.{kind}"]) for kind in ("weight", "bias"))
            self.changed[at + ".weight"] = weight * factor
            self.changed[at + ".bias"] = (bias - made.flatten(0, -2).mean(0)) * factor + more

    def buckets(self, things):
        return [range(begin, min(begin + SLOTS, things)) for begin in range(0, things, SLOTS)]

    def memory(self, hidden, shown, there, given):
        """shown (things, wide, wide), -1 to 1."""
        made = []
        for things in self.buckets(len(shown)):
            masks, trusted, absent = torch.zeros(1, SLOTS, self.wide, self.wide), torch.zeros(SLOTS), torch.ones(1, SLOTS)
            for slot, thing in enumerate(things):
                masks[0, slot], trusted[slot], absent[0, slot] = shown[thing], float(given[thing]), 0.0 if there[thing] else 1.0
            made.append(self.tracker.remember(hidden, masks, trusted, absent))
        return {"memory": [one["memory"] for one in made], "cells": made[0]["cells"]}

    def begin(self, number, hidden, masks):
        """masks (things, SIDE, SIDE), 0 or 1."""
        pointers = [torch.zeros(SLOTS, models.CHANNELS) for _ in self.buckets(len(masks))]
        for i, mask in enumerate(masks):
            logits = self.tracker.mask_logits(mask[None, None])
            prompt = F.interpolate(logits, (self.fine, self.fine), mode="bilinear", align_corners=False, antialias=True)
            score, made, absent = trackers.pointer(self.tracker, self.detect.tracker, hidden, prompt).values()
            pointers[i // SLOTS][i % SLOTS] = (made if score > 0 else absent)[0, 0]
        shown = torch.sigmoid(20 * masks - 10) * 2 - 1
        shown = F.interpolate(shown[:, None], (self.wide, self.wide), mode="bilinear", align_corners=False, antialias=True)[:, 0]
        told = self.memory(hidden, shown, masks.flatten(1).any(1), [True] * len(masks))
        self.bank.first = {number: {**told, "pointers": pointers}}

    def remembered(self, number, bucket):
        most = min(COUNT, 16)
        memories, pointers = [], []
        for told, one in self.bank.first.items():
            ago = number - told
            memories.append((one, 7 - ago - 1 if 0 < ago < 7 else 6))
            pointers.append((one, ago))
        for ago in range(6, 0, -1):
            if number - ago in self.bank.later:
                memories.append((self.bank.later[number - ago], ago - 1))
        for ago in range(1, most):
            if number - ago in self.bank.later:
                pointers.append((self.bank.later[number - ago], ago))

        def of(one, key, shape):
            return one[key][bucket].reshape(shape) if bucket < len(one[key]) else torch.zeros(shape)

        rows = [of(one, "memory", (1, self.grid**2, models.CHANNELS)) for one, _ in memories]
        known = [of(one, "pointers", (1, SLOTS, models.CHANNELS)) for one, _ in pointers]
        return {
            "memory": torch.cat(rows + known, 1),
            "past": torch.cat([one["cells"] for one, _ in memories], 1),
            "frames": torch.tensor([row for _, row in memories]),
            "ages": torch.tensor([float(ago) for _, ago in pointers]) / max(most - 1, 1),
        }

    def follow(self, number, hidden, count):
        masks, pointers = [], []
        for bucket, things in enumerate(self.buckets(count)):
            slots = torch.tensor([1.0 if slot < len(things) else 0.0 for slot in range(SLOTS)])
            made = self.tracker.see(hidden, slots=slots, **self.remembered(number, bucket))
            there = made["objects"][0] > 0
            self.nearest = min(self.nearest, float(made["objects"][0, : len(things)].abs().min()))
            pointers.append(torch.where(there, made["pointers"][0], made["absent"][0]) * slots[:, None])
            for slot in range(len(things)):
                qualities = made["qualities"][0, slot]
                top = qualities.topk(2).values
                self.nearest = min(self.nearest, float(top[0] - top[1]))
                mask = made[f"mask.{int(qualities.argmax())}"][0, slot]
                masks.append(mask if there[slot] else torch.full_like(mask, NONE))
        self.bank.later[number] = {"pointers": pointers}
        return torch.stack(masks)

    def remember(self, number, hidden, masks, given):
        if len(masks) > 1:
            best = masks.argmax(0)
            own = torch.stack([((best == i) & (mask > 0)).sum() for i, mask in enumerate(masks)])
            held = own.float() / (masks > 0).sum((1, 2)).float().clamp(min=1) >= 0.3
            self.events["shrunk"] += int((~held).sum())
            masks = torch.where(held[:, None, None], masks, masks.clamp(max=-10.0))
        logits = resized(masks, self.wide)
        self.bank.later[number].update(self.memory(hidden, torch.sigmoid(logits) * 2 - 1, (logits > 0).flatten(1).any(1), given))

    def found(self, square, texts, threshold):
        masks, scores = [], []
        for states in texts:
            made, _ = models.found(self.detect.detector, square, states)
            odds = made.pred_logits[0].sigmoid()
            self.nearest = min(self.nearest, float((odds - threshold).abs().min()))
            masks.append(made.pred_masks[0][odds > threshold])
            scores.append(odds[odds > threshold])
        masks, scores = torch.cat(masks), torch.cat(scores)
        order = scores.argsort(descending=True)
        masks, scores, kept = masks[order], scores[order], []
        for i in range(len(masks)):
            if not kept or overlap(masks[i : i + 1], masks[kept]).max() < 0.5:
                kept.append(i)
        return masks[kept], scores[kept]

    def hide(self, masks, hidden_at, number):
        much = overlap(masks, masks) >= 0.3
        hides = set()
        for i in range(len(masks)):
            for j in range(i + 1, len(masks)):
                if much[i, j] and hidden_at[i] > hidden_at[j] > -1:
                    hides.add(i)
                if much[i, j] and hidden_at[j] > hidden_at[i] > -1:
                    hides.add(j)
        for i in range(len(masks)):
            if i in hides or not (masks[i] > 0).any():
                hidden_at[i] = number
        for i in hides:
            masks[i] = -10.0
        self.events["hidden"] += len(hides)

    def match(self, number, hidden, masks, shown, found, scores, alive, most):
        """Masks of a frame with what was found: masks and what is shown of all things, and scores of new ones."""
        if len(found) == 0:
            for i in range(len(masks)):
                alive[i] = max(-4, alive[i] - 1)
            return masks, shown, []
        common = overlap(found, masks)
        for i in range(len(masks)):
            alive[i] = min(8, alive[i] + 1) if (common[:, i] >= 0.5).any() else max(-4, alive[i] - 1)
        masks, refreshed = masks.clone(), False
        for i in range(len(found)):
            best = int(common[i].argmax())
            if scores[i] >= 0.8 and common[i, best] >= 0.5:
                masks[best], shown[best], refreshed = found[i], resized(found[i : i + 1], SIDE)[0], True
                self.events["refreshed"] += 1
        if refreshed:
            self.remember(number, hidden, masks, [False] * len(masks))
        if len(masks) >= most:
            return masks, shown, []
        new = [i for i in range(len(found)) if common[i].max() < 0.5][: most - len(masks)]
        if new:
            before = len(masks)
            masks, shown = torch.cat((masks, found[new])), torch.cat((shown, resized(found[new], SIDE)))
            alive.extend([1] * len(new))
            self.remember(number, hidden, masks, [i >= before for i in range(len(masks))])
            self.events["added"] += len(new)
        return masks, shown, [float(scores[i]) for i in new]

    def run(self, first=None, texts=(), threshold=0.5, most=0, interval=1):
        """Logits (N, things, SIDE, SIDE), and scores."""
        most = most or 64
        self.bank, self.nearest, self.events = Bank(), 1.0, {"shrunk": 0, "hidden": 0, "refreshed": 0, "added": 0, "left_out": 0}
        alive, hidden_at, scores, things, all_shown = [], [], [], 0, []
        for number, frame in enumerate(self.frames):
            hidden, square = self.detect.hidden(frame)
            looks = bool(texts) and number % interval == 0 and things < most
            found, odds = self.found(square, texts, threshold) if looks else (torch.zeros(0, self.fine, self.fine), [])
            shown = None
            if number == 0 and first is not None:
                masks = (resized(first, SIDE) > 0.5).float()
                self.begin(number, hidden, masks)
                alive, scores, shown = [8] * len(masks), [1.0] * len(masks), 20 * masks - 10
            elif things:
                masks = self.follow(number, hidden, things)
                shown = resized(masks, SIDE)
                masks = torch.stack([without_holes(mask, 16) for mask in masks])
                self.hide(masks, hidden_at, number)
                self.remember(number, hidden, masks, [False] * things)
                if looks:
                    masks, shown, new = self.match(number, hidden, masks, shown, found, odds, alive, most)
                    scores.extend(new)
            elif len(found):
                found, odds = found[:most], odds[:most]
                masks = (resized(found, SIDE) > 0).float()
                self.begin(number, hidden, masks)
                alive, scores, shown = [1] * len(masks), odds.tolist(), resized(found, SIDE)
            if shown is not None:
                things = len(shown)
                hidden_at.extend([-1] * (things - len(hidden_at)))
                for i in range(things) if texts else ():
                    if alive[i] <= 0:
                        shown[i] = NONE
                        self.events["left_out"] += 1
            all_shown.append(shown if shown is not None else torch.full((0, SIDE, SIDE), NONE))
        whole = torch.full((len(self.frames), things, SIDE, SIDE), NONE)
        for number, shown in enumerate(all_shown):
            whole[number, : len(shown)] = shown
        return whole, scores


def packed(bits):
    return (bits.unflatten(-1, (-1, 8)).to(torch.int32) << torch.arange(8, dtype=torch.int32)).sum(-1).to(torch.uint8)


def video():
    """Blots that move over smooth colours."""
    coarse = torch.rand((1, 3, 4, 5), generator=torch.Generator().manual_seed(4))
    ground = F.interpolate(coarse, (HEIGHT, WIDTH), mode="bilinear", align_corners=False)[0].permute(1, 2, 0)
    y, x = torch.meshgrid(torch.arange(HEIGHT), torch.arange(WIDTH), indexing="ij")
    frames = []
    for number in range(COUNT):
        frame = ground.clone()
        for at, colour in (((14 + 2 * number, 20), (0.9, 0.2, 0.1)), ((50 - 3 * number, 30), (0.1, 0.8, 0.9))):
            near = torch.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / 60.0)[..., None]
            frame = frame * (1 - near) + torch.tensor(colour) * near
        frames.append((frame * 255).round() / 255)
    return torch.stack(frames)


def main(out):
    detect, expected = nodes.Detect(), {}
    frames = video()
    expected["frames"] = (frames * 255).round().to(torch.uint8)
    tracked = Video(detect, frames)
    y, x = torch.meshgrid(torch.arange(HEIGHT), torch.arange(WIDTH), indexing="ij")
    spots = [((x - 8 - 9 * i) ** 2 + (y - 12 - 5 * i) ** 2 < 60 + 20 * i).float() for i in range(5)]
    expected["first"] = torch.stack(spots).to(torch.uint8)
    cat, photo = detect.states(nodes.CAT), detect.states(nodes.PHOTO)
    tracked.tell_apart(cat, torch.stack(spots[:4]))
    cases = {
        "five": {"first": torch.stack(spots)},
        "text": {"texts": [cat], "threshold": 0.3, "most": 4},
        "texts": {"texts": [photo, cat], "threshold": 0.35, "interval": 2},
        "one": {"texts": [cat], "threshold": 0.25, "most": 1},
        "none": {"texts": [cat], "threshold": 0.95},
        "both": {"first": torch.stack(spots[:1]), "texts": [cat], "threshold": 0.25, "most": 3, "interval": 3},
    }
    for case, how in cases.items():
        logits, scores = tracked.run(**how)
        expected[case + ".masks"] = packed(logits > 0)
        expected[case + ".unsure"] = (logits.flatten().abs() <= NEAR).nonzero()[:, 0].to(torch.int32)
        expected[case + ".scores"] = torch.tensor(scores)
        if case == "both":  # two of the things united, as SAM3_TrackToMask has them, at every third frame
            united = (logits[::3, CHOSEN] > 0).any(1, True).float()
            expected["both.united"] = F.interpolate(united, (HEIGHT, WIDTH), mode="bilinear", align_corners=False)[:, 0]
        print(case, tuple(logits.shape), (logits > 0).float().mean((2, 3)).T.tolist(), scores, tracked.events, "nearest", tracked.nearest, "unsure", int((logits.abs() <= NEAR).sum()))
    expected.update({"changed." + name: tensor for name, tensor in tracked.changed.items()})
    listed = {key: shape for key, shape in detect.listed.items() if "convs.3." not in key}
    trackers.save(out, {"checkpoint": listed}, expected)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "sam3_track_nodes"))
