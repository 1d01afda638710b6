"""What nodes show: texts, and pictures that they write as PNG."""

import json
import os
import random
import string
import struct
import zlib

import folder_paths


class SavedResult(dict):
    def __init__(self, filename, subfolder, type):
        super().__init__(filename=filename, subfolder=subfolder, type=getattr(type, "value", type))

    filename = property(lambda self: self["filename"])
    subfolder = property(lambda self: self["subfolder"])
    type = property(lambda self: self["type"])


class SavedImages:
    def __init__(self, results, is_animated=False):
        self.results, self.is_animated = results, is_animated

    def as_dict(self):
        return {"images": self.results, **({"animated": (True,)} if self.is_animated else {})}


class PreviewVideo:
    """Files that are there already."""

    def __init__(self, values, **_):
        self.values = values

    def as_dict(self):
        return {"images": self.values, "animated": (True,)}


class PreviewText:
    def __init__(self, value, **_):
        self.value = value

    def as_dict(self):
        return {"text": (self.value,)}


def _bytes_of(picture):
    """Rows of a picture of numbers from 0 to 1, a byte for each, and its width, height and channels."""
    height, width, channels = picture.shape
    if hasattr(picture, "clip") and type(picture).__module__.startswith("numpy"):
        numbers = (picture * 255.0).clip(0, 255).astype("uint8")
    else:
        numbers = (picture * 255.0).clamp(0, 255).byte().cpu().contiguous().numpy()
    data, row = numbers.tobytes(), width * channels
    return [data[i * row:(i + 1) * row] for i in range(height)], width, height, channels


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _png(picture, texts, compress_level):
    rows, width, height, channels = _bytes_of(picture)
    color = {1: 0, 2: 4, 3: 2, 4: 6}.get(channels)
    if color is None:
        raise ValueError(f"a picture has {channels} channels; a PNG has 1 to 4")
    made = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0))
    for key, text in texts.items():
        made += _chunk(b"tEXt", key.encode("latin-1", "replace") + b"\0" + text.encode("latin-1", "backslashreplace"))
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows), compress_level)
    return made + _chunk(b"IDAT", pixels) + _chunk(b"IEND", b"")


class ImageSaveHelper:
    @staticmethod
    def _texts(cls):
        """The workflow, as far as the node's schema has asked for it."""
        hidden = getattr(cls, "hidden", None)
        texts = {"prompt": json.dumps(hidden.prompt)} if hidden is not None and hidden.prompt is not None else {}
        for key, value in (getattr(hidden, "extra_pnginfo", None) or {}).items():
            texts[key] = json.dumps(value)
        return texts

    @staticmethod
    def save_images(images, filename_prefix, folder_type, cls, compress_level=4):
        """A file for each picture of the batch; what is told of them."""
        place = folder_paths.get_directory_by_type(getattr(folder_type, "value", folder_type))
        height, width = images.shape[1:3]
        folder, name, counter, subfolder, _ = folder_paths.get_save_image_path(filename_prefix, place, width, height)
        saved, texts = [], ImageSaveHelper._texts(cls)
        for i, picture in enumerate(images):
            file = f"{name.replace('%batch_num%', str(i))}_{counter + i:05}_.png"
            with open(os.path.join(folder, file), "wb") as stream:
                stream.write(_png(picture, texts, compress_level))
            saved.append(SavedResult(file, subfolder, folder_type))
        return saved

    @staticmethod
    def get_save_images_ui(images, filename_prefix, cls, compress_level=4):
        return SavedImages(ImageSaveHelper.save_images(images, filename_prefix, "output", cls, compress_level))


class PreviewImage:
    def __init__(self, image, animated=False, cls=None, **_):
        name = "preview_" + "".join(random.choice(string.ascii_lowercase) for _ in range(5))
        self.values, self.animated = ImageSaveHelper.save_images(image, name, "temp", cls, 1), animated

    def as_dict(self):
        return {"images": self.values, "animated": (self.animated,)}


class PreviewMask(PreviewImage):
    def __init__(self, mask, animated=False, cls=None, **_):
        picture = mask.reshape((-1, *mask.shape[-2:], 1))
        super().__init__(picture, animated, cls)
