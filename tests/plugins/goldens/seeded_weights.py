"""Weights that follow from a tensor's name alone, so that goldens need not hold them: tests/support/seeded_weights.h
makes the same numbers, bit by bit. Needs numpy and torch."""

import numpy
import torch


def _hash(name):
    value = 0x811C9DC5
    for byte in name.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value


def _is_norm(name):
    return name.endswith(("gamma", "running_var")) or ("norm" in name and name.endswith("weight"))


def seeded(name, shape):
    """f32: around 1 for weights of norms, around 0 for all others, such that products keep their size."""
    if not shape:
        return seeded(name, (1, 1)).reshape(())
    count = int(numpy.prod(shape))
    with numpy.errstate(over="ignore"):
        x = numpy.uint32(_hash(name)) + numpy.arange(count, dtype=numpy.uint32) * numpy.uint32(0x9E3779B9)
        x ^= x >> numpy.uint32(16)
        x *= numpy.uint32(0x85EBCA6B)
        x ^= x >> numpy.uint32(13)
        x *= numpy.uint32(0xC2B2AE35)
        x ^= x >> numpy.uint32(16)
    # Of 24 bits, from -1 to 1: exact, and so is what powers of two make of it.
    u = (x >> numpy.uint32(8)).astype(numpy.float32) * numpy.float32(2.0**-23) - numpy.float32(1)
    if _is_norm(name):
        u = numpy.float32(1) + u * numpy.float32(0.25)
    elif len(shape) == 1 or name.endswith("_token"):
        u = u * numpy.float32(0.25)
    elif "embed_tokens" not in name:
        halvings, room = -1, 1
        while room < count // shape[0]:
            halvings, room = halvings + 1, room * 4
        u = u * numpy.float32(2.0**-halvings)
    return torch.from_numpy(u.reshape(shape))


def load(model, file_name=lambda name: name):
    """Gives the model the weights of a file whose tensors are called file_name(its own name). Returns
    {name in the file: shape}."""
    shapes, state = {}, {}
    for name, tensor in model.state_dict().items():
        shapes[file_name(name)] = list(tensor.shape)
        state[name] = seeded(file_name(name), tuple(tensor.shape))
    model.load_state_dict(state)
    model.eval()
    return shapes
