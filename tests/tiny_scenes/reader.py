"""An auxiliary task for the text encoders, thrown away after the training: read the scene back.

From T5's tokens, and from CLIP's pooled vector, it predicts which kind of object in which colour is
at each place, the sky and the ground, and which kinds and colours are named at all. The picture's
loss alone teaches the binding of "red", "house" and "left" late; this teaches it in minutes.
"""

import torch
import torch.nn.functional as F

from objects import COLOURS, KINDS
from scenes import GROUNDS, PLACES, SKIES

K, C, P = len(KINDS) + 1, len(COLOURS) + 1, len(PLACES)  # with one entry each for "none"
SIZES = [K] * P + [C] * P + [len(SKIES), len(GROUNDS), K - 1, C - 1]
UNKNOWN = -100  # what cross_entropy leaves out


class Reader(torch.nn.Module):
    def __init__(self, token_width=256, pooled_width=128, queries=P + 1, heads=4):
        super().__init__()
        self.queries = torch.nn.Parameter(torch.randn(queries, token_width))
        self.look = torch.nn.MultiheadAttention(token_width, heads, batch_first=True)
        self.from_tokens = torch.nn.Linear(queries * token_width, sum(SIZES))
        self.from_pooled = torch.nn.Sequential(
            torch.nn.Linear(pooled_width, 256), torch.nn.GELU(), torch.nn.Linear(256, sum(SIZES)))

    def loss(self, tokens, pooled, facts, named, told):
        """Mean loss of both readings.

        `facts` (n, 8) as captions.facts returns them, `named` (n, 3) whether the caption names
        places, ground and sky, `told` (n) whether the encoders saw the caption at all.
        """
        target = self._targets(facts, named, told)
        queries = self.queries.expand(len(tokens), -1, -1)
        seen = self.look(queries, tokens, tokens, need_weights=False)[0].flatten(1)
        return (self._loss(self.from_tokens(seen), *target, told)
                + self._loss(self.from_pooled(pooled), *target, told)) / 2

    @torch.no_grad()
    def score(self, tokens, pooled, facts, named):
        """Share of place questions (kind and colour, places named) answered right: from tokens,
        from the pooled vector."""
        told = torch.ones_like(facts[:, 0], dtype=torch.bool)
        choice, _ = self._targets(facts, named, told)
        queries = self.queries.expand(len(tokens), -1, -1)
        seen = self.look(queries, tokens, tokens, need_weights=False)[0].flatten(1)
        shares = []
        for logits in (self.from_tokens(seen), self.from_pooled(pooled)):
            parts = logits.split(SIZES, 1)[:2 * P]
            right = torch.stack([p.argmax(1) == t for p, t in zip(parts, choice.T)], 1)
            shares.append(right[choice[:, :2 * P] != UNKNOWN].float().mean().item())
        return shares

    @staticmethod
    def _targets(facts, named, told):
        """Choices (n, 8), UNKNOWN where not told, and presence (n, kinds + colours)."""
        places, ground, sky = (named.bool() & told[:, None]).split(1, 1)
        known = torch.cat([places.expand(-1, 2 * P), sky, ground], 1)
        choice = torch.where(known, facts, UNKNOWN)
        kinds = F.one_hot(facts[:, :P], K).amax(1)[:, :-1]
        colours = F.one_hot(facts[:, P:2 * P], C).amax(1)[:, :-1]
        return choice, torch.cat([kinds, colours], 1).float()

    @staticmethod
    def _loss(logits, choice, present, told):
        *choices, kinds, colours = logits.float().split(SIZES, 1)
        loss = sum(F.cross_entropy(part, t, ignore_index=UNKNOWN, reduction="sum")
                   for part, t in zip(choices, choice.T)) / (choice != UNKNOWN).sum().clamp(min=1)
        each = F.binary_cross_entropy_with_logits(torch.cat([kinds, colours], 1), present,
                                                  reduction="none").mean(1)
        return loss + (each * told).sum() / told.sum().clamp(min=1)
