import comfy.samplers  # noqa: F401

NODE_CLASS_MAPPINGS = {}
