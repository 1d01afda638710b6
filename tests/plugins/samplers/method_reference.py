"""More samplers written out on arrays, in the forms of the papers and of k-diffusion.

Each function takes (toy, x, sigmas, flow, eta, **options): toy.guided(x, sigma) is the model,
toy.plain(x, sigma) the model without the positive conditioning, toy.noise(a, b) a draw for a step
from level a to level b. Single-precision levels between two others are NumPy's.
"""
import math

import numpy as np
from scipy.integrate import quad

from sampler_reference import ancestral, log_snr, pairs, signal


def level(lam, flow):
    return 1 / (np.exp(lam) + 1) if flow else np.exp(-lam)


def euler_cfg_pp(toy, x, sigmas, flow, eta, alternative=False):
    for a, b in pairs(sigmas):
        d, u = toy.guided(x, a), toy.plain(x, a)
        if alternative:
            x = x + (x - d + u - d) / a * (b - a)
            continue
        if b == 0:
            x = d
            continue
        aa, ab = signal(a, flow), signal(b, flow)
        noise_direction = (x - aa * u) / a
        if eta == 0:
            down, up = b / ab, 0
        elif aa == 0:
            down, up = 0, b / ab
        else:
            down, up = ancestral(a / aa, b / ab, eta)
        x = ab * d + ab * down * noise_direction
        if eta:
            x = x + ab * up * toy.noise(a, b)
    return x


def dpmpp_2s_ancestral_cfg_pp(toy, x, sigmas, flow, eta):
    for a, b in pairs(sigmas):
        down, up = ancestral(a, b, eta)
        d, u = toy.guided(x, a), toy.plain(x, a)
        if down == 0:
            x = d
            continue
        t, t_end = -np.log(a), -np.log(down)
        h = t_end - t
        m = np.exp(-(t + h / 2))
        y = m / a * (x + d - u) - np.expm1(-h / 2) * d
        d2, u2 = toy.guided(y, m), toy.plain(y, m)
        x = down / a * (x + d - u2) - np.expm1(-h) * d2
        if eta:
            x = x + toy.noise(a, b) * up
    return x


def dpmpp_2m_cfg_pp(toy, x, sigmas, flow, eta):
    old_u = None
    for i, (a, b) in enumerate(pairs(sigmas)):
        d, u = toy.guided(x, a), toy.plain(x, a)
        if b == 0:
            x = d
            continue
        h = np.log(a) - np.log(b)
        mix = -np.exp(-h) * u
        if old_u is not None:
            r = (np.log(sigmas[i - 1]) - np.log(a)) / h
            mix = mix - np.expm1(-h) * (1 / (2 * r)) * (d - old_u)
        x = d + mix + np.exp(-h) * x
        old_u = u
    return x


def res_multistep_cfg_pp(toy, x, sigmas, flow, eta):
    old = down_old = None
    for i, (a, b) in enumerate(pairs(sigmas)):
        d, u = toy.guided(x, a), toy.plain(x, a)
        down, up = ancestral(a, b, eta)
        if old is None or down == 0:
            x = d + down * (x - u) / a
        else:
            h = np.log(a) - np.log(down)
            p1 = np.expm1(-h) / -h
            p2 = (p1 - 1) / -h
            c2 = (-np.log(sigmas[i - 1]) + np.log(down_old)) / h
            x = np.exp(-h) * (x + d - u) + h * ((p1 - p2 / c2) * u + p2 / c2 * old)
        if eta and b > 0:
            x = x + toy.noise(a, b) * up
        old, down_old = u, down
    return x


def gradient_estimation_cfg_pp(toy, x, sigmas, flow, eta):
    old = None
    for a, b in pairs(sigmas):
        d, u = toy.guided(x, a), toy.plain(x, a)
        slope = (x - u) / a
        if b == 0:
            x = d
            continue
        x_new = d + slope * b
        if old is not None:
            x_new = x_new + (2 - 1) * (slope - old) * (b - a)
        x, old = x_new, slope
    return x


