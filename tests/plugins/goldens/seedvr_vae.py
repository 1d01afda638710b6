"""SeedVR2's causal autoencoder as a PyTorch module, on whole videos: what heddle's is held to. Written from the
architecture that the publisher's files have (tensors by their names) and that ComfyUI runs."""

import torch
import torch.nn.functional as F
from torch import nn

SCALE = 0.9152  # of latents, for the transformer
GROUPS, EPS = 32, 1e-6


def by_frame(norm, x):
    """A group norm of each frame of (B, C, T, H, W)."""
    b, c, t, h, w = x.shape
    return norm(x.transpose(1, 2).reshape(b * t, c, h, w)).reshape(b, t, c, h, w).transpose(1, 2)


class Causal(nn.Conv3d):
    """Sees a frame and those before; before the first is the first. pad: pixels of nothing (left, right, above, below)."""

    def __init__(self, i, o, kernel=(3, 3, 3), stride=1, pad=(1, 1, 1, 1)):
        super().__init__(i, o, kernel, stride)
        self.pad = pad

    def forward(self, x):
        before = self.kernel_size[0] - 1
        return super().forward(F.pad(torch.cat([x[:, :, :1]] * before + [x], 2), self.pad))


class Resnet(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(GROUPS, i, EPS), Causal(i, o)
        self.norm2, self.conv2 = nn.GroupNorm(GROUPS, o, EPS), Causal(o, o)
        if i != o:
            self.conv_shortcut = nn.Conv3d(i, o, 1)

    def forward(self, x):
        y = self.conv1(F.silu(by_frame(self.norm1, x)))
        y = self.conv2(F.silu(by_frame(self.norm2, y)))
        return y + (self.conv_shortcut(x) if hasattr(self, "conv_shortcut") else x)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.group_norm = nn.GroupNorm(GROUPS, c, EPS)
        self.to_q, self.to_k, self.to_v = (nn.Linear(c, c) for _ in range(3))
        self.to_out = nn.ModuleList([nn.Linear(c, c)])

    def forward(self, x):
        b, c, t, h, w = x.shape
        y = by_frame(self.group_norm, x).permute(0, 2, 3, 4, 1).reshape(b * t, h * w, c)
        y = F.scaled_dot_product_attention(self.to_q(y), self.to_k(y), self.to_v(y))
        return x + self.to_out[0](y).reshape(b, t, h, w, c).permute(0, 4, 1, 2, 3)


class Middle(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.resnets = nn.ModuleList([Resnet(c, c), Resnet(c, c)])
        self.attentions = nn.ModuleList([Attention(c)])

    def forward(self, x):
        return self.resnets[1](self.attentions[0](self.resnets[0](x)))


class Up(nn.Module):
    def __init__(self, c, time):
        super().__init__()
        self.frames = 2 if time else 1
        self.upscale_conv, self.conv = nn.Conv3d(c, c * 4 * self.frames, 1), Causal(c, c)

    def forward(self, x):
        b, c, t, h, w = x.shape
        y = self.upscale_conv(x).reshape(b, 2, 2, self.frames, c, t, h, w)
        y = y.permute(0, 4, 5, 3, 6, 1, 7, 2).reshape(b, c, t * self.frames, 2 * h, 2 * w)
        if self.frames == 2:
            y = torch.cat([y[:, :, :1], y[:, :, 2:]], 2)
        return self.conv(y)


class Down(nn.Module):
    def __init__(self, c, time):
        super().__init__()
        self.conv = Causal(c, c, (3 if time else 1, 3, 3), (2 if time else 1, 2, 2), (0, 1, 0, 1))

    def forward(self, x):
        return self.conv(x)


class Level(nn.Module):
    def __init__(self, i, o, resnets, name=None, resample=None):
        super().__init__()
        self.resnets = nn.ModuleList([Resnet(i if n == 0 else o, o) for n in range(resnets)])
        self.name = name
        if name:
            setattr(self, name, nn.ModuleList([resample]))

    def forward(self, x):
        for resnet in self.resnets:
            x = resnet(x)
        return getattr(self, self.name)[0](x) if self.name else x


class Encoder(nn.Module):
    def __init__(self, latent, widths, resnets):
        super().__init__()
        last = len(widths) - 1
        self.conv_in = Causal(3, widths[0])
        self.down_blocks = nn.ModuleList([
            Level(widths[max(n - 1, 0)], c, resnets, *(("downsamplers", Down(c, n >= last - 2)) if n < last else ()))
            for n, c in enumerate(widths)])
        self.mid_block = Middle(widths[-1])
        self.conv_norm_out, self.conv_out = nn.GroupNorm(GROUPS, widths[-1], EPS), Causal(widths[-1], 2 * latent)

    def forward(self, x):
        x = self.conv_in(x)
        for level in self.down_blocks:
            x = level(x)
        return self.conv_out(F.silu(by_frame(self.conv_norm_out, self.mid_block(x))))


class Decoder(nn.Module):
    def __init__(self, latent, widths, resnets):
        super().__init__()
        back, last = widths[::-1], len(widths) - 1
        self.conv_in = Causal(latent, back[0])
        self.mid_block = Middle(back[0])
        self.up_blocks = nn.ModuleList([
            Level(back[max(n - 1, 0)], c, resnets + 1, *(("upsamplers", Up(c, n < 2)) if n < last else ()))
            for n, c in enumerate(back)])
        self.conv_norm_out, self.conv_out = nn.GroupNorm(GROUPS, back[-1], EPS), Causal(back[-1], 3)

    def forward(self, z):
        x = self.mid_block(self.conv_in(z))
        for level in self.up_blocks:
            x = level(x)
        return self.conv_out(F.silu(by_frame(self.conv_norm_out, x)))


class Autoencoder(nn.Module):
    """Pictures (B, 3, T, H, W) from -1 to 1, latents (B, C, t, h, w) in the autoencoder's units."""

    def __init__(self, latent=16, widths=(128, 256, 512, 512), resnets=2):
        super().__init__()
        self.encoder, self.decoder = Encoder(latent, widths, resnets), Decoder(latent, widths, resnets)

    def moments(self, x):
        mean, logvar = self.encoder(x).chunk(2, 1)
        return mean, logvar.clamp(-30, 20)
