"""Times the parts that networks' times are made of on an NVIDIA GPU, as nodes of a graph on operands in the L2: a kernel
of one block, products by their reduction, convolutions beside products of their size, biases and rectifiers.

From the repository's root: python3 systems/measured/parts.py
"""
import triton
import triton.language as tl

exec(open("systems/measured/gpu.py").read().replace("\nmain()", "\n"))  # its clock


@triton.jit
def one(a, b, c, DOT: tl.constexpr):
    i = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    x = tl.load(a + i)
    if DOT:
        x = tl.dot(x, tl.load(b + i)).to(tl.bfloat16)
    tl.store(c + i, x)


def draw(*shape):
    return torch.randn(*shape, dtype=torch.bfloat16, device="cuda")


def show(what, call):
    print(what, f"{1e6 * clock([call] * 200, warm=True):.2f} us", flush=True)


clock, last = Clock("cuda"), dict(memory_format=torch.channels_last)
torch.backends.cudnn.benchmark, torch.backends.cudnn.benchmark_limit = True, 5
with torch.no_grad():
    a, b, c = draw(64, 64), draw(64, 64), draw(64, 64)
    show("one block copies", lambda: one[(1,)](a, b, c, False))
    show("one block multiplies", lambda: one[(1,)](a, b, c, True))
    for k in (16, 64, 128, 256, 512, 1024, 2048, 4096, 8192):
        x, y = draw(64, k), draw(k, 64)
        show(f"product 64x{k}x64", lambda: x @ y)
    for channels, side in ((64, 56), (128, 28), (256, 14), (512, 7)):
        for batch in (1, 8, 32):
            x, w = draw(batch, channels, side, side).to(**last), draw(channels, channels, 3, 3).to(**last)
            v, p, q = draw(channels), draw(batch * side * side, 9 * channels), draw(9 * channels, channels)
            show(f"{batch} images of {side} x {side}, {channels} channels: 3x3", lambda: F.conv2d(x, w, padding=1))
            show("  with bias", lambda: F.conv2d(x, w, v, padding=1))
            show("  rectifier", lambda: F.relu(x))
            show("  the product", lambda: p @ q)
