"""RT-DETR 4 in PyTorch, by the names of ComfyUI's file, of any size: HGNetV2 (Baidu), RT-DETR's encoder of three grids (Lv et al.
2023) with D-FINE's blocks, and D-FINE's decoder (Peng et al. 2024). Needs torch from PyPI."""

import torch
import torch.nn.functional as F
from torch import nn

POINTS = (3, 6, 3)
HEADS = 8


def conv(read, made, side, stride=1, groups=1, padding=None, bias=False):
    return nn.Conv2d(read, made, side, stride, (side - 1) // 2 if padding is None else padding, groups=groups, bias=bias)


class Normed(nn.Module):
    def __init__(self, read, made, side=1, stride=1, groups=1, act=True):
        super().__init__()
        self.conv, self.bn, self.act = conv(read, made, side, stride, groups), nn.BatchNorm2d(made), act

    def forward(self, x):
        x = self.bn(self.conv(x))
        return F.relu(x) if self.act else x


class Light(nn.Module):
    def __init__(self, read, made, side):
        super().__init__()
        self.conv1, self.conv2 = Normed(read, made, act=False), Normed(made, made, side, groups=made)

    def forward(self, x):
        return self.conv2(self.conv1(x))


class Stem(nn.Module):
    def __init__(self, middle, made):
        super().__init__()
        self.stem1 = Normed(3, middle, 3, 2)
        self.stem2a, self.stem2b = Normed(middle, middle // 2, 2), Normed(middle // 2, middle, 2)
        self.stem3, self.stem4 = Normed(2 * middle, middle, 3, 2), Normed(middle, made)

    def forward(self, x):
        wider = F.pad(self.stem1(x), (0, 1, 0, 1))
        beside = self.stem2b(F.pad(self.stem2a(wider), (0, 1, 0, 1)))
        return self.stem4(self.stem3(torch.cat((F.max_pool2d(wider, 2, 1), beside), 1)))


class Dense(nn.Module):
    def __init__(self, read, middle, made, layers, side, light, adds):
        super().__init__()
        kind = Light if light else Normed
        self.layers = nn.ModuleList(kind(middle if i else read, middle, side) for i in range(layers))
        self.aggregation = nn.Sequential(Normed(read + layers * middle, made // 2), Normed(made // 2, made))
        self.adds = adds

    def forward(self, x):
        all = [x]
        for layer in self.layers:
            all.append(layer(all[-1]))
        made = self.aggregation(torch.cat(all, 1))
        return made + x if self.adds else made


class Stage(nn.Module):
    def __init__(self, read, middle, made, blocks, down, light, side, layers):
        super().__init__()
        if down:
            self.downsample = Normed(read, read, 3, 2, groups=read, act=False)
        self.blocks = nn.Sequential(*(Dense(made if i else read, middle, made, layers, side, light, i > 0) for i in range(blocks)))

    def forward(self, x):
        return self.blocks(self.downsample(x) if hasattr(self, "downsample") else x)


class Backbone(nn.Module):
    def __init__(self, stem, stages):
        super().__init__()
        self.stem = Stem(*stem)
        self.stages = nn.ModuleList(Stage(*stage) for stage in stages)

    def forward(self, x):
        x, made = self.stem(x), []
        for stage in self.stages:
            x = stage(x)
            made.append(x)
        return made[1:]


class Fused(nn.Module):
    """A convolution whose statistics are part of its weights."""

    def __init__(self, read, made, side=1, stride=1, groups=1, act=True):
        super().__init__()
        self.conv, self.act = conv(read, made, side, stride, groups, bias=True), act

    def forward(self, x):
        x = self.conv(x)
        return F.silu(x) if self.act else x


class Csp(nn.Module):
    def __init__(self, read, made, depth):
        super().__init__()
        self.conv1, self.conv2 = Fused(read, made), Fused(read, made)
        self.bottlenecks = nn.Sequential(*(Fused(made, made, 3) for _ in range(depth)))

    def forward(self, x):
        return self.bottlenecks(self.conv1(x)) + self.conv2(x)


class Elan(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        half = width // 2
        self.cv1 = Fused(2 * width, 2 * width)
        self.cv2 = nn.Sequential(Csp(width, half, depth), Fused(half, half, 3))
        self.cv3 = nn.Sequential(Csp(half, half, depth), Fused(half, half, 3))
        self.cv4 = Fused(2 * width + 2 * half, width)

    def forward(self, x):
        one = self.cv1(x)
        two = self.cv2(one.chunk(2, 1)[1])
        return self.cv4(torch.cat((one, two, self.cv3(two)), 1))


class Smaller(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.cv1, self.cv2 = Fused(width, width, act=False), Fused(width, width, 3, 2, groups=width, act=False)

    def forward(self, x):
        return self.cv2(self.cv1(x))


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x, places):
        heads = lambda t: t.unflatten(-1, (HEADS, -1)).transpose(1, 2)
        q, k, v = self.q_proj(x + places), self.k_proj(x + places), self.v_proj(x)
        made = F.scaled_dot_product_attention(heads(q), heads(k), heads(v))
        return self.out_proj(made.transpose(1, 2).flatten(2))


class EncoderLayer(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.self_attn = Attention(width)
        self.linear1, self.linear2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x, places):
        x = self.norm1(x + self.self_attn(x, places))
        return self.norm2(x + self.linear2(F.gelu(self.linear1(x))))


def waves(rows, columns, width):
    """Of cells row by row: sines and cosines of the row, then of the column."""
    rates = 10000.0 ** -(torch.arange(width // 4) / (width // 4))
    part = lambda at: torch.cat(((at[:, None] * rates).sin(), (at[:, None] * rates).cos()), 1)
    cells = torch.arange(rows * columns)
    return torch.cat((part(cells // columns), part(cells % columns)), 1)[None]


class Layers(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(layers)


class Encoder(nn.Module):
    def __init__(self, read, width, inner, depth):
        super().__init__()
        self.input_proj = nn.ModuleList(Fused(channels, width, act=False) for channels in read)
        self.encoder = nn.ModuleList([Layers([EncoderLayer(width, inner)])])
        self.lateral_convs = nn.ModuleList(Fused(width, width, act=False) for _ in range(2))
        self.fpn_blocks = nn.ModuleList(Elan(width, depth) for _ in range(2))
        self.downsample_convs = nn.ModuleList(nn.Sequential(Smaller(width)) for _ in range(2))
        self.pan_blocks = nn.ModuleList(Elan(width, depth) for _ in range(2))

    def forward(self, grids):
        fine, middle, coarse = (proj(grid) for proj, grid in zip(self.input_proj, grids))
        rows, columns = coarse.shape[2:]
        x = coarse.flatten(2).transpose(1, 2)
        for layer in self.encoder[0].layers:
            x = layer(x, waves(rows, columns, x.shape[2]))
        coarse = self.lateral_convs[0](x.transpose(1, 2).unflatten(2, (rows, columns)))
        twice = lambda t: t.repeat_interleave(2, 2).repeat_interleave(2, 3)
        middle = self.lateral_convs[1](self.fpn_blocks[0](torch.cat((twice(coarse), middle), 1)))
        fine = self.fpn_blocks[1](torch.cat((twice(middle), fine), 1))
        middle = self.pan_blocks[0](torch.cat((self.downsample_convs[0](fine), middle), 1))
        return fine, middle, self.pan_blocks[1](torch.cat((self.downsample_convs[1](middle), coarse), 1))


class Mlp(nn.Module):
    def __init__(self, *widths):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = F.silu(layer(x))
        return self.layers[-1](x)


class Sampled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.sampling_offsets = nn.Linear(width, HEADS * sum(POINTS) * 2)
        self.attention_weights = nn.Linear(width, HEADS * sum(POINTS))

    def forward(self, x, boxes, grids):
        count = x.shape[1]
        offsets = self.sampling_offsets(x).view(count, HEADS, sum(POINTS), 2)
        shares = self.attention_weights(x).view(count, HEADS, sum(POINTS)).softmax(-1)
        per_grid = torch.tensor([1 / n for n in POINTS for _ in range(n)])[:, None]
        box = boxes[0][:, None, None]
        at = box[..., :2] + offsets * per_grid * box[..., 2:] * 0.5
        found = []
        for grid, part in zip(grids, at.split(POINTS, 2)):
            of_head = grid[0].unflatten(0, (HEADS, -1))
            found.append(F.grid_sample(of_head, (2 * part - 1).transpose(0, 1), align_corners=False))
        made = (torch.cat(found, 3) * shares.transpose(0, 1)[:, None]).sum(-1)
        return made.flatten(0, 1).T[None]


class Gate(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate, self.norm = nn.Linear(2 * width, 2 * width), nn.LayerNorm(width)

    def forward(self, x, y):
        a, b = self.gate(torch.cat((x, y), -1)).sigmoid().chunk(2, -1)
        return self.norm(a * x + b * y)


class DecoderLayer(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.self_attn, self.norm1 = Attention(width), nn.LayerNorm(width)
        self.cross_attn, self.gateway = Sampled(width), Gate(width)
        self.linear1, self.linear2, self.norm3 = nn.Linear(width, inner), nn.Linear(inner, width), nn.LayerNorm(width)

    def forward(self, x, places, boxes, grids):
        x = self.norm1(x + self.self_attn(x, places))
        x = self.gateway(x, self.cross_attn(x + places, boxes, grids))
        return self.norm3(x + self.linear2(F.relu(self.linear1(x))))


class Quality(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.reg_conf = Mlp(20, inner, 1)

    def forward(self, chances):
        best = chances.topk(4, -1).values
        return self.reg_conf(torch.cat((best, best.mean(-1, keepdim=True)), -1).flatten(2))


class Stack(nn.Module):
    def __init__(self, width, inner, depth, quality):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(width, inner) for _ in range(depth))
        self.lqe_layers = nn.ModuleList(Quality(quality) for _ in range(depth))


def table(bins, up=0.5, scale=8.0):
    edge = up * scale
    step = (edge + 1) ** (2 / (bins - 3))
    right = [step**i - 1 for i in range(1, bins // 2)] + [2 * edge]
    return torch.tensor([-x for x in reversed(right)] + [0.0] + right)


def anchors(rows, columns):
    """Logits (1, S, 4) and whether they count (1, S, 1), of a picture of so many pixels."""
    boxes = []
    for level, stride in enumerate((8, 16, 32)):
        h, w = rows // stride, columns // stride
        cells = torch.arange(h * w)
        middle = torch.stack(((cells % w + 0.5) / w, (cells // w + 0.5) / h), 1)
        boxes.append(torch.cat((middle, torch.full_like(middle, 0.05 * 2**level)), 1))
    boxes = torch.cat(boxes)[None]
    valid = ((boxes > 0.01) & (boxes < 0.99)).all(-1, keepdim=True)
    return torch.where(valid, boxes.logit(), torch.tensor(1e4)), valid.float()


class Decoder(nn.Module):
    def __init__(self, width, inner, depth, classes, quality, bins=33):
        super().__init__()
        self.decoder = Stack(width, inner, depth, quality)
        self.query_pos_head = Mlp(4, 2 * width, width)
        self.enc_output = nn.ModuleDict({"proj": nn.Linear(width, width), "norm": nn.LayerNorm(width)})
        self.enc_score_head, self.enc_bbox_head = nn.Linear(width, classes), Mlp(width, width, width, 4)
        self.dec_score_head = nn.ModuleList(nn.Linear(width, classes) for _ in range(depth))
        self.pre_bbox_head = Mlp(width, width, width, 4)
        self.dec_bbox_head = nn.ModuleList(Mlp(width, width, width, 4 * bins) for _ in range(depth))
        self.bins = bins

    def forward(self, grids, around, valid, queries):
        memory = torch.cat([grid.flatten(2).transpose(1, 2) for grid in grids], 1)
        codes = self.enc_output["norm"](self.enc_output["proj"](memory * valid))
        best = self.enc_score_head(codes).amax(-1).topk(queries, -1).indices[0]
        x = codes[:, best]
        told = self.enc_bbox_head(x) + around[:, best]
        boxes, before, corners = told.sigmoid(), 0, 0
        for i, layer in enumerate(self.decoder.layers):
            x = layer(x, self.query_pos_head(boxes).clamp(-10, 10), boxes, grids)
            if i == 0:
                begun = (self.pre_bbox_head(x) + boxes.clamp(1e-5, 1 - 1e-5).logit()).sigmoid()
            corners = corners + self.dec_bbox_head[i](x + before)
            chances = corners.unflatten(-1, (4, self.bins)).softmax(-1)
            away = 0.5 + chances @ table(self.bins) / 8
            low, high = begun[..., :2] - away[..., :2] * begun[..., 2:], begun[..., :2] + away[..., 2:] * begun[..., 2:]
            boxes, before = torch.cat(((low + high) / 2, high - low), -1), x
        return self.dec_score_head[-1](x) + self.decoder.lqe_layers[-1](chances), boxes


class Rtdetr(nn.Module):
    def __init__(self, stem, stages, width, inner, depth, decoder_inner, layers, classes=80, quality=64):
        super().__init__()
        self.backbone = Backbone(stem, stages)
        self.encoder = Encoder([stage[2] for stage in stages[1:]], width, inner, depth)
        self.decoder = Decoder(width, decoder_inner, layers, classes, quality)

    def forward(self, picture, queries):
        """picture (1, 3, H, W) -> logits (1, Q, K), boxes (1, Q, 4)."""
        return self.decoder(self.encoder(self.backbone(picture)), *anchors(*picture.shape[2:]), queries)


def published():
    """The one of the published file, rt_detr_v4-x-hgnet."""
    stages = [(64, 64, 128, 1, False, False, 3, 6), (128, 128, 512, 2, True, False, 3, 6), (512, 256, 1024, 5, True, True, 5, 6), (1024, 512, 2048, 2, True, True, 5, 6)]
    return Rtdetr((32, 64), stages, 256, 2048, 3, 1024, 6)


def true_file():
    """{name: [type, shape]} of ComfyUI's module of it."""
    cells = 80 * 80 + 40 * 40 + 20 * 20
    with torch.device("meta"):
        shapes = {name: ["I64" if name.endswith("tracked") else "F16", list(tensor.shape)] for name, tensor in published().state_dict().items()}
    for layer in range(6):
        shapes[f"decoder.decoder.layers.{layer}.cross_attn.num_points_scale"] = ["F16", [sum(POINTS)]]
    for name in ("decoder.up", "decoder.reg_scale", "decoder.decoder.up", "decoder.decoder.reg_scale"):
        shapes[name] = ["F16", [1]]
    return shapes | {"decoder.decoder.project": ["F16", [33]], "decoder.anchors": ["F16", [1, cells, 4]], "decoder.valid_mask": ["BOOL", [1, cells, 1]]}
