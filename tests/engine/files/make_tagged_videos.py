"""Writes tagged.mp4 and tagged.webm into videos/ beside this script: one black picture and the tags that ComfyUI gives.

    make_tagged_videos.py        (needs av, numpy)
"""

import json
from pathlib import Path

import av
import numpy as np

FOLDER = Path(__file__).parent / "videos"
PROMPT = {"1": {"class_type": "A", "inputs": {"text": "\u00e9"}}}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, codec, options in (("tagged.mp4", "libx264", {"movflags": "use_metadata_tags"}), ("tagged.webm", "libvpx-vp9", {})):
        container = av.open(str(FOLDER / name), "w", options={**options, "fflags": "+bitexact"})
        container.metadata["workflow"] = json.dumps({"nodes": []})
        container.metadata["prompt"] = json.dumps(PROMPT)
        stream = container.add_stream(codec, rate=1)
        stream.width, stream.height, stream.pix_fmt = 16, 16, "yuv420p"
        container.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), np.uint8), format="rgb24")))
        container.mux(stream.encode(None))
        container.close()
