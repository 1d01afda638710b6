"""The rates that PyTorch reaches at the sizes of `conformance speed`, in the same form; for the same machine and the same call."""

import torch

device = torch.device("cuda:0")
torch.manual_seed(1)


def random(*shape):
    return torch.randn(*shape, device=device, dtype=torch.bfloat16)


def seconds(run, total=0.2):
    for _ in range(3):
        run()
    times = []
    for _ in range(3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        repeats = max(1, min(10000, int(total / max(begin.elapsed_time(end) * 1e-3, 1e-6))))
        begin.record()
        for _ in range(repeats):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3 / repeats)
    return sorted(times)[1]


def show(name, kernel, run, flops=0.0, moved=0.0):
    try:
        with torch.no_grad():
            took = seconds(run)
    except Exception as error:  # a shape that a backend refuses
        print(f"{name:<42} {kernel:<12} {str(error).splitlines()[0][:60]}")
        return
    print(f"{name:<42} {kernel:<12} {took * 1e6:12.2f} {flops / took * 1e-12:9.1f} {moved / took * 1e-9:9.0f}", flush=True)


print(f"PyTorch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
from torch.nn.attention import SDPBackend, sdpa_kernel  # noqa: E402

for batch, tokens, heads, d in [(1, 4608, 24, 128), (1, 4096, 10, 64), (2, 1024, 20, 64)]:
    q, k, v = (random(batch, tokens, heads, d).transpose(1, 2) for _ in range(3))
    for backend, name in [(SDPBackend.CUDNN_ATTENTION, "cudnn"), (SDPBackend.FLASH_ATTENTION, "flash")]:
        with sdpa_kernel(backend):
            show(f"attention {heads} heads d{d} {tokens} tokens", name,
                 lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v), 4.0 * batch * heads * d * tokens * tokens)

for m, n, k, gelu in [(4608, 21504, 3072, 0), (4608, 3072, 15360, 0), (4096, 12288, 3072, 1), (4096, 3072, 12288, 0), (4096, 9216, 3072, 0),
                      (512, 9216, 3072, 0)]:
    x, weight, bias = random(1, m, k), random(n, k), random(n)
    run = lambda: torch.nn.functional.linear(x, weight, bias)  # noqa: E731
    if gelu:
        run = lambda: torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias), approximate="tanh")  # noqa: E731
    show(f"linear {m}x{n}x{k}{' gelu' if gelu else ''}", "torch", run, 2.0 * m * n * k)

torch.backends.cudnn.benchmark = True
for side, few, many in [(128, 16, 512), (128, 512, 512), (256, 512, 512), (512, 512, 256), (512, 256, 256), (1024, 256, 128), (1024, 128, 128),
                        (1024, 128, 3)]:
    x = random(1, few, side, side).to(memory_format=torch.channels_last)
    weight = random(many, few, 3, 3).to(memory_format=torch.channels_last)
    bias = random(many)
    show(f"conv 3x3 {side}x{side} {few} to {many}", "torch nhwc", lambda: torch.nn.functional.conv2d(x, weight, bias, padding=1),
         2.0 * side * side * few * many * 9)

rows, vector = random(1, 4608, 3072), random(1, 1, 3072)
once = 2.0 * 4608 * 3072
target = torch.empty_like(rows)
show("copy/1", "torch", lambda: target.copy_(rows), moved=2 * once)


def modulated(x, shift, scale):
    return torch.nn.functional.layer_norm(x, (3072,), eps=1e-6) * (1 + scale) + shift


def gated(x, gate, y):
    return x + gate * y


def norm_rope(x, weight, cosine, sine):
    y = torch.nn.functional.rms_norm(x.float(), (128,), weight.float(), 1e-6)
    a, b = y[..., 0::2], y[..., 1::2]
    return torch.stack([a * cosine - b * sine, a * sine + b * cosine], -1).flatten(-2).to(x.dtype)


def modulated_rms(x, scale, shift):
    return (torch.nn.functional.rms_norm(x, (3072,), eps=1e-6) * scale + shift).to(torch.bfloat16)


def turned(y, cosine, sine):
    a, b = y.chunk(2, -1)
    return torch.cat([a * cosine - b * sine, a * sine + b * cosine], -1)


def norm_rope_half(x, weight, cosine, sine):
    return turned(torch.nn.functional.rms_norm(x.float(), (128,), weight.float(), 1e-6), cosine, sine).to(x.dtype)


def norm_rope_row(x, weight, cosine, sine):
    y = torch.nn.functional.rms_norm(x.flatten(2).float(), (3072,), weight.float(), 1e-6)
    return turned(y.view(x.shape), cosine, sine).to(x.dtype)


heads, weight = random(1, 4608, 24, 128), random(128)
cosine = torch.full((4608, 1, 64), 0.5, device=device)
of_heads = torch.full((4608, 24, 64), 0.5, device=device)
for name, function, operands, passes in [("modulated_norm/1", modulated, (rows, vector, vector), 2), ("gated_add/1", gated, (rows, vector, target), 3),
                                         ("norm_rope/1", norm_rope, (heads, weight, cosine, cosine), 2),
                                         ("modulated_rms_norm/1", modulated_rms, (rows.float(), vector, vector), 3),
                                         ("norm_rope_half/1", norm_rope_half, (heads, weight, cosine, cosine), 2),
                                         ("norm_rope_half/1 row", norm_rope_row, (heads, random(3072), of_heads, of_heads), 4)]:
    compiled = torch.compile(function)
    show(name, "compile", lambda: compiled(*operands), moved=passes * once)
