#!/usr/bin/env python3
"""Write the generated instances of the benchmark: generate.py KIND NUMBER SEED > FILE.

KIND is allocation, spilling, order or rcpsp, NUMBER how many buffers, activities or stages
there are. The same arguments give the same bytes. generate.py all DIR writes the frozen set."""
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


def rcpsp(n, seed):
    """A project in PSPLIB's format, with two resources and a source and a sink besides."""
    rng = random.Random(f"rcpsp {n} {seed}")
    after = [[] for _ in range(n + 2)]
    for j in range(1, n + 1):
        for i in sorted(rng.sample(range(max(1, j - 8), j), min(rng.randrange(0, 3), j - max(1, j - 8)))):
            after[i].append(j)
    has_before = {j for succ in after for j in succ}
    after[0] = [j for j in range(1, n + 1) if j not in has_before]
    for i in range(1, n + 1):
        after[i] = after[i] or [n + 1]
    bar = "*" * 72
    out = [bar, "file with basedata            : none", f"initial value random generator: {seed}", bar,
           "projects                      :  1", f"jobs (incl. supersource/sink ):  {n + 2}",
           f"horizon                       :  {10 * n}", "RESOURCES", "  - renewable                 :  2   R",
           "  - nonrenewable              :  0   N", "  - doubly constrained        :  0   D", bar,
           "PROJECT INFORMATION:", "pronr.  #jobs rel.date duedate tardcost  MPM-Time",
           f"    1     {n}      0       0        0        0", bar, "PRECEDENCE RELATIONS:",
           "jobnr.    #modes  #successors   successors"]
    for i, succ in enumerate(after):
        out.append(f"{i + 1:4} {1:8} {len(succ):10}      " + "".join(f"{j + 1:5}" for j in succ))
    out += [bar, "REQUESTS/DURATIONS:", "jobnr. mode duration  R 1  R 2", "-" * 72]
    for i in range(n + 2):
        inner = 0 < i <= n
        d, a, b = (rng.randrange(1, 11), rng.randrange(0, 8), rng.randrange(0, 8)) if inner else (0, 0, 0)
        out.append(f"{i + 1:3} {1:6} {d:5} {a:8} {b:4}")
    out += [bar, "RESOURCEAVAILABILITIES:", "  R 1  R 2", "   12   12", bar]
    return "\n".join(out) + "\n"


KINDS = {"allocation": (allocation, "csv", (10, 60, 200)), "spilling": (spilling, "csv", (10, 25, 60)),
         "order": (order, "json", (3, 4, 6)), "rcpsp": (rcpsp, "sm", (8, 20, 60))}


def load(csv):
    """The most bytes that live at once."""
    rows = [line.split(",") for line in csv.split()[1:]]
    return max(sum(int(s) for _, lo, up, s in rows if int(lo) <= t < int(up)) for t in {int(r[1]) for r in rows})


def main(args):
    if len(args) == 2 and args[0] == "all":
        for kind, (make, ending, sizes) in KINDS.items():
            os.makedirs(os.path.join(args[1], kind), exist_ok=True)
            for k in range(20):
                n = sizes[k * 3 // 20]
                text = make(n, k)
                name = f"g{n}-{k}"
                if kind == "spilling":  # the capacity is in the name
                    name += f".{load(text) * 3 // 5 + 60}"
                with open(os.path.join(args[1], kind, f"{name}.{ending}"), "w") as f:
                    f.write(text)
        return
    if len(args) != 3 or args[0] not in KINDS:
        sys.exit(__doc__)
    sys.stdout.write(KINDS[args[0]][0](int(args[1]), int(args[2])))


main(sys.argv[1:])
