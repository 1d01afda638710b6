"""What a call costs: nodes that do nothing."""


class Number:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"value": ("INT", {"default": 0})}}
    RETURN_TYPES, FUNCTION = ("INT",), "run"

    def run(self, value):
        return (value + 1,)


class Picture:
    """A picture that is passed on: it is read where it lies, and copied once on its way out."""

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"image": ("IMAGE",)}}
    RETURN_TYPES, FUNCTION = ("IMAGE",), "run"

    def run(self, image):
        return (image,)


class Look(Picture):
    """Only the shape is read."""
    RETURN_TYPES = ("INT",)

    def run(self, image):
        return (image.shape[0],)


NODE_CLASS_MAPPINGS = {"b.Number": Number, "b.Picture": Picture, "b.Look": Look}
