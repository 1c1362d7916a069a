"""Measures on an NVIDIA GPU what the experiment predicts, and prints rows for rows.csv.

Needs PyTorch and torchvision: python3 gpu.py OUT.csv [--set N] [--smoke] [--list] [--every] [--seconds N] [--cpu]

A single operator runs as a node of a CUDA graph among others of its kind, on random operands that no other node has,
after the L2 was filled with something else: it reads from the memory. A network is replayed as a graph again and again.
Times are of events around a replay, the median of several. An attention's is that of the faster of PyTorch's two
kernels.
"""
import argparse
import itertools
import math
import random
import statistics
import subprocess
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
COLD = 256 << 20  # bytes that leave nothing of before in the L2
SOURCE = {1: "s59", 2: "s60", 3: "s61", 4: "s62"}
MACHINE = {1: "h100", 2: "h100", 3: "h100", 4: "h200"}


def sizes(draw):
    """Draws sizes, multiples of step, evenly by their logarithms."""
    def size(low, high, step=1):
        return max(step, round(2 ** draw.uniform(math.log2(low), math.log2(high)) / step) * step)

    return size


def products():
    """60 that are square, flat or of few rows, random ones and batched ones."""
    for x in (64, 128, 256, 384, 512, 768, 1000, 1024, 1536, 2048, 4096, 8192):
        yield x, x, x
    for m, x in itertools.product((2048, 4096, 8192, 16384), ((64, 64), (64, 256), (512, 512), (1024, 1024))):
        yield m, *x
    for m, x in itertools.product((1, 8, 32, 100), ((4096, 4096), (1024, 16384), (4096, 11008), (768, 3072))):
        yield m, *x
    for m, x in itertools.product((64, 333, 1024, 2048), ((16384, 64), (12288, 1000))):
        yield m, *x
    yield from ((512, 12288, 12288), (2048, 12288, 12288), (2048, 4096, 11008), (2048, 11008, 4096), (197, 768, 3072),
                (333, 1000, 777), (1536, 8192, 3072), (4096, 256, 8192))
    draw = random.Random(2026)
    for step, low, high in ((0, 6, 13), (8, 6, 13.5), (1, 4, 13)):  # powers of two, multiples of 8, any
        for _ in range(20):
            x = [2 ** draw.randint(low, high) if step == 0 else int(2 ** draw.uniform(low, high)) for _ in range(3)]
            yield tuple(max(16, v - v % max(1, step)) for v in x)


