"""Packs of ComfyUI's newer form (comfy_entrypoint); python_nodes_test.py runs them."""
import json
import os
import re
import struct
import zlib

from flow import HERE, Flow, heddle, pythons


class NewerForm(Flow):
    packs = "newer/words"

    def test_widgets(self):
        given = {"i": -5, "f": 2, "s": "words", "b": False, "c": "one", "color": "red", "size": 2, "seed": 2**64 - 1, "many": ["y"], "wide": 7}
        told = self.texts({"given": ("w.Kinds", {**given, "many": {"__value__": ["y"]}}), "defaults": ("w.Kinds", {}),
                           "two": ("w.Two", {"text": "abc"}), "none": ("w.Two", {})}, [
            (json.dumps({**given, "f": 2.0}, sort_keys=True), ["given", 0]),
            ('{"b": true, "c": "two", "color": "blue", "f": 0.5, "i": 3, "s": "text", "seed": 0, "size": 4, "wide": 1.5}', ["defaults", 0]),
            ("ABC", ["two", 0]), ("3", ["two", 1]), ("", ["none", 0])])
        for words in ("loses its node 'NoSchema': NotImplementedError: NoSchema has no define_schema()",
                      "loses its node 'Twice': ValueError: two inputs of its Schema have the id 'a'",
                      "loses its node 'BadStack': ValueError: the field 'image' of the group 'rows' has to be a widget",
                      "loses its node 'w.Silent': TypeError: it has no execute()"):
            self.assertIn(words, told)
        for wrong, words in ({"i": 6}, "from -5 to 5"), ({"c": "three"}, "three"), ({"color": "green"}, "green"):
            self.assertIn(words, self.run_flow({"k": ("w.Kinds", wrong), "show": ("PreviewAny", {"source": ["k", 0]})}, code=2))

    def test_dynamic_inputs(self):
        self.texts({
            "two": ("w.Two", {"text": "linked"}),
            "grow": ("w.Grow", {"words.word0": "a", "words.word3": ["two", 0], "words.word1": "b", "sides.right": 2}),
            "by": ("w.Choose", {"mode": "by", "mode.factor": 3}), "default": ("w.Choose", {"mode": "by"}),
            "to": ("w.Choose", {"mode": "to", "mode.width": 64, "mode.unit": "cm", "mode.unit.dpi": 72, "mode.factor": 5})}, [
            ("word0=a word1=b word3=LINKED right=2.0", ["grow", 0]), ('{"factor": 3.0, "mode": "by"}', ["by", 0]),
            ('{"factor": 2.0, "mode": "by"}', ["default", 0]), ('{"mode": "to", "unit": {"dpi": 72, "unit": "cm"}, "width": 64}', ["to", 0])])
        self.texts({
            "two": ("w.Two", {"text": "linked"}),
            "stack": ("w.Stack", {"rows.0.word": "a", "rows.0.times": 3, "rows.0.loud": True, "rows.2.word": ["two", 0]}),
            "lists": ("w.StackLists", {"rows.0.word": "a", "rows.0.times": 3, "rows.2.word": ["two", 0]}),
            "slot": ("w.Slotted", {"text": ["two", 0], "text.mark": ["two", 0], "text.times": 4}),
            "empty": ("w.Slotted", {"text.times": 40})}, [
            ('[{"loud": true, "times": 3, "word": "a"}, {"loud": null, "times": null, "word": null}, '
             '{"loud": null, "times": 2, "word": "LINKED"}]', ["stack", 0]),
            ('[{"loud": [null], "times": [3], "word": ["a"]}, {"loud": [null], "times": [null], "word": [null]}, '
             '{"loud": [null], "times": [2], "word": ["LINKED"]}]', ["lists", 0]),
            ('{"mark": "LINKED", "text": "LINKED", "times": 4}', ["slot", 0]), ("null", ["empty", 0])])
        for kind, inputs, words in (("w.Stack", {}, "rows"), ("w.Stack", {"rows.4.word": "a"}, "rows.4.word"),
                                    ("w.Stack", {"rows.0.times": 10, "rows.0.word": "a"}, "rows.0.times"),
                                    ("w.Slotted", {"text": "given", "text.times": 0, "text.mark": "a"}, "text.times"),
                                    ("w.Slotted", {"text": "given"}, "text.mark")):
            self.assertIn(words, self.run_flow({"n": (kind, inputs), "show": ("PreviewAny", {"source": ["n", 0]})}, code=2))
        self.assertIn("the group 'rows' has no input 'rows.0.wrod'", self.run_flow(
            {"n": ("w.Stack", {"rows.0.word": "a", "rows.0.wrod": 1}), "show": ("PreviewAny", {"source": ["n", 0]})}, code=1))
        for kind, inputs, words in (("w.Grow", {}, "words.word0"), ("w.Choose", {"mode": "to"}, "mode.width"),
                                    ("w.Choose", {"mode": "by", "mode.factor": 10}, "mode.factor")):
            self.assertIn(words, self.run_flow({"n": (kind, inputs), "show": ("PreviewAny", {"source": ["n", 0]})}, code=2))

    def test_lazy_lists_blockers_and_new_nodes(self):
        told = self.texts({
            "fail": ("w.Fail", {}), "good": ("w.Two", {"text": "good"}), "choose": ("w.Same", {"first": False, "a": ["fail", 0], "b": ["good", 0]}),
            "block": ("w.Block", {"text": ["good", 0]}), "pass": ("w.Block", {"text": ["good", 0], "blocked": False}),
            "split": ("w.Split", {"text": "c a b"}), "each": ("w.Two", {"text": ["split", 0]}), "all": ("w.Gather", {"texts": ["each", 0]}),
            "repeat": ("w.Repeat", {"text": ["good", 0], "times": 3}), "wait": ("w.Wait", {"steps": 3}), "make": ("w.Make", {"value": 3}),
            "open": ("w.Open", {"thing": ["make", 0], "twin": ["make", 1]}), "any": ("w.Any", {"value": 1, "more": "x", "link": ["good", 1]}),
            "ask": ("w.Ask", {}), "show": ("w.Show", {"text": "shown"})}, [
            ("GOOD", ["choose", 0]), ("blocked: not today", ["block", 0]), ("GOOD", ["pass", 0]), ("C+A+B", ["all", 0]), ("GOOD!!!", ["repeat", 0]),
            ("3 steps", ["wait", 0]), ("[1, 3] (3, range(0, 3))", ["open", 0]), ("1 [('link', 4), ('more', 'x')]", ["any", 0]),
            ("ask w.Ask w.Ask None", ["ask", 0])])
        self.assertIn("show w.Show: shown, of True", told)

    def test_validators_fingerprints_and_errors(self):
        self.texts({"e": ("w.Even", {"number": 4, "free": "x"})}, [("4 x", ["e", 0])])
        told = self.run_flow({"e": ("w.Even", {"number": 3}), "show": ("PreviewAny", {"source": ["e", 0]})}, code=2)
        self.assertIn("3 is odd", told)
        told = self.run_flow({"f": ("w.Fail", {}), "show": ("PreviewAny", {"source": ["f", 0]})}, code=1)
        self.assertRegex(told, r"the pack 'words': ValueError: a newer node failed on purpose \(words/__init__.py:\d+\)")
        path = os.path.join(self.folder.name, "file")
        with open(path, "w") as file:
            file.write("words")
        self.run_flow({"c": ("w.Count", {"path": path}), "t": ("w.Repeat", {"text": ["c", 0]}), "show": ("PreviewAny", {"source": ["t", 0]})},
                      "--set", "t.times=1..3")
        with open(path + ".calls") as file:
            self.assertEqual(file.read(), "x")

    def test_how_front_ends_see_them(self):
        told = heddle("plugins", "--python-nodes", os.path.join(HERE, "newer"))
        self.assertRegex(told, r"python\.words [0-9a-f]{12}  .*newer/words/__init__.py")
        self.assertRegex(told, r"nodes \(21\): .*w\.Kinds")
        info, _ = json.JSONDecoder().raw_decode(heddle("nodes", "--json", "--python-nodes", os.path.join(HERE, "newer")))
        self.assertEqual(info["w.Stack"]["input"]["required"]["rows"], ["COMFY_DYNAMICGROUP_V3", {
            "tooltip": "Words.", "min": 1, "max": 4, "group_name": "Word", "template": {
                "required": {"word": ["STRING", {"multiline": False}], "times": ["INT", {"default": 2, "min": 1, "max": 9}]},
                "optional": {"loud": ["BOOLEAN", {}]}}}])
        self.assertEqual(info["w.Slotted"]["input"]["optional"]["text"], ["COMFY_DYNAMICSLOT_V3", {
            "tooltip": "Some words.", "slotType": "STRING", "forceInput": True, "inputs": {
                "required": {"times": ["INT", {"default": 2, "min": 1, "max": 9}], "mark": ["STRING", {"multiline": False}]},
                "optional": {"more": ["STRING", {"multiline": False}]}}}])
        info = info["w.Kinds"]
        self.assertEqual((info["display_name"], info["category"], info["description"]), ("All kinds", "test", "Tells what it is given."))
        self.assertEqual(info["input"]["required"]["s"][1]["tooltip"], "Some words.")
        self.assertEqual(info["input"]["optional"]["many"], ["COMBO", {"default": ["x", "z"], "multiselect": True, "options": ["x", "y", "z"]}])

    def test_what_is_wrong_with_a_pack(self):
        api, lost, mine = "comfy_api.latest", "a part of ComfyUI that heddle does not have", "could not be loaded"
        nothing = f"from {api} import *\nclass E(ComfyExtension):\n async def get_node_list(self): return []\ncomfy_entrypoint = E"
        for name, code, words in (
                ("lacks", f"from {api} import Caching", f" imports of the module '{api}' (lacks.py:1) {lost}: cannot import name 'Caching' from"),
                ("module", "import comfy_api.torch_helpers", f" imports the module 'comfy_api.torch_helpers' (module.py:1), {lost}"),
                ("late", "def comfy_entrypoint():\n import nobody_has_it", " imports the module 'nobody_has_it' (late.py:2), which is not installed"),
                ("kind", "comfy_entrypoint = lambda: 3", f" {mine}: TypeError: comfy_entrypoint() gives a int and no ComfyExtension"),
                ("fails", "async def comfy_entrypoint():\n raise OSError('full')", f" {mine}: OSError: full (fails.py:2)"),
                ("empty", nothing, f" ({self.folder.name}/empty.py) names no nodes in its comfy_entrypoint"),
                ("neither", "X = 1", f" ({self.folder.name}/neither.py) has neither NODE_CLASS_MAPPINGS nor comfy_entrypoint()")):
            pack = os.path.join(self.folder.name, name + ".py")
            with open(pack, "w") as file:
                file.write(code)
            self.assertIn(f"the pack '{name}'{words}", heddle("plugins", "--python-nodes", pack))

    def test_pictures(self):
        found = pythons()
        if not found:
            self.skipTest("no Python here has torch or numpy")
        for _, python in found.items():
            nodes = {"a": ("EmptyImage", {"width": 40, "height": 20, "color": 0xffffff}),
                     "b": ("EmptyImage", {"width": 40, "height": 20, "color": 0}),
                     "mix": ("p.Mix", {"images.image0": ["a", 0], "images.image1": ["b", 0]}),
                     "scale": ("p.Scale", {"value": ["mix", 0], "factor": 2}),
                     "half": ("p.Scale", {"value": ["mix", 1], "factor": 0.5}), "invert": ("InvertMask", {"mask": ["half", 0]}),
                     "latent": ("EmptySD3LatentImage", {"width": 64, "height": 32}), "edit": ("p.Latent", {"latent": ["latent", 0], "add": 2}),
                     "save": ("p.Save", {"images": ["mix", 0]}), "preview": ("p.Preview", {"mask": ["half", 0]}),
                     "clip": ("DiffusersLoader", {"model_path": "tiny-scenes"}), "text": ("CLIPTextEncode", {"clip": ["clip", 1], "text": "a tree"}),
                     "condition": ("p.Condition", {"conditioning": ["text", 0], "model": ["clip", 0]}),
                     "small": ("EmptyLatentImage", {"width": 64, "height": 64, "batch_size": 1}),
                     "plain": ("KSampler", {"model": ["clip", 0], "positive": ["text", 0], "negative": ["text", 0], "steps": 1, "seed": 1,
                                            "cfg": 1, "latent_image": ["small", 0], "sampler_name": "euler", "scheduler": "simple", "denoise": 1})}
            nodes["through"] = ("KSampler", {**nodes["plain"][1], "model": ["condition", 1], "positive": ["condition", 0]})
            nodes["added"] = ("p.Latent", {"latent": ["through", 0], "add": 0})
            sums = ("mix", "scale", "invert", "edit", "plain", "added")
            drawn = {f"show_{n}": ("PreviewAny", {"source": [f"s{n}", 0]}) for n in ("plain", "added")}
            told = self.texts({**nodes, **{f"s{n}": ("x.Sum", {"tensor": [n, 0]}) for n in sums}, **drawn}, [
                ("[1, 20, 40, 3] float32 1200.0", ["smix", 0]), ("[1, 20, 40, 3] float32 2400.0", ["sscale", 0]),
                ("[1, 20, 40] float32 600.0", ["sinvert", 0]), ("[1, 16, 4, 8] float32 1024.0", ["sedit", 0])],
                packs="newer", more=["tensors"], python=python)
            plain, added = (re.search(rf"^show_{n} PreviewAny: (\[.*)$", told, re.M)[1] for n in ("plain", "added"))
            self.assertEqual(plain, added)
            self.assertRegex(told, r"newer/picture_0000\d_\.png")
            file = max(os.listdir(os.path.join(self.folder.name, "newer")))
            texts, pixels = self.png(os.path.join(self.folder.name, "newer", file))
            self.assertEqual(pixels, (b"\0" + bytes([127] * 120)) * 20)
            self.assertEqual(json.loads(texts["prompt"])["mix"]["class_type"], "p.Mix")

    def test_sound_and_videos(self):
        if "CreateVideo" not in heddle("nodes"):
            self.skipTest("this heddle has no nodes of videos")
        for name, python in pythons().items():
            folder = os.path.join(self.folder.name, name)
            nodes = {"frames": ("EmptyImage", {"width": 40, "height": 20, "batch_size": 10, "color": 0xff0000}),
                     "sound": ("EmptyAudio", {"duration": 1.0, "sample_rate": 8000, "channels": 1}),
                     "louder": ("p.Louder", {"audio": ["sound", 0]}),
                     "clip": ("p.Clip", {"images": ["frames", 0], "audio": ["louder", 0]}),
                     "mask": ("SolidMask", {"value": 0.5, "width": 40, "height": 20}),
                     "masks": ("RepeatImageBatch", {"image": ["picture", 0], "amount": 10}), "picture": ("MaskToImage", {"mask": ["mask", 0]}),
                     "alphas": ("ImageToMask", {"image": ["masks", 0], "channel": "red"}),
                     "clear": ("p.Clip", {"images": ["frames", 0], "alpha": ["alphas", 0]}),
                     "cut": ("p.Cut", {"video": ["clip", 0], "start": -0.5, "length": 0.25}),
                     "parts": ("GetVideoComponents", {"video": ["cut", 0]}), "sum": ("x.Sum", {"tensor": ["parts", 0]}),
                     "made": ("CreateVideo", {"images": ["frames", 0], "fps": 5.0, "audio": ["sound", 0]}),
                     "save": ("SaveVideo", {"video": ["clip", 0], "filename_prefix": name + "/clip", "format": "auto", "codec": "auto"}),
                     **{f"t{n}": ("p.Facts", {"video": [n, 0]}) for n in ("made", "cut", "clear")}}
            nodes["again"] = ("p.Louder", {"audio": ["louder", 0]})
            self.texts(nodes, [
                ("float32 0.0", ["louder", 1]), ("float32 2000.0", ["again", 1]), ("[3, 6, 16, 3] float32 288.0", ["sum", 0]), ("12.5", ["parts", 2]), ("True", ["cut", 1]),
                ("VideoFromComponents True True 0.0 0.0 (40, 20) 10 5 2.0 (8000, 1, 1, 8000) True False", ["tmade", 0]),
                ("VideoFromComponents True True 0.0 0.0 (16, 6) 3 25/2 0.24 (8000, 1, 1, 2000) True False", ["tcut", 0]),
                ("VideoFromComponents True True 0.0 0.0 (40, 20) 10 25/2 0.8 None True (10, 20, 40)", ["tclear", 0])],
                packs="newer", more=["tensors"], python=python)
            file, = (os.path.join(folder, one) for one in os.listdir(folder))
            nodes = {"file": ("p.File", {"path": file}), "bytes": ("p.File", {"path": file, "read": True, "start": 0.5}),
                     "cut": ("p.Cut", {"video": ["file", 0], "start": 0.25, "length": 0.25}),
                     **{f"t{n}": ("p.Facts", {"video": [n, 0], "deep": False}) for n in ("file", "bytes", "cut")},
                     **{f"parts{n}": ("GetVideoComponents", {"video": [n, 0]}) for n in ("file", "bytes", "cut")},
                     **{f"count{n}": ("GetImageSize", {"image": [f"parts{n}", 0]}) for n in ("file", "bytes", "cut")}}
            self.texts(nodes, [
                ("VideoFromFile True True 0.0 0.0", ["tfile", 0]), ("VideoFromFile True True 0.5 0.0", ["tbytes", 0]),
                ("VideoFromFile True True 0.25 0.25", ["tcut", 0]), ("10", ["countfile", 2]), ("3", ["countbytes", 2]), ("3", ["countcut", 2]),
                ("16", ["countcut", 0]), ("6", ["countcut", 1])], packs="newer", more=["tensors"], python=python)
            told = self.run_flow({"file": ("p.File", {"path": file}), "facts": ("p.Facts", {"video": ["file", 0]}),
                                  "show": ("PreviewAny", {"source": ["facts", 0]})}, code=1, packs="newer", python=python)
            self.assertIn("put GetVideoComponents and CreateVideo in front of this node", told)

    def png(self, path):
        with open(path, "rb") as file:
            data, at, pixels, texts = file.read(), 8, b"", {}
        while at < len(data):
            size, kind = struct.unpack(">I4s", data[at:at + 8])
            body = data[at + 8:at + 8 + size]
            self.assertEqual(struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0], zlib.crc32(kind + body))
            if kind == b"tEXt":
                key, text = body.split(b"\0", 1)
                texts[key.decode()] = text.decode("latin-1")
            pixels += body if kind == b"IDAT" else b""
            at += 12 + size
        return texts, zlib.decompress(pixels)
