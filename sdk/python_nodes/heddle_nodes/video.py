"""VIDEO as nodes in Python have it. The engine has records of it (plugins/video/values.h): a file that is decoded when somebody needs its
pictures, pictures, or several videos one after another. Nothing is decoded or encoded here: the engine's nodes do that."""

import dataclasses
import enum
import io
import math
from fractions import Fraction

from . import tensors
from .wire import Code, Refused


class VideoCodec(str, enum.Enum):
    AUTO = "auto"
    H264 = "h264"
    AV1 = "av1"

    @classmethod
    def as_input(cls):
        return [member.value for member in cls]


class VideoContainer(str, enum.Enum):
    AUTO = "auto"
    MP4 = "mp4"
    MKV = "mkv"
    WEBM = "webm"

    @classmethod
    def as_input(cls):
        return [member.value for member in cls]

    @classmethod
    def get_extension(cls, value):
        return {cls.AUTO: "mp4"}.get(cls(value), cls(value).value)


@dataclasses.dataclass
class VideoComponents:
    """images: (frames, height, width, 3) from 0 to 1; frame_rate: in a second; audio: an AUDIO or None; alpha: (frames, height, width)."""

    images: object
    frame_rate: Fraction
    audio: object = None
    metadata: object = None
    alpha: object = None


def even_part(x, y, width, height, most_width, most_height):
    """The part of a picture that a crop means, at even places and of even sizes as encoders want them; None: all of it."""
    if width <= 0 or height <= 0:
        return None
    x, y = max(0, min(x, most_width - 1)) & ~1, max(0, min(y, most_height - 1)) & ~1
    width, height = min(width, most_width - x), min(height, most_height - y)
    if (width, height) == (most_width, most_height):
        return None
    return (x, y, width & ~1, height & ~1) if width > 1 and height > 1 else None


class VideoInput:
    """What is common to all videos; packs may have kinds of their own, of which get_components() is asked."""

    def get_components(self):
        raise NotImplementedError(f"{type(self).__name__} has no get_components()")

    def save_to(self, path, format=VideoContainer.AUTO, codec=VideoCodec.AUTO, metadata=None, **_):
        raise Refused(Code.UNSUPPORTED, "heddle encodes no videos in Python: give the VIDEO back, and link it to SaveVideo")

    def get_stream_source(self):
        self.save_to(io.BytesIO())

    def get_container_format(self):
        self.save_to(io.BytesIO())

    def as_trimmed(self, start_time=None, duration=None, strict_duration=False):
        """A part of it, in seconds; a start below 0 counts from the end, a duration of 0 is no limit. None: nothing is left."""
        return self.pictures().as_trimmed(start_time, duration, strict_duration)

    def as_cropped(self, x=0, y=0, width=0, height=0):
        return self.pictures().as_cropped(x, y, width, height)

    def pictures(self):
        return VideoFromComponents(self.get_components(), self.get_bit_depth())

    def get_active_trim_window(self):
        return 0.0, 0.0

    def has_pending_frame_edits(self):
        return False

    def get_bit_depth(self):
        return 8

    def get_color_space(self):
        return "auto"

    def get_dimensions(self):
        """(width, height)"""
        images = self.get_components().images
        return int(images.shape[2]), int(images.shape[1])

    def get_display_dimensions(self):
        return self.get_dimensions()

    def get_frame_count(self):
        return int(self.get_components().images.shape[0])

    def get_frame_rate(self):
        return Fraction(self.get_components().frame_rate)

    def get_duration(self):
        components = self.get_components()
        return float(components.images.shape[0] / Fraction(components.frame_rate))

    def record(self):
        """As the engine has it."""
        return self.pictures().record()


class VideoFromComponents(VideoInput):
    def __init__(self, components, bit_depth=8, color_space=None):
        self.components, self.bit_depth, self.color_space = components, bit_depth, color_space

    def get_components(self):
        return dataclasses.replace(self.components, frame_rate=Fraction(self.components.frame_rate))

    def pictures(self):
        return self

    def get_bit_depth(self):
        return self.bit_depth

    def get_color_space(self):
        return self.color_space or "auto"

    def part(self, images, audio, alpha):
        components = dataclasses.replace(self.components, images=images, audio=audio, alpha=alpha)
        return VideoFromComponents(components, self.bit_depth, self.color_space)

    def as_trimmed(self, start_time=None, duration=None, strict_duration=False):
        given, rate = self.components, Fraction(self.components.frame_rate)
        count, length = int(given.images.shape[0]), duration or 0.0
        start = max(0.0, float(count / rate) + start_time) if start_time and start_time < 0 else start_time or 0.0
        if strict_duration and length > float(count / rate) - start + 1e-6:
            return None

        def index(seconds):  # a time that was meant to be a picture's may miss it by a rounding
            return max(0, min(count, math.ceil(seconds * float(rate) - 1e-6)))
        first, last = index(start), index(start + length) if length > 0 else count
        if first >= last:
            return None
        audio = given.audio
        if audio is not None:
            hertz, samples = audio["sample_rate"], int(audio["waveform"].shape[-1])
            begin = min(samples, int(start * hertz))
            end = min(samples, int((start + length) * hertz)) if length > 0 else samples
            audio = {**audio, "waveform": audio["waveform"][..., begin:end]} if begin < end else None
        return self.part(given.images[first:last], audio, None if given.alpha is None else given.alpha[first:last])

    def as_cropped(self, x=0, y=0, width=0, height=0):
        given = self.components
        part = even_part(x, y, width, height, int(given.images.shape[2]), int(given.images.shape[1]))
        if part is None:
            return self
        x, y, width, height = part
        alpha = None if given.alpha is None else given.alpha[:, y:y + height, x:x + width]
        return self.part(given.images[:, y:y + height, x:x + width], given.audio, alpha)

    def record(self):
        given = self.components
        images, rate = tensors.as_float(given.images), Fraction(given.frame_rate)
        if given.alpha is not None:
            alpha = tensors.as_float(given.alpha)
            images = tensors.joined([images[..., :3], alpha if alpha.ndim == 4 else alpha[..., None]], 3)
        if max(rate.numerator, rate.denominator) >= 2**63:
            rate = rate.limit_denominator(10**6)
        made = {"images": images, "frame_rate": [rate.numerator, rate.denominator], "bit_depth": int(self.bit_depth),
                "color_space": self.color_space or "sRGB"}
        return made if given.audio is None else {**made, "audio": sound_record(given.audio)}


