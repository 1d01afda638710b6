"""Writes the files of data/ and goldens.safetensors beside this script: small videos and sounds that PyAV (the package
av, with an FFmpeg of its own) encodes, and what it decodes of them; of sound, what the program ffmpeg decodes.

    make_goldens.py        (needs av, numpy; ffmpeg 5.1 on the path)
"""

import json
import struct
import subprocess
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

HERE = Path(__file__).parent
DATA = HERE / "data"
WIDTH, HEIGHT = 24, 16


def pictures(count, width=WIDTH, height=HEIGHT):
    y, x = np.mgrid[0:height, 0:width]
    for i in range(count):
        rgb = np.stack([x * 255 // width, y * 255 // height, (x + y + 40 * i) % 256], axis=-1)
        rgb[4:9, 3 + 2 * i : 11 + 2 * i] = (220, 30, 60)
        yield rgb.astype(np.uint8)


def tone(rate, channels, seconds):
    t = np.arange(int(rate * seconds)) / rate
    return np.stack([0.5 * np.sin(2 * np.pi * (220 * (c + 1)) * t) for c in range(channels)]).astype(np.float32)


def add_sound(container, codec, rate, layout, samples):
    stream = container.add_stream(codec, rate=rate, layout=layout)
    frame = av.AudioFrame.from_ndarray(samples, format="fltp", layout=layout)
    frame.sample_rate = rate
    frame.pts = 0
    return stream, frame


def video(name, codec, pix_fmt, frames, rate=Fraction(8), options=None, sound=None, pts=None, width=WIDTH, height=HEIGHT,
          colorspace=None, full=False, alpha=False, metadata=None):
    container = av.open(str(DATA / name), "w", options={"fflags": "+bitexact"})
    for key, value in (metadata or {}).items():
        container.metadata[key] = value
    stream = container.add_stream(codec, rate=rate)
    stream.width, stream.height, stream.pix_fmt = width, height, pix_fmt
    stream.options = dict(options or {})
    stream.codec_context.thread_count = 1
    if colorspace is not None:
        stream.codec_context.colorspace = colorspace
    if full:
        stream.codec_context.color_range = 2
    extra = add_sound(container, *sound) if sound else None
    if pts:
        stream.codec_context.time_base = Fraction(1, 1000)
    for i, rgb in enumerate(frames):
        if alpha:
            rgb = np.concatenate([rgb, np.full(rgb.shape[:2] + (1,), 128, np.uint8)], axis=-1)
        frame = av.VideoFrame.from_ndarray(rgb, format="rgba" if alpha else "rgb24")
        frame = frame.reformat(format=pix_fmt, dst_colorspace=colorspace, dst_color_range=2 if full else 1)
        if pts:
            frame.pts, frame.time_base = pts[i], Fraction(1, 1000)
        container.mux(stream.encode(frame))
    container.mux(stream.encode(None))
    if extra:
        container.mux(extra[0].encode(extra[1]))
        container.mux(extra[0].encode(None))
    container.close()


def sound(name, codec, rate, layout, samples):
    container = av.open(str(DATA / name), "w", options={"fflags": "+bitexact"})
    stream, frame = add_sound(container, codec, rate, layout, samples)
    container.mux(stream.encode(frame))
    container.mux(stream.encode(None))
    container.close()


def ffmpeg(*arguments):
    return subprocess.run(["ffmpeg", "-v", "error", *map(str, arguments)], check=True, stdout=subprocess.PIPE).stdout


def decoded(name):
    """As RGB from 0 to 1: every frame once, turned as its metadata say."""
    frames = []
    for frame in av.open(str(DATA / name)).decode(video=0):
        frames.append(np.rot90(frame.to_ndarray(format="gbrpf32le"), int(frame.rotation // 90) % 4))
    return np.stack(frames)


def heard(name, channels):
    raw = ffmpeg("-i", DATA / name, "-vn", "-f", "f32le", "-c:a", "pcm_f32le", "-")
    return np.frombuffer(raw, np.float32).reshape(1, -1, channels).transpose(0, 2, 1)


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        bytes_ = np.ascontiguousarray(value, np.float32).tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def turned(source, name):
    """The same file with the metadata of a phone held upright."""
    ffmpeg("-y", "-i", DATA / source, "-c", "copy", "-metadata:s:v:0", "rotate=90", "-fflags", "+bitexact", DATA / name)


if __name__ == "__main__":
    DATA.mkdir(exist_ok=True)
    stereo = ("aac", 44100, "stereo", tone(44100, 2, 0.375))
    video("h264_stereo.mp4", "libx264", "yuv420p", pictures(3), sound=stereo, options={"crf": "12"},
          metadata={"title": "a title"})
    video("h264_bt709.mp4", "libx264", "yuv420p", pictures(2), colorspace=1, options={"crf": "12"})
    video("h264_full_range.mp4", "libx264", "yuvj420p", pictures(2), full=True, options={"crf": "12"})
    video("h264_10bit.mp4", "libx264", "yuv420p10le", pictures(2), options={"crf": "12"})
    video("vp9_odd.webm", "libvpx-vp9", "yuv420p", pictures(2, 21, 13), width=21, height=13)
    video("vp9_alpha.webm", "libvpx-vp9", "yuva420p", pictures(2), alpha=True)
    video("uneven_times.mkv", "ffv1", "yuv444p", pictures(4), pts=[0, 40, 500, 510])
    video("many.mp4", "libx264", "yuv420p", pictures(24), options={"crf": "20", "g": "6"})
    turned("h264_stereo.mp4", "turned.mov")
    sound("mono_8k.wav", "pcm_s16le", 8000, "mono", tone(8000, 1, 0.02))
    sound("six_channels.flac", "flac", 16000, "5.1", tone(16000, 6, 0.01))
    sound("stereo.mp3", "libmp3lame", 22050, "stereo", tone(22050, 2, 0.05))
    sound("bytes.wav", "pcm_u8", 11025, "mono", tone(11025, 1, 0.02))

    goldens = {}
    for name in ("h264_stereo.mp4", "h264_bt709.mp4", "h264_full_range.mp4", "h264_10bit.mp4", "vp9_alpha.webm",
                 "uneven_times.mkv", "many.mp4"):
        goldens[name] = decoded(name)
    goldens["many.mp4"] = goldens["many.mp4"][7:10]
    goldens["vp9_odd.webm"] = decoded("vp9_odd.webm")
    goldens["turned.mov"] = decoded("turned.mov")
    for name, channels in (("mono_8k.wav", 1), ("six_channels.flac", 6), ("stereo.mp3", 2), ("bytes.wav", 1)):
        goldens[name] = heard(name, channels)
    goldens["h264_stereo.mp4.sound"] = heard("h264_stereo.mp4", 2)[:, :, :256]
    write_safetensors(HERE / "goldens.safetensors", goldens)
