"""Writes method_golden.json beside it: runs of method_reference.py on a toy model.

Run with NumPy and SciPy: python make_method_goldens.py
"""
import json
import pathlib

import numpy as np

from method_reference import METHODS
from sampler_reference import SAMPLERS

HERE = pathlib.Path(__file__).parent
START = [1.0, -0.4, 2.5]
LEVELS = {
    False: [[14.6146, 7.0944, 3.1686, 1.2741, 0.4469, 0.1303, 0.0292, 0.0],
            [14.6146, 2.9183, 0.9324, 0.4]],
    True: [[1.0, 0.9472, 0.8819, 0.7991, 0.6907, 0.5428, 0.3290, 0.0], [0.99, 0.9, 0.6, 0.4]],
}
FINITE = ["dpmpp_sde", "seeds_2", "seeds_3", "exp_heun_2_x0", "exp_heun_2_x0_sde", "sa_solver",
          "sa_solver_pece"]
WITH_ETA = ["euler_ancestral_cfg_pp", "dpmpp_2s_ancestral_cfg_pp",
            "res_multistep_ancestral_cfg_pp", "dpmpp_sde", "seeds_2"]
# (sampler, its options here, those of the reference)
OPTIONS = [
    ("euler_cfg_pp", {"alternative": 1}, None),
    ("dpmpp_sde", {"r": 0.3}, {"r": 0.3}),
    ("seeds_2", {"r": 0.7, "phi": 2}, {"r": 0.7, "phi": 2}),
    ("seeds_2", {"r": 1, "phi": 1}, {"r": 1, "phi": 1}),
    ("sa_solver", {"predictor_order": 4, "corrector_order": 0, "tau_from": 9, "tau_to": 0.01}, None),
    ("sa_solver", {"predictor_order": 1, "corrector_order": 6, "tau": 0.5}, None),
    ("sa_solver", {"predictor_order": 2, "corrector_order": 2, "simple_order_2": 1}, None),
    ("sa_solver", {"use_pece": 1, "predictor_order": 6, "corrector_order": 5},
     {"pece": True, "predictor_order": 6, "corrector_order": 5}),
    ("dpm_adaptive", {"order": 2, "rtol": 0.2}, None),
    ("dpm_adaptive", {"pcoeff": 0.2, "icoeff": 0.7, "dcoeff": 0.1, "h_init": 1.5}, None),
    ("dpm_adaptive", {"eta": 0.7, "atol": 0.05, "accept_safety": 0.9},
     {"own_eta": 0.7, "atol": 0.05, "accept_safety": 0.9}),
]


class Toy:
    def __init__(self):
        self.calls, self.spans = [], []

    def guided(self, x, sigma):
        self.calls.append(float(sigma))
        return 0.9 * np.tanh(x / (1 + sigma)) + 0.1 * np.cos(3 * sigma + x)

    def plain(self, x, sigma):
        return 0.7 * np.tanh(x / (1 + 0.5 * sigma)) - 0.2 * np.sin(2 * sigma + x)

    def noise(self, a, b):
        self.spans += [float(a), float(b)]
        return 1.3 * np.sin(1.7 * (len(self.spans) // 2) + 0.9 * np.arange(3) + 0.3)


def run(name, sigmas, flow, eta=1.0, given=None, reference=None):
    toy = Toy()
    sigmas = [float(np.float32(s)) for s in sigmas]
    x = np.array(START) * sigmas[0]
    options = reference if reference is not None else given or {}
    result = METHODS[name](toy, x, sigmas, flow, eta, **options)
    case = {"sampler": name, "flow": flow, "eta": eta, "sigmas": sigmas, "calls": toy.calls,
            "draws": len(toy.spans) // 2, "result": [float(v) for v in result]}
    if name == "dpmpp_sde":
        case["spans"] = toy.spans
    if given:
        case["options"] = given
    return case


def runs():
    for flow, schedules in LEVELS.items():
        for name in METHODS:
            for sigmas in schedules:
                if flow and name in FINITE:
                    sigmas = [min(sigmas[0], 0.9999), *sigmas[1:]]
                for eta in [1.0, 0.0, 0.6] if name in WITH_ETA else [1.0]:
                    yield run(name, sigmas, flow, eta)
        for name, given, reference in OPTIONS:
            sigmas = schedules[0]
            if flow and name in FINITE:
                sigmas = [0.9999, *sigmas[1:]]
            yield run(name, sigmas, flow, 1.0, given, reference)
    for n in range(1, 8):
        yield run("dpm_fast", [*np.linspace(9, 1, n), 0.0], False)


if __name__ == "__main__":
    assert not set(METHODS) & set(SAMPLERS)
    golden = {"start": START, "cases": list(runs())}
    text = json.dumps(golden, separators=(",", ":")).replace("},{", "},\n{")
    (HERE / "method_golden.json").write_text(text + "\n")
