"""Trains the 16-channel KL autoencoder (each side reduced 8 times) on whole pictures.

Whole pictures, and a loss that weighs the outer 16 pixels more, because an autoencoder trained on
crops leaves specks near the edges: its group normalisation sees other statistics there.

    torchrun --nproc_per_node=4 autoencoder.py --out DIR       writes DIR/vae, DIR/autoencoder.json
"""

import argparse
import json
import math
import os

import numpy as np
import torch
import torch.nn.functional as F

from objects import SIZE
from parallel import RANK, WORLD, Clock, average_gradients, say, share_parameters, start_device
from render import Rendering

CHANNELS, BORDER = 16, 16
TEST_SEED = 900_000_000  # no training picture is drawn from these seeds


def new_autoencoder():
    from diffusers import AutoencoderKL
    return AutoencoderKL(
        in_channels=3, out_channels=3, latent_channels=CHANNELS, sample_size=SIZE,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
        block_out_channels=(32, 64, 128, 128), layers_per_block=2, norm_num_groups=32,
        act_fn="silu", use_quant_conv=False, use_post_quant_conv=False, force_upcast=False)


def to_floats(pictures):
    """(n, SIZE, SIZE, 3) uint8 to (n, 3, SIZE, SIZE) in [-1, 1]."""
    return pictures.permute(0, 3, 1, 2).float() / 127.5 - 1


def border_weight(device):
    """(1, 1, SIZE, SIZE): 3 in the outer BORDER pixels, 1 inside, scaled to a mean of 1."""
    weight = torch.full((1, 1, SIZE, SIZE), 3.0, device=device)
    weight[..., BORDER:-BORDER, BORDER:-BORDER] = 1.0
    return weight / weight.mean()


def picture_loss(a, b, weight):
    """Absolute error over four scales, so that edges and flat areas both count, and squared error,
    which is what specks are made of."""
    loss = 10 * ((a - b).square() * weight).mean()
    for _ in range(4):
        loss = loss + ((a - b).abs() * weight).mean()
        a, b, weight = F.avg_pool2d(a, 2), F.avg_pool2d(b, 2), F.avg_pool2d(weight, 2)
    return loss


def errors(vae, pictures, device):
    """PSNR in dB (over all pixels, peak 1) and, in 1/255: mean and 99.9th percentile of the
    absolute error in the outer BORDER pixels and inside. Pictures: uint8, on any device."""
    squares, outer, inner = [], [], []
    inside = torch.zeros(SIZE, SIZE, dtype=torch.bool, device=device)
    inside[BORDER:-BORDER, BORDER:-BORDER] = True
    for k in range(0, len(pictures), 10):
        x = to_floats(pictures[k:k + 10].to(device))
        with torch.no_grad():
            y = vae.decode(vae.encode(x).latent_dist.mode()).sample.clamp(-1, 1)
        e = (x - y).abs() / 2
        squares.append(e.square().mean((1, 2, 3)))
        outer.append((e[..., ~inside] * 255).flatten().cpu().numpy())
        inner.append((e[..., inside] * 255).flatten().cpu().numpy())
    outer, inner = np.concatenate(outer), np.concatenate(inner)
    return {"pictures": len(pictures),
            "psnr_db": -10 * math.log10(torch.cat(squares).mean().item()),
            "outer_mean": float(outer.mean()), "inner_mean": float(inner.mean()),
            "outer_p999": float(np.percentile(outer, 99.9)),
            "inner_p999": float(np.percentile(inner, 99.9))}


def latent_statistics(vae, pictures, device):
    """Mean and standard deviation of the latents' means over some pictures."""
    with torch.no_grad():
        z = torch.cat([vae.encode(to_floats(pictures[k:k + 16].to(device))).latent_dist.mean
                       for k in range(0, min(1024, len(pictures)), 16)])
    return z.mean().item(), z.std().item()


def train(vae, pictures, args, device):
    """Trains in place, and leaves the running average of the weights in `vae`. Returns the losses
    as (seconds, loss) pairs."""
    weight = border_weight(device)
    parameters = list(vae.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=0, betas=(0.9, 0.99), weight_decay=1e-3)

    def loss_of(x):
        posterior = vae.encode(x).latent_dist
        y = vae.decode(posterior.sample()).sample
        mean, logvar = posterior.mean.float(), posterior.logvar.float()
        kl = 0.5 * (mean.square() + logvar.exp() - 1 - logvar).mean()
        return picture_loss(y.float(), x.float(), weight) + 1e-4 * kl

    run = torch.compile(loss_of, dynamic=False) if args.compile else loss_of
    average = [p.detach().clone() for p in parameters]
    clock, step, curve = Clock(args.seconds), 0, []
    done = 0.0
    while done < 1:
        index = torch.randint(len(pictures), (args.batch,), device=pictures.device)
        x = to_floats(pictures[index]).to(device, memory_format=torch.channels_last)
        with torch.autocast(device.type, torch.bfloat16):
            loss = run(x)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        average_gradients(parameters)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        done = clock.done()
        rate = args.lr * min(1, (step + 1) / 200) * (0.5 + 0.5 * math.cos(math.pi * done)) + 1e-6
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        step += 1
        with torch.no_grad():
            keep = min(0.998, step / (step + 10))
            torch._foreach_lerp_(average, [p.detach() for p in parameters], 1 - keep)
        if step % args.report == 0:
            curve.append((round(clock.spent(), 1), round(loss.item(), 4)))
            say(f"autoencoder step {step} of {done:.0%} loss {curve[-1][1]}")
    with torch.no_grad():
        for p, a in zip(parameters, average):
            p.copy_(a)
    say("autoencoder steps", step)
    return curve


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--pictures", type=int, default=60000, help="over all processes")
    parser.add_argument("--seconds", type=float, default=240, help="without the compilation")
    parser.add_argument("--batch", type=int, default=16, help="a process")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--test-pictures", type=int, default=500)
    parser.add_argument("--report", type=int, default=250, help="steps between two printed losses")
    parser.add_argument("--compile", type=int, default=1)
    args = parser.parse_args()
    workers = max(1, (os.cpu_count() - 4) // WORLD)
    count = args.pictures // WORLD
    rendering = Rendering(count, RANK * count, 1, workers)
    tests = Rendering(args.test_pictures, TEST_SEED, 1, workers) if RANK == 0 else None
    pictures = torch.from_numpy(rendering.wait()[0])
    test_pictures = torch.from_numpy(tests.wait()[0]) if tests else None
    device = start_device()
    say("rendered", tuple(pictures.shape), "a process, of", WORLD)
    torch.manual_seed(0)
    vae = new_autoencoder().to(device, memory_format=torch.channels_last)
    share_parameters(vae.parameters())
    torch.manual_seed(RANK)
    curve = train(vae, pictures.to(device), args, device)
    if RANK == 0:
        vae.eval()
        mean, std = latent_statistics(vae, pictures, device)
        vae.register_to_config(shift_factor=round(mean, 4), scaling_factor=round(1 / std, 4))
        vae.to(torch.float16).save_pretrained(os.path.join(args.out, "vae"))
        report = errors(vae.float(), test_pictures, device)
        say("autoencoder", report)
        with open(os.path.join(args.out, "autoencoder.json"), "w") as file:
            json.dump({"errors": report, "curve": curve, "seconds": args.seconds}, file, indent=1)


if __name__ == "__main__":
    main()
