"""Samplers written out directly on arrays in double precision, as the oracle of the coefficients.

Each function takes (denoise, x, sigmas, noise, flow, eta): denoise(x, sigma) is the model, noise()
one draw. The forms are deliberately those of the papers (tensors, derivatives, quadrature), not
coefficients.
"""
import numpy as np
from scipy.integrate import quad


def ancestral(a, b, eta):
    up = min(b, eta * np.sqrt(b**2 * (a**2 - b**2) / a**2))
    return np.sqrt(b**2 - up**2), up


def flow_ancestral(a, b, eta):
    down = b * (1 + (b / a - 1) * eta)
    scale = (1 - b) / (1 - down)
    return down, scale, np.sqrt(max(b**2 - (down * scale) ** 2, 0))


def log_snr(s, flow):
    return np.log((1 - s) / s) if flow else -np.log(s)


def signal(s, flow):
    return 1 - s if flow else 1.0


def pairs(sigmas):
    return list(zip(sigmas[:-1], sigmas[1:]))


def euler(denoise, x, sigmas, noise, flow, eta):
    for a, b in pairs(sigmas):
        x = x + (x - denoise(x, a)) / a * (b - a)
    return x


def euler_ancestral(denoise, x, sigmas, noise, flow, eta):
    for a, b in pairs(sigmas):
        d = denoise(x, a)
        if b == 0:
            x = d
        elif flow:
            down, scale, up = flow_ancestral(a, b, eta)
            x = scale * (down / a * x + (1 - down / a) * d) + (noise() * up if eta else 0)
        else:
            down, up = ancestral(a, b, eta)
            x = x + (x - d) / a * (down - a) + (noise() * up if eta else 0)
    return x


def heun(denoise, x, sigmas, noise, flow, eta):
    for a, b in pairs(sigmas):
        d = (x - denoise(x, a)) / a
        y = x + d * (b - a)
        x = y if b == 0 else x + (d + (y - denoise(y, b)) / b) / 2 * (b - a)
    return x


def heunpp2(denoise, x, sigmas, noise, flow, eta):
    n = len(sigmas) - 1
    for i, (a, b) in enumerate(pairs(sigmas)):
        d = (x - denoise(x, a)) / a
        if i == n - 1:
            x = x + d * (b - a)
            continue
        y = x + d * (b - a)
        d2 = (y - denoise(y, b)) / b
        if i == n - 2:
            w2 = b / (2 * sigmas[0])
            x = x + ((1 - w2) * d + w2 * d2) * (b - a)
            continue
        c = sigmas[i + 2]
        z = y + d2 * (c - b)
        d3 = (z - denoise(z, c)) / c
        w2, w3 = b / (3 * sigmas[0]), c / (3 * sigmas[0])
        x = x + ((1 - w2 - w3) * d + w2 * d2 + w3 * d3) * (b - a)
    return x


def dpm_2_ancestral(denoise, x, sigmas, noise, flow, eta):
    for a, b in pairs(sigmas):
        scale = 1.0
        if flow:
            down, scale, up = flow_ancestral(a, b, eta) if b else (0, 1, 0)
        else:
            down, up = ancestral(a, b, eta)
        d = (x - denoise(x, a)) / a
        if down == 0:
            x = x - d * a
            continue
        m = np.exp((np.log(a) + np.log(down)) / 2)
        y = x + d * (m - a)
        x = scale * (x + (y - denoise(y, m)) / m * (down - a))
        if eta:
            x = x + noise() * up
    return x


def dpm_2(denoise, x, sigmas, noise, flow, eta):
    return dpm_2_ancestral(denoise, x, sigmas, noise, False, 0)


def dpmpp_2s_ancestral(denoise, x, sigmas, noise, flow, eta):
    for a, b in pairs(sigmas):
        scale = 1.0
        if flow:
            down, scale, up = flow_ancestral(a, b, eta) if b else (0, 1, 0)
        else:
            down, up = ancestral(a, b, eta)
        d = denoise(x, a)
        if down == 0:
            x = d
            continue
        middle = (log_snr(a, flow) + log_snr(down, flow)) / 2 if a != 1 or not flow else None
        m = 0.9999 if middle is None else 1 / (np.exp(middle) + 1) if flow else np.exp(-middle)
        d2 = denoise(m / a * x + (1 - m / a) * d, m)
        x = scale * (down / a * x + (1 - down / a) * d2)
        if eta:
            x = x + noise() * up
    return x


