#!/usr/bin/env python3
"""Check the bound of certificates (`dsasched best --certificate`) by a program of its own.

    check_certificate.py FILE...

Prints a line for each file, and exits with 1 if one is refused. It shares no code with dsasched and needs nothing but
Python 3.8. From the network and the machine in the file it computes what each term of the bound is (docs/formulations.md,
"A bound on all schedules"): which positions of each tensor are needed, one position after the other; what operators
take at least; and all paths, stretches, loads and groups. What the file claims must agree, field by field.

It trusts what the file says of network and machine, whose fingerprints it prints and compares, and which figures of the
machine are estimates: the bound has these at the fast ends in the file, none of them slower than the machine's. It does
not simulate: `dsasched certify` does. Of a schedule across the LLBs it prints the fingerprint of the machine with the LLB in the role of
the L1, and trusts that this is the machine of that name. Operators that it does not know (scans, quantised
numbers) and machines without a matrix unit are refused.
"""

import hashlib
import json
import math
import sys

BYTES = {"f16": 2, "f32": 4, "f64": 8, "bf16": 2, "i8": 1, "u8": 1, "i16": 2, "i32": 4, "i64": 8, "bool": 1, "f8": 1, "f4": 0.5,
         "i4": 0.5, "u4": 0.5, "i2": 0.25, "u2": 0.25, "u3": 0.375, "u5": 0.625, "u6": 0.75, "u7": 0.875}
# Simple operations, special functions and moves per element.
UNARY = {"Relu": (1, 0, 0), "Clip": (2, 0, 0), "LeakyRelu": (2, 0, 0), "Neg": (1, 0, 0), "Abs": (1, 0, 0), "Sigmoid": (1, 1, 0),
         "Tanh": (0, 1, 0), "Erf": (0, 1, 0), "Exp": (0, 1, 0), "Log": (0, 1, 0), "Sqrt": (0, 1, 0), "Gelu": (3, 1, 0),
         "Silu": (1, 1, 0), "HardSigmoid": (3, 0, 0), "HardSwish": (4, 0, 0), "Softplus": (1, 2, 0), "Mish": (2, 3, 0),
         "Sin": (0, 1, 0), "Cos": (0, 1, 0)}