def cases():
    seen = set()
    for m, k, n in products():
        if (m, k, n) not in seen:
            seen.add((m, k, n))
            yield "product", f"matmul {m}x{k}x{n}", 1, "bf16"
    draw = random.Random(7)
    for _ in range(16):
        r, m, k, n = draw.choice((8, 16, 64, 192)), *(2 ** draw.randint(6, 11) for _ in range(3))
        yield "product", f"matmul {r}*{m}x{k}x{n}", 1, "bf16"
    for width, n in itertools.product((64, 128), (128, 512, 1024, 2048, 4096, 8192)):
        for heads in sorted({16, max(16, 2048 * 64 // n)}):  # few, and enough for all SMs
            for kind in ("attention", "causal"):
                if heads > 16 or n >= 512:
                    yield "attention", f"{kind} {heads}*{n}x{n}x{width}", 1, "bf16"
    for heads, n in ((32, 1024), (32, 4096), (32, 16384), (256, 1024), (256, 4096), (1024, 2048)):
        yield "attention", f"attention {heads}*1x{n}x128", 1, "bf16"
    for op, rows, columns in (("softmax", (32, 64, 256, 2048, 32768), (32, 64, 128, 512, 4096, 32768)),
                              ("layernorm", (64, 128, 16384), (32, 128, 256, 512, 2048, 4096, 8192, 16384, 32768))):
        for n in columns:
            yield "operator", f"{op} 4096x{n}", 1, "f16"
        for n in rows:
            yield "operator", f"{op} {n}x4096", 1, "f16"
    for n in (1024, 4096, 16384, 65536, 262144, 1 << 20, 1 << 22, 1 << 24, 201326592, 1 << 29):
        yield "operator", f"gelu {n}", 1, "f16"
        if n < 1 << 29:
            yield "operator", f"add {n}", 1, "f16"
    for name, batches in NETWORKS.items():
        for batch in batches:
            yield "network", name, batch, "bf16"


def drawn():
    """The second set: drawn over ranges of use, after the first was looked at."""
    draw = random.Random(20261127)
    size = sizes(draw)
    for i in range(40):
        if i < 12:  # few rows
            m, k, n = size(1, 64), size(512, 16384, 64), size(512, 16384, 64)
        elif i < 24:
            m, k, n = size(64, 16384, 8), size(256, 16384, 64), size(256, 16384, 64)
        elif i < 32:  # any
            m, k, n = (size(16, 8192) for _ in range(3))
        else:
            m, k, n = (size(32, 2048, 8) for _ in range(3))
        yield "product", f"matmul {f'{draw.choice((4, 12, 32, 96))}*' if i >= 32 else ''}{m}x{k}x{n}", 1, "bf16"
    for i in range(40):
        while True:
            group, width = draw.choice((1, 1, 4, 8)), draw.choice((64, 128))
            heads = draw.choice((1, 2, 4, 8, 16, 32)) * draw.choice((1, 4, 8, 12)) * group
            n, kind = size(128, 16384, 1 if i % 2 else 64), draw.choice(("attention", "causal"))
            if i % 2 and heads // group * n * width <= 1 << 30 or not i % 2 and heads * n * n * width <= 1 << 41:
                break
        kind, m = ("attention", 1) if i % 2 else (kind, n)
        yield "attention", f"{kind} {heads}{f'/{group}' if group > 1 else ''}*{m}x{n}x{width}", 1, "bf16"
    for i in range(20):
        op, rows, columns = ("softmax", "layernorm", "gelu", "add")[i % 4], size(1, 32768), size(32, 32768, 8)
        text = f"{op} {rows}x{columns}" if i % 4 < 2 else f"{op} {size(2048, 1 << 28, 1024)}"
        yield "operator", text, 1, "f16"
    for name, batches in NETWORKS2.items():
        for batch in batches:
            yield "network", name, batch, "bf16"


def few():
    """The third set: few heads of long keys, single convolutions, decoders of other batches."""
    draw = random.Random(20261128)
    found = set()
    while len(found) < 32:
        group, width = draw.choice((1, 1, 4, 8)), draw.choice((64, 128))
        heads = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)[len(found) % 10] * draw.choice((1, 1, 1, 2, 4, 8))
        n = round(2 ** draw.uniform(9, 15))
        text = f"attention {heads * group}{f'/{group}' if group > 1 else ''}*1x{n}x{width}"
        if heads * n * width <= 1 << 29 and text not in found:
            found.add(text)
            yield "attention", text, 1, "bf16"
    for kind, heads, group, n, width in (("causal", 8, 1, 3072, 128), ("attention", 32, 8, 1536, 128),
                                         ("causal", 40, 1, 2048, 128), ("attention", 6, 1, 4608, 64),
                                         ("causal", 2, 1, 10240, 64)):
        yield "attention", f"{kind} {heads}{f'/{group}' if group > 1 else ''}*{n}x{n}x{width}", 1, "bf16"
    for image in ((256, 14, 256, 3), (512, 7, 512, 3), (128, 28, 128, 3), (64, 56, 64, 3), (512, 28, 512, 3),
                  (1024, 14, 256, 1), (256, 56, 64, 1), (96, 56, 24, 1), (384, 14, 1536, 1), (160, 7, 960, 1)):
        for images in (1, 24) if image[3] == 3 else (2, 48):
            yield "operator", f"conv {images}x{'x'.join(map(str, image))}", 1, "bf16"


def other():
    """The fourth set, for another card: some of each, and convolutions of 3 x 3 beside products as large."""
    draw = random.Random(20261129)
    size = sizes(draw)
    for i in range(20):  # 13 short ones, 7 long ones, each fifth a batch
        us = math.inf
        while not (us < 60 if i < 13 else 120 < us < 1500):
            reps = draw.choice((4, 12, 32, 96)) if i % 5 == 4 else 1
            m, k, n = size(1, 16384), size(256, 16384, 8), size(256, 16384, 8)
            us = reps * 2 * max(m * k * n / 800e6, (m * k + k * n + m * n) / 4.4e6)
        yield "product", f"matmul {f'{reps}*' if reps > 1 else ''}{m}x{k}x{n}", 1, "bf16"
    for keys in (1, 2, 4, 6, 8, 16, 24, 32, 48, 64, 128, 256):
        group, width, n = draw.choice((1, 1, 4, 8)), draw.choice((64, 128)), size(512, min(32768, (1 << 22) // keys))
        yield "attention", f"attention {keys * group}{f'/{group}' if group > 1 else ''}*1x{n}x{width}", 1, "bf16"
    for kind in ("attention", "causal") * 3:
        group, width, heads, n = draw.choice((1, 4)), draw.choice((64, 128)), draw.choice((4, 12, 32)), size(256, 8192)
        yield "attention", f"{kind} {heads * group}{f'/{group}' if group > 1 else ''}*{n}x{n}x{width}", 1, "bf16"
    for low in (1, 32, 1024):
        for op in ("softmax", "layernorm"):
            yield "operator", f"{op} {size(low, 32 * low)}x{size(32, 32768, 8)}", 1, "f16"
        for op in ("gelu", "add"):
            yield "operator", f"{op} {size(2048 * low, 65536 * low, 1024)}", 1, "f16"
    for kernel, several in ((1, (2, 48)), (3, (1, 24))):
        for rows in (56, 28, 14):
            made, channels = (size(3584 // rows, 4 * 3584 // rows, 32) for _ in range(2))
            for images in several:
                yield "operator", f"conv {images}x{channels}x{rows}x{made}x{kernel}", 1, "bf16"
                if kernel == 3:  # what is multiplied, without the window: by cuDNN and by cuBLAS
                    yield "operator", f"conv {images}x{9 * channels}x{rows}x{made}x1", 1, "bf16"
                    yield "product", f"matmul {images * rows * rows}x{9 * channels}x{made}", 1, "bf16"


# Networks.

class Block(nn.Module):
    """A layer of a transformer, as BERT, GPT-2 or Llama has it."""

    def __init__(self, hidden, heads, ffn, style, tokens, keys):
        super().__init__()
        llama, linear = style == "llama", lambda a, b: nn.Linear(a, b, bias=style != "llama")
        self.heads, self.style, self.causal = heads, style, style != "bert" and tokens > 1
        self.keys, width = keys, hidden // heads
        self.q, self.k, self.v, self.o = (linear(hidden, n * width) for n in (heads, keys, keys, heads))
        self.up, self.down = linear(hidden, ffn), linear(ffn, hidden)
        self.gate = linear(hidden, ffn) if llama else None
        self.norm1, self.norm2 = ((nn.RMSNorm if llama else nn.LayerNorm)(hidden) for _ in range(2))
        if llama:
            for name in "cos", "sin":
                self.register_buffer(name, torch.randn(tokens, width))

    def attend(self, x, cache):
        b, t, h = x.shape
        q, k, v = (f(x).view(b, t, -1, h // self.heads).transpose(1, 2) for f in (self.q, self.k, self.v))
        if self.style == "llama":
            half = q.shape[-1] // 2
            q, k = (y * self.cos + torch.cat((-y[..., half:], y[..., :half]), -1) * self.sin for y in (q, k))
        if cache is not None:
            cache[0][:, :, -t:], cache[1][:, :, -t:] = k, v
            k, v = cache
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal, enable_gqa=self.keys != self.heads)
        return self.o(y.transpose(1, 2).reshape(b, t, h))

    def forward(self, x, cache=None):
        if self.style == "bert":
            x = self.norm1(x + self.attend(x, cache))
            return self.norm2(x + self.down(F.gelu(self.up(x))))
        x = x + self.attend(self.norm1(x), cache)
        y = self.norm2(x)
        y = F.silu(self.gate(y)) * self.up(y) if self.gate else F.gelu(self.up(y), approximate="tanh")
        return x + self.down(y)


class Transformer(nn.Module):
    def __init__(self, style, tokens, layers, hidden, heads, ffn, vocabulary, cached=0, keys=0):
        super().__init__()
        self.style, self.cached, self.tokens, self.keys = style, cached, tokens, keys or heads
        self.width = hidden // heads
        self.words = nn.Embedding(vocabulary, hidden)
        self.places = nn.Embedding(tokens + cached, hidden)
        self.types = nn.Embedding(2, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads, ffn, style, tokens, self.keys) for _ in range(layers))
        self.norm = (nn.RMSNorm if style == "llama" else nn.LayerNorm)(hidden)
        self.head = nn.Linear(hidden, vocabulary, bias=False) if style == "llama" else None

    def input(self, batch):
        d = self.words.weight
        shape = (2, batch, self.keys, self.cached + self.tokens, self.width)
        self.caches = [torch.randn(shape, dtype=d.dtype, device=d.device) if self.cached else None for _ in self.blocks]
        return torch.randint(0, 1000, (batch, self.tokens), device=d.device)

    def forward(self, ids):
        x = self.words(ids)
        if self.style != "llama":
            x = x + self.places.weight[-self.tokens:]
        if self.style == "bert":
            x = self.norm(x + self.types(torch.zeros_like(ids)))
        for block, cache in zip(self.blocks, self.caches):
            x = block(x, cache)
        if self.style == "bert":
            return x
        x = self.norm(x)
        return self.head(x) if self.head else F.linear(x, self.words.weight)


def transformer(*sizes):
    return lambda: Transformer(*sizes)


def vision(name, **options):
    def make():
        import torchvision
        model = getattr(torchvision.models, name)(**options).eval()
        if name.startswith(("vit", "Vision", "swin")):
            return model
        from torch.fx.experimental.optimization import fuse
        return fuse(model)  # normalisations into convolutions

    return make


BUILD = {
    "resnet50": vision("resnet50"), "resnet18": vision("resnet18"), "mobilenetv2": vision("mobilenet_v2"),
    "vgg16": vision("vgg16"), "squeezenet": vision("squeezenet1_1"), "densenet121": vision("densenet121"),
    "inception-v3": vision("inception_v3", aux_logits=False, init_weights=False),
    "vit-b16": vision("vit_b_16"), "swin-t": vision("swin_t"),
    "bert-128": transformer("bert", 128, 12, 768, 12, 3072, 30522),
    "bert-256": transformer("bert", 256, 12, 768, 12, 3072, 30522),
    "bert-512": transformer("bert", 512, 12, 768, 12, 3072, 30522),
    "bert-large-384": transformer("bert", 384, 24, 1024, 16, 4096, 30522),
    "gpt2-prefill": transformer("gpt2", 1024, 12, 768, 12, 3072, 50257),
    "gpt2-decode": transformer("gpt2", 1, 12, 768, 12, 3072, 50257, 1023),
    "llama2-7b-decode": transformer("llama", 1, 32, 4096, 32, 11008, 32000, 4095),
    "llama2-7b-prefill": transformer("llama", 2048, 32, 4096, 32, 11008, 32000),
}
BUILD2 = {
    "resnet34": vision("resnet34"), "resnet101": vision("resnet101"), "resnet152": vision("resnet152"),
    "resnext50-32x4d": vision("resnext50_32x4d"), "vgg19": vision("vgg19"), "vit-l16": vision("vit_l_16"),
    "vit-b16-384": vision("vit_b_16", image_size=384),
    "vit-s16": vision("VisionTransformer", image_size=224, patch_size=16, num_layers=12, num_heads=6, hidden_dim=384,
                      mlp_dim=1536),
    "bert-384": transformer("bert", 384, 12, 768, 12, 3072, 30522),
    "llama3-8b-decode": transformer("llama", 1, 32, 4096, 32, 14336, 128256, 8191, 8),
    "llama3-8b-prefill": transformer("llama", 2048, 32, 4096, 32, 14336, 128256, 0, 8),
}
NETWORKS = {name: (1,) if name == "llama2-7b-prefill" else (1, 8) if "llama" in name or name == "gpt2-prefill" else
            (1, 8, 32, 64) if name == "resnet50" else (1, 8, 32) for name in BUILD}
# What is compiled while there is time, in this order.
COMPILED = [("resnet50", 1), ("bert-128", 1), ("gpt2-decode", 1), ("llama2-7b-decode", 1), ("bert-128", 32),
            ("resnet50", 32), ("vit-b16", 1), ("mobilenetv2", 1), ("bert-large-384", 8), ("gpt2-prefill", 8),
            ("llama2-7b-prefill", 1),
            ("resnet18", 1), ("squeezenet", 1), ("mobilenetv2", 32), ("vit-b16", 32), ("bert-512", 8), ("swin-t", 8),
            ("densenet121", 8), ("inception-v3", 8), ("vgg16", 8)]
NETWORKS2 = {name: (1,) if name == "llama3-8b-prefill" else (1, 8) if name in (
    "resnet152", "vgg19", "vit-b16-384", "llama3-8b-decode") else (1, 8, 32) for name in BUILD2}
COMPILED4 = [("gpt2-decode", 1), ("llama3-8b-decode", 1), ("vit-b16", 8), ("resnet50", 8)]
COMPILED3 = [("gpt2-decode", 2), ("gpt2-decode", 4), ("llama3-8b-decode", 2), ("llama3-8b-decode", 4)]
COMPILED2 = [("resnet101", 1), ("vit-l16", 8), ("bert-384", 8), ("llama3-8b-decode", 1), ("resnext50-32x4d", 8),
             ("resnet34", 1), ("vit-s16", 1), ("vgg19", 8), ("vit-b16-384", 8), ("llama3-8b-prefill", 1),
             ("resnet101", 8), ("bert-384", 1), ("resnext50-32x4d", 1), ("resnet34", 8), ("llama3-8b-decode", 8),
             ("vgg19", 1), ("vit-s16", 8), ("bert-384", 32), ("resnet34", 32), ("vit-l16", 1), ("resnet152", 1),
             ("vit-s16", 32), ("resnext50-32x4d", 32), ("resnet101", 32), ("vit-b16-384", 1), ("resnet152", 8),
             ("vit-l16", 32)]


class Clock:
    """Times lists of calls on a device."""

    def __init__(self, device):
        self.device = device
        self.flush = torch.randn(COLD // 4 if self.cuda else 1, device=device)

    @property
    def cuda(self):
        return self.device == "cuda"

    def __call__(self, calls, warm=False, repeats=7):
        """Seconds of a call, of calls one after the other; warm: with what the replay before left in the L2."""
        if not self.cuda:
            start = time.perf_counter()
            for call in calls:
                call()
            return (time.perf_counter() - start) / len(calls)
        if torch.cuda.memory_reserved() > 30e9:
            torch.cuda.empty_cache()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for call in (calls * 2)[:3]:
                call()
        torch.cuda.synchronize()
        graph, kept = torch.cuda.CUDAGraph(), []
        with torch.cuda.graph(graph):
            for call in calls:
                kept.append(call())  # each result has a place of its own
        times = []
        for i in range(repeats + 2):
            if not warm:
                torch.sum(self.flush)
            torch.cuda._sleep(4_000_000)  # 2 ms, until the host has launched the graph
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) * 1e-3 / len(calls))
        return statistics.median(times[2:])


def calls(case, dtype, clock, few):
    """An operator on operands of its own, call by call."""
    op, text = case.split(" ")
    reps, _, text = text.rpartition("*")
    reps, _, group = reps.partition("/")  # heads of queries that share one of keys
    group = int(group or 1)
    n = [int(x) for x in text.split("x")]
    batch = [int(reps)] if reps else []
    inputs = {"matmul": lambda: [batch + n[:2], batch + n[1:]], "layernorm": lambda: [n, n[1:], n[1:]],
              "softmax": lambda: [n], "gelu": lambda: [n], "add": lambda: [n, n],
              "conv": lambda: [[n[0], n[1], n[2], n[2]], [n[3], n[1], n[4], n[4]]]}
    if op in ("attention", "causal"):
        keys = math.gcd(16 if group == 1 else 8, batch[0] // group)
        lead, shared = ([batch[0] // group // keys, h] for h in (keys * group, keys))
        shapes = [lead + [n[0], n[2]], shared + [n[1], n[2]], shared + [n[1], n[2]]]
    else:
        shapes = inputs[op]()
    size = 2 * sum(math.prod(s) for s in shapes)
    sets = 2 if few else max(2, min(200, -(-COLD // size)))
    operands = [[torch.randn(s, dtype=dtype, device=clock.device) for s in shapes] for _ in range(sets)]
    if op == "conv":  # images, channels, rows, channels made, kernel
        operands = [[x.to(memory_format=torch.channels_last) for x in two] for two in operands]
    call = {"conv": lambda x, w: F.conv2d(x, w, padding=w.shape[2] // 2), "matmul": torch.matmul, "softmax": lambda x: torch.softmax(x, -1), "gelu": F.gelu, "add": torch.add,
            "layernorm": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
            "attention": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=group > 1),
            "causal": lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=group > 1)}[op]
    return [lambda x=x: call(*x) for x in operands]


def operator(case, dtype, clock, few):
    """Seconds of an operator on cold operands, and what made it."""
    cold = calls(case, dtype, clock, few)
    if case.split(" ")[0] not in ("attention", "causal") or not clock.cuda:
        return clock(cold), ""
    from torch.nn.attention import SDPBackend, sdpa_kernel
    found = []
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION):
        try:
            with sdpa_kernel(backend):
                found.append((clock(cold), ", " + backend.name.split("_")[0].lower()))
        except Exception as e:  # this kernel does not do this case
            print(case, backend, repr(e)[:200], file=sys.stderr)
            torch.cuda.synchronize()
    print(case, [f"{1e6 * s:.1f}{k}" for s, k in found], file=sys.stderr)
    return min(found)


def network(name, batch, dtype, clock, compiled, cache):
    """Seconds of a batch of a network."""
    if cache.get("name") != name:
        cache.clear()
        with torch.device(clock.device):
            old = torch.get_default_dtype()
            if not name.startswith(("vit", "swin", "res", "mob", "vgg", "squ", "den", "inc")):
                torch.set_default_dtype(dtype)  # a large one never has four bytes a weight
            try:
                cache["model"] = (BUILD | BUILD2)[name]().eval().to(dtype)
            finally:
                torch.set_default_dtype(old)
        cache["name"] = name
    model = cache["model"]
    if isinstance(model, Transformer):
        x, run = model.input(batch), model
        if compiled:
            torch.compiler.reset()
            for block in model.blocks:  # one program for all
                block.compile(dynamic=False)
    else:
        size = {"inception-v3": 299, "vit-b16-384": 384}.get(name, 224)
        model.to(memory_format=torch.channels_last)
        x = torch.randn(batch, 3, size, size, dtype=dtype, device=clock.device).to(memory_format=torch.channels_last)
        run = model
        if compiled:
            torch.compiler.reset()
            run = torch.compile(model, dynamic=False)
    try:
        return clock([lambda: run(x)], warm=True, repeats=15)
    finally:
        if isinstance(model, Transformer):
            model.caches = None
            for block in model.blocks:
                block._compiled_call_impl = None


def ceilings(clock, emit):
    """What the card reaches at best, to read the rest by."""
    n = (1 << 30) if clock.cuda else 1 << 10
    x, y = (torch.empty(n, dtype=torch.bfloat16, device=clock.device).normal_() for _ in range(2))
    emit("ceiling", "copy GB/s", 1, "bf16", 4e-9 * n / clock([lambda: torch.neg(x, out=y)] * 4), "", "GB/s")
    z = torch.empty_like(x)
    emit("ceiling", "sum of two GB/s", 1, "bf16", 6e-9 * n / clock([lambda: torch.add(x, y, out=z)] * 4), "", "GB/s")
    emit("ceiling", "read GB/s", 1, "bf16", 2e-9 * n / clock([lambda: torch.amax(x)] * 4), "", "GB/s")
    one = torch.zeros(1, device=clock.device)
    emit("ceiling", "one element in a graph", 1, "f32", 1e6 * clock([lambda: one.add_(1)] * 500, warm=True), "", "us")
    square = torch.randn(64, 64, dtype=torch.bfloat16, device=clock.device)
    head, row = square[None, None], square.view(1, -1)
    image = square.view(1, 64, 8, 8).to(memory_format=torch.channels_last)
    kernel = square[:, :, None, None].to(memory_format=torch.channels_last)
    for what, call in (("product", lambda: square @ square), ("softmax", lambda: row.softmax(-1)),
                       ("layer norm", lambda: F.layer_norm(row, row.shape[1:])),
                       ("attention", lambda: F.scaled_dot_product_attention(head, head, head)),
                       ("convolution", lambda: F.conv2d(image, kernel))):
        emit("ceiling", f"one {what} of 4096 elements in a graph", 1, "bf16", 1e6 * clock([call] * 500, warm=True), "")
    for m, p, q in itertools.product((1024, 4096), (0, 1, 2, 4), (0, 1, 2, 4)):  # rows that end off 16 bytes
        a, b = x[:m * (m - p)].view(m, m - p), y[:(m - p) * (m - q)].view(m - p, m - q)
        rate = 2e-12 * m * (m - p) * (m - q) / clock([lambda: a @ b] * 10)
        emit("ceiling", f"product {m}x{m - p}x{m - q} TFLOPS", 1, "bf16", rate, "", "TFLOPS")
    for m in (4096, 8192, 16384) if clock.cuda else (64,):
        a, b = (x[:m * m].view(m, m), y[:m * m].view(m, m)) if m * m <= n else (None, None)
        emit("ceiling", f"product {m} TFLOPS", 1, "bf16", 2e-12 * m ** 3 / clock([lambda: a @ b] * 10), "", "TFLOPS")
        state("product")


def kernel(case, dtype, clock):
    """Prints what an operator runs, the longest last; a profiler slows what comes later."""
    call = calls(case, dtype, clock, True)[0]
    call()
    from torch.profiler import ProfilerActivity, profile
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize()
    spent = sorted((e.self_device_time_total, e.key) for e in seen.key_averages() if e.self_device_time_total > 0)
    print("# kernels of", case, [f"{us:.1f} us {name[:110]}" for us, name in spent], file=sys.stderr)


def state(what):
    try:
        query = "--query-gpu=name,driver_version,clocks.sm,clocks.mem,power.draw,temperature.gpu"
        text = subprocess.run(["nvidia-smi", query, "--format=csv,noheader"], capture_output=True, text=True,
                              timeout=10).stdout.strip()
        print("#", what, text, file=sys.stderr)
    except Exception as e:
        print("#", what, repr(e), file=sys.stderr)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("out")
    arguments.add_argument("--set", type=int, choices=(1, 2, 3, 4), default=1, help="which cases; 2 to 4: drawn later")
    arguments.add_argument("--smoke", action="store_true", help="a few cases of each kind")
    arguments.add_argument("--list", action="store_true", help="print the cases, measure nothing")
    arguments.add_argument("--every", action="store_true", help="only convolutions, by the best of all kernels")
    arguments.add_argument("--cpu", action="store_true", help="try the script without a GPU; the times mean nothing")
    arguments.add_argument("--seconds", type=float, default=400, help="begin nothing after that many")
    o = arguments.parse_args()
    start = time.monotonic()
    everything = list({1: cases, 2: drawn, 3: few, 4: other}[o.set]())
    if o.list:
        print("kind,machine,case,batch,type,remark")
        for kind, case, batch, dtype in everything:
            print(f"{kind},{MACHINE[o.set]},{case},{batch},{dtype},{'' if kind == 'network' else 'in a graph'}")
        return
    out = open(o.out, "w", buffering=1)
    out.write("kind,machine,case,batch,type,rate,cores,flight,host,value,unit,source,remark\n")

    def emit(kind, case, batch, dtype, value, remark, unit="us"):
        out.write(f"{kind},{MACHINE[o.set]},{case},{batch},{dtype},,1,1,no,{value:.6g},{unit},{SOURCE[o.set]},"
                  f"\"{remark}\"\n")

    clock = Clock("cpu" if o.cpu else "cuda")
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0 if o.every else 5
    try:
        torch._dynamo.config.recompile_limit = 64
    except Exception as e:
        print("recompile_limit", repr(e), file=sys.stderr)
    print("#", torch.__version__, torch.version.cuda, file=sys.stderr)
    state("start")
    cache = {}
    work = [(k, c, b, t, False) for k, c, b, t in everything]
    if o.smoke:
        every = {"product": 12, "attention": 9, "operator": 11, "network": 12}
        work = [w for i, w in enumerate(work) if i % every[w[0]] == 0 or w[1] == "gpt2-decode"]
        work = [w for w in work if w[0] != "network" or "llama" not in w[1]]
    later = {1: COMPILED, 2: COMPILED2, 3: COMPILED3, 4: COMPILED4}[o.set]
    work += [("network", name, batch, "bf16", True) for name, batch in later[:1 if o.smoke else None]]
    if o.every:
        work = [w for w in work if w[1].startswith("conv")]
    with torch.no_grad():
        try:
            if not o.every:
                ceilings(clock, emit)
        except Exception as e:
            print("ceilings", repr(e)[:500], file=sys.stderr)
        last = ""
        for kind, case, batch, dtype, compiled in work:
            spent = time.monotonic() - start
            if spent > o.seconds:
                print(f"out of time before {case} {batch}", file=sys.stderr)
                break
            if (kind, compiled) != last:
                last = kind, compiled
                print(f"# {spent:.0f} s: {kind} {'compiled' if compiled else ''}", file=sys.stderr)
            try:
                if kind == "network":
                    began = time.monotonic()
                    seconds = network(case, batch, TYPES[dtype], clock, compiled, cache)
                    remark = "compiled" if compiled else "eager"
                    print(f"# {case} {batch} {remark}: {1e3 * seconds:.3f} ms in {time.monotonic() - began:.1f} s",
                          file=sys.stderr)
                else:
                    cache.clear()
                    seconds, what = operator(case, TYPES[dtype], clock, o.cpu)
                    remark = "in a graph" + what
                emit(kind, case, batch, dtype, 1e6 * seconds, remark)
            except Exception as e:
                print(case, batch, compiled, repr(e)[:500], file=sys.stderr)
                if clock.cuda:
                    torch.cuda.synchronize()
        state("end")
        alone = [case for kind, case, *_ in work if kind != "network"]
        for case, before in zip(alone, [""] + alone) if clock.cuda else ():
            if "conv" in case + before:  # and the product that follows one
                try:
                    kernel(case, torch.bfloat16, clock)
                except Exception as e:
                    print(case, repr(e)[:500], file=sys.stderr)


main()
