"""Trains both text encoders and the transformer on the latents of dataset.py.

    torchrun --nproc_per_node=4 flow.py --data DIR --out FOLDER --state FILE --seconds 1100

DIR holds vae, both tokenizers and the shards (this waits for them); FOLDER becomes a pipeline
folder. If FILE is there, the training goes on from it, and the seconds of all runs count together.
"""

import argparse
import json
import math
import os
import time

import torch

import folder
import prompts
from autoencoder import CHANNELS
from checker import lines, tally
from evaluate import Painter, judged
from model import SIDE, Model, new_text_encoders, new_transformer, pack, position_bias
from parallel import (RANK, WORLD, Clock, average_gradients, say, share_parameters, start_device,
                      sum_over_processes)
from reader import Reader
from vocabulary import Tokenizers


class Data:
    """This process's shard, on the device."""

    def __init__(self, path, device):
        shard = torch.load(path, mmap=True)
        self.latents = shard["latents"].to(device)
        self.clip, self.t5 = shard["clip"].to(device), shard["t5"].to(device)
        self.facts, self.named = shard["facts"].to(device), shard["named"].to(device)

    def batch(self, count, empty):
        """Packed latents, ids of one caption each (one in ten is left empty), and what the reader
        is asked: facts, what the caption names, whether it was told."""
        device = self.latents.device
        i = torch.randint(len(self.latents), (count,), device=device)
        k = torch.randint(self.clip.shape[1], (count,), device=device)
        told = torch.rand(count, device=device) >= 0.1
        clip, t5 = (torch.where(told[:, None], ids[i, k].long(), e)
                    for ids, e in zip((self.clip, self.t5), empty))
        return pack(self.latents[i].float()), clip, t5, self.facts[i], self.named[i, k], told


def noise_times(count, device):
    """Half of them logit-normal, half shifted towards noise, where the layout is decided; the
    density at pure noise is 1.5 instead of nearly 0."""
    u = torch.rand(count, device=device)
    spread = torch.sigmoid(torch.randn(count, device=device))
    return torch.where(torch.rand(count, device=device) < 0.5, spread, 3 * u / (1 + 2 * u))


