"""Writes the golden files beside it: {sequence,schedule,sampler}_golden.json.

Run on x86-64 with AVX2, PyTorch, SciPy and diffusers: python make_goldens.py
Every number comes from PyTorch (tensor arithmetic in single precision), NumPy, SciPy or diffusers.
"""
import json
import math
import pathlib
import zlib

import numpy as np
import torch
from diffusers import EulerDiscreteScheduler, FlowMatchEulerDiscreteScheduler
from scipy.stats import beta as beta_distribution

from sampler_reference import SAMPLERS

HERE = pathlib.Path(__file__).parent


def write(name, golden):
    text = json.dumps(golden, separators=(",", ":")).replace("},{", "},\n{")
    (HERE / name).write_text(text + "\n")


def crc(values):
    return "%08x" % zlib.crc32(np.ascontiguousarray(values, dtype=np.float32).tobytes())


def floats(values):
    """Shortest decimals that give back the same single-precision values."""
    values = np.asarray(values, np.float32)
    return [float(np.format_float_positional(v, unique=True)) for v in values]


# --- noise: several calls on one generator


def sequence(seed, sizes):
    generator = torch.Generator().manual_seed(seed)
    calls = [{"n": n, "crc32": crc(torch.randn(n, generator=generator))} for n in sizes]
    return {"seed": seed, "calls": calls}


def batch(seed, shape, index):
    generator = torch.Generator().manual_seed(seed)
    items = [torch.randn([1, *shape], generator=generator) for _ in range(max(index) + 1)]
    noise = torch.cat([items[i] for i in index])
    return {"seed": seed, "item": items[0].numel(), "index": index, "crc32": crc(noise)}


def sequences():
    assert torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512")
    return {
        "sequences": [
            sequence(3, [3, 5, 16, 1, 40, 2, 15, 17, 7]),
            sequence(2**63 + 12345, [1, 1, 1, 100, 1, 16, 16, 24, 24]),
            sequence(42, [16384, 16384, 16]),
        ],
        "batches": [
            batch(42, [4, 64, 64], [0, 1, 2]),
            batch(42, [4, 64, 64], [2]),
            batch(7, [4, 9, 9], [5, 0, 5, 3]),
            batch(7, [3, 1, 1], [1, 4, 2]),
            batch(2**64 - 1, [16, 3, 5], [2, 2, 0]),
        ],
    }


# --- noise levels: (table, timestep of sigma, sigma of timestep)


def discrete(zero_snr=False):
    betas = torch.linspace(0.00085**0.5, 0.012**0.5, 1000, dtype=torch.float64) ** 2
    kept = torch.cumprod(1 - betas, 0)
    if zero_snr:
        root = kept.sqrt()
        kept = ((root - root[-1]) * (root[0] / (root[0] - root[-1]))) ** 2
        kept[-1] = 4.8973451890853435e-08
    exact = ((1 - kept) / kept) ** 0.5
    logs = exact.log().float()

    def sigma(t):
        t = torch.clamp(torch.as_tensor(t).float(), 0, 999)
        w = t.frac()
        return ((1 - w) * logs[t.floor().long()] + w * logs[t.ceil().long()]).exp()

    return exact.float(), lambda s: (s.log() - logs).abs().argmin().float(), sigma


def distilled():
    table = discrete()[0][19::20]
    logs = table.log()

    def sigma(t):
        t = torch.clamp((torch.as_tensor(t).float() - 19) / 20, 0, 49)
        w = t.frac()
        return ((1 - w) * logs[t.floor().long()] + w * logs[t.ceil().long()]).exp()

    return table, lambda s: (s.log() - logs).abs().argmin().float() * 20 + 19, sigma


def flow(shift, multiplier):
    def sigma(t):
        t = t / multiplier
        return t if shift == 1 else shift * t / (1 + (shift - 1) * t)

    return sigma(torch.arange(1, 1001) / 1000 * multiplier), lambda s: s * multiplier, sigma


def flux(mu):
    sigma = lambda t: math.exp(mu) / (math.exp(mu) + (1 / t - 1))
    return sigma(torch.arange(1, 10001) / 10000), lambda s: s, sigma


def edm(low, high):
    table = torch.linspace(math.log(low), math.log(high), 1000).exp()
    return table, lambda s: 0.25 * s.log(), lambda t: (t / 0.25).exp()


def continuous_v(low, high):
    table = edm(low, high)[0]
    return table, lambda s: s.atan() / math.pi * 2, lambda t: (t * math.pi / 2).tan()


