"""Nodes of tensors: arithmetic that PyTorch and NumPy write alike."""


def name_of(tensor):
    return type(tensor).__module__.split(".")[0]


class Ramp:
    """A picture whose red grows with the column, green with the row, blue with the item."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"width": ("INT", {"default": 8}), "height": ("INT", {"default": 4}), "batch": ("INT", {"default": 2})}}
    RETURN_TYPES, FUNCTION = ("IMAGE", "MASK"), "run"

    def run(self, width, height, batch):
        try:
            from torch import arange, float32, stack, zeros
            image = zeros((batch, height, width, 3), dtype=float32)
            axis = dict(dtype=float32)
        except ImportError:
            from numpy import arange, float32, zeros
            image = zeros((batch, height, width, 3), float32)
            axis = dict(dtype=float32)
        image[..., 0] = arange(width, **axis) / max(width - 1, 1)
        image[..., 1] = arange(height, **axis).reshape(-1, 1) / max(height - 1, 1)
        image[..., 2] = arange(batch, **axis).reshape(-1, 1, 1) / max(batch - 1, 1)
        return image[:, :, ::2], image[0, ..., 0]  # every second column, and a mask without a batch


class Sum:
    """What a tensor is like, and its sum."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"tensor": ("*",)}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, tensor):
        if isinstance(tensor, dict):
            tensor = tensor["samples"]
        kind = str(tensor.dtype).replace("torch.", "")
        tensor = tensor.double() if name_of(tensor) == "torch" else tensor.astype("float64")
        return (f"{list(tensor.shape)} {kind} {float(tensor.sum()):.1f}",)


class Library:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image": ("IMAGE",)}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, image):
        return (name_of(image),)


class Scale:
    """Writes into what it was given, as it should not: nobody else may notice."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image": ("IMAGE",), "factor": ("FLOAT", {"default": 0.5})}}
    RETURN_TYPES, FUNCTION = ("IMAGE",), "run"

    def run(self, image, factor):
        image *= factor
        return (image,)


class Types:
    """Outputs of other types and shapes: a picture of f64, a mask with a channel, an empty tensor, a number of a tensor."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image": ("IMAGE",)}}
    RETURN_TYPES, FUNCTION = ("IMAGE", "MASK", "*", "FLOAT"), "run"

    def run(self, image):
        wide = image.double() if name_of(image) == "torch" else image.astype("float64")
        return wide[0], image[..., :1], image[:0], image.sum().item()


class EditLatent:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"latent": ("LATENT",), "add": ("FLOAT", {"default": 1.0, "min": -9, "max": 9})}}
    RETURN_TYPES, FUNCTION = ("LATENT",), "run"

    def run(self, latent, add):
        return ({**latent, "samples": latent["samples"] + add, "noise_mask": latent["samples"][:, 0] * 0 + 1},)


class EditConditioning:
    """Scales a conditioning, keeps it to an area and a part of the way."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"conditioning": ("CONDITIONING",), "factor": ("FLOAT", {"default": 1.0}), "area": ("BOOLEAN", {"default": False})}}
    RETURN_TYPES, FUNCTION = ("CONDITIONING", "STRING"), "run"

    def run(self, conditioning, factor, area):
        made = []
        for tensor, options in conditioning:
            options = dict(options)
            if area:
                options.update(area=("percentage", 0.5, 1, 0, 0), strength=0.8, start_percent=0.25)
            made.append([tensor * factor, options])
        return made, f"{len(made)} {list(made[0][0].shape)} {sorted(options)} {options.get('area')}"


class Upscale:
    """The helper of that name, held against a node of the engine's."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image": ("IMAGE",), "expected": ("IMAGE",), "method": ("STRING", {"default": ""}), "crop": ("STRING", {"default": ""})}}
    RETURN_TYPES, FUNCTION = ("FLOAT",), "run"

    def run(self, image, expected, method, crop):
        import comfy.utils
        made = comfy.utils.common_upscale(image.movedim(-1, 1), expected.shape[2], expected.shape[1], method, crop).movedim(1, -1)
        assert made.shape == expected.shape
        return (round(float((made - expected).abs().max()), 5),)


class Helpers:
    """What the other helpers make of a batch and a conditioning."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image": ("IMAGE",), "conditioning": ("CONDITIONING",)}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, image, conditioning):
        import comfy.model_management
        import comfy.utils
        import folder_paths
        import node_helpers
        more = comfy.utils.repeat_to_batch_size(image, 5)
        once = node_helpers.conditioning_set_values(conditioning, {"guidance": 3.5, "reference_latents": [1]})
        twice = node_helpers.conditioning_set_values(once, {"reference_latents": [2]}, append=True)
        with_alpha, other = node_helpers.image_alpha_fix(image.new_zeros(1, 2, 2, 4), image[:1, :2, :2])
        assert bool((more[3] == image[0]).all()) and "guidance" not in conditioning[0][1]
        assert folder_paths.get_annotated_filepath("a.png [output]") == folder_paths.get_output_directory() + "/a.png"
        assert folder_paths.get_full_path("loras", "../../etc/passwd") is None
        assert comfy.model_management.get_free_memory() > 0
        return (f"{len(more)} {twice[0][1]['guidance']} {twice[0][1]['reference_latents']} {list(other.shape)} {float(other[..., 3].sum())}",)


class Keep:
    """A MODEL and a VAE pass; whoever looks inside is told."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"model": ("MODEL",), "look": ("BOOLEAN", {"default": False})}}
    RETURN_TYPES, FUNCTION = ("MODEL",), "run"

    def run(self, model, look):
        if look:
            model.clone()
        return (model,)


NODE_CLASS_MAPPINGS = {f"x.{cls.__name__}": cls for cls in (Ramp, Sum, Library, Scale, Types, EditLatent, EditConditioning, Upscale, Helpers, Keep)}