class Trainer:
    """Model, reader, optimiser and the running average of the model's weights."""

    def __init__(self, args, tokenizers, device):
        torch.manual_seed(args.seed)
        sizes = (t.get_vocab_size() for t in (tokenizers.clip, tokenizers.t5))
        clip, t5 = new_text_encoders(*sizes, tokenizers.bos, tokenizers.eos)
        self.model = Model(clip, t5, new_transformer()).to(device).train()
        self.reader = Reader().to(device)
        bias = position_bias(self.model.t5)
        rest = [p for p in (*self.model.parameters(), *self.reader.parameters()) if p is not bias]
        groups = [{"params": [p for p in rest if p.ndim > 1], "weight_decay": 0.01, "factor": 1},
                  {"params": [p for p in rest if p.ndim < 2], "weight_decay": 0.0, "factor": 1},
                  {"params": [bias], "weight_decay": 0.0, "factor": 10}]
        self.optimizer = torch.optim.AdamW(groups, lr=0, betas=(0.9, 0.99),
                                           fused=device.type == "cuda")
        self.parameters = [p for group in groups for p in group["params"]]
        self.average = [p.detach().clone() for p in self.model.parameters()]
        self.args, self.step, self.spent, self.curve = args, 0, 0.0, []

    def loss_of(self, x0, noise, t, clip, t5, facts, named, told):
        """(Squared error of the velocity, the reader's loss)."""
        pooled, tokens = self.model.text(clip, t5)
        mixed = (1 - t[:, None, None]) * x0 + t[:, None, None] * noise
        v = self.model.velocity(mixed, t, pooled, tokens)
        flow = (v - (noise - x0)).square().mean()
        return flow, self.reader.loss(tokens.float(), pooled.float(), facts, named, told)

    def take_step(self, done):
        average_gradients(self.parameters)
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.0)
        rate = (min(1, (self.step + 1) / 300) * (0.5 + 0.5 * math.cos(math.pi * done))
                * self.args.lr + 1e-6)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        self.optimizer.step()
        self.step += 1
        with torch.no_grad():
            keep = min(0.999, self.step / (self.step + 10))
            torch._foreach_lerp_(self.average, list(self.model.parameters()), 1 - keep)

    def swap(self):
        """Exchanges the model's weights and their running average."""
        with torch.no_grad():
            for p, a in zip(self.model.parameters(), self.average):
                kept = p.clone()
                p.copy_(a)
                a.copy_(kept)

    def save(self, path):
        if RANK == 0:
            torch.save({"model": self.model.state_dict(), "reader": self.reader.state_dict(),
                        "optimizer": self.optimizer.state_dict(), "average": self.average,
                        "step": self.step, "spent": self.spent, "curve": self.curve}, path + ".new")
            os.replace(path + ".new", path)

    def resume(self, path):
        if not os.path.exists(path):
            return
        state = torch.load(path, map_location=self.average[0].device)
        self.model.load_state_dict(state["model"])
        self.reader.load_state_dict(state["reader"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.average = state["average"]
        self.step, self.spent, self.curve = state["step"], state["spent"], state["curve"]
        say(f"goes on from step {self.step}, {self.spent:.0f} s")


def progress(trainer, painter, count):
    """Prints the checker's counts on `count` prompts of each set, shared among the processes.
    Expects the averaged weights in the model."""
    numbered = list(enumerate(prompts.load()))
    chosen = [pair for name in prompts.SETS
              for pair in [p for p in numbered if p[1]["set"] == name][:count]]
    with torch.autocast(painter.device.type, torch.bfloat16):
        counts = tally(judged(painter, chosen[RANK::WORLD]))
    names = [*prompts.SETS, "sky and ground"]
    flat = sum_over_processes([n for name in names for n in counts.get(name, (0, 0))])
    total = {name: [int(flat[2 * i]), int(flat[2 * i + 1])] for i, name in enumerate(names)}
    say(f"at {trainer.spent:.0f} s, step {trainer.step}:", "; ".join(lines(total)))
    return total


def export(trainer, painter, args, count):
    """Saves the state and, with the averaged weights, the pipeline folder and its log."""
    trainer.save(args.state)
    trainer.swap()
    trainer.model.eval()
    total = progress(trainer, painter, count)
    if RANK == 0:
        folder.write(trainer.model, args.data, args.out)
        with open(os.path.join(args.out, "training.json"), "w") as file:
            json.dump({"curve": trainer.curve, "seconds": trainer.spent, "step": trainer.step,
                       "checked": total, "arguments": vars(args)}, file)
    trainer.model.train()
    trainer.swap()


def compiled(trainer, empty, args, device):
    """The loss function, compiled by a first use on noise: that takes a minute in which the shard
    may still be in the making."""
    run = torch.compile(trainer.loss_of) if args.compile else trainer.loss_of
    noise = torch.randn(args.batch, *pack(torch.zeros(1, CHANNELS, SIDE, SIDE)).shape[1:],
                        device=device)
    zeros = torch.zeros(args.batch, 11, dtype=torch.long, device=device)
    words = [e.repeat(args.batch, 1) for e in empty]
    with torch.autocast(device.type, torch.bfloat16):
        flow, read = run(noise, torch.randn_like(noise), noise_times(args.batch, device), *words,
                         zeros[:, :8].contiguous(), zeros[:, 8:].contiguous(), zeros[:, 0] == 0)
    (flow + args.reader * read).backward()
    trainer.optimizer.zero_grad(set_to_none=True)
    say("compiled")
    return run


def is_late(since, seconds):
    """Whether the time has passed by the first process's watch."""
    return sum_over_processes([float(RANK == 0 and time.time() - since > seconds)])[0] > 0


def train(run, trainer, data, empty, painter, args, device):
    clock, done, exported = Clock(args.seconds, trainer.spent), 0.0, time.time()
    flow_sum, read_sum, counted = 0.0, 0.0, 0
    while done < 1:
        x0, *words = data.batch(args.batch, empty)
        t = noise_times(args.batch, device)
        with torch.autocast(device.type, torch.bfloat16):
            flow, read = run(x0, torch.randn_like(x0), t, *words)
        trainer.optimizer.zero_grad(set_to_none=True)
        (flow + args.reader * read).backward()
        done = clock.done()
        trainer.take_step(done)
        flow_sum, read_sum = flow_sum + flow.detach(), read_sum + read.detach()
        counted += 1
        trainer.spent = clock.spent()
        if trainer.step % args.report == 0:
            means = [float(s) / counted for s in (flow_sum, read_sum)]
            flow_sum, read_sum, counted = 0.0, 0.0, 0
            trainer.curve.append((round(trainer.spent, 1), trainer.step, *means))
            bias = position_bias(trainer.model.t5)
            say(f"step {trainer.step} of {done:.1%} flow {means[0]:.4f} reader {means[1]:.4f} "
                f"position bias {bias.min().item():.1f}..{bias.max().item():.1f}")
        if trainer.step % 50 == 0 and done < 0.97 and is_late(exported, args.export_every):
            export(trainer, painter, args, args.check)
            exported = time.time()
    export(trainer, painter, args, args.check)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--state", required=True)
    parser.add_argument("--seconds", type=float, required=True, help="without the compilation")
    parser.add_argument("--batch", type=int, default=256, help="a process")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--reader", type=float, default=0.05, help="weight of the reader's loss")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--export-every", type=float, default=150, help="seconds")
    parser.add_argument("--check", type=int, default=48, help="prompts a set at each export")
    parser.add_argument("--report", type=int, default=250, help="steps between printed losses")
    parser.add_argument("--compile", type=int, default=1)
    args = parser.parse_args()
    device = start_device()
    tokenizers = Tokenizers(args.data)
    trainer = Trainer(args, tokenizers, device)
    trainer.resume(args.state)
    share_parameters([*trainer.model.parameters(), *trainer.reader.parameters()])
    say("parameters: clip, t5, transformer",
        *[sum(p.numel() for p in m.parameters())
          for m in (trainer.model.clip, trainer.model.t5, trainer.model.dit)])
    from diffusers import AutoencoderKL
    vae = AutoencoderKL.from_pretrained(f"{args.data}/vae", torch_dtype=torch.float32)
    painter = Painter(trainer.model, tokenizers, vae.to(device).eval())
    empty, shard = painter.ids([""]), os.path.join(args.data, f"shard_{RANK}.pt")
    run = compiled(trainer, empty, args, device)
    while not os.path.exists(shard):
        time.sleep(0.5)
    data = Data(shard, device)
    say("data", tuple(data.latents.shape), "a process, of", WORLD)
    torch.manual_seed(args.seed + 1000 * (trainer.step + 1) + RANK)
    train(run, trainer, data, empty, painter, args, device)


if __name__ == "__main__":
    main()
