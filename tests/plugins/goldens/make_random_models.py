"""Writes tiny models with random weights and what diffusers and transformers make of them, for
tests that need no trained model.

    make_random_models.py [OUT]        (default: random/ beside this file)

Needs torch, diffusers, transformers and safetensors from PyPI; runs on the CPU in float32 over
weights rounded to bfloat16, which is how they are stored. Files:

    flux_diffusers.safetensors   2 double and 2 single blocks, hidden 40, 2 heads of 20, no guidance
    flux_original.safetensors    the same weights under the original names, plus a guidance embedder
    clip.safetensors             2 layers, width 32, GELU, text projection, under "text_model."
    t5.safetensors               2 layers, width 24, attention of width 32, 8 buckets
    vae_diffusers.safetensors    2 levels, 4 and 8 channels in groups of 2, with quant convolutions
    vae_original.safetensors     the same under the original names
    configs.json                 the config of each
    expected.safetensors         "flux.x" is an input, "flux.out" an output (with a row for each
                                 step); names as in the model families
"""

import json
import os
import sys

import torch
from diffusers import AutoencoderKL, FluxPipeline, FluxTransformer2DModel
from safetensors.torch import save_file
from transformers import CLIPTextConfig, CLIPTextModelWithProjection, T5Config, T5EncoderModel

import original_names

torch.set_grad_enabled(False)
expected, configs = {}, {}


