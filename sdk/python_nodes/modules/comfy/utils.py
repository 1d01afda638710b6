"""Progress, and tensors that are made larger."""

from heddle_nodes import calls

PROGRESS_BAR_ENABLED = True


class ProgressBar:
    """Tells how far the node is. Each step stops the node where its run is cancelled."""

    def __init__(self, total, node_id=None):
        self.total, self.current = total, 0

    def update_absolute(self, value, total=None, preview=None):
        self.total = self.total if total is None else total
        self.current = min(value, self.total)
        call = calls.current()
        if call is not None:
            call.stop_if_cancelled()
            call.progress(self.current / self.total if self.total else 1.0)

    def update(self, value):
        self.update_absolute(self.current + value)


def common_upscale(samples, width, height, upscale_method, crop):
    """(B, C, H, W), or with an axis for frames behind the channels, to width and height. `crop`: "center" keeps the sides'
    ratio and cuts what is over."""
    import torch
    if samples.ndim > 4:  # frames
        frames = samples.movedim(2, 1)
        flat = frames.reshape(-1, *frames.shape[2:])
        made = common_upscale(flat, width, height, upscale_method, crop)
        return made.reshape(*frames.shape[:2], *made.shape[1:]).movedim(1, 2)
    if crop == "center":
        old_height, old_width = samples.shape[-2:]
        x = y = 0
        if old_width / old_height > width / height:
            x = round((old_width - old_width * (width / height) / (old_width / old_height)) / 2)
        elif old_width / old_height < width / height:
            y = round((old_height - old_height * (old_width / old_height) / (width / height)) / 2)
        samples = samples.narrow(-2, y, old_height - y * 2).narrow(-1, x, old_width - x * 2)
    if upscale_method == "lanczos":
        return lanczos(samples, width, height)
    if upscale_method not in ("nearest-exact", "bilinear", "area", "bicubic"):
        raise ValueError(f"heddle's comfy.utils.common_upscale does not know the method {upscale_method!r}")
    return torch.nn.functional.interpolate(samples, size=(height, width), mode=upscale_method)


def lanczos(samples, width, height):
    """By 8-bit pictures, as ComfyUI does it."""
    import numpy as np
    import torch
    from PIL import Image
    made = []
    for picture in samples:
        pixels = np.clip(255.0 * picture.movedim(0, -1).cpu().numpy(), 0, 255).astype(np.uint8)
        image = Image.fromarray(pixels.squeeze(-1) if pixels.shape[-1] == 1 else pixels)
        array = np.asarray(image.resize((width, height), Image.Resampling.LANCZOS)).astype(np.float32) / 255.0
        made.append(torch.from_numpy(array if array.ndim == 3 else array[..., None]).movedim(-1, 0))
    return torch.stack(made).to(samples.device, samples.dtype)


def repeat_to_batch_size(tensor, batch_size, dim=0):
    """The first items of the batch, from its beginning again where it has fewer."""
    import torch
    have = tensor.shape[dim]
    if have >= batch_size:
        return tensor.narrow(dim, 0, batch_size)
    return torch.cat([tensor] * -(-batch_size // have), dim).narrow(dim, 0, batch_size)


def load_torch_file(ckpt, safe_load=True, device=None, return_metadata=False):
    """A file's tensors by name. Files of PyTorch are read as tensors alone: nothing in them is run."""
    if str(ckpt).lower().endswith((".safetensors", ".sft")):
        from safetensors import safe_open
        with safe_open(ckpt, framework="pt", device="cpu" if device is None else str(device)) as file:
            tensors, metadata = {key: file.get_tensor(key) for key in file.keys()}, file.metadata()
    else:
        import torch
        loaded = torch.load(ckpt, map_location=device or "cpu", weights_only=True)
        tensors, metadata = loaded.get("state_dict", loaded), None
    return (tensors, metadata) if return_metadata else tensors


def save_torch_file(sd, ckpt, metadata=None):
    from safetensors.torch import save_file
    save_file(sd, ckpt, metadata=metadata)
