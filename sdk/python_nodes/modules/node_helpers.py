"""Small helpers of nodes."""


def conditioning_set_values(conditioning, values={}, append=False):
    """Each entry with these options; `append`: behind those of the same name, which are lists."""
    made = []
    for tensor, options, *rest in conditioning:
        options = dict(options)
        for key, value in values.items():
            old = options.get(key) if append else None
            options[key] = value if old is None else old + value
        made.append([tensor, options, *rest])
    return made


def pillow(fn, arg):
    """A function of Pillow on a file, once more with truncated pictures allowed."""
    from PIL import ImageFile, UnidentifiedImageError
    try:
        return fn(arg)
    except (OSError, UnidentifiedImageError, ValueError):
        before, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, True
        try:
            return fn(arg)
        finally:
            ImageFile.LOAD_TRUNCATED_IMAGES = before


def image_alpha_fix(destination, source):
    """Both with as many channels: an alpha of one goes, or is added to the source."""
    import torch
    if destination.shape[-1] < source.shape[-1]:
        source = source[..., :destination.shape[-1]]
    elif destination.shape[-1] > source.shape[-1]:
        more = destination.shape[-1] - source.shape[-1]
        source = torch.nn.functional.pad(source, (0, more), value=1.0)
    return destination, source


def string_to_torch_dtype(string):
    import torch
    return {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}.get(string)
