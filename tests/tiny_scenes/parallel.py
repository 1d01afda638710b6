"""What the training stages share: one process a device, in step, started by torchrun or alone.

Every process keeps the whole model and a share of the pictures; after each backward pass the
gradients are averaged, so that all processes take the same step.
"""

import os
import time

import torch
import torch.distributed as dist

RANK = int(os.environ.get("RANK", 0))
WORLD = int(os.environ.get("WORLD_SIZE", 1))
_start = time.time()


def start_device():
    """Joins the process group and returns this process's device."""
    cuda = torch.cuda.is_available()
    if WORLD > 1:
        dist.init_process_group("nccl" if cuda else "gloo")
    if not cuda:
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
    torch.cuda.set_device(device)
    # cuDNN's attention failed in the backward pass on the H200 (PyTorch 2.11).
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    return device


def say(*words):
    if RANK == 0:
        print(f"[{time.time() - _start:6.1f}s]", *words, flush=True)


def share_parameters(parameters):
    """Gives every process the parameters of the first."""
    if WORLD > 1:
        for p in parameters:
            dist.broadcast(p.detach(), 0)


def average_gradients(parameters):
    """Replaces each gradient by its mean over the processes."""
    if WORLD == 1:
        return
    gradients = [p.grad for p in parameters]
    flat = torch.cat([g.reshape(-1) for g in gradients])
    dist.all_reduce(flat)
    flat /= WORLD
    parts = flat.split([g.numel() for g in gradients])
    torch._foreach_copy_(gradients, [part.view_as(g) for part, g in zip(parts, gradients)])


def sum_over_processes(values):
    """Elementwise sum of a list of numbers over all processes."""
    total = torch.tensor(values, dtype=torch.float64 if not torch.cuda.is_available()
                         else torch.float32, device="cuda" if torch.cuda.is_available() else "cpu")
    if WORLD > 1:
        dist.all_reduce(total)
    return total.tolist()


def gather(items):
    """The lists of all processes, one after the other."""
    if WORLD == 1:
        return items
    parts = [None] * WORLD
    dist.all_gather_object(parts, items)
    return [item for part in parts for item in part]


class Clock:
    """The share of a time budget that is spent, the same on all processes.

    The first process's watch counts, so that all take the same number of steps; it is read every
    ten steps, because reading waits for the device. `before` is time spent in an earlier run.
    """

    def __init__(self, seconds, before=0.0):
        self._seconds, self._before, self._calls, self._done = seconds, before, 0, 0.0
        self._began = None

    def done(self):
        if self._began is None:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self._began = time.time()
        if self._calls % 10 == 0:
            spent = [self.spent() if RANK == 0 else 0.0]
            self._done = min(1.0, sum_over_processes(spent)[0] / self._seconds)
        self._calls += 1
        return self._done

    def spent(self):
        """Seconds of this run and the ones before it, first step's compilation left out."""
        return self._before + (time.time() - self._began if self._began else 0.0)