LEVELS = {
    "sd": discrete(),
    "zsnr": discrete(True),
    "lcm": distilled(),
    "flow_1_1": flow(1.0, 1.0),
    "flow_3_1000": flow(3.0, 1000.0),
    "flow_3_1": flow(3.0, 1.0),
    "flow_3.1_1": flow(3.1, 1.0),
    "flow_8_1000": flow(8.0, 1000.0),
    "flux_1.15": flux(1.15),
    "flux_0.63": flux(0.63),
    "edm": edm(0.002, 120.0),
    "v": continuous_v(0.03, 500.0),
}

# --- schedules


def simple(levels, n):
    table = levels[0]
    stride = len(table) / n
    return [table[-1 - int(k * stride)] for k in range(n)] + [0]


def sgm_uniform(levels, n):
    table, timestep, sigma = levels
    times = torch.linspace(timestep(table[-1]).item(), timestep(table[0]).item(), n + 1)[:-1]
    return [sigma(t) for t in times] + [0]


def normal(levels, n):
    table, timestep, sigma = levels
    ends = timestep(table[-1]).item(), timestep(table[0]).item()
    if abs(sigma(torch.tensor(ends[1]))) <= 1e-5:
        return [sigma(t) for t in torch.linspace(*ends, n + 1)]
    return [sigma(t) for t in torch.linspace(*ends, n)] + [0]