def shake(model, seed):
    """Random weights that no term of the computation is blind to: no zero bias, no norm of ones."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() > 1:
            fan = parameter[0].numel()
            value = noise * (0.5 if "embed" in name or "relative" in name else fan**-0.5)
        else:
            value = 0.2 * noise + (1 if "norm" in name and name.endswith("weight") else 0)
        parameter.copy_(value.bfloat16().float())
    return model.eval()


def save(out, name, state):
    save_file(
        {key: tensor.bfloat16().contiguous() for key, tensor in state.items()},
        os.path.join(out, f"{name}.safetensors"),
        {"format": "pt"},
    )


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_flux(out):
    config = dict(
        patch_size=1,
        in_channels=16,
        num_layers=2,
        num_single_layers=2,
        attention_head_dim=20,
        num_attention_heads=2,
        joint_attention_dim=24,
        pooled_projection_dim=32,
        axes_dims_rope=[16, 2, 2],
    )
    plain = shake(FluxTransformer2DModel(**config, guidance_embeds=False), 1)
    guided = shake(FluxTransformer2DModel(**config, guidance_embeds=True), 2)
    guided.load_state_dict(plain.state_dict(), strict=False)
    configs["flux"] = {"_class_name": "FluxTransformer2DModel", "guidance_embeds": False, **config}
    save(out, "flux_diffusers", plain.state_dict())
    save(out, "flux_original", original_names.flux(guided.state_dict()))

    batch, height, width, text = 2, 6, 8, 5
    x, context, y = (
        randn(3, batch, 4, height, width),
        randn(4, batch, text, 24),
        randn(5, batch, 32),
    )
    timestep, guidance = torch.tensor([0.9, 0.55, 0.125]), torch.tensor([3.5])
    ids = FluxPipeline._prepare_latent_image_ids(
        batch, height // 2, width // 2, "cpu", torch.float32
    )
    expected.update(
        {
            "flux.x": x,
            "flux.context": context,
            "flux.y": y,
            "flux.timestep": timestep,
            "flux.guidance": guidance,
        }
    )

    def run(model, x, sigma, context, y, guidance=None):
        packed = FluxPipeline._pack_latents(x, len(x), 4, height, width)
        v = model(
            hidden_states=packed,
            timestep=sigma.expand(len(x)),
            guidance=guidance,
            pooled_projections=y,
            encoder_hidden_states=context,
            txt_ids=torch.zeros(text, 3),
            img_ids=ids,
            return_dict=False,
        )[0]
        return FluxPipeline._unpack_latents(v, height * 8, width * 8, 8)

    # Odd sides are completed with the first row and column; one conditioning serves both pictures.
    odd = randn(11, batch, 4, height - 1, width - 1)
    whole = torch.nn.functional.pad(odd, (0, 1, 0, 1), mode="circular")
    one, pooled = context[:1].expand(batch, -1, -1), y[:1].expand(batch, -1)
    expected.update(
        {
            "flux_odd.x": odd,
            "flux_odd.context": context[:1],
            "flux_odd.y": y[:1],
            "flux_odd.timestep": timestep,
            "flux_odd.out": torch.stack(
                [run(plain, whole, sigma, one, pooled)[..., :-1, :-1] for sigma in timestep]
            ),
        }
    )
    expected["flux.out"] = torch.stack([run(plain, x, sigma, context, y) for sigma in timestep])
    expected["flux.out_guided"] = torch.stack(
        [run(guided, x, sigma, context, y, guidance.expand(batch)) for sigma in timestep]
    )


def make_clip(out):
    config = CLIPTextConfig(
        vocab_size=60,
        hidden_size=32,
        intermediate_size=80,
        projection_dim=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=12,
        hidden_act="gelu",
        eos_token_id=59,
        bos_token_id=58,
        pad_token_id=0,
    )
    model = shake(CLIPTextModelWithProjection(config), 6)
    configs["clip"] = {
        "hidden_act": "gelu",
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "layer_norm_eps": 1e-5,
    }
    save(out, "clip", original_names.clip(model.state_dict()))
    ids = torch.tensor([[58, 3, 17, 40, 59, 0, 0, 0, 0], [58, 8, 59, 0, 0, 0, 0, 0, 0]])
    result = model(ids, output_hidden_states=True)
    eos = torch.tensor([4, 2])
    expected.update(
        {
            "clip.ids": ids.int(),
            "clip.eos": eos.int(),
            "clip.last_hidden": result.last_hidden_state,
            "clip.penultimate": result.hidden_states[-2],
            "clip.pooled": result.last_hidden_state[torch.arange(2), eos],
            "clip.projected": result.text_embeds,
        }
    )


def make_t5(out):
    config = T5Config(
        vocab_size=50,
        d_model=24,
        d_kv=16,
        d_ff=40,
        num_layers=2,
        num_heads=2,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=20,
        feed_forward_proj="gated-gelu",
        is_encoder_decoder=False,
        use_cache=False,
    )
    model = shake(T5EncoderModel(config), 7)
    configs["t5"] = {
        "num_layers": 2,
        "relative_attention_max_distance": 20,
        "feed_forward_proj": "gated-gelu",
        "dense_act_fn": "gelu_new",
        "layer_norm_epsilon": 1e-6,
    }
    state = {
        name: tensor
        for name, tensor in model.state_dict().items()
        if name != "encoder.embed_tokens.weight"
    }
    save(out, "t5", state)
    ids = torch.cat(
        [
            torch.arange(2, 32)[None],
            torch.cat([torch.arange(40, 20, -1), torch.zeros(10, dtype=torch.long)])[None],
        ]
    )
    expected.update({"t5.ids": ids.int(), "t5.last_hidden": model(ids).last_hidden_state})


def make_vae(out):
    config = dict(
        in_channels=3,
        out_channels=3,
        down_block_types=["DownEncoderBlock2D"] * 2,
        up_block_types=["UpDecoderBlock2D"] * 2,
        block_out_channels=[4, 8],
        layers_per_block=1,
        latent_channels=4,
        norm_num_groups=2,
        scaling_factor=0.5,
        shift_factor=0.25,
        use_quant_conv=True,
        use_post_quant_conv=True,
    )
    model = shake(AutoencoderKL(**config), 8)
    configs["vae"] = config
    save(out, "vae_diffusers", model.state_dict())
    save(out, "vae_original", original_names.autoencoder(model.state_dict()))
    z, image = randn(9, 2, 4, 5, 3), randn(10, 2, 10, 6, 3).clamp(-1, 1)
    latent = model.encode(image.permute(0, 3, 1, 2)).latent_dist
    expected.update(
        {
            "vae.z": z,
            "vae.image": model.decode(z).sample.permute(0, 2, 3, 1).contiguous(),
            "vae_encoder.image": image,
            "vae_encoder.mean": latent.mean,
            "vae_encoder.logvar": latent.logvar,
        }
    )


def main():
    out = (
        sys.argv[1]
        if len(sys.argv) > 1
        else os.path.join(os.path.dirname(os.path.abspath(__file__)), "random")
    )
    os.makedirs(out, exist_ok=True)
    for make in (make_flux, make_clip, make_t5, make_vae):
        make(out)
    with open(os.path.join(out, "configs.json"), "w") as file:
        json.dump(configs, file, indent=1)
        file.write("\n")
    save_file(
        {name: tensor.clone().contiguous() for name, tensor in expected.items()},
        os.path.join(out, "expected.safetensors"),
    )
    for name in sorted(os.listdir(out)):
        print(f"{os.path.getsize(os.path.join(out, name)):8d} {name}")


if __name__ == "__main__":
    main()
