#!/usr/bin/env python3
"""Write the generated instances of the benchmark: generate.py KIND NUMBER SEED > FILE.

KIND is allocation, spilling, order, binding, groups, partition or tiling, NUMBER how many
buffers, stages, activities, nodes, atoms, layers or (tiling) times the extents double. tiling takes a name of
KERNELS and one of MACHINES in place of numbers, too. The same arguments give the same bytes.
generate.py all DIR writes the part of the frozen set that is generated."""
import json
import os
import random
import sys


def allocation(n, seed):
    rng = random.Random(f"allocation {n} {seed}")
    lines = ["id,lower,upper,size"]
    for i in range(n):
        lower = rng.randrange(2 * n)
        upper = lower + 1 + min(rng.randrange(1, n + 2), rng.randrange(1, n + 2))
        lines.append(f"b{i},{lower},{upper},{rng.randrange(1, 65) * rng.choice((1, 1, 4))}")
    return "\n".join(lines) + "\n"


def spilling(n, seed):
    return allocation(n, f"{seed} spilled")


def order(n, seed):
    """Stages of ever fewer instances that read the one before with overlap, and some the one before that."""
    rng = random.Random(f"order {n} {seed}")
    stages = [rng.choice((2, 4))]
    while len(stages) < n:
        stages.append(min(16, stages[-1] * rng.choice((1, 2))))
    stages.reverse()
    subgraphs, arcs, need = [], [], 1
    for i, k in enumerate(stages):
        subgraphs.append({"name": f"stage{i}", "instances": k, "output_bytes": rng.randrange(1, 9),
                          "workspace_bytes": rng.randrange(0, 5)})
        takes = subgraphs[i]["output_bytes"] + subgraphs[i]["workspace_bytes"]
        for back in (1, 2):
            if back <= i and (back == 1 or rng.randrange(2)):
                before = stages[i - back]
                ratio = before // k
                reads = [[ratio * j, min(before, ratio * j + ratio + 1)] for j in range(k)]
                arcs.append({"from": i - back, "to": i, "reads": reads})
                takes += max(hi - lo for lo, hi in reads) * subgraphs[i - back]["output_bytes"]
        need = max(need, takes)
    text = {"name": f"stages-{n}-{seed}", "capacity_bytes": need + rng.randrange(0, 2), "store_cost_per_byte": 1,
            "load_cost_per_byte": 1, "subgraphs": subgraphs, "arcs": arcs}
    return json.dumps(text, indent=1) + "\n"


def binding(n, seed):
    """A chain with some arcs that skip, a grid, or a sparse graph, by the seed; labels that cost unlike ones more."""
    rng = random.Random(f"binding {n} {seed}")
    wide = max(2, round(n ** 0.5))
    pairs = {(i, i + 1) for i in range(n - 1) if seed % 3 != 1 or (i + 1) % wide}
    if seed % 3 == 1:
        pairs |= {(i, i + wide) for i in range(n - wide)}
    else:
        far = 3 if seed % 3 == 0 else n
        pairs |= {(i, min(n - 1, i + rng.randrange(2, 2 + far))) for i in range(0, n - 2, 2)}
    nodes = []
    for i in range(n):
        k = rng.randrange(3, 9)
        nodes.append({"name": f"n{i}", "labels": [str(x) for x in range(k)], "cost": [rng.randrange(1000) for _ in range(k)]})
    edges = []
    for i, j in sorted(pairs):
        rows = [[rng.randrange(600) if rng.randrange(3) else 0 for _ in nodes[j]["cost"]] for _ in nodes[i]["cost"]]
        edges.append({"from": i, "to": j, "cost": rows})
    given = [x["cost"].index(min(x["cost"])) for x in nodes]
    return json.dumps({"name": f"binding-{n}-{seed}", "nodes": nodes, "edges": edges, "given": given}) + "\n"


