"""Writes what diffusers makes with a tiny audio autoencoder of MiniMax H3.

    make_h3_sound_goldens.py [OUT]        (default: h3_sound/ beside this file)

Needs torch, torchaudio, diffusers and safetensors from PyPI; runs on the CPU in float32. All weights follow from the names of their
tensors (seeded_weights.py): the lengths of filters' rows ("weight_g") and what an encoder's activations are told ("alpha",
of three axes) from these with ".norm.weight" behind them, but for "convs2", whose
lengths have one axis there; zero_k_bias is zero. So only shapes are written, and what comes
out:

    shapes.json             {"vae": {name: shape}}, the names being those of the publishers' files
    expected.safetensors    "filter" is each filter around an activation (1, 1, 12); "latent.z" (1, 32, 2, 3) is what a decoder
                            reads of sound with two channels, "latent.sound" (1, 2, 2400) what it makes; "sound.waveform"
                            (1, 2, 1900) is what an encoder reads, "sound.mean" (1, 32, 2, 3) what it makes. "units.z" is
                            "latent.z" in the diffusion model's units, "units.mean" is "sound.mean" in these; "loud.sound" is
                            "latent.sound" as VAEDecodeAudio hands it out: divided by five times its deviation, where that is
                            above 1. "fast.waveform" (1, 1, 2617) is sound at 44,100 points a second, "fast.mean" the latent of it at 32,000, in
                            both channels, in the diffusion model's units
"""

import json
import os
import sys

import torch
import torchaudio
from diffusers import AutoencoderKLMiniMaxH3Audio
from safetensors.torch import save_file

import seeded_weights

torch.set_grad_enabled(False)
HERE = os.path.dirname(os.path.abspath(__file__))
# Those of the published config.json, which the files' readers know.
LATENTS_MEAN = [-0.020211687488382354, 0.3876466479950502, -0.04398279799186767, -0.28591514936373, 0.08179686214561671] + [
    -0.35782641352446604, 0.040623809960919084, -0.01552534501956604, -0.223362481667332, 0.1821006842509091, 0.2941778783780663,
    -0.07901167601970885, -0.056815072777201, -0.3699028221860095, -0.31616315591624855, 0.5905951377425391, -0.052139568068853864,
    0.013673160263486295, -0.03691647864630577, 0.09732660653298163, -0.3394662328788498, -0.30685677538541667,
    -0.24504598907458763, -0.034698524462007344, 0.02868032184767538, -0.21217779266454084, -0.1678263169941987,
    0.3221287889040614, -0.1223055851554907, 0.4356604928128464, -0.0502599202236253, 0.3979258376211797]
LATENTS_STD = [1.6895524230479284, 2.76263727217653, 1.7945344281264435, 1.6801681847309828, 1.6390226546605453] + [
    2.7788298348882177, 1.7659090095747236, 1.6199757612137327, 2.6336525640336896, 1.8539356672817833, 2.5056497896915633,
    1.811019237886178, 1.9579657790720237, 1.6685498243529284, 1.4922469314453364, 3.298670198067373, 1.9491804496832168,
    1.8720003270431442, 1.8334080103291832, 1.6488070416529093, 1.6176957696319716, 1.9131449234774398, 1.5695245398428617,
    1.6943659940415912, 1.8318420762504692, 1.5540637421583379, 1.9344930328968526, 1.599198216109855, 1.718045989838149,
    1.6307219190837705, 1.8661226051202384, 1.5613768203168363]


def randn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def seeded(name, tensor):
    if name.endswith(".filter"):
        return tensor
    if name.endswith("zero_k_bias"):
        return torch.zeros_like(tensor)
    if name.endswith("weight_g") and "convs2" in name:
        return seeded_weights.seeded(name, (tensor.shape[0],)).reshape(tensor.shape)
    is_around_one = name.endswith("weight_g") or (name.endswith("alpha") and tensor.dim() == 3)
    return seeded_weights.seeded(name + ".norm.weight" if is_around_one else name, tuple(tensor.shape))


def by_channel(numbers):
    return torch.tensor(numbers)[None, :, None, None]


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "h3_sound")
    os.makedirs(out, exist_ok=True)
    model = AutoencoderKLMiniMaxH3Audio(encoder_dim=8, latent_dim=512, decoder_dim=128)
    state = {name: seeded(name, tensor) for name, tensor in model.state_dict().items()}
    model.load_state_dict(state)
    model.eval()
    z, sound = randn(1, 1, 32, 2, 3), randn(2, 1, 2, 1900).mul(0.3).clamp(-1, 1)
    made = model.decode(z[0].transpose(0, 1), return_dict=False)[0][:, 0][None]
    mean = model.encode(sound[0][:, None], return_dict=False)[0].mode().transpose(0, 1)[None]
    fast = randn(3, 1, 1, 2617).mul(0.3)
    # In f32 torchaudio rounds its filters by 1e-5, which the encoder makes forty times as much.
    slow = torchaudio.functional.resample(fast.double(), 44100, 32000).float().expand(1, 2, -1)
    fast_mean = model.encode(slow[0][:, None], return_dict=False)[0].mode().transpose(0, 1)[None]
    loud = torch.std(made, dim=[1, 2], keepdim=True) * 5
    expected = {
        "filter": state["decoder.activation_post.upsample.filter"],
        "latent.z": z,
        "latent.sound": made,
        "sound.waveform": sound,
        "sound.mean": mean,
        "units.z": (z - by_channel(LATENTS_MEAN)) / by_channel(LATENTS_STD),
        "units.mean": (mean - by_channel(LATENTS_MEAN)) / by_channel(LATENTS_STD),
        "fast.waveform": fast,
        "fast.mean": (fast_mean - by_channel(LATENTS_MEAN)) / by_channel(LATENTS_STD),
        "loud.sound": made / loud.clamp(min=1),
    }
    assert (expected["filter"] == state["decoder.resblocks.0.activations.0.downsample.lowpass.filter"]).all()
    print("of", made.numel(), "samples", (made.abs() >= 1).sum().item(), "are at the ends, deviation", made.std().item())
    with open(os.path.join(out, "shapes.json"), "w") as file:
        json.dump({"vae": {name: list(tensor.shape) for name, tensor in state.items()}}, file)
        file.write("\n")
    save_file({name: tensor.contiguous() for name, tensor in expected.items()}, os.path.join(out, "expected.safetensors"))
    os.chmod(os.path.join(out, "expected.safetensors"), 0o644)


if __name__ == "__main__":
    main()
