"""Writes ltx_files.json: names and shapes of the parts that LTX-Video 0.9.5, LTX 2, 2.3 and 2.5 are published in.

    make_ltx_files.py

Needs torch, diffusers and transformers from PyPI: models are made on PyTorch's meta device, which holds no weights, and named as
the publishers' files name them. Where their sizes come from:

    LTX 2       what diffusers' classes have without being told, which are the published configs
    0.9, 0.9.5, 2.3   the sizes that diffusers' scripts convert_ltx_to_diffusers.py and convert_ltx2_to_diffusers.py give
    upsamplers  diffusers' class: 1024 channels, four blocks a stage; by that script 2's is the rational one, those of 2.3 and 2.5 not

{part: {name: shape}}, where "{0-27}" in a name stands for each of these numbers. ltx_headers.py makes files of them.
"""

import json
import os

import torch
from diffusers import AutoencoderKLLTX2Audio, AutoencoderKLLTX2Video, AutoencoderKLLTXVideo, LTX2VideoTransformer3DModel
from diffusers.pipelines.ltx2.connectors import LTX2TextConnectors
from diffusers.pipelines.ltx2.latent_upsampler import LTX2LatentUpsamplerModel
from diffusers.pipelines.ltx2.vocoder import LTX2Vocoder, LTX2VocoderWithBWE

import make_ltx2_audio_goldens
import make_ltx2_goldens
import make_ltx2_text_goldens
import make_ltxv_later_vae_goldens
import make_ltxv_vae_goldens
from name_patterns import compressed

HERE = os.path.dirname(os.path.abspath(__file__))
BOTH = {"encoder": True, "decoder": True}
GATHERING = ("spatial", "temporal", "spatiotemporal", "spatiotemporal")
# Neither LTX 2.3's transformer nor its connectors have a projection of the text.
GATED = dict(gated_attn=True, cross_attn_mod=True, audio_gated_attn=True, audio_cross_attn_mod=True, use_prompt_embeddings=False)
CONNECTORS = dict(
    per_modality_projections=True,
    proj_bias=True,
    video_connector_num_attention_heads=32,
    video_connector_attention_head_dim=128,
    video_connector_num_layers=8,
    video_gated_attn=True,
    audio_connector_num_attention_heads=32,
    audio_connector_attention_head_dim=64,
    audio_connector_num_layers=8,
    audio_gated_attn=True,
)


def named(model, name_of=str):
    return {name_of(name): list(tensor.shape) for name, tensor in model.state_dict().items()}


def later_vae(model):
    return named(model, lambda name: make_ltxv_later_vae_goldens.original(name, BOTH))


def vae_095():
    return AutoencoderKLLTXVideo(
        block_out_channels=(128, 256, 512, 1024, 2048),
        down_block_types=("LTXVideo095DownBlock3D",) * 4,
        decoder_block_out_channels=(256, 512, 1024),
        layers_per_block=(4, 6, 6, 2, 2),
        decoder_layers_per_block=(5, 5, 5, 5),
        spatio_temporal_scaling=(True,) * 4,
        decoder_spatio_temporal_scaling=(True,) * 3,
        decoder_inject_noise=(False,) * 4,
        downsample_type=GATHERING,
        upsample_residual=(True,) * 3,
        upsample_factor=(2,) * 3,
        timestep_conditioning=True,
    )


def vae_23():
    return AutoencoderKLLTX2Video(
        block_out_channels=(256, 512, 1024, 1024),
        decoder_block_out_channels=(256, 512, 512, 1024),
        layers_per_block=(4, 6, 4, 2, 2),
        decoder_layers_per_block=(4, 6, 4, 2, 2),
        spatio_temporal_scaling=(True,) * 4,
        decoder_spatio_temporal_scaling=(True,) * 4,
        decoder_inject_noise=(False,) * 5,
        downsample_type=GATHERING,
        upsample_type=("spatiotemporal", "spatiotemporal", "temporal", "spatial"),
        upsample_residual=(False,) * 4,
        upsample_factor=(2, 2, 1, 2),
    )


def main():
    transformer = lambda name: "model.diffusion_model." + make_ltx2_goldens.original(name)  # noqa: E731
    with torch.device("meta"):
        parts = {
            "vae 0.9": named(AutoencoderKLLTXVideo(), make_ltxv_vae_goldens.original),
            "vae 0.9.5": later_vae(vae_095()),
            "transformer 2": named(LTX2VideoTransformer3DModel(), transformer),
            "transformer 2.3": named(LTX2VideoTransformer3DModel(**GATED), transformer),
            "texts 2": named(LTX2TextConnectors(), make_ltx2_text_goldens.original),
            "texts 2.3": named(LTX2TextConnectors(**CONNECTORS), make_ltx2_text_goldens.original),
            "vae 2": later_vae(AutoencoderKLLTX2Video()),
            "vae 2.3": later_vae(vae_23()),
            "audio vae": named(AutoencoderKLLTX2Audio(), make_ltx2_audio_goldens.vae_name),
            "vocoder 2": named(LTX2Vocoder(), make_ltx2_audio_goldens.vocoder_name),
            "vocoder 2.3": named(LTX2VocoderWithBWE(), make_ltx2_audio_goldens.stages_name),
            "upsampler 2": named(LTX2LatentUpsamplerModel()),
            "upsampler 2.3": named(LTX2LatentUpsamplerModel(use_rational_resampler=False)),
        }
    texts = []
    for part, shapes in parts.items():
        rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(shape)}" for name, shape in compressed(shapes).items())
        texts.append(f' "{part}": {{\n{rows}\n }}')
        print(part, len(shapes))
    with open(os.path.join(HERE, "ltx_files.json"), "w") as file:
        file.write("{\n" + ",\n".join(texts) + "\n}\n")


if __name__ == "__main__":
    main()