def dpmpp_sde(toy, x, sigmas, flow, eta, r=0.5):
    f = np.float32
    for a, b in pairs(sigmas):
        d = toy.guided(x, a)
        if b == 0:
            x = d
            continue
        la, lb = log_snr(a, flow), log_snr(b, flow)
        lm = la + r * (lb - la)
        m = level(lm, flow)
        m32 = f(level(f(log_snr(f(a), flow)) * f(1 - r) + f(log_snr(f(b), flow)) * f(r), flow))

        def move(lt, seen, noise):
            down, up = ancestral(np.exp(-la), np.exp(-lt), eta)
            h = -np.log(down) - la
            al, at = signal(a, flow), signal(level(lt, flow), flow)
            y = at / al * np.exp(-h) * x - at * np.expm1(-h) * seen
            return y + at * noise() * up if eta else y

        d2 = toy.guided(move(lm, d, lambda: toy.noise(a, m32)), m)
        x = move(lb, (1 - 1 / (2 * r)) * d + d2 / (2 * r), lambda: toy.noise(a, b))
    return x


def seeds_2(toy, x, sigmas, flow, eta, r=0.5, phi=1, sde=True):
    eta = eta if sde else 0
    for a, b in pairs(sigmas):
        d = toy.guided(x, a)
        if b == 0:
            x = d
            continue
        la, lb = log_snr(a, flow), log_snr(b, flow)
        h = lb - la
        full = h * (1 + eta)
        m = level(la + r * h, flow) if r != 1 else b
        y = m / a * np.exp(-r * h * eta) * x - signal(m, flow) * np.expm1(-r * full) * d
        z = 0
        if eta:
            z = np.sqrt(-np.expm1(-2 * r * h * eta)) * toy.noise(a, b)
            y = y + m * z
        d2 = toy.guided(y, m)
        p1 = np.expm1(-full)
        if phi == 1:
            drift = p1 * (d + (d2 - d) / (2 * r))
        else:
            b2 = (p1 + full) / -full / r
            drift = (p1 - b2) * d + b2 * d2
        x = b / a * np.exp(-h * eta) * x - signal(b, flow) * drift
        if eta:
            rest = (1 - r) * h * eta
            z = z * np.exp(-rest) + np.sqrt(-np.expm1(-2 * rest)) * toy.noise(a, b)
            x = x + b * z
    return x


def seeds_3(toy, x, sigmas, flow, eta):
    for a, b in pairs(sigmas):
        d = toy.guided(x, a)
        if b == 0:
            x = d
            continue
        la = log_snr(a, flow)
        h = log_snr(b, flow) - la
        full = h * (1 + eta)
        s1, s2 = level(la + h / 3, flow), level(la + 2 * h / 3, flow)
        psi = lambda y: (np.expm1(y) - y) / y
        std, keep = np.sqrt(-np.expm1(-2 * h / 3 * eta)), np.exp(-h / 3 * eta)

        def carried(z):
            return z * keep + std * toy.noise(a, b) if eta else 0

        z = carried(0)
        y = s1 / a * keep * x - signal(s1, flow) * np.expm1(-full / 3) * d + s1 * z
        d2 = toy.guided(y, s1)
        z = carried(z)
        w = 2 * psi(-2 * full / 3)
        drift = (np.expm1(-2 * full / 3) - w) * d + w * d2
        y = s2 / a * keep**2 * x - signal(s2, flow) * drift + s2 * z
        d3 = toy.guided(y, s2)
        z = carried(z)
        w = 1.5 * psi(-full)
        drift = (np.expm1(-full) - w) * d + w * d3
        x = b / a * keep**3 * x - signal(b, flow) * drift + b * z
    return x