BINARY = {"Add": (1, 0), "Sub": (1, 0), "Mul": (1, 0), "Div": (0, 1), "Pow": (0, 1), "Max": (1, 0), "Min": (1, 0), "PRelu": (2, 0)}
MOVES = {"Transpose", "Concat", "Split", "Slice", "Pad", "Gather", "Expand"}
REDUCE = {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"}
POOLS = {"MaxPool", "AveragePool"}
PRODUCTS = {"Conv", "MatMul", "Gemm", "Attention"}
OTHERS = {"Reshape", "BatchNorm", "LayerNorm", "RMSNorm", "Softmax", "LRN", "GlobalAveragePool", "GlobalMaxPool"}
KNOWN = set(UNARY) | set(BINARY) | MOVES | REDUCE | POOLS | PRODUCTS | OTHERS
SCOPE = ("even batch split over one chip's clusters, the same plan on each, fusion of linear operator chains")
MATRIX, VECTOR, SPECIAL = range(3)
UNITS = ("matrix unit", "vector unit", "special unit")
TERMS = {"chain": "chain of layers", "series": "units and chains of layers", "ddr": "DDR bandwidth", "ddr link": "DDR link",
         "llb": "LLB bandwidth", "copies": "products, moves along a path, LLB bandwidth", "launch, then stores": "launch, then DDR bandwidth", "loads in a row": "DDR bandwidth and latency",
         "one product": "units, moves and stores of one kernel, or two launches",
         "loads, then chain": "DDR bandwidth, then the chain of layers", "loads, then series": "DDR bandwidth, then units and chains",
         "series, then loads": "units and chains, then DDR bandwidth", "kernels": "launches, DDR bandwidth and memories"}


class Refused(Exception):
    pass


def same(field, found, expected):
    """Refuses a field that is not what it must be; numbers may differ by what rounding does, and a picosecond."""
    if isinstance(expected, float) and isinstance(found, (int, float)) and not isinstance(found, bool):
        if abs(found - expected) <= 3e-9 * abs(expected) + 2e-12:
            return
    elif found == expected and isinstance(found, bool) == isinstance(expected, bool):
        return
    raise Refused("%s: found %r, expected %r" % (field, found, expected))


def get(d, field, *kinds):
    """A field of an object, of one of some types."""
    name = field.split(".")[-1]
    if not isinstance(d, dict) or name not in d:
        raise Refused("%s: missing" % field)
    if not isinstance(d[name], kinds) or isinstance(d[name], bool) and bool not in kinds:
        raise Refused("%s: found %r" % (field, d[name]))
    return d[name]


class Number(float):
    """A number with fraction or exponent, as it is written."""


def number(text):
    n = Number(text)
    n.text = text
    return n


def fingerprint(v):
    """The hash that dsasched gives a value, by its JSON."""
    def text(v):
        if isinstance(v, dict):
            return "{" + ",".join(text(k) + ":" + text(x) for k, x in v.items()) + "}"
        if isinstance(v, list):
            return "[" + ",".join(map(text, v)) + "]"
        if isinstance(v, Number):
            return v.text
        s = json.dumps(v, ensure_ascii=False)
        for c in "<>&\u2028\u2029":
            s = s.replace(c, "\\u%04x" % ord(c))
        return s
    return hashlib.sha256(text(v).encode()).hexdigest()[:16]


def up(a, b):
    return -(-a // b)


def count(mask):
    return bin(mask).count("1")


def positions(mask):
    """The positions of a set, which is an integer with a bit for each."""
    text = bin(mask)[:1:-1]
    at = text.find("1")
    while at >= 0:
        yield at
        at = text.find("1", at + 1)


def elements(box):
    """How many elements a box has: a set of positions for each dimension."""
    n = 1
    for mask in box or ():
        n *= count(mask)
    return n if box is not None else 0


def prod(list):
    n = 1
    for x in list:
        n *= x
    return n


def numbered(box, shape):
    """A bit for each element of a shape, by their number there, that a box has."""
    flat, size = 1, 1
    for mask, n in reversed(list(zip(box, shape))):
        if mask == (1 << n) - 1 and flat == (1 << size) - 1:
            flat = (1 << size * n) - 1
        else:
            flat = sum(flat << p * size for p in positions(mask))
        size *= n
    return flat


def along(bits, shape, dim):
    """The positions along a dimension that some of numbered elements have."""
    n, inner, res = shape[dim], prod(shape[dim + 1:]), 0
    for outer in range(prod(shape[:dim])):
        part = bits >> outer * n * inner & (1 << n * inner) - 1
        if inner == 1:
            res |= part
        else:
            res |= sum(1 << p for p in range(n) if part >> p * inner & (1 << inner) - 1)
    return res


def turned_elements(turned):
    """The elements of a turned box: a box, a range of dimensions, and a bit for each element of these that there is."""
    if turned is None:
        return 0
    box, lo, hi, bits = turned
    return prod([count(mask) for d, mask in enumerate(box) if not lo <= d < hi]) * count(bits)


class Reads:
    """What one operand's dimensions are read for an output: None, all of it; or (o, num, den, a, b), for position p of the
    output's dimension o positions p//den*num+a to p//den*num+b. blocks are ranges of dimensions, of the operand and of the
    output, whose elements are the same in the same order."""

    def __init__(self, dims, shape, out, blocks=()):
        self.dims, self.shape, self.out, self.blocks = dims, shape, out, blocks
        self.block = {d: b for b in blocks for d in range(b[0], b[1])}
        self.known = {}
        self.empty = 0  # dimensions of the output of which some position reads nothing
        self.full = []  # which of the output's must be had in full for this one to be; None: none are enough
        self.even = True  # a share of the output reads no less than a share
        for d, (rule, n) in enumerate(zip(dims, shape)):
            if d in self.block:
                _, _, lo, hi = self.block[d]
                self.full.append((1 << hi) - (1 << lo))
            elif rule is None:
                self.full.append(0)
            else:
                o, num, _, a, b = rule
                ends = [self.span(rule, p, n) for p in (0, out[o] - 1)]
                if any(lo >= hi for lo, hi in ends):
                    self.empty |= 1 << o
                    self.full.append(None)
                elif n == 1:
                    self.full.append(0)
                elif b - a + 1 < num or ends[0][0] > 0 or ends[1][1] < n:
                    self.full.append(None)
                else:
                    self.full.append(1 << o)
            if rule is not None:
                o, num, den, a, b = rule
                clipped = a < 0 or (out[o] - 1) // den * num + b >= n
                self.even = self.even and (not clipped or a <= 0 and b + 1 >= num)

    @staticmethod
    def span(rule, p, n):
        _, num, den, a, b = rule
        return max(0, p // den * num + a), min(n, p // den * num + b + 1)

    def need(self, box):
        """The operand's positions that a box of the output needs."""
        key = tuple(box)
        if key in self.known:
            return self.known[key]
        res, driven = [], set()
        for rule, n in zip(self.dims, self.shape):
            mask = 0
            if rule is None:
                mask = (1 << n) - 1
            elif rule[0] not in driven:
                driven.add(rule[0])
                if rule[1:] == (1, 1, 0, 0):
                    mask = box[rule[0]] & ((1 << n) - 1)
                else:
                    for p in positions(box[rule[0]]):
                        lo, hi = self.span(rule, p, n)
                        if hi > lo:
                            mask |= (1 << hi) - (1 << lo)
            res.append(mask)
        for first, end, lo, hi in self.blocks:
            flat = numbered(box[lo:hi], self.out[lo:hi])
            inner = prod(self.out[lo:hi]) // self.shape[first]
            whole = (1 << inner) - 1
            rows = sum(1 << r for r in range(self.shape[first]) if flat >> r * inner & whole == whole)
            if rows:
                res[first] = rows
                for d in range(first + 1, end):
                    res[d] = (1 << self.shape[d]) - 1
            else:  # one element
                at = (flat & -flat).bit_length() - 1
                for d in range(end - 1, first - 1, -1):
                    res[d] = 1 << at % self.shape[d]
                    at //= self.shape[d]
        self.known[key] = res
        return res

    def move(self, turned):
        """What a turned box needs, if each element reads one at most: another one, or None."""
        key = "move", turned
        if key not in self.known:
            self.known[key] = self.moved(*turned)
        return self.known[key]

    def moved(self, box, lo, hi, bits):
        if len(self.blocks) > 1 or self.blocks and hi and self.blocks[0][2:] != (lo, hi):
            return None
        res, driven, inside = [], [], []
        for d, (rule, n) in enumerate(zip(self.dims, self.shape)):
            if d in self.block:
                res.append(1)
            elif rule is None:
                if n > 1:
                    return None
                res.append(1)
            else:
                o, num, den, a, b = rule
                if num != 1 or den != 1 or a != b or o in driven:
                    return None
                driven.append(o)
                if lo <= o < hi:
                    inside.append((d, o, a))
                    res.append(1)
                else:
                    res.append(sum(1 << p + a for p in positions(box[o]) if 0 <= p + a < n))
        if self.blocks:
            first, end, low, high = self.blocks[0]
            if inside:
                return None
            return tuple(res), first, end, bits if hi else numbered(box[low:high], self.out[low:high])
        first = inside[0][0] if inside else 0
        if not inside or [x[:2] for x in inside] != [(first + k, lo + k) for k in range(hi - lo)]:
            return None
        here, there, by = self.out[lo:hi], self.shape[first:first + hi - lo], [x[2] for x in inside]
        width, moved = here[-1], 0
        for row in range(prod(here) // width):
            part, at, step, rest, there_is = bits >> row * width & (1 << width) - 1, 0, there[-1], row, True
            if not part:
                continue
            for d in range(len(here) - 2, -1, -1):
                x = rest % here[d] + by[d]
                there_is = there_is and 0 <= x < there[d]
                at, step, rest = at + x * step, step * there[d], rest // here[d]
            if there_is:
                part = part << by[-1] if by[-1] >= 0 else part >> -by[-1]
                moved |= (part & (1 << there[-1]) - 1) << at
        return tuple(res), first, first + hi - lo, moved

    def read(self, turned):
        """The box that a turned one needs, if one of its block's dimensions drives it at most."""
        key = "read", turned
        if key not in self.known:
            box, lo, hi, bits = turned
            drives = [rule[0] for rule in self.dims if rule is not None]
            block = [o for o in drives if lo <= o < hi]
            if self.blocks or len(set(drives)) < len(drives) or len(block) > 1:
                self.known[key] = None
            else:
                box = list(box)
                for o in block:
                    box[o] = along(bits, self.out[lo:hi], o - lo)
                self.known[key] = self.need(box)
        return self.known[key]

    def pull(self, full):
        """The operand's dimensions that are had in full if those of full are."""
        return sum(1 << d for d, code in enumerate(self.full) if code is not None and not code & ~full)


def one(o, by=0):
    return (o, 1, 1, by, by)


def broadcast(shape, out):
    shift = len(out) - len(shape)
    return [None if n == 1 and out[k + shift] != 1 else one(k + shift) for k, n in enumerate(shape)]


def reshaped(shape, out):
    dims, blocks, i, j = [None] * len(shape), [], 0, 0
    while i < len(shape) and j < len(out):
        i0, j0, a, b = i, j, shape[i], out[j]
        i, j = i + 1, j + 1
        while a != b:
            if a < b and i < len(shape):
                a, i = a * shape[i], i + 1
            elif j < len(out):
                b, j = b * out[j], j + 1
            else:
                return dims, blocks
        while i0 < i and shape[i0] == 1:
            i0 += 1
        while j0 < j and out[j0] == 1:
            j0 += 1
        if i0 == i or j0 == j:
            continue
        x, y = a // shape[i0], b // out[j0]
        if x == y:
            dims[i0] = one(j0)
        elif y % x == 0:
            dims[i0] = (j0, y // x, 1, 0, y // x - 1)
        elif x % y == 0:
            dims[i0] = (j0, 1, x // y, 0, 0)
        if i - i0 > 1 or j - j0 > 1:
            blocks.append((i0, i, j0, j))
    return dims, blocks


class Op:
    def __init__(self, g, i, facts):
        self.id, self.g = i, g
        self.name, self.kind = facts["name"], facts["kind"]
        self.inputs, self.outputs = facts["inputs"], facts["outputs"]
        if self.kind not in KNOWN:
            raise Refused("operator %r: this checker does not know the kind %s" % (self.name, self.kind))
        self.attr = facts.get("attributes", {})
        self.light = (self.kind in UNARY or self.kind in BINARY or self.kind in MOVES | {"Reshape", "BatchNorm"}) \
            and self.kind not in ("Gather", "Concat") and len(self.outputs) == 1
        self.group = self.attr.get("group", 0)
        self.product = self.kind in PRODUCTS
        if self.kind == "Conv":
            self.product = g.shape[self.inputs[1]][1] > 1 or self.group == 1
        if self.kind == "Attention":  # keys and values come in parts; behind them what the operators on scores read
            scores = self.attr.get("scores") or []
            self.parts = (len(self.inputs) - 1 - sum(x["operands"] - 1 for x in scores)) // 2
            self.score = [3, 1] if self.attr.get("softmax") else [0, 0]
            for x in scores:
                own = UNARY.get(x["kind"]) or tuple(n * (x["operands"] - 1) for n in (BINARY | {"Where": (1, 0)})[x["kind"]])
                self.score = [a + b for a, b in zip(self.score, own)]
        self.reads = [[self.access(o, k) for k in range(len(self.inputs))] for o in range(len(self.outputs))]

    def access(self, o, k):
        g, a, kind = self.g, self.attr, self.kind
        ins, out = [g.shape[t] for t in self.inputs], g.shape[self.outputs[o]]
        s = ins[k]
        key = (kind, tuple(map(tuple, ins)), tuple(out), k, o, json.dumps(a))
        if key in g.accesses:
            return g.accesses[key]
        axis, full, blocks = a.get("axis", 0), [None] * len(s), []
        spatial = len(s) - 2
        if kind == "Reshape":
            dims, blocks = reshaped(s, out)
        elif kind == "Transpose":
            dims = full
            for i, p in enumerate(a["perm"]):
                dims[p] = one(i)
        elif kind in ("Concat", "Split"):
            before = sum(x[axis] for x in ins[:k]) if kind == "Concat" else -sum(a["splits"][:o])
            dims = broadcast(out, out)
            dims[axis] = one(axis, -before)
        elif kind == "Slice":
            dims = [(d, step, 1, lo, lo) if step > 0 else None for d, (lo, step) in enumerate(zip(a["starts"], a["steps"]))]
        elif kind == "Pad":
            dims = [one(d, -a["pads"][d]) for d in range(len(s))]
        elif kind == "Gather":
            if k == 1:
                dims = [one(axis + d) for d in range(len(s))]
            else:
                dims = [None if d == axis else one(d if d < axis else d - 1 + len(ins[1])) for d in range(len(s))]
        elif kind == "Conv" and k == 0:
            dims = [one(0), None if self.group == 1 else (1, ins[1][1], out[1] // self.group, 0, ins[1][1] - 1)]
            for d in range(spatial):
                pad, reach = a["pads"][d], (ins[1][2 + d] - 1) * a["dilations"][d]
                dims.append((2 + d, a["strides"][d], 1, -pad, reach - pad))
        elif kind == "Conv" or kind == "BatchNorm" and k > 0:
            dims = [one(1)] + full[1:]
        elif kind == "MatMul":
            if len(s) == 1:
                dims = full
            else:
                lead = len(out) - sum(len(x) > 1 for x in ins)
                shift = lead - (len(s) - 2)
                dims = [None if n == 1 and out[d + shift] != 1 else one(d + shift) for d, n in enumerate(s[:-2])]
                dims += [one(lead), None] if k == 0 else [None, one(len(out) - 1)]
        elif kind == "Gemm" and k < 2:
            turned = a.get("trans_a" if k == 0 else "trans_b", False)
            dims = [one(k), None] if turned != (k == 0) else [None, one(k)]
        elif kind == "Attention":
            n, keys, dims = len(out), self.keys(self.parts), [one(d) for d in range(len(s))]
            part = (k - 1) // 2 if 0 < k <= 2 * self.parts else None
            seen = (n - 2, 1, 1, -keys, keys - out[n - 2] - self.keys(part or 0)) if a.get("causal") else None
            along = n - 1 if k % 2 and a.get("trans_b") else n - 2
            if k == 0:
                dims[n - 1] = None
            elif part is None:
                dims = broadcast(s, out[:-1] + [keys])
                if dims:
                    dims[-1] = seen if s[-1] == keys else None
            else:
                if self.group > 1:
                    dims[n - 3] = (n - 3, 1, self.group, 0, 0)
                if k % 2:
                    dims[2 * n - 3 - along] = None
                dims[along] = seen
        elif kind in POOLS:
            dims = [one(0), one(1)]
            for d, n in enumerate(a["kernel"]):
                pad = a["pads"][d]
                dims.append((2 + d, a["strides"][d], 1, -pad, (n - 1) * a["dilations"][d] - pad))
        elif kind in ("GlobalAveragePool", "GlobalMaxPool"):
            dims = [one(0), one(1)] + full[2:]
        elif kind in REDUCE:
            dims, at = [], 0
            for d in range(len(s)):
                gone = d in a["axes"]
                dims.append(None if gone else one(at))
                at += not gone or a.get("keep_dims", False)
        else:  # element by element, but for what a normalisation goes along
            dims = broadcast(s, out)
            if kind in ("LayerNorm", "RMSNorm") and k == 0:
                dims[axis:] = [None] * (len(s) - axis)
            elif kind == "Softmax":
                for d in a.get("axes") or [axis]:
                    dims[d] = None
            elif kind == "LRN":
                pad = (a["kernel"][0] - 1) // 2
                dims[1] = (1, 1, 1, -pad, a["kernel"][0] - 1 - pad)
        g.accesses[key] = Reads(dims, s, out, blocks)
        return g.accesses[key]

    def work(self):
        """Multiply-accumulates, simple operations, special functions and moves per element."""
        g, a, kind = self.g, self.attr, self.kind
        first = g.shape[self.inputs[0]] if self.inputs else []
        macs, vector = 0, (0, 0, 0)
        if kind == "Conv":
            macs = prod(g.shape[self.inputs[1]][1:])
        elif kind == "MatMul":
            macs = first[-1]
        elif kind == "Gemm":
            macs = first[0 if a.get("trans_a") else 1]
        elif kind == "Attention":
            shape = g.shape[self.outputs[0]]
            macs, all = max(1, self.attention(shape)[-1] * (first[-1] + shape[-1]) // prod(shape)), self.vector(shape)
            vector = tuple(x // prod(shape) + min(1, x % prod(shape)) for x in all) + (0,)
        elif kind in UNARY:
            vector = UNARY[kind]
        elif kind in BINARY:
            vector = tuple(n * (len(self.inputs) - 1) for n in BINARY[kind]) + (0,)
        elif kind in MOVES:
            vector = (0, 0, 1)
        elif kind in REDUCE:
            vector = (prod(first[d] for d in a["axes"]), 0, 0)
        elif kind in POOLS:
            vector = (prod(a["kernel"]), 0, 0)
        elif kind in ("GlobalAveragePool", "GlobalMaxPool"):
            vector = (prod(first[2:]), 0, 0)
        elif kind != "Reshape":
            vector = {"BatchNorm": (2, 0, 0), "LayerNorm": (7, 0, 0), "RMSNorm": (4, 0, 0), "Softmax": (4, 1, 0),
                      "LRN": (2 * a.get("kernel", [0])[0] + 1, 2, 0)}[kind]
        if kind in ("Conv", "Gemm") and len(self.inputs) > 2:
            vector = (1, 0, 0)
        return macs, vector

    def late(self, k):
        """Whether a product begins without an operand. An attention's waits for all that operators make."""
        return k > 1 and self.product and (self.kind != "Attention" or self.g.maker[self.inputs[k]] is None)

    def keys(self, parts):
        return sum(self.g.shape[self.inputs[2 * i + 2]][-2] for i in range(parts))

    def attention(self, r, first=0):
        """Of an attention with so many positions of the output, the rows from one on: products, rows of each, keys that the
        last row sees, and pairs of a query and a key that it sees."""
        keys, heads, rows = self.keys(self.parts), r[-3], r[-2]
        products = up(heads, self.group)
        per, outer, seen = up(heads, products) * rows, prod(r[:-3]), rows * keys
        if self.attr.get("causal"):
            own = first + 1 + keys - self.g.shape[self.inputs[0]][-2]
            keys, seen = own + rows - 1, rows * own + rows * (rows - 1) // 2
        return products * outer, per, keys, outer * heads * seen

    def vector(self, r):
        """Simple operations and special functions of an attention with so many positions of the output."""
        seen = self.attention(r)[-1]
        softmax = (prod(r), prod(r[:-1])) if self.attr.get("softmax") else (0, 0)
        return tuple(x * seen + y for x, y in zip(self.score, softmax))

    def dims(self, r):
        """The products for so many positions of the output: how many, rows, columns, reduction."""
        w = self.g.shape[self.inputs[1]]
        if self.kind == "Attention":
            products, rows, _, seen = self.attention(r)
            return products, rows, max(1, seen // (products * rows)), self.g.shape[self.inputs[0]][-1] + r[-1]
        if self.kind == "Conv":
            groups = up(r[1], max(1, self.g.shape[self.outputs[0]][1] // self.group))
            return groups, r[0] * prod(r[2:]), up(r[1], groups), self.work()[0]
        m, n, r = 1, 1, list(r)
        if len(w) > 1:
            n = r.pop()
        if len(self.g.shape[self.inputs[0]]) > 1:
            m = r.pop()
        reps = prod(r)
        if prod(w[:-2]) == 1:
            m, reps = m * reps, 1
        return reps, m, n, self.work()[0]


class Graph:
    def __init__(self, facts):
        self.tensors = facts["tensors"]
        self.shape = [t["shape"] for t in self.tensors]
        self.accesses = {}
        for i, t in enumerate(self.tensors):
            same("proof.graphs: id of a tensor", t["id"], i)
            if t["dtype"] not in BYTES or t["role"] not in ("activation", "input", "constant") or not all(n > 0 for n in t["shape"]):
                raise Refused("proof.graphs: tensor %r: %r, %r of %r" % (t["name"], t["role"], t["shape"], t["dtype"]))
        self.role = [t["role"] for t in self.tensors]
        self.size = [BYTES[t["dtype"]] for t in self.tensors]
        self.inputs, self.outputs = facts["inputs"], facts["outputs"]
        self.ops = [Op(self, i, o) for i, o in enumerate(facts["operators"])]
        self.maker, self.readers = [None] * len(self.tensors), [[] for _ in self.tensors]
        for op in self.ops:
            for t in op.inputs:
                if self.role[t] == "activation" and self.maker[t] is None:
                    raise Refused("proof.graphs: operator %r reads what nothing before it makes" % op.name)
                if op not in self.readers[t]:
                    self.readers[t].append(op)
            for t in op.outputs:
                if self.maker[t] is not None or self.role[t] != "activation":
                    raise Refused("proof.graphs: tensor %d is made twice" % t)
                self.maker[t] = op

    def back(self, need, last, apart, skip=None):
        """Adds to what is needed of tensors what that needs, through operators up to the last: of readers, what those
        need together whose needs make a box, unless they stay apart, else the most."""
        boxes = [[box] if elements(box) else [] for box in need]
        turns = [None] * len(need)
        for op in reversed(self.ops[:last + 1]):
            for o, t in enumerate(op.outputs):
                need[t] = self.most(boxes[t], apart)
                if not elements(need[t]):
                    continue
                for k, i in enumerate(op.inputs):
                    if skip and skip(op, o, k):
                        continue
                    r = op.reads[o][k]
                    box = r.need(need[t])
                    if elements(box):
                        boxes[i].append(box)
                    if apart:
                        continue
                    if turns[t]:
                        more = r.read(turns[t])
                        if elements(more):
                            boxes[i].append(more)
                    then = r.move(turns[t] or (tuple(need[t]), 0, 0, 1))
                    if turned_elements(then) > max(elements(box), turned_elements(turns[i])):
                        turns[i] = then
        for t, maker in enumerate(self.maker):
            if maker is None:
                need[t] = self.most(boxes[t], apart)
        return turns

    @staticmethod
    def most(boxes, apart):
        """The largest of some boxes, the first of equal ones; two that differ along one dimension are one."""
        boxes, at = list(boxes), 0
        while at < len(boxes) and not apart:
            for k in range(at):
                differ = [d for d, (a, b) in enumerate(zip(boxes[k], boxes[at])) if a != b]
                if len(differ) <= 1:
                    boxes[k] = [a | b for a, b in zip(boxes[k], boxes[at])]
                    del boxes[at]
                    at = k - 1
                    break
            at += 1
        largest = None
        for box in boxes:
            if elements(box) > elements(largest):
                largest = box
        return largest


class Machine:
    def __init__(self, spec):
        field = lambda name, *kinds: get(spec, "proof.machine." + name, *kinds)
        self.clock, self.clusters = field("clock_hz", int, float), field("clusters", int)
        self.launch = field("launch_seconds", int, float)
        self.types = field("core_types", list)
        lb, gb, ddr, link, core = (field(n, dict, type(None)) for n in ("lb", "gb", "ddr", "ddr_link", "core_link"))
        if spec.get("chips") or lb is None or self.clusters < 1:
            raise Refused("proof.machine: this checker knows machines of one chip whose cores have L1s")
        unit = lambda kind: next((u for t in self.types for u in t["units"] if u["kind"] == kind), None)
        self.matrix, self.vector, self.special = unit("matrix"), unit("vector"), unit("special")
        if self.matrix is None or self.vector is None and self.special is None:
            raise Refused("proof.machine: this checker knows machines with matrix and vector units")
        self.vector, self.special = self.vector or self.special, self.special or self.vector
        v, s = self.vector, self.special
        self.shared = v["name"] == s["name"] or s.get("shares_with", "") == v["name"] or v.get("shares_with", "") == s["name"]
        self.holding = sum(t["count"] for t in self.types if t["has_lb"])
        self.cores = max(1, self.holding)
        self.all = sum(t["count"] for t in self.types)
        self.link_rate, self.in_flight = link["bandwidth_bytes_per_second"], link.get("in_flight", 1)
        self.ddr, self.each = ddr["bandwidth_bytes_per_second"], ddr["latency_seconds"] + link["latency_seconds"]
        self.latency = self.each + core["latency_seconds"] + (gb["latency_seconds"] if gb else 0)
        self.efficiency = spec.get("ddr_activation_efficiency", 0) or 1
        self.gb = gb["size_bytes"] if gb else None
        self.gb_rate = gb["bandwidth_bytes_per_second"] if gb else None
        own, lb_size = spec.get("lb_weight_bytes", 0), lb["size_bytes"]
        self.weights = own or lb_size // 4  # of a core's, for weights unless a nest says otherwise
        self.passing = own or lb_size  # that weights may pass
        self.data = lb_size if own else lb_size - max(lb_size // 12 // 64 * 64, min(lb_size // 4, 256))  # the most that values may have
        self.home = 0 if gb else self.weights // 4 * 3 // 64 * 64
        self.lb_rate = lb["bandwidth_bytes_per_second"]
        self.broadcast, self.sync = core["broadcast"], spec.get("sync_seconds", 0)
        self.move = core["latency_seconds"] + (gb["latency_seconds"] if gb else 0)
        self.far, self.near = (self.each, self.move) if gb else (0.0, self.latency)
        self.stores, flow = self.ddr * self.efficiency, self.ddr  # of results, and of all else, over the DDR
        if self.link_rate:
            self.stores, flow = min(self.stores, self.link_rate), min(flow, self.link_rate)
        self.in_rate = core["bandwidth_bytes_per_second"] or math.inf
        self.busy = min(1.0, flow / self.gb_rate) if gb else 1.0  # share of the LLB that loads from the DDR take
        self.gather = self.sync + core["latency_seconds"] + (2 * gb["latency_seconds"] if gb else 0)

    def units(self, kind):
        having = lambda k: sum(t["count"] for t in self.types if any(u["kind"] == k for u in t["units"]))
        n = having(kind) or max(having("vector"), having("special"))
        return max(1, min(self.cores, n))

    def rate(self, unit, dtype):
        for d in (dtype, "f16", "f32", "bf16", "i8"):
            if d in unit["rate"]:
                return unit["rate"][d] / (max(BYTES[dtype], min(1, BYTES[d])) / BYTES[d]) or 1
        return 1

    def ratio(self, unit):
        """A unit's cycle in the chip's."""
        return self.clock / unit["clock_hz"] if unit.get("clock_hz") else 1

    def fill(self, unit):
        return math.ceil(unit["fill_cycles"] * self.ratio(unit))

    def product(self, dtype):
        """The chip's cycles of a row in a block, at least of a block, and between blocks. That a unit reads its operands in
        turn with computing is an estimate, which no bound has."""
        u, ratio = self.matrix, self.ratio(self.matrix)
        bytes = u["rows"] * u["cols"] * BYTES[dtype]
        return (ratio / self.rate(u, dtype), max(self.clock / self.lb_rate * bytes, u.get("least_cycles", 0) * ratio),
                min(u.get("block_cycles", 0), u["fill_cycles"]) * ratio)


SLOWER = {"launch_seconds", "sync_seconds", "gap_seconds", "matrix_start_seconds", "latency_seconds", "fill_cycles", "block_cycles",
          "least_cycles", "simple", "special", "move"}
FASTER = {"clock_hz", "bandwidth_bytes_per_second", "size_bytes", "lb_weight_bytes", "ddr_activation_efficiency", "lanes", "broadcast"}


def figures(given, fast, at="proof.fast", kind=""):
    """Checks that a machine differs from the given one by faster figures alone."""
    if isinstance(given, dict) and isinstance(fast, dict):
        if kind != "rate" and "rows" in given:  # an array may be smaller, and do as much in a cycle
            cells, small = given["rows"] * given["cols"], get(fast, at + ".rows", int) * get(fast, at + ".cols", int)
            if not (0 < fast["rows"] <= given["rows"] and 0 < fast["cols"] <= given["cols"]):
                raise Refused("%s: found an array of %d x %d" % (at, fast["rows"], fast["cols"]))
            given = dict(given, rows=fast["rows"], cols=fast["cols"], rate={k: r * cells / small for k, r in given["rate"].items()})
        for key in {**given, **fast}:
            figures(given.get(key, 0), fast.get(key, 0), at + "." + key, key if kind != "rate" else kind)
    elif isinstance(given, list) and isinstance(fast, list) and len(given) == len(fast):
        for i, (a, b) in enumerate(zip(given, fast)):
            figures(a, b, "%s[%d]" % (at, i))
    elif kind in SLOWER | FASTER or kind == "rate":
        same(at, isinstance(fast, (int, float)), True)
        if fast < 0 or (fast > given if kind in SLOWER else fast < given * (1 - 1e-12)):
            raise Refused("%s: found %r, which is slower than %r" % (at, fast, given))
    else:
        same(at, fast, given)


def last_part(work, command):
    """The least of one of n equal parts of some work and of n - 1 commands."""
    if not work or not command:
        return 0.0
    n = max(1, math.floor(math.sqrt(work / command)))
    return min(work / n + (n - 1) * command, work / (n + 1) + n * command)


class Link:
    def __init__(self, op, late, fused, gaps, reads):
        self.op, self.late, self.fused, self.gaps, self.reads = op, late, fused, gaps, reads


class Share:
    """What n batch elements take of a cluster."""

    def __init__(self, g, m, n, small, apart):
        self.g, self.m, self.n, self.apart = g, m, n, apart
        self.count = len(g.ops)
        need = [None] * len(g.tensors)
        for t in g.outputs:
            if g.maker[t]:
                need[t] = [(1 << x) - 1 for x in g.shape[t]]
        self.need, self.turns = need, g.back(need, self.count - 1, apart)
        self.size = [elements(b) for b in self.need]
        self.lanes, self.marked = {}, None
        self.ops = [self.price(op) for op in g.ops]
        self.link()
        for few, s in enumerate(small, 1):
            self.uniform(s, few)
        self.bytes(small)
        self.shape()
        self.tails()

    def lane(self, unit, what, dtype):
        """The least cycles of an operation, of the types that may be the widest of a layer with this one."""
        key = unit["name"], what, dtype
        if key not in self.lanes:
            types = {dtype} | {t["dtype"] for t, maker in zip(self.g.tensors, self.g.maker) if maker and BYTES[t["dtype"]] >= BYTES[dtype]}
            per = unit.get("cycles_per_op", {}).get(what, 1)
            self.lanes[key] = min(per / (unit["lanes"] * self.m.rate(unit, d)) for d in types) * self.m.ratio(unit)
        return self.lanes[key]

    def price(self, op):
        """Seconds of each unit, in any number of commands."""
        g, m, t = self.g, self.m, [0.0, 0.0, 0.0]
        if op.kind == "Reshape":
            return t
        macs, vector = op.work()
        v = [0, 0, 0]
        for k, o in enumerate(op.outputs):
            n = self.size[o]
            if op.kind == "Attention" and n:
                r = [count(mask) for mask in self.need[o]]
                v = [x + y for x, y in zip(v, op.vector(r) + (0,))]
                t[MATRIX] = (self.scores(op, r) / m.units("matrix") + m.fill(m.matrix) - m.product(g.tensors[op.inputs[0]]["dtype"])[2]) / m.clock
                continue
            v = [x + n * y for x, y in zip(v, vector)]
            if n and not op.product:
                v[0] += n * macs
            elif n and k == 0:
                row, load, gap = m.product(g.tensors[op.inputs[0]]["dtype"])
                r = [count(mask) for mask in self.need[o]]
                reps, rows, columns, depth = op.dims(r)
                across = reps * up(columns, m.matrix["cols"])
                if op.group > 1:
                    across = max(reps, up(r[1], m.matrix["cols"]))
                blocks = across * up(depth, m.matrix["rows"])
                t[MATRIX] = (blocks * (max(rows * row, load) + gap) / m.units("matrix") + m.fill(m.matrix) - gap) / m.clock
        dtype = min((g.tensors[o]["dtype"] for o in op.outputs), key=lambda d: BYTES[d])
        t[VECTOR] = (v[0] * self.lane(m.vector, "simple", dtype) + v[2] * self.lane(m.vector, "move", dtype)) / m.units("vector") / m.clock
        t[SPECIAL] = v[1] * self.lane(m.special, "special", dtype) / m.units("special") / m.clock
        if m.shared:
            t[VECTOR], t[SPECIAL] = t[VECTOR] + t[SPECIAL], 0.0
        return t

    def scores(self, op, r):
        """Cycles of both products of an attention: of each row those of the keys that it sees, and blocks are loaded at least
        for the row that sees most."""
        row, load, gap = self.m.product(self.g.tensors[op.inputs[0]]["dtype"])
        rows, columns, depth, width = self.m.matrix["rows"], self.m.matrix["cols"], self.g.shape[op.inputs[0]][-1], r[-1]
        blocks = lambda keys: up(keys, columns) * up(depth, rows) + up(keys, rows) * up(width, columns)
        causal, passes = op.attr.get("causal"), 0
        for i in range(r[-2] if causal else 1):
            _, _, keys, seen = op.attention(r[:-2] + [1, width], i)
            passes += seen // keys * blocks(keys)
        if not causal:
            passes *= r[-2]
        products, _, keys, _ = op.attention(r)
        return max(passes * row, products * blocks(keys) * load) + products * blocks(keys) * gap

    def alone(self, t):
        """Whether a tensor stays between two operators."""
        return len(self.g.readers[t]) == 1 and t not in self.g.outputs

    def link(self):
        g = self.g
        self.links, uneven = [[] for _ in g.ops], set()
        for op in reversed(g.ops):
            for k, t in enumerate(op.inputs):
                maker = g.maker[t]
                if maker is None or not self.size[t]:
                    continue
                reads = [r[k] for r in op.reads]
                fused = op.light and self.alone(t) and len(maker.outputs) == 1
                gaps = 0
                for r in reads:
                    gaps |= r.empty
                self.links[op.id].append(Link(maker.id, op.late(k), fused, gaps, reads[0] if len(reads) == 1 else None))
                if fused and (not all(r.even for r in reads) or op.id in uneven):
                    uneven.add(maker.id)
        for i in uneven:
            self.ops[i] = [0.0, 0.0, 0.0]

    def uniform(self, small, few):
        """The same network with fewer elements: work per element is the same, and extents grow evenly, one per tensor."""
        g, other = self.g, small.g
        ops = {op.name: op for op in other.ops}
        inputs = {other.tensors[t]["name"]: t for t in other.inputs}
        pairs = []
        for op in g.ops:
            peer = ops.get(op.name)
            if peer is None and op.kind not in PRODUCTS and op.kind in set(UNARY) | set(BINARY) | MOVES | {"Reshape", "BatchNorm"}:
                self.ops[op.id] = [0.0, 0.0, 0.0]
                continue
            if peer is None or peer.kind != op.kind or peer.work() != op.work():
                raise Refused("proof.graphs: operator %r is another one with %d elements" % (op.name, few))
            pairs += zip(op.outputs, peer.outputs)
        for t in g.inputs:
            if self.size[t]:
                if g.tensors[t]["name"] not in inputs:
                    raise Refused("proof.graphs: input %d is missing with %d elements" % (t, few))
                pairs.append((t, inputs[g.tensors[t]["name"]]))
        for t, u in pairs:
            a, b = ([count(x) for x in box or ()] for box in (self.need[t], small.need[u]))
            grow = [(x, y) for x, y in zip(a, b) if x != y]
            if len(a) != len(b) or len(grow) > 1 or any(y > x or x * few > y * self.n for x, y in grow):
                raise Refused("proof.graphs: tensor %r grows from %s to %s" % (g.tensors[t]["name"], b, a))

    def constants(self):
        return {t["name"]: math.ceil(self.size[i] * self.g.size[i]) for i, t in enumerate(self.g.tensors) if t["role"] == "constant"}

    def bytes(self, small):
        g = self.g
        self.weights, self.rows, self.input, self.output, self.grown, self.pieces, self.inputs = [0] * len(g.tensors), 0, 0, 0, 0, [], []
        own, others = self.constants(), [s.constants() for s in small]
        for i, t in enumerate(g.tensors):
            n = math.ceil(self.size[i] * g.size[i])
            if n and t["role"] == "input":
                self.input += n
                self.inputs.append(n)
            elif n and t["role"] == "constant":
                name = t["name"]
                least = min([own[name]] + [o.get(name, 0) for o in others])
                if len(others) == 2 and own[name] - others[0].get(name, 0) != (self.n - 1) * (others[1].get(name, 0) - others[0].get(name, 0)):
                    least = 0
                tables = [op for op in g.readers[i] if op.kind == "Gather" and op.inputs[0] == i]
                if len(tables) < len(g.readers[i]):
                    self.weights[i], self.grown = least, self.grown + n - least
                else:
                    least = min(least, sum(math.ceil(self.size[op.outputs[0]] * g.size[i]) for op in tables))
                    self.rows += least
                if least:
                    self.pieces.append(least)
        for t in set(g.outputs):
            if g.maker[t]:
                self.output += math.ceil(prod(g.shape[t]) * g.size[t])
        self.all_weights = sum(self.weights)

    def shape(self):
        """What ends a layer, and which operator all paths from each one to the results pass next."""
        g, n = self.g, self.count
        self.ends, self.behind = [True] * n, [[] for _ in g.ops]
        for i, links in enumerate(self.links):
            for x in links:
                self.ends[x.op] = self.ends[x.op] and not x.fused
                if not x.gaps and not x.late:
                    self.behind[x.op].append(i)
        self.next = [n] * (n + 1)
        depth = [0] * (n + 1)

        def meet(a, b):
            while a != b:
                if depth[a] < depth[b]:
                    a, b = b, a
                a = self.next[a]
            return a
        for op in reversed(g.ops):
            at = None
            for o in op.outputs:
                to = [n] if o in g.outputs else []
                for c in g.readers[o]:
                    to.append(self.next[c.id] if c.late(c.inputs.index(o)) else c.id)
                for x in to:
                    at = x if at is None else meet(at, x)
            self.next[op.id] = n if at is None else at
            depth[op.id] = depth[self.next[op.id]] + 1

    def tails(self):
        g, m = self.g, self.m
        self.tail, self.filled = [0.0] * self.count, [0.0] * self.count
        fills = m.fill(m.matrix), m.fill(m.vector), m.fill(m.special)
        for op in g.ops:
            t = self.ops[op.id]
            if not t[MATRIX]:
                continue
            row, load, gap = m.product(g.tensors[op.inputs[0]]["dtype"])
            t[MATRIX] = max(t[MATRIX], (fills[0] + max(row, load)) / m.clock)
            simple, special, move = op.work()[1]
            self.filled[op.id] = tail = fills[1] / m.clock if simple + move else fills[2] / m.clock if special else 0.0
            if op.kind == "Attention":  # what is behind its last command is the division of a tile
                self.tail[op.id] = tail if op.attr.get("softmax") else 0.0
                continue
            behind, at = 0.0, op
            while True:
                behind += self.ops[at.id][VECTOR] + self.ops[at.id][SPECIAL]
                out = at.outputs[0]
                if len(at.outputs) > 1 or not self.alone(out) or not g.readers[out][0].light:
                    break
                at = g.readers[out][0]
            columns = max(1, op.dims(g.shape[op.outputs[0]])[2])
            rows = self.size[op.outputs[0]] / (columns * m.cores)
            command = (fills[0] - gap) / m.clock
            self.tail[op.id] = tail + min(last_part(behind, command), max(0.0, rows - 1) * command)

    def needed(self, op):
        return any(self.size[o] for o in op.outputs)

    def total(self):
        return [sum(t[u] for t in self.ops) for u in range(3)]

    # Paths.

    def chain(self, release, after, inside=None, to=None, before=None):
        """The longest path, of operators inside a stretch that ends at to, or of all."""
        g = self.g
        solid, pending = [None] * self.count, [{} for _ in g.ops]
        longest, early = 0.0, 0.0
        for op in g.ops:
            i = op.id
            if inside is not None and i not in inside or not self.needed(op):
                continue
            start = release[i]
            if i == to and self.begins(i):
                start = max(start, early)
            at = [start] * 3
            for x in self.links[i]:
                if inside is not None and x.op not in inside:
                    continue
                reach = lambda times: [a if u == MATRIX and x.late else max(a, b) for u, (a, b) in enumerate(zip(at, times))]
                since = solid[x.op]
                if since is None:
                    continue
                most = max(since)
                if x.gaps and not x.fused:
                    pending[i][x.gaps] = max(pending[i].get(x.gaps, 0.0), most)
                elif not x.gaps:
                    at = reach(since if x.fused else [most] * 3)
                for old, t in pending[x.op].items():
                    gaps = x.gaps
                    if x.reads is None:
                        gaps |= old
                    else:
                        for d, rule in enumerate(x.reads.dims):
                            if not old >> d & 1:
                                continue
                            if d in x.reads.block:
                                _, _, lo, hi = x.reads.block[d]
                                gaps |= (1 << hi) - (1 << lo)
                            elif rule is not None:
                                gaps |= 1 << rule[0]
                    if gaps:
                        pending[i][gaps] = max(pending[i].get(gaps, 0.0), t)
                    else:
                        at = reach([t] * 3)
            at = [a + b for a, b in zip(at, self.ops[i])]
            at[MATRIX] += self.tail[i]
            solid[i] = at
            t = max(at + list(pending[i].values()))
            longest = max(longest, t + after[i])
            if before is not None:
                early = max(early, t + before[i])
        return longest

    def begins(self, i):
        return not any(x.fused for x in self.links[i])

    def passes(self, u, to):
        while u < to:
            u = self.next[u]
        return u == to

    def stretch(self, first, to):
        """What must run behind one cut (None: the begin) and before the end of the next, and takes the cluster."""
        n = self.count
        last = min(to, n - 1)
        if first is None:
            inside = {u for u in range(last + 1) if self.passes(u, to)}
        else:
            inside, reached = set(), {first}
            for u in range(first, last + 1):
                if u in reached:
                    reached.update(self.behind[u])
                    if u > first and self.passes(u, to):
                        inside.add(u)
            if to < n:
                inside.add(to)
        order = sorted(inside)

        def most(ops):
            ops = list(ops)
            return max(sum(self.ops[u][k] for u in ops) for k in range(3))
        release, after, before = [0.0] * n, [0.0] * n, [0.0] * n
        for i in order:
            if self.begins(i):
                release[i] = most(u for u in order if u < i and self.passes(u, i))
            if self.ends[i]:
                reached = {i}
                for u in order:
                    if u in reached:
                        reached.update(r for r in self.behind[u])
                after[i] = most(u for u in order if u > i and u in reached)
                before[i] = most(u for u in order if i < u < to and u in reached)
        return max(most(order), self.chain(release, after, inside, to, before))

    def series(self, claimed, field):
        """The stretches between the cuts that the file names, each of which all paths pass."""
        names = {op.name: op.id for op in self.g.ops}
        if len(names) < self.count:
            raise Refused("proof.graphs: operators share names")
        row, first = [], None
        for k, c in enumerate(claimed):
            at = "%s[%d]" % (field, k)
            cut = get(c, at + ".cut", str)
            to = self.count if cut == "" and k == len(claimed) - 1 else names.get(cut)
            if to is None or to < self.count and not self.ends[to] or first is not None and (to <= first or not self.passes(first, to)):
                raise Refused("%s.cut: found %r, expected an operator that ends its layer and that all paths from the cut before pass" % (at, cut))
            seconds = self.stretch(first, to)
            same(at + ".stretch_s", get(c, at + ".stretch_s", int, float), seconds)
            row.append((to, seconds))
            first = to
        if not row or first != self.count:
            raise Refused("%s: does not end with the network" % field)
        return row

    def outer(self, launch):
        """When operators can start, behind a launch and the load of an input, and what follows those that make results. With
        an LLB the load into it may come before the launch."""
        g, start, after = self.g, [launch] * self.count, [0.0] * self.count
        for op in g.ops:
            for k, t in enumerate(op.inputs):
                if g.role[t] == "input" and not op.late(k) and \
                        all(not op.reads[o][k].empty or not self.size[out] for o, out in enumerate(op.outputs)):
                    start[op.id] = max(launch, self.m.far) + self.m.near
        for t in g.outputs:
            if g.maker[t]:
                after[g.maker[t].id] = self.m.latency
        return start, after

    # What of tensors is needed as a whole.

    def whole(self, b, dims, begins):
        """The tensors all of which is needed by whatever has some of b's output, and all along some dimensions."""
        g = self.g
        ones = lambda t: sum(1 << d for d, n in enumerate(g.shape[t]) if n == 1)
        full = {g.ops[b].outputs[0]: dims | ones(g.ops[b].outputs[0])}
        for op in reversed(g.ops[:b + 1]):
            for o, out in enumerate(op.outputs):
                if out not in full:
                    continue
                for k, t in enumerate(op.inputs):
                    if begins and op.id == b and op.late(k):
                        continue
                    r = op.reads[o][k]
                    if not r.empty & ~full[out]:
                        full[t] = full.get(t, 0) | r.pull(full[out])
        return {t for t, f in full.items() if f == (1 << len(g.shape[t])) - 1}

    def releases(self):
        res = [0] * self.count
        for op in self.g.ops:
            if len(op.outputs) == 1 and self.size[op.outputs[0]]:
                res[op.id] = sum(self.weights[t] for t in self.whole(op.id, 0, True))
        return res

    def loads(self):
        of = lambda n, quarters=1: math.ceil(4 * n / (quarters * self.m.gb)) if self.m.gb is not None else 1
        every = sum(of(n) for n in self.pieces) + sum(of(n, 3) for n in self.inputs)
        before = every
        for o in self.g.outputs:
            maker = self.g.maker[o]
            if maker is None or len(maker.outputs) > 1:
                return every, 0
            before = min(before, sum(of(self.weights[t]) for t in self.whole(maker.id, 0, False) if self.weights[t]))
        return every, before

    def late(self, row):
        """For each cut the bytes of constants that products use behind its last element."""
        g, res = self.g, [0] * len(row)
        for op in g.ops:
            if not op.product or len(op.outputs) > 1 or not self.size[op.outputs[0]]:
                continue
            out = op.outputs[0]
            mine = [t for t in op.inputs if self.weights[t] and len(g.readers[t]) == 1]
            if not mine:
                continue
            skip = lambda o, n, k: o.reads[n][k].empty or o is op and op.late(k) or self.gap(o, k)
            need = [None] * len(g.tensors)
            need[out] = self.need[out]
            g.back(need, op.id, self.apart, skip)
            matters, known = self.matters(op, skip), {}
            for k, (c, _) in enumerate(row):
                if c >= op.id or len(g.ops[c].outputs) > 1:
                    continue
                t = g.ops[c].outputs[0]
                if not elements(need[t]) or need[t] != self.need[t] or self.turns[t]:
                    continue
                turn, free = self.turns[out], matters.get(t, 0)
                box = list(self.need[out])
                if turn and len(op.inputs) == 2:
                    lo, hi = turn[1:3]
                    if not free >> lo & (1 << hi - lo) - 1 and all(lo <= d < hi or turn[0][d] == x for d, x in enumerate(box)):
                        box[lo:hi] = [along(turn[3], g.shape[out][lo:hi], d) for d in range(hi - lo)]
                    else:
                        turn = None
                else:
                    turn = None
                full = sum(1 << d for d, mask in enumerate(box) if not free >> d & 1 and count(mask) == g.shape[out][d])
                if (full, turn) not in known:
                    whole = self.whole(op.id, full, False)
                    known[full, turn] = sum(self.weights[i] for n, i in enumerate(op.inputs)
                                            if i in mine and i in whole and (not turn or n == 1 and op.reads[0][n].read(turn)))
                res[k] += known[full, turn]
        return res

    def gap(self, op, k):
        return any(r[k].empty for r in op.reads)

    def matters(self, b, skip):
        """For each tensor the dimensions of b's output on which it depends what is needed of the tensor. Of each dimension
        is known that all is needed ("all"), or the position of one dimension ("same", d), or what depends on some (set)."""
        g = self.g
        of = {b.outputs[0]: [("same", d) for d in range(len(g.shape[b.outputs[0]]))]}

        def on(x):
            return set() if x == "all" else {x[1]} if isinstance(x, tuple) else x

        def has(x, y):
            return all(p == "all" or isinstance(p, tuple) and p == q for p, q in zip(x, y))

        def either(x, y):
            return x if x == y and not isinstance(x, set) else on(x) | on(y)

        for op in reversed(g.ops[:b.id + 1]):
            for o, out in enumerate(op.outputs):
                if out not in of:
                    continue
                for k, t in enumerate(op.inputs):
                    if skip(op, o, k):
                        continue
                    r, mine = op.reads[o][k], []
                    for d, rule in enumerate(r.dims):
                        if d in r.block:
                            drive = of[out][r.block[d][2]:r.block[d][3]]
                            mine.append("all" if all(x == "all" for x in drive) else set().union(*map(on, drive)))
                        elif rule is None:
                            mine.append("all")
                        elif rule[1:] == (1, 1, 0, 0) and r.out[rule[0]] == r.shape[d]:
                            mine.append(of[out][rule[0]])
                        else:
                            mine.append(on(of[out][rule[0]]))
                    if t not in of or has(mine, of[t]):
                        of[t] = mine
                    elif not has(of[t], mine):
                        of[t] = [either(x, y) for x, y in zip(of[t], mine)]
        return {t: sum(1 << d for d in set().union(*map(on, list))) if t != b.outputs[0] else 0 for t, list in of.items()}

    # Launches, what memories do not hold, and products again.

    def results(self):
        """Bytes of an element of each tensor that stands for a result that lies in one piece."""
        g, size, counted = self.g, {}, set()
        for op in g.ops:
            if not op.product or len(op.outputs) > 1:
                continue
            t = first = op.outputs[0]
            least = g.size[t]
            counted.add(t)
            while self.alone(t) and g.readers[t][0].light:
                reader = g.readers[t][0]
                for i, r in zip(reader.inputs, reader.reads[0]):
                    if i == t and any(g.shape[t][d] > 1 and d not in r.block and (rule is None or rule[3] != rule[4]) for d, rule in enumerate(r.dims)):
                        least = 0
                if not least:
                    break
                t = reader.outputs[0]
                counted.add(t)
                least = min(least, g.size[t])
            if first not in g.outputs and g.readers[first]:
                size[first] = least
        for t, maker in enumerate(g.maker):
            if maker and t not in counted and t not in g.outputs and any(c.product for c in g.readers[t]):
                size[t] = g.size[t]
        return size

    def splits(self):
        """For each tensor the sets of dimensions that kernels have in full, by how their group is split."""
        g = self.g
        sets, gaps = [[] for _ in g.tensors], set()

        def add(t, full):
            if not any(not x & ~full for x in sets[t]):
                sets[t] = [x for x in sets[t] if full & ~x] + [full]
        for op in reversed(g.ops):
            for o in op.outputs:
                every = (1 << len(g.shape[o])) - 1
                add(o, every)
                for d, n in enumerate(g.shape[o]):
                    if n > 1:
                        add(o, every & ~(1 << d))
                if o in gaps:
                    common = every
                    for x in sets[o]:
                        common &= x
                    add(o, common)
            for o, out in enumerate(op.outputs):
                for k, t in enumerate(op.inputs):
                    if g.maker[t]:
                        r = op.reads[o][k]
                        if out in gaps or r.empty:
                            gaps.add(t)
                        ones = sum(1 << d for d, n in enumerate(g.shape[t]) if n == 1)
                        for full in list(sets[out]):
                            add(t, r.pull(full) | ones)
        return sets

    def markers(self):
        """The products of the path with most weights and results, and what lies between them."""
        g, size = self.g, self.results()
        total, before, last = [0] * self.count, [None] * self.count, None
        product = lambda op: op.product and len(op.outputs) == 1 and self.size[op.outputs[0]]
        for op in g.ops:
            for x in self.links[op.id]:
                if before[op.id] is None or total[x.op] > total[before[op.id]]:
                    before[op.id] = x.op
            if before[op.id] is not None:
                total[op.id] = total[before[op.id]]
            if product(op):
                out = op.outputs[0]
                total[op.id] += sum(self.weights[t] for t in op.inputs) + self.size[out] * size.get(out, 0)
                if last is None or total[op.id] > total[last]:
                    last = op.id
        path, i = [], last
        while i is not None:
            if product(g.ops[i]):
                path.insert(0, i)
            i = before[i]
        place = {i: k for k, i in enumerate(path)}
        at = []
        for op in g.ops:
            at.append(max([place.get(op.id, -1)] + [at[x.op] for x in self.links[op.id]]))
        sets, list = self.splits(), []
        for j, b in enumerate(path):
            out = g.ops[b].outputs[0]
            need = [None] * len(g.tensors)
            need[out] = self.need[out]
            g.back(need, b, self.apart)
            kept = [(min(at[g.maker[t].id], j), elements(need[t]) * size[t], t) for t in size
                    if size[t] and elements(need[t]) and at[g.maker[t].id] >= 0]
            ways = []
            for full in sets[out]:
                constants, products = [0] * (j + 2), [0.0] * (j + 2)
                needed = self.whole(b, full, False)
                for t in needed:
                    if not elements(need[t]):
                        continue
                    if g.role[t] == "constant":
                        if len(g.readers[t]) == 1 and at[g.readers[t][0].id] >= 0:
                            constants[min(at[g.readers[t][0].id], j)] += self.weights[t]
                    elif g.maker[t] and at[g.maker[t].id] >= 0:
                        products[min(at[g.maker[t].id], j)] += self.ops[g.maker[t].id][MATRIX]
                for i in range(j, -1, -1):
                    constants[i] += constants[i + 1]
                    products[i] += products[i + 1]
                ways.append((needed, constants, products))
            list.append((b, kept, ways))
        return list

    # Copies.

    def along(self, claimed):
        """The path that the file names, each of which needs some of the one before for each element, and its seconds."""
        names = {op.name: op.id for op in self.g.ops}
        if len(names) < self.count:
            raise Refused("proof.graphs: operators share names")
        path, seconds, run, product = [], 0.0, [0.0] * 3, False
        for k, name in enumerate(claimed):
            i = names.get(name) if isinstance(name, str) else None
            links = [x for x in self.links[i] if path and x.op == path[-1]] if i is not None else []
            if i is None or not self.needed(self.g.ops[i]) or path and not any(not x.gaps and not x.late for x in links):
                raise Refused("proof.witness.path[%d]: found %r, expected an operator each element of which needs some of the one before" % (k, name))
            if not any(x.fused for x in links):
                seconds += run[MATRIX] if product else max(run)
                run, product = [0.0] * 3, self.ops[i][MATRIX] > 0
            run = [a + b for a, b in zip(run, self.ops[i])]
            run[MATRIX] += self.tail[i]
            path.append(i)
        return path, seconds + (run[MATRIX] if product else max(run))

    def copied(self, op):
        """Whether cores load copies of a product's constant weights that can be counted, and its rows, columns and reduction."""
        if not self.ops[op.id][MATRIX] or len(op.outputs) > 1 or op.kind == "Attention" or op.kind == "Conv" and op.group != 1:
            return None
        reps, rows, columns, depth = op.dims(self.g.shape[op.outputs[0]])
        return (rows, columns, depth) if reps == 1 and self.g.role[op.inputs[1]] == "constant" else None

    def row(self, op, depth):
        """How many elements of the first operand each row has for itself, if half of no window may lie outside."""
        if op.kind != "Conv":
            return depth
        data, out = self.g.shape[op.inputs[0]], self.g.shape[op.outputs[0]]
        for (_, stride, _, a, b), n, end in zip(op.reads[0][0].dims[2:], data[2:], out[2:]):
            if 2 * -a >= b - a + 1 or 2 * ((end - 1) * stride + b + 1 - n) >= b - a + 1:
                return 0
        return data[1]

    def copies(self, claimed, launch, bytes, path_weight, llb):
        """The weighted mean of the matrix unit's time, the path's and that of the LLB; None if no copies can be counted."""
        g, m = self.g, self.m
        products = [(op, self.copied(op)) for op in g.ops if op.product]
        products = [(op, dims) for op, dims in products if dims]
        if m.gb is None or m.broadcast or not products:
            return None
        path, along = self.along(claimed)
        least = min([4] + [g.size[t] for t, maker in enumerate(g.maker) if maker])
        rest = self.all_weights - sum(self.weights[t] for t in {op.inputs[1] for op, _ in products})
        units = 1 - path_weight - llb
        total = (1 - llb * m.busy) * launch + units * self.total()[MATRIX] + path_weight * along + llb * (bytes + rest) / m.gb_rate
        known = {}
        for op, (rows, columns, depth) in products:
            x, data = self.size[op.outputs[0]], op.inputs[0]
            peak = x * depth * m.product(g.tensors[data]["dtype"])[0] / (m.matrix["rows"] * m.matrix["cols"]) / m.units("matrix") / m.clock
            weights, copy = x / rows * depth * g.size[op.inputs[1]], 0.0
            if g.role[data] != "constant":
                copy = x / columns * self.row(op, depth) * g.size[data]
            at = path.index(op.id) if op.id in path else None
            waits = copy > 0 and bool(at) and g.maker[data] is not None and g.maker[data].id == path[at - 1]
            edges = 0.0
            if waits:
                edges = self.ops[op.id][MATRIX] + self.tail[op.id] - m.fill(m.matrix) / m.clock - self.filled[op.id]
            given = g.role[data] == "input"
            key = weights, copy, peak, columns, depth, at is not None, waits, x, edges, given
            if key not in known:
                known[key] = self.spread(peak, weights / m.gb_rate * llb, copy / m.gb_rate, 2 * x * least / m.gb_rate * llb,
                                         columns, depth, units + (0 if at is None or waits else path_weight), path_weight if waits else 0.0, llb, given)
            total += known[key] - units * peak - (path_weight * (edges if waits else peak) if at is not None else 0.0)
        return total

    def spread(self, peak, weights, copy, sums, columns, depth, units, waits, llb, given):
        """The least share of a product in the mean, over cores, slices of the reduction and parts of the columns, two of
        which stand for all between them."""
        m, best = self.m, math.inf
        cores = m.units("matrix")
        for s in range(1, min(depth, cores) + 1):
            if depth % s:
                continue
            most, own = max(1.0, min(columns, cores / s)), 1 if s == 1 and not given else 0
            wait = waits * (2 * m.move if s == 1 else 4 * m.move + m.sync)
            tries, lo = [(1.0, 1.0, 0.0)] if s == 1 else [], 1.0
            while lo < most:
                tries.append((lo, min(most, lo * 1.05), wait))
                lo *= 1.05
            for lo, hi, wait_ in tries:
                brought, per = copy * (lo - own), weights / (s * hi)
                fixed = sums * (s - 1) + wait_ + llb * brought
                # Convex in the cores, with a kink where products take as long as what is brought.
                for t in ([math.sqrt(peak * cores * u / per) for u in (units, units + waits)] if per else [cores]) + \
                        ([peak * cores / brought] if brought else [cores]):
                    n = max(s * lo, min(cores, t))
                    time = peak * cores / n
                    best = min(best, units * time + waits * max(time, brought) + per * n + fixed)
        return best

    def product(self, chain):
        """A network of one product, of an input and constant weights: in one kernel, over all divisions among the cores, or in
        two at least; None for others."""
        g, m, op = self.g, self.m, self.g.ops[0] if self.count == 1 else None
        if op is None or op.kind not in ("MatMul", "Gemm") or not self.ops[0][MATRIX]:
            return None
        data, weights = op.inputs[:2]
        reps, rows, columns, depth = op.dims(g.shape[op.outputs[0]])
        if reps != 1 or g.role[data] != "input" or g.role[weights] != "constant":
            return None
        row, load, gap = m.product(g.tensors[data]["dtype"])
        fill, units = m.fill(m.matrix), m.units("matrix")
        first = max(m.launch, m.far) + m.near
        behind, store = (m.near, m.far) if m.gb is not None else (0.0, m.near)
        results = rows * columns * g.size[op.outputs[0]]
        operands = rows * depth * g.size[data] + depth * columns * g.size[weights]
        shortest = lambda cores: up(cores, units) * (max(row, load) + fill) / m.clock

        def work(m_, n, k, cores):
            return up(cores, units) * (up(n, m.matrix["cols"]) * up(k, m.matrix["rows"]) * (max(m_ * row, load) + gap) + fill - gap) / m.clock

        def divided(r, c, s):
            most, wide, k = up(rows, r), up(columns, c), depth // s  # of a core
            across, cores = up(columns, wide), up(rows, most) * up(columns, wide) * s
            unit, command, last = work(most, wide, k, cores), shortest(cores), behind + (m.gather if s > 1 else 0.0)
            bytes = most * k * g.size[data] + (k * wide * g.size[weights] if m.gb is not None else 0)
            times = [first + unit + last + store, first + bytes / m.in_rate + command + last + store]
            if m.gb is not None:
                copies = operands if m.broadcast else rows * depth * across * g.size[data] + cores * wide * k * g.size[weights]
                moved = first * (1 - m.busy) + (operands + copies + 2 * results) / m.gb_rate
                times.append(moved + 2 * (s - 1) * rows * columns * min(4, g.size[op.outputs[0]]) / m.gb_rate)
                times.append(moved + max(0.0, 1 - 2 * m.busy) * (command + m.near + m.far))
            part = results / m.stores  # of n equal stores in a row, the first behind a command and the last behind all
            early, late = first + command + last + part, first + unit + last + store - 1 / m.stores
            if early + store >= late + part:
                times.append(early + store)
            else:
                times.append((early + late + math.sqrt((late - early) ** 2 + 4 * store * part)) / 2)
            return max(times)
        slices = [s for s in range(1, min(m.cores, depth) + 1) if depth % s == 0]
        one = min(divided(r, c, s) for s in slices for r in range(1, min(rows, m.cores // s) + 1)
                  for c in range(1, min(columns, m.cores // s // r) + 1))
        each = min(work(1, 1, depth // s, s) + (m.gather if s > 1 else 0.0) for s in slices)
        two = [chain + m.launch + m.near, 2 * (m.launch + m.near + each) + behind + store,
               first + shortest(1) + behind + 2 * store + results / m.stores]
        return min(one, max(two))

    def tables(self, busy, bytes, products):
        """For chunks of each size, for each marker, the kernels and prices of groups from each marker on; launches apart."""
        m = self.m
        piece, stays = m.holding * m.data, m.holding * m.home
        if m.gb is not None:
            stays = m.gb
            piece = max(piece, stays)
        sizes = min(self.n, 32)
        self.again = max(0, self.all_weights - stays) * bytes * busy / m.ddr
        self.growth = self.grown * bytes * busy / m.ddr if self.n == sizes else 0
        if self.marked is None:
            self.marked = self.markers()
        return [[self.marker(b, kept, ways, (k + (self.n == sizes)) / sizes, piece, stays, bytes * busy / m.ddr, products)
                 for b, (_, kept, ways) in enumerate(self.marked)] for k in range(sizes)]

    def marker(self, b, kept, ways, part, piece, stays, bytes, products):
        """For groups from each marker on, how many kernels have elements of marker b, and the least price of so many."""
        lists = [[] for _ in range(b + 1)]
        most = max([n * part for _, n, _ in kept], default=0)
        f = 1
        while f == 1 or most > (f - 1) * piece:
            last = f if f <= 64 else math.floor(f * 5 / 4)
            best = [math.inf] * (b + 1)
            for full, constants, twice in ways:
                spilt = [0.0] * (b + 1)
                for at, n, t in kept:
                    n *= part
                    if t in full and n > piece:
                        spilt[at] += 2 / self.m.efficiency * f * n
                    elif n > last * piece:
                        spilt[at] += 2 / self.m.efficiency * (n - (last - 1) * piece)
                sum = 0.0
                for i in range(b, -1, -1):
                    sum += spilt[i]
                    best[i] = min(best[i], bytes * (sum + (f - 1) * max(0, constants[i] - stays)) + products * (f - 1) * twice[i] * part)
            for i, price in enumerate(best):
                lists[i].append((f, price))
            f = last + 1
        return lists

    def kernels(self, tables, launch):
        """The least price over all chunks and groups, with that of a launch."""
        alone, least = [], [0.0]
        for k, table in enumerate(tables):
            sums = [0.0] + [math.inf] * len(table)
            for i in range(len(table)):
                most = 0.0
                for b in range(i, len(table)):
                    most = max(most, min(launch * f + price for f, price in table[b][i]))
                    sums[b + 1] = min(sums[b + 1], sums[i] + most)
            alone.append((sums[-1] if table else launch) + (self.growth if k == len(tables) - 1 else 0))
            least.append(min([alone[k]] + [alone[j] + self.again + least[k - j] for j in range(k)]))
        return least[-1]

    def counted(self, tables, markers, most):
        """The least price over all chunks and groups of the first markers for each number of launches, these apart."""
        def groups(table):
            least = [[0.0] * (most + 1)] + [[math.inf] * (most + 1) for _ in range(markers)]
            if not markers:
                return [math.inf] + [0.0] * most
            for i in range(markers):
                costs, base = [0.0] * (most + 1), least[i]
                for b in range(i, markers):
                    cost, before, to, at = math.inf, math.inf, least[b + 1], table[b][i]
                    steps = {f: price for f, price in at if f <= most}
                    for f in range(1, most + 1):
                        cost = min(cost, steps.get(f, math.inf))
                        costs[f] = max(costs[f], cost)
                        if costs[f] < before:
                            before = costs[f]
                            for k in range(f, most + 1):
                                if base[k - f] + before < to[k]:
                                    to[k] = base[k - f] + before
            return least[markers]
        alone, least = [], [[0.0] * (most + 1)]
        for k, table in enumerate(tables):
            alone.append([x + (self.growth if k == len(tables) - 1 else 0) for x in groups(table)])
            best = list(alone[k])
            for j in range(k):
                for x in range(1, most):
                    for y in range(1, most + 1 - x):
                        best[x + y] = min(best[x + y], alone[j][x] + self.again + least[k - j][y])
            least.append(best)
        return least[-1]

    def launches(self, tables, markers, work, ddr, products, bytes, claimed):
        """The least time over all numbers of launches, up to the first with which work alone takes more than is claimed."""
        most = 1
        while most < 64 and work + (most + 1) * self.m.launch <= claimed * (1 + 1e-6):
            most += 1
        rest = self.counted(tables, markers, most)
        with_launches = [max(work + n * self.m.launch, bytes * ddr + (1 - bytes) * (products + n * self.m.launch) + rest[n])
                         for n in range(1, most + 1)]
        return min(with_launches + [work + (most + 1) * self.m.launch])


# Attributes that hold extents, which may follow the batch.
EXTENTS = ("shape", "splits", "starts")


def tied(first, facts, n):
    """Holds a graph of n elements against the network's of one: the same operators, by name, on tensors of the same names,
    types and roles. Only extents may differ, and operators that the other leaves out."""
    def tensor(graph, t):
        t = graph["tensors"][t]
        return t["name"], t["dtype"], t["role"], len(t["shape"])

    def fixed(op):
        rest = {k: v for k, v in op.items() if k not in ("id", "inputs", "outputs", "attributes")}
        return rest, {k: v for k, v in (op.get("attributes") or {}).items() if k not in EXTENTS}

    at = "proof.graphs: of %d elements: " % n
    same(at + "name", facts["name"], first["name"])
    ops = {op["name"]: op for op in first["operators"]}
    made = {tensor(first, t)[0] for op in first["operators"] for t in op["outputs"]}
    for op in facts["operators"]:
        peer = ops.get(op["name"])
        if peer is None:
            continue
        same(at + "operator %r" % op["name"], fixed(op), fixed(peer))
        for k in "inputs", "outputs":
            same(at + "%s of %r" % (k, op["name"]), len(op[k]), len(peer[k]))
            for t, u in zip(op[k], peer[k]):
                a, b = tensor(facts, t), tensor(first, u)
                if k == "outputs" or a[0] in made and b[0] in made or "activation" not in (a[2], b[2]):
                    same(at + "tensor of %r" % op["name"], a, b)
                if any(x < y for x, y in zip(facts["tensors"][t]["shape"], first["tensors"][u]["shape"])):
                    raise Refused(at + "tensor %r shrinks" % a[0])
    for k in "inputs", "outputs":
        same(at + k, [tensor(facts, t)[0] for t in facts[k]], [tensor(first, t)[0] for t in first[k]])


def check(path):
    with open(path, encoding="utf-8") as f:
        c = json.load(f, parse_float=number)
    same("kind", get(c, "kind", str), "dsasched-certificate")
    same("version", get(c, "version", int), 8)
    network, hardware, claim, proof = (get(c, x, dict) for x in ("network", "hardware", "bound", "proof"))
    spec, witness = get(proof, "proof.machine", dict), get(proof, "proof.witness", dict)
    raised = get(hardware, "hardware.level", str) == "gb"
    chip, seen = get(hardware, "hardware.name", str), fingerprint(spec)
    same("proof.machine.name", get(spec, "proof.machine.name", str), chip + "-gb" * raised)
    if raised:
        chip += " with the LLB in the role of the L1"
    else:
        same("hardware.level", hardware["level"], "lb")
        same("hardware.fingerprint", get(hardware, "hardware.fingerprint", str), seen)
    fast = get(proof, "proof.fast", dict)
    same("proof.fast_fingerprint", get(proof, "proof.fast_fingerprint", str), fingerprint(fast))
    figures(spec, fast)
    estimates = get(claim, "bound.estimates", list)
    if (spec != fast) != (len(estimates) > 0) or not all(isinstance(e, str) for e in estimates):
        raise Refused("bound.estimates: found %r" % estimates)
    m = Machine(fast)
    if raised and (m.clusters > 1 or m.gb is not None):
        raise Refused("proof.machine: found clusters or an LLB, expected one cluster without, as hardware.level says")
    batch = get(c, "batch", int)
    same("bound.batch", get(claim, "bound.batch", int), batch)
    same("bound.scope", get(claim, "bound.scope", str), SCOPE)
    shares = [batch // m.clusters + (k < batch % m.clusters) for k in range(m.clusters)]
    same("bound.shares", get(claim, "bound.shares", list), shares)
    busy = [n for n in shares if n]
    if not busy:
        raise Refused("batch: found %d" % batch)
    sizes = sorted({n for n in [1, 2] + busy if n <= busy[0]})
    graphs = get(proof, "proof.graphs", list)
    same("proof.graphs: batches", [get(g, "proof.graphs.batch", int) for g in graphs], sizes)
    same("network.fingerprint", get(network, "network.fingerprint", str), fingerprint(graphs[0]["graph"]))
    of, made = {}, {}
    for n, g in zip(sizes, graphs):
        tied(graphs[0]["graph"], g["graph"], n)
        g = Graph(g["graph"])
        for apart in False, True:  # the first that grows in proportion
            small = [made.get((few, apart)) for few in (1, 2) if few < n]
            if None in small:
                continue
            try:
                made[n, apart] = Share(g, m, n, small, apart)
            except Refused:
                if apart and (n, False) not in made:
                    raise
        of[n] = made.get((n, False)) or made.get((n, True))
        if of[n] is None:
            raise Refused("proof.graphs: the network of %d elements is not as large in proportion" % n)
    works = [of[n] for n in busy]
    first, last, k = works[0], works[-1], len(busy)
    distinct = [n for i, n in enumerate(busy) if i == 0 or busy[i - 1] != n]
    claims = get(witness, "proof.witness.shares", list)
    same("proof.witness.shares", len(claims), len(distinct))
    rows = [compare(of[n], x, "proof.witness.shares[%d]" % i) for i, (n, x) in enumerate(zip(distinct, claims))]
    row, at = rows[0], "proof.witness.shares[%d]." % (len(rows) - 1)
    loads_row, late_row = (last.series(get(claims[-1], at + x, list), at + x) if x in claims[-1] else rows[-1]
                           for x in ("loads_then_series", "series_then_loads"))
    rows = {n: r for n, r in zip(distinct, rows)}

    launch = m.launch if any(map(first.needed, first.g.ops)) else 0.0
    m.launch = launch
    weights, terms = first.all_weights, []
    io = first.input + first.output + first.rows
    moved = sum((w.input + w.output + w.rows) / m.efficiency for w in works)

    def add(name, seconds, resource=None):
        terms.append((name, resource or TERMS[name], max(0.0, seconds * (1 - 1e-9))))
    for u, t in enumerate(first.total()):
        if t > 0:
            add("work", launch + t, UNITS[u])
    chain = first.chain(*first.outer(launch))
    add("chain", chain)
    add("series", launch + sum(s for _, s in row))
    one = first.product(chain)
    if one is not None:
        add("one product", one)
    add("ddr", (k * weights + moved) / m.ddr)
    if m.link_rate:
        add("ddr link", (weights + io) / m.link_rate)
    if m.gb is not None:
        add("llb", launch * (1 - m.busy) + 2 * (weights + io) / m.gb_rate)
    prices = get(witness, "proof.witness.prices", dict)
    by, again, path, llb = (float(get({"path": 0, "llb": 0, **prices}, "proof.witness.prices." + x, int, float))
                            for x in ("bytes", "products", "path", "llb"))
    if not (0 <= by <= 1 and 0 <= again <= 1 and by + again <= 1 and 0 <= path <= 1 and 0 <= llb <= 1 and path + llb <= 1):
        raise Refused("proof.witness.prices: found %r, %r, %r and %r, expected shares of 1" % (by, again, path, llb))
    copies = first.copies(witness.get("path", []), launch, weights + 2 * io - first.input, path, llb)
    if copies is not None:
        add("copies", copies)
    elif path or llb or witness.get("path"):
        raise Refused("proof.witness: a path or its price, where no copies can be counted")
    stored = sum(w.output / m.efficiency for w in works)
    if stored > 0:
        behind = stored if m.gb is not None else stored + sum(w.input / m.efficiency for w in works)
        add("launch, then stores", launch + m.latency + behind / m.ddr)
    if len(distinct) == 1:
        each = m.each if m.gb is not None else m.latency
        loads, before = first.loads()
        if m.in_flight > 1:  # latencies overlap, but the first's
            loads, before = min(loads, 1), min(before, 1)
        before += stored > 0  # the last store, when all loads have ended
        ends = m.latency + (m.near if m.gb is not None and loads else 0.0)
        add("loads in a row", max(loads * each + (k * weights + k * (first.input + first.rows) / m.efficiency) / m.ddr + ends,
                                  before * each + (k * weights + moved) / m.ddr))
    start, after = last.outer(launch)
    release = [max(s, k * n / m.ddr) for s, n in zip(start, last.releases())]
    add("loads, then chain", last.chain(release, after))
    behind = [sum(s for _, s in loads_row[i + 1:]) for i in range(len(loads_row))]
    add("loads, then series", max([release[c] + behind[i] for i, (c, _) in enumerate(loads_row[:-1])], default=0.0))
    room = m.passing * m.holding + (m.gb or 0)
    at, longest, cut = launch, 0.0, None
    for (op, seconds), bytes in zip(late_row[:-1], last.late(late_row)):
        at += seconds
        if bytes > room and at + k * (bytes - room) / m.ddr > longest:
            longest, cut = at + k * (bytes - room) / m.ddr, op
    ddr = (k * weights + moved) / m.ddr
    kernels = by * ddr
    for n in distinct:
        w, share = of[n], busy.count(n) / k
        none = [0.0] * w.count
        total = w.total()
        work = max(max(total), sum(s for _, s in rows[n]), w.chain(none, none))
        tables = w.tables(k, by, again)
        kernels += share * ((1 - by - again) * work + again * total[MATRIX] + w.kernels(tables, (1 - by) * launch))
    found = get(claim, "bound.terms", list)
    claimed = {get(t, "bound.terms[%d].term" % i, str): float(get(t, "bound.terms[%d].bound_s" % i, int, float))
               for i, t in enumerate(found)}
    if len(distinct) == 1 and launch:  # each number of launches by itself
        part = by / (by + again) if by + again else 1.0
        tables = w.tables(k, part, 1 - part)
        kernels = max(kernels, w.launches(tables, len(w.marked), work, ddr, total[MATRIX], part, claimed.get("kernels", 0.0)))
        if cut is not None:
            tables, before = w.tables(k, 1.0, 0.0), 0
            while before < len(w.marked) and w.passes(w.marked[before][0], cut):
                before += 1
            longest = max(longest, w.launches(tables, before, longest - launch, ddr, 0.0, 1.0, claimed.get("series, then loads", 0.0)))
    add("series, then loads", longest)
    add("kernels", kernels)

    same("bound.terms", len(found), len(terms))
    for i, (name, resource, seconds) in enumerate(terms):
        at = "bound.terms[%d]." % i
        same(at + "term", get(found[i], at + "term", str), name)
        same(at + "resource", get(found[i], at + "resource", str), resource)
        same(at + "bound_s", get(found[i], at + "bound_s", int, float), seconds)
    bound = max(t["bound_s"] for t in found)
    most = next(t for t in found if t["bound_s"] == bound)
    same("bound.certified_lower_bound_s", get(claim, "bound.certified_lower_bound_s", int, float), bound)
    for x in "term", "resource":
        same("bound." + x, get(claim, "bound." + x, str), most[x])
    parts = get(claim, "bound.parts", list)
    if any(get(p, "bound.parts.part_s", int, float) < 0 or not get(p, "bound.parts.part", str) for p in parts):
        raise Refused("bound.parts: a part is negative or has no name")
    same("bound.parts", sum(p["part_s"] for p in parts), float(bound))
    same("certified_lower_bound_s", get(c, "certified_lower_bound_s", int, float), bound)
    latency = get(c, "latency_s", int, float)
    if latency < bound:
        raise Refused("latency_s: found %r, less than the bound of %r" % (latency, bound))
    same("throughput_per_s", get(c, "throughput_per_s", int, float), batch / latency)
    same("gap", get(c, "gap", int, float), latency / bound - 1)
    return "%s (%s) on %s (%s), batch %d: no schedule takes less than %.6f ms (%s); this one's %.6f ms are %.1f %% more" % (
        network.get("model"), network["fingerprint"], chip, seen, batch, bound * 1e3, most["term"],
        latency * 1e3, 100 * (latency / bound - 1))


def compare(w, claim, field):
    """Compares what a share takes with what the file says, and gives its series."""
    loads, before = w.loads()
    for name, n in (("batch", w.n), ("weight_bytes", w.all_weights), ("row_bytes", w.rows), ("input_bytes", w.input),
                    ("output_bytes", w.output), ("loads", loads), ("loads_before_results", before)):
        same(field + "." + name, get(claim, field + "." + name, int, float), n)
    ops = get(claim, field + ".operators", list)
    same(field + ".operators", len(ops), w.count)
    for op, x in zip(w.g.ops, ops):
        at = "%s.operators[%d]." % (field, op.id)
        same(at + "name", get(x, at + "name", str), op.name)
        same(at + "needed_elements", get(x, at + "needed_elements", int), sum(w.size[o] for o in op.outputs))
        for name, t in zip(("matrix_s", "vector_s", "special_s", "behind_s"), w.ops[op.id] + [w.tail[op.id]]):
            found = get(x, at + name, int, float)
            if abs(found - t) > 1e-9 * t + 1e-15:
                raise Refused("%s: found %r, expected %r" % (at + name, found, t))
    return w.series(get(claim, field + ".series", list), field + ".series")


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if len(sys.argv) > 1 else 2
    status = 0
    for path in sys.argv[1:]:
        try:
            print("%s: holds: %s" % (path, check(path)))
        except Refused as e:
            status = 1
            print("%s: refused: %s" % (path, e))
        except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, ZeroDivisionError) as e:
            status = 1
            print("%s: refused: %s: %s" % (path, type(e).__name__, e))
    return status


if __name__ == "__main__":
    sys.exit(main())
