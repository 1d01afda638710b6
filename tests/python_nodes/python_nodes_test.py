#!/usr/bin/env python3
"""Nodes in Python, through the program: python_nodes_test.py HEDDLE. Tensors are tested in a Python with torch and in one
with NumPy alone, as far as there are such: $HEDDLE_TEST_PYTHON (several with colons), else the python3 of $PATH and the system's."""
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import unittest
import zlib

from flow import HEDDLE, HERE, Flow, heddle, pythons
from newer_form import NewerForm  # noqa: F401


class Contract(Flow):
    def test_basics(self):
        self.texts({
            "join": ("t.Join", {"text": "a", "times": 3}), "join2": ("t.Join", {"text": "b", "times": 2, "separator": "/"}),
            "kinds": ("t.Kinds", {"i": -3, "f": 2, "b": False, "c": "red", "n": "2", "v": "two", "seed": 2**64 - 1}),
            "a": ("t.MakeBox", {"value": 40}), "b": ("t.MakeBox", {"value": 2}), "open": ("t.OpenBox", {"box": ["a", 0], "other": ["b", 0]}),
            "same": ("t.OpenBox", {"box": ["a", 0], "other": ["a", 0]}),
            "hidden": ("t.Hidden", {}), "slow": ("t.Slow", {}), "later": ("t.Async", {"text": "now"}),
            "even": ("t.Even", {"number": 12, "free": "z"}),
            "typed": ("t.Typed", {"value": ["join", 0], "small": 5, "color": "red"}), "nothing": ("t.Nothing", {})},
            [("a,a,a", ["join", 0]), ("3", ["join", 1]), ("b/b", ["join2", 0]),
             ('{"b": false, "c": "red", "f": 2.0, "i": -3, "n": 2, "seed": 18446744073709551615, "v": "two"}', ["kinds", 0]),
             ("42 ['(2, 3)', '1'] False", ["open", 0]), ("80 ['(2, 3)', '1'] True", ["same", 0]),
             ("hidden t.Hidden None t.Hidden False", ["hidden", 0]), ("4 of 4", ["slow", 0]), ("now later", ["later", 0]), ("12", ["even", 0]),
             ("'a,a,a'", ["typed", 0]), ("one", ["nothing", 0])])

    def test_values_come_back(self):
        cases = {"None": "NoneType None", "True": "bool True", "-7": "int -7", "2**63": f"int {2**63}", "0.5": "float 0.5",
                 "math.inf": "float inf", "'ä'": "str 'ä'", "[1, [2.0, 'x']]": "list [1, [2.0, 'x']]",
                 "{'a': {'b': None}}": "dict {'a': {'b': None}}",
                 "set([1])": "set {1}", "range(3)": "range range(0, 3)", "{1: 2}": "dict {1: 2}"}
        nodes, shown = {}, []
        for i, (text, told) in enumerate(cases.items()):
            nodes[f"g{i}"], nodes[f"t{i}"] = ("t.Give", {"text": text}), ("t.Tell", {"value": [f"g{i}", 0]})
            shown.append((told, [f"t{i}", 0]))
        self.texts(nodes, shown)

    def test_lists_lazy_blockers_and_new_nodes(self):
        self.texts({
            "n": ("t.Numbers", {"count": 4}), "sq": ("t.Square", {"number": ["n", 0]}), "sum": ("t.Sum", {"numbers": ["sq", 0]}),
            "sum1": ("t.Sum", {"numbers": ["n", 1], "factor": 5}),
            "bad": ("t.End", {"how": "raise"}), "good": ("t.Join", {"text": "good", "times": 1}),
            "choose": ("t.Choose", {"first": False, "a": ["bad", 0], "b": ["good", 0]}),
            "block": ("t.Block", {"value": ["good", 0]}), "pass": ("t.Block", {"value": ["good", 0], "blocked": False}),
            "repeat": ("t.Repeat", {"number": 2, "times": 3}), "down": ("t.Countdown", {"left": 3}),
            "first": ("t.First", {"any_02": ["good", 0], "any_03": ["n", 1]}), "link": ("t.Link", {"value": ["n", 1]})},
            [("28 4 1 sum", ["sum", 0]), ("20 1 1 sum1", ["sum1", 0]), ("good", ["choose", 0]), ("", ["block", 0]), ("good", ["pass", 0]),
             ("677", ["repeat", 0]), ("3 nodes", ["repeat", 1]), ("3 2 1 0", ["down", 0]), ("good", ["first", 0]), ("['n', 1]", ["link", 0])])

    def test_a_node_that_ships_is_not_replaced(self):
        told = self.texts({"both": ("StringConcatenate", {"string_a": "a", "string_b": "b", "delimiter": "-"})}, [("a-b", ["both", 0])])
        self.assertRegex(told, "brings the node type 'StringConcatenate', which a plugin has already")

    def test_a_node_of_a_refused_plugin_keeps_none_out(self):
        """Its nodes are as they should be, its device is not: the pack's own node of that name is used."""
        plugins = os.path.join(self.folder.name, "plugins")
        os.mkdir(plugins)
        os.symlink(os.path.abspath(os.path.join(os.path.dirname(HEDDLE), "sample_plugins/bad/bad_bad_device.so")),
                   os.path.join(plugins, "bad_device.so"))
        pack = os.path.join(self.folder.name, "beside.py")
        with open(pack, "w") as file:
            file.write('class Beside:\n    INPUT_TYPES = classmethod(lambda cls: {})\n    RETURN_TYPES, FUNCTION = ("STRING",), "run"\n\n'
                       '    def run(self):\n        return ("of the pack",)\n\n\nNODE_CLASS_MAPPINGS = {"bad.beside": Beside}\n')
        told = self.texts({"b": ("bad.beside", {})}, [("of the pack", ["b", 0])], "--plugins", plugins, packs=pack)
        self.assertIn("plugin refused: plugin 'bad.device'", told)

    def test_what_is_shown_and_written(self):
        told = self.run_flow({"show": ("t.Show", {"text": "words"})})
        self.assertIn("WORDS", told)
        self.assertIn("sub/shown_00001_.txt", told)
        with open(os.path.join(self.folder.name, "sub/shown_00001_.txt")) as file:
            self.assertEqual(file.read(), "words")

    def test_validators(self):
        told = self.run_flow({"e": ("t.Even", {"number": 3, "free": "a"}), "show": ("PreviewAny", {"source": ["e", 0]})}, code=2)
        self.assertIn("3 is odd", told)
        told = self.run_flow({"g": ("t.Kinds", {"i": 99, "f": 0, "b": 1, "c": "red", "n": "1", "v": "one", "seed": 1}),
                              "show": ("PreviewAny", {"source": ["g", 0]})}, code=2)
        self.assertIn("99", told)
        told = self.run_flow({"n": ("t.Slow", {}), "b": ("t.MakeBox", {}), "t": ("t.Typed", {"value": ["b", 0], "small": 1, "color": "red"}),
                              "show": ("PreviewAny", {"source": ["t", 0]})}, code=2)
        self.assertIn("no BOX", told)
        for small, color, word in [(6, "red", "small is 6"), (1, "blue", "color is 'blue'")]:
            told = self.run_flow({"j": ("t.Join", {}), "t": ("t.Typed", {"value": ["j", 0], "small": small, "color": color}),
                                  "show": ("PreviewAny", {"source": ["t", 0]})}, code=2)
            self.assertIn(word, told)

    def test_models_folder(self):
        os.makedirs(os.path.join(self.folder.name, "models/loras/deep"))
        open(os.path.join(self.folder.name, "models/loras/deep/a.safetensors"), "w").close()
        self.texts({"p": ("t.Places", {"name": "deep/a.safetensors"})}, [("a.safetensors", ["p", 0])], "--models",
                   os.path.join(self.folder.name, "models"))

    def test_what_has_not_changed_is_not_run_again(self):
        path = os.path.join(self.folder.name, "file")
        with open(path, "w") as file:
            file.write("words")
        for kind, calls in [("t.Count", "x"), ("t.Always", "xxx")]:
            self.run_flow({"c": (kind, {"path": path}), "j": ("t.Join", {"text": ["c", 0], "times": 1}),
                           "show": ("PreviewAny", {"source": ["j", 0]})},
                          "--set", "j.times=1..3")
            with open(path + ".calls") as file:
                self.assertEqual(file.read(), calls)
            os.remove(path + ".calls")

    def test_endings(self):
        for how, words in {"raise": ["the pack 'contract'", "ValueError: a node failed on purpose", "contract/basics.py:"],
                           "surrogate": ["ValueError: half a pair: \\ud83d"], "exit": ["t.End", "python.contract", "ended with exit code 3"], "sys_exit": ["SystemExit: 4"],
                           "kill": ["t.End", "signal 9 (SIGKILL)"], "abort": ["signal 6 (SIGABRT)"],
                           "hang": ["has not ended within 1 s"]}.items():
            told = self.run_flow({"e": ("t.End", {"how": how}), "show": ("PreviewAny", {"source": ["e", 0]})},
                                 *(("--isolate-timeout", "1") if how == "hang" else ()), code=1)
            for word in words:
                self.assertIn(word, told, how)

    def test_the_sandbox_and_memory(self):
        self.texts({"j": ("t.Join", {"text": "a"})}, [("a,a", ["j", 0])], "--isolate-sandbox", "--isolate-memory", "1GiB")
        told = self.run_flow({"g": ("t.Give", {"text": "__import__('subprocess').check_output(['true'])"}),
                              "show": ("PreviewAny", {"source": ["g", 0]})}, "--isolate-sandbox", code=1)
        self.assertIn("PermissionError", told)
        told = self.run_flow({"g": ("t.Give", {"text": "__import__('socket').socket()"}), "show": ("PreviewAny", {"source": ["g", 0]})},
                             "--isolate-sandbox", code=1)
        self.assertIn("PermissionError", told)
        told = self.run_flow({"g": ("t.Give", {"text": "len('x' * (3 << 30))"}), "show": ("PreviewAny", {"source": ["g", 0]})},
                             "--isolate-memory", "1GiB", code=1)
        self.assertIn("MemoryError", told)

    def test_packs_that_do_not_load(self):
        told = heddle("plugins", "--python-nodes", os.path.join(HERE, "broken"))
        for words in ["the pack 'part_of_comfyui' imports the module 'comfy.samplers' (part_of_comfyui.py:1), a part of ComfyUI",
                      "the pack 'missing' imports the module 'a_module_that_nobody_has' (missing.py:1), which is not installed",
                      "-m pip install a_module_that_nobody_has", "the pack 'raises' could not be loaded: RuntimeError: not today (raises.py:1)",
                      "ends.py: the worker that was to load the plugin ended with exit code 7", "the pack 'empty'",
                      "the pack 'half' loses its node 't.Bad': ZeroDivisionError", "loses its node 't.Tip': TypeError", "nodes (1): t.Good"]:
            self.assertIn(words, told)
        self.texts({"g": ("t.Good", {})}, [("good", ["g", 0])], packs="broken")

    def test_the_guide(self):
        with open(os.path.join(HERE, "../../sdk/guide/python/README.md")) as file:
            older, newer = re.findall(r"```python\n(.*?)```", file.read(), re.S)
        for name, code, kind, told in (("older", older, "guide.Shout", "WORDS! WORDS!"), ("newer", newer, "guide.Whisper", "words words")):
            pack = os.path.join(self.folder.name, name + ".py")
            with open(pack, "w") as file:
                file.write(code)
            self.texts({"s": (kind, {"text": "Words", "times": 2})}, [(told, ["s", 0])], packs=pack)

    def test_both_ends_say_the_same(self):
        """The numbers of engine/isolate/protocol.h, in wire.py."""
        sys.path.insert(0, os.path.join(HERE, "../../sdk/python_nodes"))
        from heddle_nodes import wire
        with open(os.path.join(HERE, "../../engine/isolate/protocol.h")) as file:
            text = re.sub(r"//.*", "", file.read())
        for name, ours in [("ControlMessage", wire.Control), ("LaneMessage", wire.Lane), ("CallKind", wire.CallKind)]:
            body, = re.findall(rf"enum class {name} : [\w:]+ {{(.*?)}}", text, re.S)
            theirs = [word.strip().upper() for word in body.split(",") if word.strip()]
            self.assertEqual([member.name for member in ours], theirs)
            self.assertEqual([member.value for member in ours], list(range(len(theirs))))

    def test_a_run_is_cancelled(self):
        path = os.path.join(self.folder.name, "slow.json")
        with open(path, "w") as file:
            json.dump({"s": {"class_type": "t.Slow", "inputs": {"steps": 100000}},
                       "show": {"class_type": "PreviewAny", "inputs": {"source": ["s", 0]}}}, file)
        run = subprocess.Popen([HEDDLE, "run", path, "--devices", "cpu:0", "--cache", "none", "--python", sys.executable, "--python-nodes",
                                os.path.join(HERE, "packs")], stderr=subprocess.PIPE, text=True)
        while "started" not in run.stderr.readline():
            self.assertIsNone(run.poll())
        run.send_signal(signal.SIGINT)
        told = run.communicate(timeout=120)[1]
        self.assertEqual(run.returncode, 130, told)

    def test_a_python_that_is_none(self):
        path = os.path.join(self.folder.name, "python3")
        told = heddle("plugins", "--python-nodes", os.path.join(HERE, "packs"), python=path)
        self.assertIn(path, told)