def dpmpp_2m(denoise, x, sigmas, noise, flow, eta):
    old = h_old = None
    for a, b in pairs(sigmas):
        d = denoise(x, a)
        if b == 0:
            x = d
            continue
        h = np.log(a) - np.log(b)
        guess = d
        if old is not None:
            r = h_old / h
            guess = (1 + 1 / (2 * r)) * d - 1 / (2 * r) * old
        x = b / a * x - np.expm1(-h) * guess
        old, h_old = d, h
    return x


def sde(order, heun_form=False):
    def run(denoise, x, sigmas, noise, flow, eta):
        history = []
        for a, b in pairs(sigmas):
            d = denoise(x, a)
            if b == 0:
                x = d
                continue
            h = log_snr(b, flow) - log_snr(a, flow)
            total, al = h * (eta + 1), signal(b, flow)
            x = b / a * np.exp(-eta * h) * x + al * (1 - np.exp(-total)) * d
            if order == 2 and history:
                r = history[0][1] / h
                w = 1 - (1 - np.exp(-total)) / total if heun_form else (1 - np.exp(-total)) / 2
                x = x + al * w / r * (d - history[0][0])
            if order == 3 and history:
                p2 = np.expm1(-total) / total + 1
                p3 = p2 / total - 0.5
                if len(history) == 1:
                    x = x + al * p2 * (d - history[0][0]) / (history[0][1] / h)
                else:
                    r0, r1 = history[0][1] / h, history[1][1] / h
                    u = (d - history[0][0]) / r0
                    v = (history[0][0] - history[1][0]) / r1
                    x = x + al * p2 * (u + (u - v) * r0 / (r0 + r1)) - al * p3 * (u - v) / (r0 + r1)
            if eta:
                x = x + noise() * b * np.sqrt(1 - np.exp(-2 * eta * h))
            history = [(d, h)] + history[:1]
        return x

    return run


def ddpm(denoise, x, sigmas, noise, flow, eta):
    for a, b in pairs(sigmas):
        e = (x - denoise(x, a)) / a
        ca, cb = 1 / (a**2 + 1), 1 / (b**2 + 1)
        r = ca / cb
        x = np.sqrt(1 / r) * (x / np.sqrt(1 + a**2) - (1 - r) * e / np.sqrt(1 - ca))
        if b > 0:
            x = (x + noise() * np.sqrt((1 - r) * (1 - cb) / (1 - ca))) * np.sqrt(1 + b**2)
    return x


def lcm(denoise, x, sigmas, noise, flow, eta):
    for a, b in pairs(sigmas):
        x = denoise(x, a)
        if b > 0:
            x = b * noise() + (1 - b) * x if flow else x + b * noise()
    return x


def lms(denoise, x, sigmas, noise, flow, eta):
    slopes = []
    for i, (a, b) in enumerate(pairs(sigmas)):
        d = denoise(x, a)
        slopes.insert(0, (x - d) / a)
        if b == 0:
            x = d
            continue
        nodes = [sigmas[i - j] for j in range(min(i + 1, 4))]
        for j, node in enumerate(nodes):
            others = [s for k, s in enumerate(nodes) if k != j]
            basis = lambda t: np.prod([(t - s) / (node - s) for s in others])
            x = x + quad(basis, a, b, epsrel=1e-12)[0] * slopes[j]
    return x


def ipndm(denoise, x, sigmas, noise, flow, eta):
    table = [[1], [1.5, -0.5], [23 / 12, -16 / 12, 5 / 12], [55 / 24, -59 / 24, 37 / 24, -9 / 24]]
    slopes = []
    for i, (a, b) in enumerate(pairs(sigmas)):
        d = denoise(x, a)
        slopes.insert(0, (x - d) / a)
        x = d if b == 0 else x + (b - a) * sum(w * s for w, s in zip(table[min(i, 3)], slopes))
    return x