def groups(n, seed):
    """Atoms that read some of those before, and sets of them that hang together, each cheaper than its atoms."""
    rng = random.Random(f"groups {n} {seed}")
    back = max(6, n // 5)
    reads = [sorted(rng.sample(range(max(0, a - back), a), min(a, rng.randrange(1, 4)))) for a in range(n)]
    alone = [rng.randrange(50, 100) for _ in range(n)]
    sets = {(a,) for a in range(n)}
    near = [set(r) for r in reads]
    for a, r in enumerate(reads):
        for b in r:
            near[b].add(a)
    for _ in range(12 * n):
        s = {rng.randrange(n)}
        for _ in range(rng.randrange(1, 7)):
            s.add(rng.choice(sorted(set().union(*(near[a] for a in s)) - s) or sorted(s)))
        sets.add(tuple(sorted(s)))
    list = [{"atoms": s, "cost": sum(alone[a] for a in s) * (100 if len(s) == 1 else rng.randrange(55, 100)) // 100} for s in sorted(sets)]
    given = [list.index({"atoms": (a,), "cost": alone[a]}) for a in range(n)]
    return json.dumps({"name": f"groups-{n}-{seed}", "reads": reads, "groups": list, "given": given}) + "\n"


def partition(n, seed):
    """Layers that read some of those before, for a pipeline; every other seed has backward layers, too. Some layers
    share weights, and some of the first and last run on CPUs alone."""
    rng = random.Random(f"partition {n} {seed}")
    cpus, color, nodes, edges = seed % 3, {}, [], []
    out = [rng.randrange(1, 30) for _ in range(2 * n)]
    reads = [sorted(rng.sample(range(max(0, v - 4), v), min(v, rng.choice((1, 1, 2))))) for v in range(n)]
    for v in range(n):
        if v and rng.randrange(6) == 0:  # with the layer before
            color[v - 1] = color.get(v - 1, v - 1)
            color[v] = color[v - 1]
    def node(i, back):
        time = rng.randrange(5, 100)
        end = 10 * (i % n) < n * (cpus > 0) or 10 * (i % n) >= n * (9 if cpus > 1 else 10)
        x = {"id": i, "supportedOnFpga": not end or rng.randrange(2) > 0, "cpuLatency": time * rng.randrange(3, 9),
             "fpgaLatency": time, "isBackwardNode": back, "size": rng.randrange(1, 64)}
        c = i % n if back else color.get(i, i if seed % 2 else None)
        return x if c is None else x | {"colorClass": color.get(c, c)}
    for v in range(n):
        nodes.append(node(v, False))
        edges += [(u, v) for u in reads[v]]
    if seed % 2:
        for v in range(n):
            nodes.append(node(n + v, True) | {"supportedOnFpga": nodes[v]["supportedOnFpga"]})
            edges += [(v, n + v)] + [(n + v, n + u) for u in reads[v]]
    devices = rng.randrange(2, 4 + n // 20)
    text = {"name": f"partition-{n}-{seed}", "maxFPGAs": devices, "maxCPUs": cpus,
            "maxSizePerFPGA": 3 * sum(x["size"] for x in nodes) // (2 * devices) + 128, "nodes": nodes,
            "edges": [{"sourceId": u, "destId": v, "cost": out[u]} for u, v in edges]}
    return json.dumps(text) + "\n"


# A cluster of machines as their files in hardware/presets have them, rounded; in picoseconds, and bytes per microsecond.
FIELDS = ("cores unit_reduction unit_columns row_ps load_ps fill_ps l1_bytes llb_bytes l1_bytes_per_us llb_bytes_per_us "
          "ddr_bytes_per_us l1_latency_ps ddr_latency_ps sync_ps broadcast").split()
MACHINES = {
    "a100": (108, 16, 16, 177, 2837, 22695, 157440, 41943040, 90240, 7200000, 1555000, 140000, 250000, 1000000, False),
    "ascend910": (32, 16, 16, 63, 667, 32000, 983040, 33554432, 128000, 4100000, 1200000, 150000, 200000, 200000, False),
    "stcp920": (8, 64, 32, 1000, 8000, 25000, 1245184, 8388608, 64000, 256000, 27000, 76000, 150000, 100000, True),
    "tpu-v4i": (4, 128, 128, 952, 60952, 0, 3932160, 134217728, 2048000, 3072000, 614000, 0, 0, 0, False),
    "v100": (80, 16, 16, 327, 2614, 20915, 92160, 6291456, 97920, 3100000, 900000, 140000, 280000, 1000000, False),
    "wormhole-n150": (64, 16, 16, 600, 2000, 5000, 1194624, 0, 28100, 0, 267000, 70000, 270000, 2000000, True)}
# Kernels of networks at a batch: count, rows, columns, reduction, and a convolution's window, stride and output width.
KERNELS = {
    "resnet50-conv1-b4": (1, 50176, 64, 147, (7, 7, 2, 112)), "resnet50-conv3x3-b4": (1, 12544, 64, 576, (3, 3, 1, 56)),
    "resnet50-down-b8": (1, 1568, 512, 4608, (3, 3, 2, 14)), "vgg16-conv3-b1": (1, 3136, 256, 2304, (3, 3, 1, 56)),
    "bert-ffn-b8": (1, 1024, 3072, 768, None), "bert-scores-b8": (96, 128, 128, 64, None),
    "gpt3-ffn": (1, 2048, 49152, 12288, None), "llama2-7b-decode": (1, 32, 11008, 4096, None)}


def tiling(n, seed):
    """A kernel whose extents are about 2 to the n, on a machine; or one of KERNELS on one of MACHINES."""
    if n in KERNELS:
        name, (count, rows, columns, reduction, w) = f"{n} on {seed}", KERNELS[n]
        machine, sizes = seed, (2, 2, 2)
    else:
        rng = random.Random(f"tiling {n} {seed}")
        machine = rng.choice(sorted(MACHINES))
        name = f"tiling-{n}-{seed} on {machine}"
        count = rng.choice((1, 1, rng.randrange(2, 17)))
        rows, columns, reduction = (rng.randrange(1 << n - 1, 1 << n + 1) for _ in range(3))
        w, sizes = None, rng.choice(((1, 1, 1), (2, 2, 2), (1, 1, 4)))
        if rng.randrange(3) == 0:
            side, stride = rng.choice((1, 3, 5)), rng.choice((1, 2))
            across = rng.randrange(4, 1 << n // 2 + 1)
            w, rows = (side, side, stride, across), -(-rows // across) * across
            reduction = max(1, reduction // side ** 2) * side ** 2
    product = dict(zip("count rows columns reduction row_bytes column_bytes result_bytes".split(), (count, rows, columns, reduction) + sizes))
    if w:
        product["window"] = dict(zip("height width stride output_width".split(), w))
    return json.dumps({"name": name, "product": product, "machine": dict(zip(FIELDS, MACHINES[machine]))}, indent=1) + "\n"


KINDS = {"allocation": (allocation, "csv", (10, 60, 200)), "spilling": (spilling, "csv", (10, 25, 60)),
         "order": (order, "json", (3, 4, 6)), 
         "binding": (binding, "json", (10, 60, 400)), "groups": (groups, "json", (10, 60, 200)),
         "partition": (partition, "json", (10, 40, 120)), "tiling": (tiling, "json", (6, 9, 12))}
# Of these the rest of the 20 is of networks: written by dsasched, or listed here.
SEEDS = {"binding": range(10), "groups": range(10), "tiling": range(12)}
NAMED = [("resnet50-conv1-b4", "stcp920"), ("resnet50-conv3x3-b4", "a100"), ("resnet50-down-b8", "tpu-v4i"), ("vgg16-conv3-b1", "wormhole-n150"),
         ("bert-ffn-b8", "stcp920"), ("bert-scores-b8", "a100"), ("gpt3-ffn", "tpu-v4i"), ("llama2-7b-decode", "a100")]


def load(csv):
    """The most bytes that live at once."""
    rows = [line.split(",") for line in csv.split()[1:]]
    return max(sum(int(s) for _, lo, up, s in rows if int(lo) <= t < int(up)) for t in {int(r[1]) for r in rows})


def main(args):
    if len(args) == 2 and args[0] == "all":
        for kind, (make, ending, sizes) in KINDS.items():
            os.makedirs(os.path.join(args[1], kind), exist_ok=True)
            seeds = SEEDS.get(kind, range(20))
            made = [(f"g{n}-{k}", n, k) for k in seeds for n in (sizes[k * 3 // len(seeds)],)]
            if kind == "tiling":
                made += [(f"{k}-{m}", k, m) for k, m in NAMED]
            for name, n, k in made:
                text = make(n, k)
                if kind == "spilling":  # the capacity is in the name
                    name += f".{load(text) * 3 // 5 + 60}"
                with open(os.path.join(args[1], kind, f"{name}.{ending}"), "w") as f:
                    f.write(text)
        return
    if len(args) != 3 or args[0] not in KINDS:
        sys.exit(__doc__)
    sys.stdout.write(KINDS[args[0]][0](*args[1:] if args[1] in KERNELS else map(int, args[1:])))


main(sys.argv[1:])
