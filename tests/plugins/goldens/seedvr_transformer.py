"""SeedVR2's transformer (NaDiT) as a PyTorch module of one video at a time: what heddle's is held to. Written from the
architecture that the publisher's files have (tensors by their names) and that ComfyUI runs."""

import math

import torch
import torch.nn.functional as F
from torch import nn

EPS = 1e-5


def pieces(length, size, shifted):
    """[begin, end) of the windows along an axis."""
    if not shifted or size >= length:
        ends = [size * (i + 1) for i in range(math.ceil(length / size))]
    else:
        ends = [int((i + 0.5) * size) for i in range(math.ceil((length - 0.5) / size) + 1)]
    ends = [min(end, length) for end in ends]
    return [(a, b) for a, b in zip([0] + ends, ends) if b > a]


def windows(grid, shifted):
    t, h, w = grid
    scale = math.sqrt(45 * 80 / (h * w))
    sizes = math.ceil(min(t, 30) / 4), math.ceil(round(h * scale) / 3), math.ceil(round(w * scale) / 3)
    along = [pieces(n, size, shifted) for n, size in zip(grid, sizes)]
    return [(slice(*a), slice(*b), slice(*c)) for a in along[0] for b in along[1] for c in along[2]]


def rms(x, weight=None):
    return F.rms_norm(x, x.shape[-1:], weight, EPS)


def turned(x, angles):
    """x (S, H, d); the first pairs by angles (S, pairs)."""
    n = 2 * angles.shape[-1]
    a, b = x[..., :n].unflatten(-1, (-1, 2)).unbind(-1)
    c, s = angles.cos()[:, None], angles.sin()[:, None]
    return torch.cat([torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2), x[..., n:]], -1)


def axial(places, waves):
    """Three axes' places -> (tokens, 3 waves)."""
    along = [p[:, None] * waves for p in places]
    shape = [len(p) for p in places] + [len(waves)]
    return torch.cat([a.view(*[len(a) if i == k else 1 for i in range(3)], -1).expand(shape) for k, a in enumerate(along)], -1).flatten(0, 2)


class Two(nn.Module):
    """What video and text have of their own ("vid", "txt"), or share ("all")."""

    def __init__(self, make, shared):
        super().__init__()
        for name in ["all"] if shared else ["vid", "txt"]:
            setattr(self, name, make())

    def of(self, stream):
        return getattr(self, "all" if hasattr(self, "all") else stream)


class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return rms(x, self.weight)


class Mlp(nn.Module):
    def __init__(self, d, gated, hidden):
        super().__init__()
        if gated:
            self.proj_in_gate = nn.Linear(d, hidden, bias=False)
        self.proj_out, self.proj_in = nn.Linear(hidden, d, bias=not gated), nn.Linear(d, hidden, bias=not gated)

    def forward(self, x):
        if hasattr(self, "proj_in_gate"):
            return self.proj_out(F.silu(self.proj_in_gate(x)) * self.proj_in(x))
        return self.proj_out(F.gelu(self.proj_in(x), approximate="tanh"))


class Ada(nn.Module):
    def __init__(self, d, names):
        super().__init__()
        for name in names:
            setattr(self, name, nn.Parameter(torch.zeros(d)))


class Rope(nn.Module):
    def __init__(self, freqs):
        super().__init__()
        self.rope = nn.Module()
        self.rope.register_buffer("freqs", freqs)