def ipndm_v(denoise, x, sigmas, noise, flow, eta):
    slopes = []
    for i, (a, b) in enumerate(pairs(sigmas)):
        d = denoise(x, a)
        slopes.insert(0, (x - d) / a)
        if b == 0:
            x = d
            continue
        h, w = b - a, np.array([1.0, 0, 0, 0])
        if i > 0:
            h1 = a - sigmas[i - 1]
            w += [h / (2 * h1), -h / (2 * h1), 0, 0]
        if i > 1:
            h2 = sigmas[i - 1] - sigmas[i - 2]
            t = (1 - h / (3 * (h + h1)) * (h * (h + h1)) / (h1 * (h1 + h2))) / 2
            w += [t, -(1 + h1 / h2) * t, t * h1 / h2, 0]
        if i > 2:
            h3 = sigmas[i - 2] - sigmas[i - 3]
            v = (1 - h / (3 * (h + h1))) / 2 + (1 - h / (2 * (h + h1))) * h / (6 * (h + h1 + h2))
            v *= h * (h + h1) * (h + h1 + h2) / (h1 * (h1 + h2) * (h1 + h2 + h3))
            k = h1 * (h1 + h2) / (h2 * (h2 + h3))
            w += [v, -(1 + h1 / h2 + k) * v, (h1 / h2 + k * (1 + h2 / h3)) * v, -k * (h1 / h2) * v]
        x = x + h * sum(f * s for f, s in zip(w, slopes))
    return x


def deis(denoise, x, sigmas, noise, flow, eta):
    big = np.log(80**2 + 1)
    beta_d = 2 * (np.log(0.002**2 + 1) / 1e-3 - big) / (1e-3 - 1)
    beta_m = big - beta_d / 2
    times = [(np.sqrt(beta_m**2 + 2 * beta_d * np.log(s**2 + 1)) - beta_m) / beta_d for s in sigmas]
    slopes = []
    for i, (a, b) in enumerate(pairs(sigmas)):
        slopes.insert(0, (x - denoise(x, a)) / a)
        if i == 0 or b == 0:
            x = x + slopes[0] * (b - a)
            continue
        t = np.linspace(times[i], times[i + 1], 10000)
        kept = np.exp(-beta_d * t**2 / 2 - beta_m * t)
        rate = (beta_d * t + beta_m) / 2 / np.sqrt(kept * (1 - kept))
        nodes = [times[i - j] for j in range(min(i + 1, 3))]
        for j, node in enumerate(nodes):
            basis = np.ones_like(t)
            for k, other in enumerate(nodes):
                if k != j:
                    basis *= (t - other) / (node - other)
            x = x + (times[i + 1] - times[i]) * np.mean(rate * basis) * slopes[j]
    return x


def res_multistep(denoise, x, sigmas, noise, flow, eta):
    old = down_old = None
    for i, (a, b) in enumerate(pairs(sigmas)):
        d = denoise(x, a)
        down, up = ancestral(a, b, eta)
        if old is None or down == 0:
            x = x + (x - d) / a * (down - a)
        else:
            h = np.log(a) - np.log(down)
            p1 = np.expm1(-h) / -h
            p2 = (p1 - 1) / -h
            c2 = (-np.log(sigmas[i - 1]) + np.log(down_old)) / h
            x = np.exp(-h) * x + h * ((p1 - p2 / c2) * d + p2 / c2 * old)
        if eta and b > 0:
            x = x + noise() * up
        old, down_old = d, down
    return x


def gradient_estimation(denoise, x, sigmas, noise, flow, eta):
    old = None
    for a, b in pairs(sigmas):
        d = denoise(x, a)
        slope = (x - d) / a
        if b == 0:
            x = d
            continue
        x = x + slope * (b - a) + (0 if old is None else (slope - old) * (b - a))
        old = slope
    return x


