"""Writes what diffusers draws with a tiny UNet of SDXL and the schedulers of its variants: Playground v2.5, LCM, turbo, and
velocities with a terminal SNR of zero.

    make_unet_variant_goldens.py [OUT]        (default: unet_variants/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32. UNet, texts and autoencoder are the
"sdxl" of make_unet_goldens.py, whose weights follow from the names of their tensors, and so do the noise and its seed. Files:

    expected.safetensors    "NAME.latent" is the end of a guided run, in the model's units, "NAME.picture" the picture

Each step is one of diffusers' schedulers, fed with what the UNet makes. These of their numbers are ComfyUI's: runs begin with
noise times sqrt(1 + sigma^2), as far as the scheduler's units have one; what a stochastic step adds is of the seed behind the
run's; the terminal level of a zero SNR is that of 1 - 4.8973451890853435e-08 (diffusers: 1 - 2^-24).
"""

import math
import os
import sys

import torch
from diffusers import (
    EDMDPMSolverMultistepScheduler,
    EDMEulerScheduler,
    EulerAncestralDiscreteScheduler,
    EulerDiscreteScheduler,
    LCMScheduler,
)
from safetensors.torch import save_file

import make_unet_goldens as unets

torch.set_grad_enabled(False)
SEED, SIZES = 7, torch.tensor([[48.0, 80, 0, 0, 48, 80]])
# Of Playground v2.5's autoencoder: "latents_mean", "latents_std" and "scaling_factor" of its config.
MEANS, DEVIATIONS, SCALE = (-1.6574, 1.886, -1.383, 2.5155), (8.4927, 5.9022, 6.5498, 5.2299), 0.5
BETAS = dict(num_train_timesteps=1000, beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear")
TERMINAL = 4.8973451890853435e-08
expected = {}


def draw(model, texts, scheduler, cfg, is_scaled=True):
    """is_scaled: x is the picture plus sigma times noise, not that with a variance of 1."""
    x = torch.randn(1, 4, 6, 10, generator=torch.Generator().manual_seed(SEED))
    if is_scaled:
        x = x * math.sqrt(1 + float(scheduler.sigmas[0]) ** 2)
    generator = torch.Generator().manual_seed(SEED + 1)
    takes = {"generator": generator} if "generator" in scheduler.step.__code__.co_varnames else {}
    for time in scheduler.timesteps:
        seen = scheduler.scale_model_input(x, time)
        made = unets.predicted(model, seen, time, *texts[0])
        if cfg != 1:
            without = unets.predicted(model, seen, time, *texts[1])
            made = without + cfg * (made - without)
        x = scheduler.step(made, time, x, **takes).prev_sample
    return x


def keep(name, vae, latent, raw):
    picture = ((vae.decode(raw).sample + 1) / 2).clamp(0, 1).permute(0, 2, 3, 1)
    expected.update({f"{name}.latent": latent, f"{name}.picture": picture[:, ::5, ::5]})


def main(out):
    l, g = unets.make_clip("clip_l", 3, "quick_gelu"), unets.make_clip("clip_g", 32, "gelu")
    model, vae, texts = unets.make_unet("sdxl"), unets.make_vae(), []
    for words in (True, False):
        (first, _), (second, pooled) = (unets.encode(clip, end, words, -2, False) for clip, end in ((l, unets.CLIP_END), (g, 0)))
        texts.append((torch.cat([first, second], dim=-1), pooled, SIZES))

    # ModelSamplingContinuousEDM with edm_playground_v2.5, karras.
    means, deviations = (torch.tensor(numbers).view(1, 4, 1, 1) for numbers in (MEANS, DEVIATIONS))
    levels = dict(sigma_min=0.002, sigma_max=80.0, sigma_data=0.5, sigma_schedule="karras", prediction_type="epsilon")
    for name, kind in (("playground_euler", EDMEulerScheduler), ("playground_2m", EDMDPMSolverMultistepScheduler)):
        scheduler = kind(**levels)
        scheduler.set_timesteps(4)
        latent = draw(model, texts, scheduler, 3.0)
        keep(name, vae, latent, latent * deviations / SCALE + means)

    def drawn(name, scheduler, cfg, is_scaled=True):
        latent = draw(model, texts, scheduler, cfg, is_scaled)
        keep(name, vae, latent, latent / unets.SDXL_SCALE)

    # "simple" over the 50 levels of ModelSamplingDiscrete's lcm are the scheduler's own; "sgm_uniform" meets levels of these
    # where its steps divide 49.
    scheduler = LCMScheduler(**BETAS)
    scheduler.set_timesteps(4)
    drawn("lcm_simple", scheduler, 1.8, False)
    scheduler = LCMScheduler(**BETAS)
    scheduler.set_timesteps(timesteps=list(range(999, 19, -140)))
    drawn("lcm_uniform", scheduler, 1.8, False)

    # SDTurboScheduler with 1 step and with all of its 10.
    for name, steps in (("turbo_one", 1), ("turbo_ten", 10)):
        scheduler = EulerAncestralDiscreteScheduler(**BETAS, timestep_spacing="trailing")
        scheduler.set_timesteps(steps)
        drawn(name, scheduler, 1)

    # ModelSamplingDiscrete with v_prediction and zsnr, normal.
    scheduler = EulerDiscreteScheduler(
        **BETAS, prediction_type="v_prediction", rescale_betas_zero_snr=True, timestep_spacing="linspace"
    )
    scheduler.alphas_cumprod[-1] = TERMINAL
    scheduler.set_timesteps(4)
    drawn("zero_snr", scheduler, 5.0)

    os.makedirs(out, exist_ok=True)
    save_file({name: tensor.clone().contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    for name, tensor in expected.items():
        print(f"{name:24} {tuple(tensor.shape)} {tensor.norm():.4g}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "unet_variants"))
