"""Draws one picture with diffusers on PyTorch's CPU, timed inside: the peer of scene.py.

    python3 scene_diffusers.py SETTINGS

SETTINGS is one JSON object: folder, prompt, negative, width, height, steps, cfg, seed, times (the
schedule before the model's own shift), threads, picture (the PNG to write). The stock pipeline in
f32, both conditionings in every step. Prints one JSON line: seconds of loading, of every step and of
the rest, on the clock and of the processor.
"""

import json
import os
import sys
import time


class Stopwatch:
    """Seconds since the last look: on the clock, and of the processor with all threads."""

    def __init__(self):
        self.look()

    def look(self):
        wall, processor = time.perf_counter(), time.process_time()
        passed = (wall - self.wall, processor - self.processor) if hasattr(self, "wall") else None
        self.wall, self.processor = wall, processor
        return passed


def main():
    settings = json.loads(sys.argv[1])
    os.environ["HF_HUB_OFFLINE"] = "1"
    watch = Stopwatch()
    import torch
    from diffusers import FluxPipeline
    torch.set_num_threads(settings["threads"])
    seconds = {"import": watch.look()}
    pipeline = FluxPipeline.from_pretrained(settings["folder"], torch_dtype=torch.float32)
    pipeline.set_progress_bar_config(disable=True)
    seconds["load"] = watch.look()
    steps = []

    def on_step_end(_pipeline, index, _time, _tensors):
        # Up to the end of the first step there are the encoders' seconds, too.
        if index == 0:
            seconds["encode and first step"] = watch.look()
        else:
            steps.append(watch.look())
        return {}

    # As the engine does it: noise of the whole picture from one generator, before it is cut in patches.
    generator = torch.Generator("cpu").manual_seed(settings["seed"])
    length = pipeline.tokenizer_2.model_max_length
    picture = pipeline(prompt=settings["prompt"], negative_prompt=settings["negative"],
                       true_cfg_scale=settings["cfg"], guidance_scale=0.0, sigmas=settings["times"],
                       num_inference_steps=settings["steps"], width=settings["width"],
                       height=settings["height"], generator=generator, max_sequence_length=length,
                       callback_on_step_end=on_step_end).images[0]
    seconds["decode"] = watch.look()
    picture.save(settings["picture"])
    seconds["save"] = watch.look()
    print(json.dumps({"steps": steps, "seconds": seconds, "text_length": length,
                      "version": f"PyTorch {torch.__version__}"}))


if __name__ == "__main__":
    main()
