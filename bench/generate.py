#!/usr/bin/env python3
"""Write the generated instances of the benchmark: generate.py KIND NUMBER SEED > FILE.

KIND is allocation, spilling, order, binding, groups or partition, NUMBER how many buffers,
stages, nodes, atoms or layers. The same arguments give the same bytes.
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


KINDS = {"allocation": (allocation, "csv", (10, 60, 200)), "spilling": (spilling, "csv", (10, 25, 60)),
         "order": (order, "json", (3, 4, 6)), 
         "binding": (binding, "json", (10, 60, 400)), "groups": (groups, "json", (10, 60, 200)),
         "partition": (partition, "json", (10, 40, 120))}
# Of these the rest of the 20 is of networks: written by dsasched, or listed here.
SEEDS = {"binding": range(10), "groups": range(10)}


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
            for name, n, k in made:
                text = make(n, k)
                if kind == "spilling":  # the capacity is in the name
                    name += f".{load(text) * 3 // 5 + 60}"
                with open(os.path.join(args[1], kind, f"{name}.{ending}"), "w") as f:
                    f.write(text)
        return
    if len(args) != 3 or args[0] not in KINDS:
        sys.exit(__doc__)
    sys.stdout.write(KINDS[args[0]][0](*map(int, args[1:])))


main(sys.argv[1:])