class Tensors(Flow):
    packs = "tensors"

    def each_python(self):
        found = pythons()
        if not found:
            self.skipTest("no Python here has torch or numpy")
        return found.items()

    def test_pictures_and_masks(self):
        for name, python in self.each_python():
            # Small ones go in messages, large ones in shared memory; those of the engine and those of other nodes.
            for width, height, batch in [(8, 4, 2), (512, 256, 3)]:
                half, pixels = width // 2, width * height * batch // 2
                red = sum(range(0, width, 2)) / (width - 1) * height * batch
                self.texts({
                    "ramp": ("x.Ramp", {"width": width, "height": height, "batch": batch}), "sum": ("x.Sum", {"tensor": ["ramp", 0]}),
                    "invert": ("ImageInvert", {"image": ["ramp", 0]}), "inverted": ("x.Sum", {"tensor": ["invert", 0]}),
                    "mask": ("InvertMask", {"mask": ["ramp", 1]}), "masked": ("x.Sum", {"tensor": ["mask", 0]}),
                    "half": ("x.Scale", {"image": ["invert", 0]}), "halved": ("x.Sum", {"tensor": ["half", 0]}),
                    "types": ("x.Types", {"image": ["ramp", 0]}), "wide": ("x.Sum", {"tensor": ["types", 0]}),
                    "thin": ("x.Sum", {"tensor": ["types", 1]}), "empty": ("x.Sum", {"tensor": ["types", 2]}),
                    "library": ("x.Library", {"image": ["ramp", 0]})},
                    [(f"[{batch}, {height}, {half}, 3] float32 {red + pixels:.1f}", ["sum", 0]),
                     (f"[{batch}, {height}, {half}, 3] float32 {3 * pixels - red - pixels:.1f}", ["inverted", 0]),
                     (f"[1, {height}, {width}] float32 {width * height / 2:.1f}", ["masked", 0]),
                     (f"[{batch}, {height}, {half}, 3] float32 {(2 * pixels - red) / 2:.1f}", ["halved", 0]),
                     (f"[1, {height}, {half}, 3] float32 {red / batch + height * half / 2:.1f}", ["wide", 0]),
                     (f"[{batch}, {height}, {half}] float32 {red:.1f}", ["thin", 0]), (f"[0, {height}, {half}, 3] float32 0.0", ["empty", 0]),
                     (name, ["library", 0])], python=python)

    def test_who_writes_into_an_input_changes_no_other(self):
        for _, python in self.each_python():
            nodes = {"e": ("EmptyImage", {"width": 256, "height": 128, "color": 0xffffff}), "i": ("x.Scale", {"image": ["e", 0]}),
                     "j": ("x.Scale", {"image": ["e", 0], "factor": 0.25}), "k": ("x.Scale", {"image": ["i", 0]}),
                     **{f"s{n}": ("x.Sum", {"tensor": [n, 0]}) for n in "eijk"}}
            whole = 256 * 128 * 3
            self.texts(nodes, [(f"[1, 128, 256, 3] float32 {whole * f:.1f}", [f"s{n}", 0])
                               for n, f in [("e", 1), ("i", 0.5), ("j", 0.25), ("k", 0.25)]], python=python)

    def test_latents_and_conditioning(self):
        for _, python in self.each_python():
            nodes = {"empty": ("EmptySD3LatentImage", {"width": 64, "height": 32}), "edit": ("x.EditLatent", {"latent": ["empty", 0], "add": 2}),
                     "larger": ("LatentUpscale", {"samples": ["edit", 0], "upscale_method": "nearest-exact", "width": 128, "height": 64,
                                                  "crop": "disabled"}),
                     "sum": ("x.Sum", {"tensor": ["larger", 0]})}
            self.texts(nodes, [("[1, 16, 8, 16] float32 4096.0", ["sum", 0])], python=python)


    def test_nothing_is_left_of_a_run(self):
        """Objects are dropped in their process, and memory is unmapped: told by a node, in each of many runs."""
        ask = ("(lambda m, b: (len(m.mapped), len(m.objects), b.made - b.dropped, sum(e[2] is not None for e in m.mapped.values())))"
               "(__import__('heddle_nodes.calls', fromlist=['x']).current().memory, "
               "__import__('sys').modules['custom_nodes.contract.basics'].MakeBox.Box)")
        for _, python in self.each_python():
            told = self.run_flow({
                "n": ("t.Numbers", {"count": 1}), "box": ("t.MakeBox", {"value": ["n", 1]}),
                "open": ("t.OpenBox", {"box": ["box", 0], "other": ["box", 0]}),
                "e": ("EmptyImage", {"width": 256, "height": 256, "color": ["n", 1]}), "pass": ("t.First", {"image": ["e", 0]}),
                "i": ("ImageInvert", {"image": ["pass", 0]}), "tell": ("t.Tell", {"value": ["i", 0]}), "number": ("t.Tell", {"value": ["n", 1]}),
                "ask": ("StringConcatenate", {"string_a": ask, "string_b": ["number", 0], "delimiter": " # "}),
                "left": ("t.Give", {"text": ["ask", 0]}), "show": ("PreviewAny", {"source": ["left", 0]}),
                "show1": ("PreviewAny", {"source": ["tell", 0]}), "show2": ("PreviewAny", {"source": ["open", 0]})},
                "--set", "n.count=1..40", python=python, packs="packs")
            left = [json.loads(text) for text in re.findall(r"show PreviewAny: (\[.*\])$", told.replace("(", "[").replace(")", "]"), re.M)]
            self.assertEqual(len(left), 40, told)
            for mapped, objects, boxes, _ in left:
                self.assertLess(mapped, 16)
                self.assertLessEqual(objects, 1)
                self.assertLessEqual(boxes, 1)
            # Memory is written once without a mapping, and again by one: what others read of it is right both times.
            self.assertTrue(any(again > 0 for *_, again in left))
            pixels = re.findall(r"show1 PreviewAny: \w+ (?:tensor|array)\(\[\[\[\[([^\]]+)\]", told)
            for expected, pixel in zip(range(1, 41), pixels):
                self.assertAlmostEqual(float(pixel.split(",")[2]), 1 - expected / 255, 3)
            self.assertEqual(len(pixels), 40)

    def test_helpers(self):
        python = pythons().get("torch")
        if python is None:
            self.skipTest("no Python here has torch")
        nodes, shown = {"ramp": ("x.Ramp", {"width": 60, "height": 40, "batch": 3})}, []
        for method in ("nearest-exact", "bilinear", "area", "bicubic", "lanczos"):
            for crop, width, height in (("disabled", 17, 50), ("center", 64, 24)):
                id = f"{method}-{crop}"
                nodes[f"scale-{id}"] = ("ImageScale", {"image": ["ramp", 0], "upscale_method": method, "width": width, "height": height,
                                                       "crop": crop})
                nodes[id] = ("x.Upscale", {"image": ["ramp", 0], "expected": [f"scale-{id}", 0], "method": method, "crop": crop})
                shown.append(("0.0", [id, 0]))
        nodes["clip"] = ("DiffusersLoader", {"model_path": "tiny-scenes"})
        nodes["text"] = ("CLIPTextEncode", {"clip": ["clip", 1], "text": "a tree"})
        nodes["helpers"] = ("x.Helpers", {"image": ["ramp", 0], "conditioning": ["text", 0]})
        self.texts(nodes, [*shown, ("5 3.5 [1, 2] [1, 2, 2, 4] 4.0", ["helpers", 0])], python=python)

    def draw(self, changed, python, code=0):
        """The pixels of graphs/scene.json, small, with these nodes and links besides."""
        with open(os.path.join(HERE, "../../graphs/scene.json")) as file:
            scene = json.load(file)
        nodes = {id: (node["class_type"], node["inputs"]) for id, node in scene.items()}
        nodes["4"][1].update(width=64, height=64)
        nodes["5"][1].update(steps=4)
        for id, node in changed.items():
            if isinstance(node, tuple):
                nodes[id] = node
            else:
                nodes[id.split(".")[0]][1][id.split(".")[1]] = node
        self.count += 1
        nodes["7"][1]["filename_prefix"] = name = f"drawn{self.count}"
        told = self.run_flow(nodes, python=python, code=code)
        if code != 0:
            return told
        with open(os.path.join(self.folder.name, f"{name}_00001_.png"), "rb") as file:
            data, at, pixels = file.read(), 8, b""
        while at < len(data):
            size, kind = struct.unpack(">I4s", data[at:at + 8])
            pixels += data[at + 8:at + 8 + size] if kind == b"IDAT" else b""
            at += 12 + size
        return zlib.decompress(pixels)

    def test_a_picture_is_the_same_to_the_byte(self):
        for _, python in self.each_python():
            plain = self.draw({}, python)
            edited = {"c": ("x.EditConditioning", {"conditioning": ["2", 0]}), "5.positive": ["c", 0], "k": ("x.Keep", {"model": ["1", 0]}),
                      "5.model": ["k", 0]}
            self.assertEqual(self.draw(edited, python), plain)
            # Python gets latents in the autoencoder's units. NumPy rounds on the way there, where the decoder rounds otherwise: one level.
            near = self.draw({**edited, "l": ("x.EditLatent", {"latent": ["5", 0], "add": 0.0}), "6.samples": ["l", 0]}, python)
            self.assertEqual(len(near), len(plain))
            self.assertLessEqual({(a - b) % 256 for a, b in zip(near, plain)}, {0, 1, 255})
            self.assertLess(sum(a != b for a, b in zip(near, plain)), len(plain) // 1000)
            area = self.draw({**edited, "c": ("x.EditConditioning", {"conditioning": ["2", 0], "area": True})}, python)
            own = self.draw({"a": ("ConditioningSetAreaPercentage", {"conditioning": ["2", 0], "height": 0.5, "width": 1.0, "x": 0, "y": 0,
                                                                     "strength": 0.8}),
                             "t": ("ConditioningSetTimestepRange", {"conditioning": ["a", 0], "start": 0.25, "end": 1.0}),
                             "5.positive": ["t", 0]}, python)
            self.assertEqual(area, own)
            self.assertNotEqual(area, plain)
            told = self.draw({**edited, "k": ("x.Keep", {"model": ["1", 0], "look": True})}, python, code=1)
            self.assertIn("the node uses 'clone' of a MODEL", told)


class Public(Flow):
    """What three kinds of well-known packs do, written anew."""
    packs = "public"

    def test_switches(self):
        self.texts({
            "none": ("t.Give", {"text": "None"}), "text": ("sw.Text", {"text": "words"}),
            "any": ("sw.AnySwitch", {"any_01": ["none", 0], "any_03": ["text", 0], "any_04": ["context", 0]}),
            "context": ("sw.Context", {"positive": ["text", 0], "steps": 20}),
            "more": ("sw.Context", {"base": ["context", 0], "negative": ["any", 0]}), "open": ("sw.OpenContext", {"context": ["more", 0]}),
            "seed": ("sw.Seed", {"seed": 5}), "display": ("sw.Display", {"source": ["context", 0]}),
            "bad": ("t.End", {"how": "raise"}), "lazy": ("sw.Select", {"select": 2, "input1": ["bad", 0], "input2": ["text", 0]}),
            "loud": ("sw.Select", {"select": 7, "input1": ["bad", 0]})},
            [("words", ["any", 0]), ("words words 20", ["open", 0]), ("5", ["seed", 0]), ("words", ["lazy", 0]), ("None", ["loud", 0])],
            packs="packs", more=["public"])

    def test_lists(self):
        color = random.Random(3).choice(["red", "green", "blue"])
        self.texts({
            "parts": ("ls.Split", {"text": "b;a;c", "separator": ";"}), "up": ("sw.Text", {"text": ["parts", 0], "upper": True}),
            "join": ("ls.Join", {"items": ["up", 0], "separator": "+"}), "sorted": ("ls.Sort", {"items": ["up", 0]}),
            "third": ("ls.Pick", {"items": ["sorted", 0], "index": -1}), "wild": ("ls.Wildcard", {"text": "a {red|green|blue} house", "seed": 3}),
            "wild2": ("ls.Wildcard", {"text": "a {red|green|blue} house", "seed": 3}),
            "pipe": ("ls.Pipe", {"name": "p", "items": ["sorted", 0]}), "unpipe": ("ls.Unpipe", {"pipe": ["pipe", 0]}),
            "loop": ("ls.While", {"count": 4, "value": "x"})},
            [("B+A+C", ["join", 0]), ("A|B|C", ["sorted", 0]), ("C", ["third", 0]), (f"a {color} house", ["wild", 0]),
             (f"a {color} house", ["wild2", 0]),
             ("p:A,B,C", ["unpipe", 0]), ("xxxxx", ["loop", 0])], more=["public"], packs="packs")

    def test_essentials(self):
        self.texts({"math": ("es.Math", {"value": "a * 2 + round(b / 3) - min(a, 7)", "a": ["n", 0], "b": 10}),
                    "n": ("t.Square", {"number": ["k", 0]}),
                    "k": ("ls.Number", {"number": 3}),
                    "evil": ("es.Math", {"value": "1 + 1"})}, [("14", ["math", 0]), ("14.0", ["math", 1]), ("2", ["evil", 0])],
                   more=["public"], packs="packs")
        told = self.run_flow({"m": ("es.Math", {"value": "__import__('os')"}), "show": ("PreviewAny", {"source": ["m", 0]})}, code=1)
        self.assertIn("es.Math", told)
        self.assertIn("the pack 'essentials': ValueError", told)

    def test_essentials_of_pictures(self):
        python = pythons().get("torch")
        if python is None:
            self.skipTest("no Python here has torch")
        nodes = {"e": ("EmptyImage", {"width": 100, "height": 50, "color": 0xff8000, "batch_size": 2}),
                 "keep": ("es.Resize", {"image": ["e", 0], "width": 64, "height": 64, "method": "keep"}),
                 "pad": ("es.Resize", {"image": ["e", 0], "width": 64, "height": 64, "method": "pad"}),
                 "fill": ("es.Resize", {"image": ["e", 0], "width": 64, "height": 64, "method": "fill"}),
                 "m": ("SolidMask", {"width": 64, "height": 64}), "blur": ("es.BlurMask", {"mask": ["m", 0], "amount": 6}),
                 "many": ("es.Batch", {"image_1": ["keep", 0], "image_2": ["pad", 0]}),
                 "over": ("es.Composite", {"below": ["pad", 0], "above": ["fill", 0], "mask": ["blur", 0]})}
        tells = {f"t{n}": ("x.Sum", {"tensor": [n, 0]}) for n in ("keep", "pad", "fill", "blur", "many", "over")}
        one = 1 + 128 / 255  # of a pixel
        self.texts({**nodes, **tells},
                   [(f"[2, 32, 64, 3] float32 {2 * 32 * 64 * one:.1f}", ["tkeep", 0]),
                    (f"[2, 64, 64, 3] float32 {2 * 32 * 64 * one:.1f}", ["tpad", 0]),
                    (f"[2, 64, 64, 3] float32 {2 * 64 * 64 * one:.1f}", ["tfill", 0]), ("[1, 64, 64] float32 4096.0", ["tblur", 0]),
                    (f"[4, 32, 64, 3] float32 {2 * 32 * 64 * one + 2 * 16 * 64 * one:.1f}", ["tmany", 0]),
                    (f"[2, 64, 64, 3] float32 {2 * 64 * 64 * one:.1f}", ["tover", 0]), ("64", ["keep", 1])], more=["tensors"], python=python)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=2)