def sa_solver(toy, x, sigmas, flow, eta, pece=False, predictor_order=3, corrector_order=4,
              tau_from=0.8, tau_to=0.2, tau=1, simple_order_2=0):
    lam = [log_snr(s, flow) if s > 0 else math.inf for s in sigmas]
    n = len(sigmas) - 1
    f = np.float32
    rate = lambda s: tau if f(tau_from) >= f(s) >= f(tau_to) else 0

    def coefficients(nodes, start, end, t, corrects):
        """Of the evaluations at `nodes`, by the integral of their polynomial."""
        m, h = 1 + t * t, end - start
        al = signal(level(end, flow), flow)
        if simple_order_2 and len(nodes) == 2:
            whole = -np.expm1(-h * m)
            one = m * h / 2 if corrects else m * h * h / 2 / (nodes[-2] - start)
            pair = [whole - one, one] if corrects else [one, whole - one]
            return al * np.array(pair)
        out = []
        for j, node in enumerate(nodes):
            others = [o for k, o in enumerate(nodes) if k != j]
            basis = lambda l: np.prod([(l - o) / (node - o) for o in others])
            whole = lambda l: m * np.exp(m * (l - end)) * basis(l)
            out.append(quad(whole, start, end, epsabs=0, epsrel=1e-12, limit=200)[0])
        return al * np.array(out)

    found, x_pred, z = [], x, 0
    t = h = 0
    for i in range(n):
        d = toy.guided(x_pred, sigmas[i])
        found.append(d)
        p, c = min(predictor_order, len(found)), min(corrector_order, len(found))
        if i == 0 or (sigmas[i + 1] == 0 and not pece):
            c = 0
        if sigmas[-1] == 0:
            p, c = min(p, n - 1 - i), min(c, n - i)
        if c == 0:
            x = x_pred
        else:
            b = coefficients(lam[i - c + 1 : i + 1], lam[i - 1], lam[i], t, True)
            x = sigmas[i] / sigmas[i - 1] * np.exp(-t * t * h) * x
            x = x + sum(w * s for w, s in zip(b, found[-c:])) + z
            if pece:
                d = found[-1] = toy.guided(x, sigmas[i])
        if sigmas[i + 1] == 0:
            x_pred = d
            continue
        t, h = rate(sigmas[i + 1]), lam[i + 1] - lam[i]
        b = coefficients(lam[i - p + 1 : i + 1], lam[i], lam[i + 1], t, False)
        z = 0
        if t:
            z = toy.noise(sigmas[i], sigmas[i + 1]) * sigmas[i + 1]
            z = z * np.sqrt(-np.expm1(-2 * t * t * h))
        x_pred = sigmas[i + 1] / sigmas[i] * np.exp(-t * t * h) * x
        x_pred = x_pred + sum(w * s for w, s in zip(b, found[-p:])) + z
    return x_pred


class Solver:
    """DPM-Solver in t = -ln sigma, on the noise that the model finds."""

    def __init__(self, toy):
        self.toy = toy

    def noise(self, x, t):
        s = np.exp(-t)
        return (x - self.toy.guided(x, s)) / s

    def one(self, x, s, t, e):
        return x - np.exp(-t) * np.expm1(t - s) * e

    def two(self, x, s, t, e, r=0.5, e1=None):
        h = t - s
        if e1 is None:
            e1 = self.noise(self.one(x, s, s + r * h, e), s + r * h)
        change = np.exp(-t) / (2 * r) * np.expm1(h) * (e1 - e)
        return self.one(x, s, t, e) - change, e1

    def three(self, x, s, t, e, e1=None):
        h, s1, s2 = t - s, s + (t - s) / 3, s + (t - s) * 2 / 3
        if e1 is None:
            e1 = self.noise(self.one(x, s, s1, e), s1)
        k = h * 2 / 3
        u = self.one(x, s, s2, e) - np.exp(-s2) * 2 * (np.expm1(k) / k - 1) * (e1 - e)
        e2 = self.noise(u, s2)
        return self.one(x, s, t, e) - np.exp(-t) * 1.5 * (np.expm1(h) / h - 1) * (e2 - e)


