"""Writes compression_goldens.safetensors beside this script: pictures, and what is left of them when PyAV codes each as
a video of one picture (H.264, veryfast) and decodes it again, as ComfyUI's LTXVPreprocess does.

    make_compression_goldens.py        (needs av, numpy, torch, safetensors)
"""

import io
from pathlib import Path

import av
import numpy as np
import torch
from safetensors.torch import save_file

SCALING = 2 | 0x80000  # SWS_BILINEAR, PyAV's own choice, and SWS_BITEXACT: the same on every processor


def compressed(picture, crf):
    rgb = (picture[: picture.shape[0] // 2 * 2, : picture.shape[1] // 2 * 2] * 255).astype(np.uint8)
    file = io.BytesIO()
    container = av.open(file, "w", format="mp4")
    stream = container.add_stream("libx264", rate=1, options={"crf": str(crf), "preset": "veryfast"})
    stream.height, stream.width = rgb.shape[:2]
    frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(rgb), format="rgb24").reformat(format="yuv420p", interpolation=SCALING)
    container.mux(stream.encode(frame))
    container.mux(stream.encode())
    container.close()
    file.seek(0)
    decoded = next(av.open(file).decode(video=0)).reformat(format="rgb24", interpolation=SCALING).to_ndarray()
    return decoded.astype(np.float32) / 255


y, x = np.mgrid[0:25, 0:35].astype(np.float32)
pictures = np.stack([np.stack([(np.sin(x / (4 + i)) + np.cos(y / 7) + 2) / 4, x / 34, ((x * y) % 31) / 30], -1)
                     for i in range(2)]).astype(np.float32)
goldens = {"in": torch.from_numpy(pictures)}
for crf in (10, 35, 60):
    goldens[f"crf{crf}"] = torch.from_numpy(np.stack([compressed(p, crf) for p in pictures]))
save_file(goldens, str(Path(__file__).parent / "compression_goldens.safetensors"))