def ddim_uniform(levels, n):
    table = levels[0]
    clean = abs(table[1]) <= 1e-5
    picked = list(table[1 :: max(len(table) // (n + 1 if clean else n), 1)])
    return (picked if clean else [0, *picked])[::-1]


def beta(levels, n, a=0.6, b=0.6):
    table = levels[0]
    parts = beta_distribution.ppf(1 - np.linspace(0, 1, n, endpoint=False), a, b)
    index = np.rint(parts * (len(table) - 1)).astype(int)
    return [table[i] for k, i in enumerate(index) if k == 0 or i != index[k - 1]] + [0]


def karras(levels, n, rho=7.0):
    low, high = levels[0][0].item() ** (1 / rho), levels[0][-1].item() ** (1 / rho)
    return [*((high + torch.linspace(0, 1, n) * (low - high)) ** rho), 0]


def exponential(levels, n):
    low, high = math.log(levels[0][0].item()), math.log(levels[0][-1].item())
    return [*torch.linspace(high, low, n).exp(), 0]


def kl_optimal(levels, n):
    low, high = math.atan(levels[0][0].item()), math.atan(levels[0][-1].item())
    part = torch.arange(n) / (n - 1)
    return [*(part * low + (1 - part) * high).tan(), 0]


def linear_quadratic(levels, n):
    m = n // 2
    q, e = n - m, m - 0.025 * n
    curve = np.poly1d([e / (m * q**2), 0.025 / m - 2 * e / q**2, e / (m * q**2) * m**2])
    parts = [0.025 * i / m for i in range(m)] + [curve(i) for i in range(m, n)] + [1.0]
    return torch.tensor([1 - u for u in parts]) * levels[0][-1]


# Align Your Steps for SD 1 and OptimalSteps for FLUX, as published.
TABLES = {
    "SD1": [14.6146412293, 6.4745760956, 3.8636745985, 2.6946151520, 1.8841921177, 1.3943805092,
            0.9642583904, 0.6523686016, 0.3977456272, 0.1515232662, 0.0291671582],
    "FLUX": [0.9968, 0.9886, 0.9819, 0.975, 0.966, 0.9471, 0.9158, 0.8287, 0.5512, 0.2808, 0.001],
}


def tabled(model_type, n, denoise):
    table = TABLES[model_type]
    logs = np.interp(np.linspace(0, 1, n + 1), np.linspace(0, 1, len(table)), np.log(table))
    return [*np.exp(logs)[-(round(n * denoise) + 1) : -1], 0]


SCHEDULES = [simple, sgm_uniform, karras, exponential, ddim_uniform, beta, normal, linear_quadratic,
             kl_optimal]


def diffusers_cases():
    """Schedules that diffusers computes in its own way and that have to be the same."""
    config = dict(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear")
    euler = EulerDiscreteScheduler(**config, use_karras_sigmas=True)
    euler.set_timesteps(20)
    cases = [("sd", "karras", euler.sigmas)]
    euler = EulerDiscreteScheduler(**config, timestep_spacing="linspace")
    euler.set_timesteps(20)
    cases.append(("sd", "normal", euler.sigmas))
    shifts = [("flow_3_1000", 3.0, 8), ("flow_8_1000", 8.0, 25), ("flow_3.1_1", 3.1, 20)]
    for name, shift, n in shifts:
        static = FlowMatchEulerDiscreteScheduler(shift=shift)
        static.set_timesteps(sigmas=np.linspace(1, 1 / n, n))
        cases.append((name, "simple", static.sigmas))
    for name, mu, n in [("flux_1.15", 1.15, 20), ("flux_0.63", 0.63, 25)]:
        dynamic = FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True)
        dynamic.set_timesteps(sigmas=np.linspace(1, 1 / n, n), mu=mu)
        cases.append((name, "simple", dynamic.sigmas))
    return [{"levels": a, "schedule": b, "sigmas": floats(c)} for a, b, c in cases]


def schedules():
    tables, cases, exact = [], [], []
    for name, levels in LEVELS.items():
        table, timestep, sigma = levels
        probes = [table[0], table[len(table) // 3], table[-1] * 0.77, table[-1]]
        times = [timestep(torch.as_tensor(p)) for p in probes]
        tables.append({"levels": name, "count": len(table), "crc32": crc(table),
                       "some": floats(table[:: len(table) // 5]), "last": floats(table[-1:])[0],
                       "sigmas": floats(probes), "timesteps": floats(times),
                       "back": floats([sigma(t) for t in times])})
    for name in ["sd", "zsnr", "lcm", "flow_3_1000", "flow_3.1_1", "flux_1.15", "edm", "v"]:
        for schedule in SCHEDULES:
            for n in [2, 7, 20]:
                cases.append({"levels": name, "schedule": schedule.__name__, "steps": n,
                              "sigmas": floats(schedule(LEVELS[name], n))})
    # Schedules that only pick from a table are the same bits, for every number of steps.
    for name in ["sd", "lcm", "flow_3_1000", "flow_8_1000", "flux_1.15"]:
        for schedule in [simple, ddim_uniform, beta]:
            every = [v for n in range(1, 151) for v in schedule(LEVELS[name], n)]
            exact.append({"levels": name, "schedule": schedule.__name__, "steps": [1, 150],
                          "count": len(every), "crc32": crc(every)})
    published = [{"model_type": m, "steps": n, "denoise": d, "sigmas": floats(tabled(m, n, d))}
                 for m in TABLES for n, d in [(10, 1.0), (20, 1.0), (3, 1.0), (25, 0.5), (7, 0.5)]]
    return {"tables": tables, "cases": cases, "exact": exact, "published": published,
            "diffusers": diffusers_cases()}


# --- samplers

START = [1.0, -0.4, 2.5]


def toy_denoised(x, sigma):
    return 0.9 * np.tanh(x / (1 + sigma)) + 0.1 * np.cos(3 * sigma + x)


def run_sampler(name, sigmas, is_flow, eta):
    draws, calls = [0], []
    sigmas = [float(np.float32(s)) for s in sigmas]

    def noise():
        draws[0] += 1
        return 1.3 * np.sin(1.7 * draws[0] + 0.9 * np.arange(3) + 0.3)

    def denoise(x, sigma):
        calls.append(float(sigma))
        return toy_denoised(x, sigma)

    x = np.array(START) * sigmas[0]
    result = SAMPLERS[name](denoise, x, sigmas, noise, is_flow, eta)
    return {"sampler": name, "flow": is_flow, "eta": eta, "sigmas": sigmas, "calls": calls,
            "draws": draws[0], "result": [float(v) for v in result]}


def samplers():
    runs = {
        False: [floats(karras(LEVELS["sd"], 7)), floats(normal(LEVELS["sd"], 4))[:-1]],
        True: [floats(simple(LEVELS["flow_3_1000"], 7)),
               floats(simple(LEVELS["flux_1.15"], 4))[:-1]],
    }
    without_infinity = ["dpmpp_2m_sde", "dpmpp_2m_sde_heun", "dpmpp_3m_sde", "er_sde"]
    cases = []
    for name in SAMPLERS:
        for is_flow in [False, True]:
            for sigmas in runs[is_flow]:
                if is_flow and name in without_infinity:
                    sigmas = [0.9999, *sigmas[1:]]
                has_eta = "ancestral" in name or name.startswith("dpmpp") and "sde" in name
                for eta in [1.0, 0.0, 0.6] if has_eta else [1.0]:
                    cases.append(run_sampler(name, sigmas, is_flow, eta))
    for name in ["uni_pc", "heun", "dpm_2", "deis"]:
        cases.append(run_sampler(name, [5.0, 0.0], False, 1.0))
    return {"start": START, "cases": cases}


if __name__ == "__main__":
    write("sequence_golden.json", sequences())
    write("schedule_golden.json", schedules())
    write("sampler_golden.json", samplers())
