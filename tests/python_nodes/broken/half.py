class Good:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self):
        return ("good",)


class Bad:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"x": ("INT", {}), "y": 1 // 0}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self):
        return ("bad",)


class Tip:
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"x": ("INT", {"tooltip": ("a comma too many",)})}}
    RETURN_TYPES, FUNCTION = ("STRING",), "run"

    def run(self, x):
        return ("tip",)


NODE_CLASS_MAPPINGS = {"t.Good": Good, "t.Bad": Bad, "t.Tip": Tip}