class VideoFromFile(VideoInput):
    """`file`: a path, or io.BytesIO with the bytes of one. `crop`: (x, y, width, height) of its pictures."""

    def __init__(self, file, *, start_time=0, duration=0, crop=None):
        self.file, self.window, self.crop = file, (float(start_time or 0), float(duration or 0)), crop

    def get_components(self):
        raise Refused(Code.UNSUPPORTED, "the VIDEO is a file, and heddle decodes none in Python: put GetVideoComponents and CreateVideo "
                                        "in front of this node, which make pictures of it")

    def get_stream_source(self):
        """The file as a whole: get_active_trim_window() is of it."""
        if isinstance(self.file, io.BytesIO):
            self.file.seek(0)
        return self.file

    def get_active_trim_window(self):
        return self.window

    def has_pending_frame_edits(self):
        return self.crop is not None

    def as_trimmed(self, start_time=None, duration=None, strict_duration=False):
        """How long the file is nobody knows here: who decodes it says so where nothing is left."""
        return VideoFromFile(self.file, start_time=self.window[0] + (start_time or 0), duration=duration or 0, crop=self.crop)

    def as_cropped(self, x=0, y=0, width=0, height=0):
        left, top, most_width, most_height = self.crop or (0, 0, 2**31, 2**31)
        part = even_part(x, y, width, height, most_width, most_height)
        if part is None:
            return self
        crop = (left + part[0], top + part[1], part[2], part[3])
        return VideoFromFile(self.file, start_time=self.window[0], duration=self.window[1], crop=crop)

    def record(self):
        if isinstance(self.file, io.BytesIO):
            made = {"file": str(self.file.getvalue(), "utf-8", "surrogateescape")}
        else:
            made = {"path": str(self.file)}
        made.update(start_time=self.window[0], duration=self.window[1])
        return made if self.crop is None else {**made, "crop": list(self.crop)}


class VideoFromList(VideoInput):
    """Videos of one rate and size, one after another. `audio`: in the place of theirs."""

    def __init__(self, videos, audio=None):
        self.videos, self.audio = list(videos), audio

    def get_components(self):
        parts = [video.get_components() for video in self.videos]
        if not parts or any(Fraction(part.frame_rate) != Fraction(parts[0].frame_rate) or part.images.shape[1:] != parts[0].images.shape[1:]
                            for part in parts):
            raise Refused(Code.INVALID_ARGUMENT, "videos of different rates or sizes cannot be put one after another")
        sounds, audio = [part.audio for part in parts if part.audio is not None], self.audio
        if audio is None and sounds:
            if len(sounds) < len(parts) or len({(sound["sample_rate"], sound["waveform"].shape[:2]) for sound in sounds}) > 1:
                raise Refused(Code.INVALID_ARGUMENT, "the videos' sound differs in its rate or channels, or some have none")
            audio = {**sounds[0], "waveform": tensors.joined([sound["waveform"] for sound in sounds], 2)}
        alphas = [part.alpha for part in parts]
        return VideoComponents(tensors.joined([part.images for part in parts], 0), parts[0].frame_rate, audio,
                               alpha=None if any(alpha is None for alpha in alphas) else tensors.joined(alphas, 0))

    def record(self):
        made = {"videos": [video.record() for video in self.videos]}
        return made if self.audio is None else {**made, "audio": sound_record(self.audio)}


def sound_record(audio):
    """An AUDIO of whatever mapping, as the engine has it."""
    return {"waveform": tensors.as_float(audio["waveform"]), "sample_rate": int(audio["sample_rate"])}


def of_record(record):
    """The VIDEO that the engine has; what is none stays as it is."""
    if "images" in record:
        images, rate = record["images"], record.get("frame_rate", [1, 1])
        alpha = images[..., 3] if images.shape[-1] == 4 else None
        color_space = record.get("color_space")
        return VideoFromComponents(VideoComponents(images[..., :3], Fraction(*rate), record.get("audio"), alpha=alpha),
                                   record.get("bit_depth", 8), color_space)
    if "path" in record or "file" in record:
        file = record["path"] if record.get("path") else io.BytesIO(record["file"].encode("utf-8", "surrogateescape"))
        crop = record.get("crop")
        return VideoFromFile(file, start_time=record.get("start_time", 0), duration=record.get("duration", 0), crop=crop and tuple(crop))
    if "videos" in record:
        return VideoFromList([of_record(video) for video in record["videos"]], record.get("audio"))
    return record