def er_sde(denoise, x, sigmas, noise, flow, eta):
    f = lambda v: v * (np.exp(v**0.3) + 10)
    mus = [s / signal(s, flow) for s in sigmas]
    old = slope_old = None
    for i, (a, b) in enumerate(pairs(sigmas)):
        d = denoise(x, a)
        if b == 0:
            x = d
            continue
        m, n, al = mus[i], mus[i + 1], signal(b, flow)
        q = f(n) / f(m)
        x = al / signal(a, flow) * q * x + al * (1 - q) * d
        slope = None
        if i > 0:
            gap = n - m
            points = n + np.arange(200) * (-gap / 200)
            slope = (d - old) / (m - mus[i - 1])
            x = x + al * (gap + f(n) * np.sum(1 / f(points)) * (-gap / 200)) * slope
            if i > 1:
                bend = (slope - slope_old) / ((m - mus[i - 2]) / 2)
                total = np.sum((points - m) / f(points)) * (-gap / 200)
                x = x + al * (gap**2 / 2 + f(n) * total) * bend
        x = x + al * noise() * np.sqrt(max(n**2 - m**2 * q**2, 0))
        old, slope_old = d, slope
    return x


def uni_pc(exponential_scale):
    def run(denoise, x, sigmas, noise, flow, eta):
        sigmas = list(sigmas)
        n = len(sigmas) - 1
        if n == 1:
            return x
        if sigmas[-1] == 0:
            sigmas[-1] = 0.001
        a = [1 / np.sqrt(1 + s**2) for s in sigmas]
        l = [-np.log(s) for s in sigmas]
        y = x * a[0]
        found = [denoise(x, sigmas[0])]
        for k in range(1, n + 1):
            p = min(3, n - 1, k, n + 1 - k)
            h = l[k] - l[k - 1]
            scale = np.expm1(-h) if exponential_scale else -h
            ratios = [(l[k - 1 - i] - l[k - 1]) / h for i in range(1, p)] + [1.0]
            rows = np.array([[r**q for r in ratios] for q in range(p)])
            g, factorial, right = np.expm1(-h) / -h - 1, 1.0, []
            for q in range(1, p + 1):
                factorial *= q
                right.append(g * factorial / scale)
                g = g / -h - 1 / (factorial * (q + 1))
            slopes = [(found[i] - found[0]) / ratios[i - 1] for i in range(1, p)]
            base = a[k] * np.exp(-h) / a[k - 1] * y - a[k] * np.expm1(-h) * found[0]
            if p == 1:
                rho = []
            elif p == 2:
                rho = [0.5]
            else:
                rho = np.linalg.solve(rows[:-1, :-1], right[:-1])
            y_next = base - a[k] * scale * sum((r * s for r, s in zip(rho, slopes)), 0 * y)
            if k < n:
                found_next = denoise(y_next / a[k], sigmas[k])
                rho = [0.5] if p == 1 else np.linalg.solve(rows, right)
                total = sum((r * s for r, s in zip(rho, slopes)), rho[-1] * (found_next - found[0]))
                y_next = base - a[k] * scale * total
                found = [found_next] + found[:2]
            y = y_next
        return y / a[n]

    return run


SAMPLERS = {
    "euler": euler,
    "euler_ancestral": euler_ancestral,
    "heun": heun,
    "heunpp2": heunpp2,
    "dpm_2": dpm_2,
    "dpm_2_ancestral": dpm_2_ancestral,
    "lms": lms,
    "dpmpp_2s_ancestral": dpmpp_2s_ancestral,
    "dpmpp_2m": dpmpp_2m,
    "dpmpp_2m_sde": sde(2),
    "dpmpp_2m_sde_heun": sde(2, True),
    "dpmpp_3m_sde": sde(3),
    "ddpm": ddpm,
    "lcm": lcm,
    "ipndm": ipndm,
    "ipndm_v": ipndm_v,
    "deis": deis,
    "res_multistep": lambda *a: res_multistep(*a[:5], 0),
    "res_multistep_ancestral": res_multistep,
    "gradient_estimation": gradient_estimation,
    "er_sde": er_sde,
    "ddim": euler,
    "uni_pc": uni_pc(False),
    "uni_pc_bh2": uni_pc(True),
}