class Attention(nn.Module):
    def __init__(self, d, head, shared, language):
        super().__init__()
        self.heads, self.language = d // head, language
        self.proj_qkv = Two(lambda: nn.Linear(d, 3 * d, bias=False), shared)
        self.proj_out = Two(lambda: nn.Linear(d, d), shared)
        self.norm_q, self.norm_k = Two(lambda: Norm(head), shared), Two(lambda: Norm(head), shared)
        if language:
            size = head // 3
            self.waves = 1 / 10000 ** (torch.arange(0, size, 2).float() / size)
        else:
            self.waves = torch.linspace(1, 128, head // 2 // 3 // 2) * math.pi
        self.rope = Rope(self.waves.clone())

    def forward(self, vid, txt, grid, shifted):
        """(L, D), (T, D)."""
        def heads(x, stream):
            q, k, v = self.proj_qkv.of(stream)(x).unflatten(-1, (3, self.heads, -1)).unbind(1)
            return self.norm_q.of(stream)(q), self.norm_k.of(stream)(k), v

        q, k, v = (x.unflatten(0, grid) for x in heads(vid, "vid"))
        tq, tk, tv = heads(txt, "txt")
        if self.language:
            own = torch.arange(len(txt)).float()
            angles = (own[:, None] * self.waves).repeat(1, 3)
            tq, tk = turned(tq, angles), turned(tk, angles)
        seen, read = torch.empty_like(q), []
        for window in windows(grid, shifted):
            wq, wk, wv = (x[window] for x in (q, k, v))
            size = wq.shape[:3]
            if self.language:
                places = [torch.arange(n).float() + (len(txt) if i == 0 else 0) for i, n in enumerate(size)]
            else:
                places = [torch.linspace(-1, 1, n) for n in size]
            angles = axial(places, self.waves)
            wq, wk = turned(wq.flatten(0, 2), angles), turned(wk.flatten(0, 2), angles)
            joint = [torch.cat(pair).transpose(0, 1)[None] for pair in ((wq, tq), (wk, tk), (wv.flatten(0, 2), tv))]
            out = F.scaled_dot_product_attention(*joint)[0].transpose(0, 1)
            seen[window] = out[: -len(txt)].unflatten(0, size)
            read.append(out[-len(txt):])
        return self.proj_out.of("vid")(seen.flatten(0, 2).flatten(1)), self.proj_out.of("txt")(torch.stack(read).mean(0).flatten(1))


class Layer(nn.Module):
    def __init__(self, d, head, gated, hidden, shared, language, is_last):
        super().__init__()
        self.attn = Attention(d, head, shared, language)
        self.mlp = Two(lambda: Mlp(d, gated, hidden), shared)
        names = [f"{part}_{what}" for part in ("attn", "mlp") for what in ("shift", "scale", "gate")]
        self.ada = Two(lambda: Ada(d, names), shared)
        self.is_last = is_last

    def forward(self, vid, txt, emb, grid, shifted):
        """emb (D, 2, 3)."""
        def told(stream, part, x, what):
            ada, (shift, scale, gate) = self.ada.of(stream), emb[:, ("attn", "mlp").index(part)].unbind(-1)
            if what == "in":
                return x * (scale + getattr(ada, part + "_scale")) + shift + getattr(ada, part + "_shift")
            return x * (gate + getattr(ada, part + "_gate"))

        shown = rms(txt) if self.is_last else told("txt", "attn", rms(txt), "in")
        seen, read = self.attn(told("vid", "attn", rms(vid), "in"), shown, grid, shifted)
        vid = vid + told("vid", "attn", seen, "out")
        vid = vid + told("vid", "mlp", self.mlp.of("vid")(told("vid", "mlp", rms(vid), "in")), "out")
        if not self.is_last:
            txt = txt + told("txt", "attn", read, "out")
            txt = txt + told("txt", "mlp", self.mlp.of("txt")(told("txt", "mlp", rms(txt), "in")), "out")
        return vid, txt


class Transformer(nn.Module):
    """separate: layers in which video and text have weights of their own. language: 3B."""

    def __init__(self, d=2560, head=128, layers=32, separate=10, gated=True, hidden=6912, language=True, context=5120, channels=16,
                 texts=(58, 64)):
        super().__init__()
        self.register_buffer("positive_conditioning", torch.zeros(texts[0], context))
        self.register_buffer("negative_conditioning", torch.zeros(texts[1], context))
        self.vid_in, self.vid_out, self.emb_in = nn.Module(), nn.Module(), nn.Module()
        self.vid_in.proj = nn.Linear(4 * (2 * channels + 1), d)
        self.txt_in = nn.Linear(context, d)
        self.emb_in.proj_in, self.emb_in.proj_hid, self.emb_in.proj_out = nn.Linear(256, d), nn.Linear(d, d), nn.Linear(d, 6 * d)
        self.blocks = nn.ModuleList(
            [Layer(d, head, gated, hidden, i >= separate, language, language and i == layers - 1) for i in range(layers)])
        self.vid_out.proj = nn.Linear(d, 4 * channels)
        if language:
            self.vid_out_norm, self.vid_out_ada = Norm(d), Ada(d, ["out_shift", "out_scale"])

    def embedded(self, timestep):
        angles = timestep * torch.exp(-math.log(10000) * torch.arange(128).float() / 128)
        e = self.emb_in
        return e.proj_out(F.silu(e.proj_hid(F.silu(e.proj_in(torch.cat([angles.sin(), angles.cos()])))))).unflatten(0, (-1, 2, 3))

    def forward(self, x, timestep, context, condition):
        """x (B, C, F, H, W), timestep a number, context (1|B, T, W), condition (1|B, C + 1, F, H, W)."""
        emb, out = self.embedded(timestep), []
        for b in range(len(x)):
            both = torch.cat([x[b], condition[b % len(condition)]])
            c, f, h, w = both.shape
            grid = (f, h // 2, w // 2)
            vid = self.vid_in.proj(both.reshape(c, f, grid[1], 2, grid[2], 2).permute(1, 2, 4, 3, 5, 0).flatten(0, 2).flatten(1))
            txt = self.txt_in(context[b % len(context)])
            for i, layer in enumerate(self.blocks):
                vid, txt = layer(vid, txt, emb, grid, i % 2 == 1)
            if hasattr(self, "vid_out_norm"):
                # The publisher keeps shift and scale by their number, which is that of the attention's.
                shift, scale, _ = emb[:, 0].unbind(-1)
                vid = self.vid_out_norm(vid) * (scale + self.vid_out_ada.out_scale) + shift + self.vid_out_ada.out_shift
            out.append(self.vid_out.proj(vid).reshape(*grid, 2, 2, -1).permute(5, 0, 1, 3, 2, 4).reshape(-1, f, h, w))
        return torch.stack(out)
