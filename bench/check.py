#!/usr/bin/env python3
"""Check answers to the benchmark: check.py [DIR] checks all that best.csv lists.

Standard library only; shares nothing with dsasched. For each answer it says ok, or the first
rule that is broken, and ends with status 1 if there is one."""
import csv
import json
import os
import sys


class Broken(Exception):
    pass


def need(ok, text):
    if not ok:
        raise Broken(text)


def buffers(path):
    with open(path) as f:
        rows = list(csv.DictReader(f))
    out = {}
    for r in rows:
        need(r["id"] not in out, f"buffer {r['id']} is there twice")
        out[r["id"]] = {k: int(v) for k, v in r.items() if k != "id" and v not in ("", None)}
    return out


def apart(placed):
    """No two buffers that live at once share a byte."""
    rows = sorted(placed.items(), key=lambda r: r[1]["lower"])
    for i, (a, x) in enumerate(rows):
        need(x["offset"] >= 0, f"{a} lies at {x['offset']}")
        for b, y in rows[i + 1:]:
            if y["lower"] >= x["upper"]:
                break
            need(x["offset"] + x["size"] <= y["offset"] or y["offset"] + y["size"] <= x["offset"],
                 f"{a} and {b} share bytes")


def same(problem, placed):
    for name, b in placed.items():
        need(name in problem, f"{name} is no buffer of the instance")
        need("offset" in b, f"{name} has no offset")
        for k in ("lower", "upper", "size"):
            need(b[k] == problem[name][k], f"{name}: {k} is {b[k]}, in the instance {problem[name][k]}")


def allocation(instance, answer):
    problem, placed = buffers(instance), buffers(answer)
    same(problem, placed)
    need(len(placed) == len(problem), f"{len(placed)} of {len(problem)} buffers are placed")
    apart(placed)
    return max(b["offset"] + b["size"] for b in placed.values())


def spilling(instance, answer):
    problem, placed = buffers(instance), buffers(answer)
    capacity = int(instance.split(".")[-2])
    same(problem, placed)
    apart(placed)
    for name, b in placed.items():
        need(b["offset"] + b["size"] <= capacity, f"{name} ends behind the capacity of {capacity}")
    return sum(2 * b["size"] for name, b in problem.items() if name not in placed)


def order(instance, answer):
    with open(instance) as f:
        p = json.load(f)
    with open(answer) as f:
        steps = json.load(f)["steps"]
    sg = p["subgraphs"]
    reads = {}
    readers = {}
    for a in p["arcs"]:
        for j, (lo, hi) in enumerate(a["reads"]):
            for i in range(lo, hi):
                reads.setdefault((a["to"], j), set()).add((a["from"], i))
                readers[a["from"], i] = readers.get((a["from"], i), 0) + 1
    size = {(s, i): x["output_bytes"] for s, x in enumerate(sg) for i in range(x["instances"])}
    near, far, ran, cost = set(), set(), set(), 0
    for n, step in enumerate(steps):
        for t in map(tuple, step["store"]):
            need(t in near, f"step {n} stores {t}, which is not near")
            cost += 0 if t in far else size[t] * p["store_cost_per_byte"]
            near.remove(t)
            far.add(t)
        for t in map(tuple, step["load"]):
            need(t in far and t not in near, f"step {n} loads {t}, which is not far alone")
            cost += size[t] * p["load_cost_per_byte"]
            near.add(t)
        t = tuple(step["run"])
        need(t in size, f"step {n} runs {t}, which is no instance")
        need(t not in ran, f"step {n} runs {t} again")
        for r in reads.get(t, ()):
            need(r in near, f"step {n} runs {t}, whose input {r} is not near")
        used = sum(size[x] for x in near) + size[t] + sg[t[0]]["workspace_bytes"]
        need(used <= p["capacity_bytes"], f"step {n} takes {used} of {p['capacity_bytes']} bytes")
        ran.add(t)
        near.add(t)
        for r in reads.get(t, ()):
            readers[r] -= 1
            if readers[r] == 0:
                near.discard(r)
                far.discard(r)
        if t not in readers:  # a result of the whole leaves at once
            near.discard(t)
    need(len(ran) == len(size), f"{len(ran)} of {len(size)} instances run")
    return cost


def project(path):
    after, work, capacity, part = {}, {}, [], ""
    with open(path) as f:
        for line in f:
            words = line.split()
            if line.startswith(("PRECEDENCE", "REQUESTS", "RESOURCEAV")):
                part = line[:3]
            elif words and all(w.isdigit() for w in words):
                v = [int(w) for w in words]
                if part == "PRE":
                    after[v[0]] = v[3:]
                elif part == "REQ":
                    work[v[0]] = (v[2], v[3:])
                elif part == "RES":
                    capacity = v
    return after, work, capacity


def rcpsp(instance, answer):
    after, work, capacity = project(instance)
    with open(answer) as f:
        start = json.load(f)["start"]
    need(len(start) == len(work), f"{len(start)} starts for {len(work)} jobs")
    start = dict(zip(sorted(work), start))
    for j, s in start.items():
        need(isinstance(s, int) and s >= 0, f"job {j} starts at {s}")
        for k in after[j]:
            need(start[k] >= s + work[j][0], f"job {k} starts before job {j} has ended")
    for t in set(start.values()):
        for r, c in enumerate(capacity):
            used = sum(work[j][1][r] for j, s in start.items() if s <= t < s + work[j][0])
            need(used <= c, f"{used} of {c} of resource {r + 1} are in use at {t}")
    return max(s + work[j][0] for j, s in start.items())


CHECKS = {"allocation": (allocation, "csv", "csv"), "spilling": (spilling, "csv", "csv"),
          "order": (order, "json", "json"), "rcpsp": (rcpsp, "sm", "json")}


def main(root):
    bad = 0
    with open(os.path.join(root, "best.csv")) as f:
        rows = list(csv.DictReader(f))
    for r in rows:
        check, ending, answer = CHECKS[r["kind"]]
        try:
            value = check(os.path.join(root, r["kind"], f"{r['instance']}.{ending}"),
                          os.path.join(root, "answers", r["kind"], f"{r['instance']}.{answer}"))
            need(value == float(r["best"]), f"costs {value}, best.csv says {r['best']}")
            need(float(r["bound"]) <= value, f"costs {value}, below the bound {r['bound']}")
            print(f"ok {r['kind']} {r['instance']}: {value}")
        except (Broken, OSError, KeyError, ValueError, TypeError) as e:
            bad += 1
            print(f"broken {r['kind']} {r['instance']}: {e}")
    return 1 if bad else 0


sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.abspath(__file__))))
