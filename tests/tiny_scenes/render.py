"""Renders many scenes with many processes into one shared array."""

import mmap
import os
import random
from multiprocessing import get_context

import numpy as np

from captions import describe, facts
from objects import SIZE
from scenes import draw_scene, random_scene

CHUNK = 250
_shared = None  # the array's memory, inherited by the forked workers


def _render_range(span):
    first, last, seed, captions_each = span
    os.nice(5)
    pictures = np.frombuffer(_shared, dtype=np.uint8).reshape(-1, SIZE, SIZE, 3)
    rows, captions = [], []
    for i in range(first, last):
        rng = random.Random(seed + i)
        scene = random_scene(rng)
        pictures[i] = np.asarray(draw_scene(scene, rng))
        rows.append(facts(scene))
        captions += [describe(scene, rng) for _ in range(captions_each)]
    return rows, captions


class Rendering:
    """Scenes being rendered in the background; picture i depends on seed + i alone.

    Construct it before the process touches the GPU: the workers are forked. `wait` returns
    pictures (count, SIZE, SIZE, 3) uint8, facts (count, 8) int64, a flat list of `captions_each`
    captions a picture, and what each caption names, (count * captions_each, 3) int64.
    """

    def __init__(self, count, seed, captions_each, workers):
        global _shared
        self._memory = _shared = mmap.mmap(-1, count * SIZE * SIZE * 3)
        self._count = count
        spans = [(i, min(i + CHUNK, count), seed, captions_each) for i in range(0, count, CHUNK)]
        self._pool = get_context("fork").Pool(workers)
        self._parts = self._pool.map_async(_render_range, spans, chunksize=1)
        _shared = None

    def wait(self):
        parts = self._parts.get()
        self._pool.close()
        pictures = np.frombuffer(self._memory, dtype=np.uint8)
        captions = [pair for _, part in parts for pair in part]
        return (pictures.reshape(self._count, SIZE, SIZE, 3),
                np.array([row for rows, _ in parts for row in rows], dtype=np.int64),
                [caption for caption, _ in captions],
                np.array([named for _, named in captions], dtype=np.int64))
