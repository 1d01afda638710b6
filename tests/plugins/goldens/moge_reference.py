"""MoGe 1 and 2 in PyTorch: DINOv2 is transformers', the rest modules of our own after Wang et al. 2024, 2025 and ComfyUI's
steps. Needs torch, transformers, scipy."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from scipy.optimize import least_squares
from transformers import Dinov2Config, Dinov2Model
from transformers.models.dinov2 import modeling_dinov2

PATCH, TAPS = 14, 4
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def places_of(self, embeddings, height, width):
    """Places of a grid: as many cells give the table as it is; others its cubic interpolation, whose scale has a tenth of a
    cell added, as Meta's code has it."""
    table = self.position_embeddings
    side = round((table.shape[1] - 1) ** 0.5)
    rows, columns = height // PATCH, width // PATCH
    if rows * columns == side * side:
        return table
    cells = table[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
    cells = F.interpolate(cells, scale_factor=((rows + 0.1) / side, (columns + 0.1) / side), mode="bicubic")
    assert cells.shape[2:] == (rows, columns)
    return torch.cat((table[:, :1], cells.permute(0, 2, 3, 1).flatten(1, 2)), 1)


modeling_dinov2.Dinov2Embeddings.interpolate_pos_encoding = places_of


def dino(width, depth, table, gated=False):
    config = Dinov2Config(hidden_size=width, num_hidden_layers=depth, num_attention_heads=width // 64, image_size=table * PATCH, patch_size=PATCH, use_swiglu_ffn=gated, layer_norm_eps=1e-6, attn_implementation="eager")
    return Dinov2Model(config)


NAMES = (("embeddings.patch_embeddings.projection", "patch_embed.proj"), ("embeddings.position_embeddings", "pos_embed"), ("embeddings.", ""), ("encoder.layer.", "blocks."), ("layer_scale1.lambda1", "ls1.gamma"), ("layer_scale2.lambda1", "ls2.gamma"), ("attention.o_proj", "attn.proj"), ("mlp.down_proj", "mlp.w3"), ("layernorm.", "norm."))
# Modules that are parts of one in Meta's files, from the first rows on.
JOINED = ((("attention.q_proj", "attention.k_proj", "attention.v_proj"), "attn.qkv"), (("mlp.gate_proj", "mlp.up_proj"), "mlp.w12"))


def dino_name(name):
    """The name in Meta's files, and which part of that tensor, of how many."""
    place = 0, 1
    for parts, whole in JOINED:
        for i, part in enumerate(parts):
            if part + "." in name:
                name, place = name.replace(part, whole), (i, len(parts))
    for old, new in NAMES:
        name = name.replace(old, new)
    return name, *place


def load(model, make, listed):
    """Gives a model of this file tensors make(name, shape), and lists those."""
    state = {}
    for name, tensor in model.state_dict().items():
        shape, told, part, parts = list(tensor.shape), name, 0, 1
        if ".dino." in "." + name:
            before, rest = ("", name[5:]) if name.startswith("dino.") else ("encoder.", name.split("dino.", 1)[1])
            rest, part, parts = dino_name(rest)
            told = f"{before}backbone.{rest}"
        shape[:1] = [parts * size for size in shape[:1]]
        listed[told] = shape
        numbers = {"image_mean": MEAN, "image_std": STD}.get(told.rsplit(".", 1)[-1])
        state[name] = make(told, tuple(shape)).chunk(parts)[part] if numbers is None else torch.tensor(numbers).reshape(shape)
    model.load_state_dict(state, assign=True)
    return model.eval()


def conv(read, made, side=3):
    return nn.Conv2d(read, made, side, padding=side // 2, padding_mode="replicate")


class Residual(nn.Module):
    def __init__(self, channels, normed, times=1):
        super().__init__()
        inner = times * channels
        norms = (nn.GroupNorm(1, channels), nn.GroupNorm(max(inner // 32, 1), inner)) if normed else (nn.Identity(), nn.Identity())
        self.layers = nn.Sequential(norms[0], nn.ReLU(), conv(channels, inner), norms[1], nn.ReLU(), conv(inner, channels))

    def forward(self, x):
        return x + self.layers(x)


def view(height, width, aspect):
    """(1, 2, height, width): u and v."""
    diagonal = (1 + aspect**2) ** 0.5
    line = lambda count, span: (torch.arange(count, dtype=torch.float64) * 2 + 1 - count) / count * span
    u, v = line(width, aspect / diagonal), line(height, 1 / diagonal)
    return torch.stack(torch.meshgrid(u, v, indexing="xy"))[None].float()


class Stack(nn.Module):
    def __init__(self, read, channels, made, residuals, kinds, normed=False):
        super().__init__()
        self.input_blocks = nn.ModuleList(conv(a, b, 1) for a, b in zip(read, channels))
        self.resamplers = nn.ModuleList(nn.Sequential(nn.ConvTranspose2d(a, b, 2, 2) if kind == "learnt" else nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False), conv(b if kind == "learnt" else a, b)) for a, b, kind in zip(channels, channels[1:], kinds))
        self.res_blocks = nn.ModuleList(nn.Sequential(*(Residual(c, normed) for _ in range(count))) for c, count in zip(channels, residuals))
        self.output_blocks = nn.ModuleList(nn.Identity() if out is None else conv(c, out, 1) for c, out in zip(channels, made))

    def forward(self, levels):
        x, made = 0, []
        for i, level in enumerate(levels):
            x = self.res_blocks[i](x + self.input_blocks[i](level))
            made.append(self.output_blocks[i](x))
            if i + 1 < len(levels):
                x = self.resamplers[i](x)
        return made


class Encoder(nn.Module):
    def __init__(self, width, depth, table, cells, gated=False):
        super().__init__()
        self.dino = dino(width, depth, table, gated)
        self.output_projections = nn.ModuleList(conv(width, cells, 1) for _ in range(TAPS))
        self.register_buffer("image_mean", torch.zeros(1, 3, 1, 1))
        self.register_buffer("image_std", torch.ones(1, 3, 1, 1))


def tapped(model, pixels, taps):
    """Normed states (B, 1 + S, D) behind layers of DINOv2."""
    states = model(pixels, output_hidden_states=True).hidden_states
    return [model.layernorm(states[tap + 1]) for tap in taps]


def cells_of(states, projections, rows, columns):
    return sum(project(state[:, 1:].transpose(1, 2).unflatten(2, (rows, columns))) for project, state in zip(projections, states))


class Second(nn.Module):
    def __init__(self, width, depth, table, cells, channels, residuals, head_residuals, scale, normal=True, normed=False, gated=False):
        super().__init__()
        kinds = ["learnt"] * (len(channels) - 2) + ["linear"]
        self.depth = depth
        self.encoder = Encoder(width, depth, table, cells, gated)
        self.neck = Stack([cells + 2] + [2] * (len(channels) - 1), channels, [None] * len(channels), residuals, kinds, normed)
        head = lambda made: Stack(channels, channels, [None] * (len(channels) - 1) + [made], head_residuals, kinds, normed)
        self.points_head, self.mask_head = head(3), head(1)
        if normal:
            self.normal_head = head(3)
        self.scale_head = nn.Sequential(nn.Linear(width, scale), nn.ReLU(), nn.Linear(scale, scale), nn.ReLU(), nn.Linear(scale, 1))

    def raw(self, squares, aspect):
        """Of pictures (B, 3, 14 R, 14 C)."""
        rows, columns = squares.shape[2] // PATCH, squares.shape[3] // PATCH
        e = self.encoder
        states = tapped(e.dino, (squares - e.image_mean) / e.image_std, [self.depth // TAPS * (i + 1) - 1 for i in range(TAPS)])
        levels = [view(rows << i, columns << i, aspect).expand(len(squares), -1, -1, -1) for i in range(len(self.neck.res_blocks))]
        self.cells = levels[0] = torch.cat((cells_of(states, e.output_projections, rows, columns), levels[0]), 1)
        levels = self.neck(levels)
        made = {"points": self.points_head(levels)[-1], "mask": self.mask_head(levels)[-1], "scale": self.scale_head(states[-1][:, 0])}
        if hasattr(self, "normal_head"):
            made["normal"] = self.normal_head(levels)[-1]
        return made

    def predict(self, pictures, tokens):
        """Of pictures (B, 3, H, W) what every pixel shows."""
        size = pictures.shape[2:]
        aspect = size[1] / size[0]
        rows, columns = round((tokens / aspect) ** 0.5), round((tokens * aspect) ** 0.5)
        squares = F.interpolate(pictures, (rows * PATCH, columns * PATCH), mode="bilinear", antialias=True)
        made = self.raw(squares, aspect)
        large = {name: F.interpolate(made[name], size, mode="bilinear").movedim(1, -1) for name in made if name != "scale"}
        out = {"points": large["points"], "mask": large["mask"][..., 0].sigmoid(), "scale": made["scale"][:, 0].exp()}
        if "normal" in large:
            out["normal"] = F.normalize(large["normal"], dim=-1)
        return out


class First(nn.Module):
    def __init__(self, width, depth, table, cells, channels, last):
        super().__init__()
        self.depth, self.dino = depth, dino(width, depth, table)
        self.register_buffer("image_mean", torch.zeros(1, 3, 1, 1))
        self.register_buffer("image_std", torch.ones(1, 3, 1, 1))
        self.head = nn.Module()
        self.head.projects = nn.ModuleList(conv(width, cells, 1) for _ in range(TAPS))
        grown = lambda a, b: nn.Sequential(nn.ConvTranspose2d(a + 2, b, 2, 2), conv(b, b))
        self.head.upsample_blocks = nn.ModuleList(nn.Sequential(grown(a, b), Residual(b, True, 2), Residual(b, True, 2)) for a, b in zip([cells, *channels], channels))
        self.head.output_block = nn.ModuleList(nn.Sequential(conv(channels[-1] + 2, last), nn.ReLU(), conv(last, made, 1)) for made in (3, 1))

    def raw(self, squares, size):
        """Of pictures (B, 3, 14 R, 14 C); size: of the last layers."""
        rows, columns = squares.shape[2] // PATCH, squares.shape[3] // PATCH
        states = tapped(self.dino, (squares - self.image_mean) / self.image_std, range(self.depth - TAPS, self.depth))
        x, aspect = cells_of(states, self.head.projects, rows, columns), size[1] / size[0]
        seen = lambda x: torch.cat((x, view(*x.shape[2:], aspect).expand(len(x), -1, -1, -1)), 1)
        for block in self.head.upsample_blocks:
            x = block(seen(x))
        x = seen(F.interpolate(x, size, mode="bilinear"))
        return dict(zip(("points", "mask"), (block(x) for block in self.head.output_block)))

    def predict(self, pictures, tokens):
        size = pictures.shape[2:]
        factor = ((tokens * PATCH**2) / (size[0] * size[1])) ** 0.5
        inner = int(size[0] * factor), int(size[1] * factor)
        smaller = F.interpolate(pictures, inner, mode="bicubic", antialias=True)
        squares = F.interpolate(smaller, [side // PATCH * PATCH for side in inner], mode="bilinear", antialias=True)
        made = self.raw(squares, inner)
        large = {name: F.interpolate(tensor, size, mode="bilinear").movedim(1, -1) for name, tensor in made.items()}
        return {"points": large["points"], "mask": large["mask"][..., 0]}


def solved(uv, xyz, focal=None):
    """The shift of depths, and the focal length, by which points (N, 3) lie where they are seen."""
    def off(shift):
        at = xyz[:, :2] / (xyz[:, 2] + shift)[:, None]
        f = (at * uv).sum() / (at**2).sum() if focal is None else focal
        return (f * at - uv).ravel()

    shift = float(least_squares(off, x0=0.0, ftol=1e-3, method="lm").x[0])
    at = xyz[:, :2] / (xyz[:, 2] + shift)[:, None]
    return shift, focal if focal is not None else float((at * uv).sum() / (at**2).sum())


def camera(points, mask, focal=None):
    """Shift and focal length of one picture's points (H, W, 3), of those that a mask shows."""
    height, width = mask.shape
    few = lambda x: F.interpolate(x[None].float(), (64, 64), mode="nearest")[0]
    uv, xyz = few(view(height, width, width / height)[0]).permute(1, 2, 0), few(points.permute(2, 0, 1)).permute(1, 2, 0)
    kept = few(mask[None])[0] > 0
    if kept.sum() < 2:
        return 0.0, 1.0 if focal is None else focal
    return solved(uv[kept].double().numpy(), xyz[kept].double().numpy(), focal)


def geometry(model, pictures, level, fov=0.0, projects=True, masked=True):
    """What MoGeInference makes of pictures (B, H, W, 3)."""
    least, most = (1200, 2500) if isinstance(model, First) else (1200, 3600)
    made = model.predict(pictures.permute(0, 3, 1, 2), int(least + level / 9 * (most - least)))
    height, width = pictures.shape[1:3]
    aspect = width / height
    diagonal = (1 + aspect**2) ** 0.5
    of_fov = lambda degrees: aspect / diagonal / math.tan(math.radians(degrees / 2))
    out = {}
    for i in range(len(pictures)):
        raw, mask = made["points"][i], made["mask"][i] > 0.5
        points = torch.cat((raw[..., :2] * raw[..., 2:].exp(), raw[..., 2:].exp()), -1)
        shift, focal = camera(points, mask, of_fov(fov) if fov > 0 else None)
        if fov <= 0 and not (math.isfinite(focal) and focal > 0):
            shift, focal = camera(points, mask, of_fov(60.0))
        points[..., 2] += shift
        if isinstance(model, Second):
            mask = mask & (points[..., 2] > 0)
        fy = focal / 2 * diagonal
        lens = torch.tensor([[fy / aspect, 0, 0.5], [0, fy, 0.5], [0, 0, 1]])
        depth = points[..., 2].clone()
        if projects:
            u, v = torch.meshgrid((torch.arange(width) + 0.5) / width - 0.5, (torch.arange(height) + 0.5) / height - 0.5, indexing="xy")
            points = torch.stack((u / lens[0, 0] * depth, v / lens[1, 1] * depth, depth), -1)
        if "scale" in made:
            points, depth = points * made["scale"][i], depth * made["scale"][i]
        one = {"points": points, "depth": depth, "intrinsics": lens, "mask": mask}
        if "normal" in made:
            one["normal"] = made["normal"][i]
        if masked:
            one["points"] = torch.where(mask[..., None], points, math.inf)
            one["depth"] = torch.where(mask, depth, math.inf)
            if "normal" in one:
                one["normal"] = one["normal"] * mask[..., None]
        for name, tensor in one.items():
            out.setdefault(name, []).append(tensor)
    return {name: torch.stack(tensors) for name, tensors in out.items()}


def turbo(x):
    """The polynomial that Mikhailov gives for his colours."""
    powers = torch.stack([x**i for i in range(6)], -1)
    red = (0.13572138, 4.61539260, -42.66032258, 132.13108234, -152.94239396, 59.28637943)
    green = (0.09140261, 2.19418839, 4.84296658, -14.18503333, 4.27729857, 2.82956604)
    blue = (0.10667330, 12.64194608, -60.58204836, 110.36276771, -89.90310912, 27.34824973)
    return (powers @ torch.tensor((red, green, blue)).T).clamp(0, 1)


def rendered(found, output):
    """What MoGeRender draws: (B, H, W, 3)."""
    if output == "mask":
        return found["mask"].float()[..., None].expand(-1, -1, -1, 3)
    if output.startswith("depth"):
        drawn = []
        for depth in found["depth"]:
            seen = depth.isfinite() & (depth > 0)
            near = torch.where(seen, 1 / depth.clamp_min(1e-6), 0)
            low, high = (torch.quantile(near[seen], q) for q in (0.001, 0.999)) if seen.any() else (0, 1)
            drawn.append(torch.where(seen, ((near - low) / max(high - low, 1e-6)).clamp(0, 1), 0))
        drawn = torch.stack(drawn)
        return turbo(drawn) if output == "depth_colored" else drawn[..., None].expand(-1, -1, -1, 3)
    normal = found.get("normal")
    if normal is None:
        there = found["points"].isfinite().all(-1, keepdim=True)
        points = torch.where(there, found["points"], 0)
        across, down = torch.zeros_like(points), torch.zeros_like(points)
        across[:, :, 1:-1] = points[:, :, 2:] - points[:, :, :-2]
        down[:, 1:-1] = points[:, 2:] - points[:, :-2]
        normal = torch.where(there, F.normalize(torch.cross(down, across, dim=-1), dim=-1), 0)
    signs = torch.tensor([1.0, -1.0 if output == "normal_opengl" else 1.0, -1.0])
    return (normal * signs / 2 + 0.5).clamp(0, 1)


# Of published files: ViT-L; of the second the rest is that of configs/train/v2.json in MoGe's repository. The files are
# then as large as Comfy-Org's, 599.3 and 631.2 MiB.
def true_first():
    return First(1024, 24, 37, 512, [256, 128, 64], 32)


def true_second():
    return Second(1024, 24, 37, 1024, [1024, 256, 128, 64, 32], [0, 2, 2, 2, 0], [0, 1, 1, 1, 0], 1024)


def true_file(model):
    listed = {}
    with torch.device("meta"):
        load(model(), lambda name, shape: torch.empty(shape), listed)
    return listed