def ends(sigmas):
    return -np.log(sigmas[0]), -np.log(sigmas[-1] if sigmas[-1] > 0 else sigmas[-2])


def dpm_fast(toy, x, sigmas, flow, eta):
    solver, nfe = Solver(toy), len(sigmas) - 1
    m = nfe // 3 + 1
    times = np.linspace(*ends(sigmas), m + 1)
    orders = [3] * (m - 2) + [2, 1] if nfe % 3 == 0 else [3] * (m - 1) + [nfe % 3]
    for order, s, t in zip(orders, times[:-1], times[1:]):
        e = solver.noise(x, s)
        if order == 1:
            x = solver.one(x, s, t, e)
        elif order == 2:
            x = solver.two(x, s, t, e)[0]
        else:
            x = solver.three(x, s, t, e)
    return x


def dpm_adaptive(toy, x, sigmas, flow, eta, order=3, rtol=0.05, atol=0.0078, h_init=0.05,
                 pcoeff=0, icoeff=1, dcoeff=0, accept_safety=0.81, own_eta=0):
    solver, before, memory, h = Solver(toy), x, None, h_init
    s, t_end = ends(sigmas)
    over = 1.5 if own_eta else order
    powers = (pcoeff + icoeff + dcoeff) / over, -(pcoeff + 2 * dcoeff) / over, dcoeff / over
    while s < t_end - 1e-5:
        t = min(t_end, s + h)
        land, up = t, 0
        if own_eta:
            down, _ = ancestral(np.exp(-s), np.exp(-t), own_eta)
            land = min(t_end, -np.log(down))
            up = np.sqrt(max(np.exp(-2 * t) - np.exp(-2 * land), 0))
        e = solver.noise(x, s)
        if order == 2:
            low, high = solver.one(x, s, land, e), solver.two(x, s, land, e)[0]
        else:
            low, e1 = solver.two(x, s, land, e, 1 / 3)
            high = solver.three(x, s, land, e, e1)
        delta = np.maximum(atol, rtol * np.maximum(abs(low), abs(before)))
        error = np.linalg.norm((low - high) / delta) / np.sqrt(x.size)
        inverse = 1 / (error + 1e-8)
        memory = [inverse, *memory[1:]] if memory else [inverse] * 3
        factor = 1 + math.atan(np.prod([v**p for v, p in zip(memory, powers)]) - 1)
        if factor >= accept_safety:
            memory = [inverse, inverse, memory[1]]
            before, x, start = low, high, s
            s = t
            if up:
                x = x + up * toy.noise(0, 0)
        h *= factor
    return x


METHODS = {
    "euler_cfg_pp": lambda *a, **o: euler_cfg_pp(*a[:4], 0, **o),
    "euler_ancestral_cfg_pp": euler_cfg_pp,
    "dpmpp_2s_ancestral_cfg_pp": dpmpp_2s_ancestral_cfg_pp,
    "dpmpp_2m_cfg_pp": dpmpp_2m_cfg_pp,
    "res_multistep_cfg_pp": lambda *a: res_multistep_cfg_pp(*a[:4], 0),
    "res_multistep_ancestral_cfg_pp": res_multistep_cfg_pp,
    "gradient_estimation_cfg_pp": gradient_estimation_cfg_pp,
    "dpmpp_sde": dpmpp_sde,
    "seeds_2": seeds_2,
    "seeds_3": seeds_3,
    "exp_heun_2_x0": lambda *a: seeds_2(*a, r=1, phi=2, sde=False),
    "exp_heun_2_x0_sde": lambda *a: seeds_2(*a, r=1, phi=2),
    "sa_solver": sa_solver,
    "sa_solver_pece": lambda *a, **o: sa_solver(*a, pece=True, **o),
    "dpm_fast": dpm_fast,
    "dpm_adaptive": dpm_adaptive,
}
