#!/usr/bin/env python3
"""Check answers to the benchmark: check.py [DIR [KIND]] checks all that best.csv lists.

Standard library only; shares nothing with dsasched. For each answer it says ok, or the first
rule that is broken, and ends with status 1 if there is one. Instances must be as SHA256SUMS has
them. Of a whole network it does not simulate: see network()."""
import csv
import hashlib
import importlib.util
import json
import math
import os
import re
import sys
import tempfile


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
    return play(load(instance), load(answer)["steps"], ())


def joint(instance, answer):
    """Labels in picoseconds, and moves of what has no label with scope LLB."""
    p, label = load(instance), choice(answer)
    nodes, edges = p["labels"]["nodes"], p["labels"]["edges"]
    ns = marked(nodes, edges, label)
    ids = [(s, i) for s, x in enumerate(p["order"]["subgraphs"]) for i in range(x["instances"])]
    need(len(ids) == len(nodes), f"{len(nodes)} nodes for {len(ids)} instances")
    away = {t for t, n, i in zip(ids, nodes, label) if n["labels"][i].split()[-1] == "LLB"}
    moved = play(p["order"], load(answer)["steps"], away)
    return math.ceil(1000 * (ns + moved * p["nanoseconds_per_cost"]) - 1e-3)


def play(p, steps, away):
    """The cost of steps; outputs in away are near only while they are made or read."""
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
            need(r in near or r in away and r in ran, f"step {n} runs {t}, whose input {r} is not near")
        used = sum(size[x] for x in near.union(away.intersection(reads.get(t, ())) if away else ()))
        used += size[t] + sg[t[0]]["workspace_bytes"]
        need(used <= p["capacity_bytes"], f"step {n} takes {used} of {p['capacity_bytes']} bytes")
        ran.add(t)
        if t not in away:
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


def load(path):
    with open(path) as f:
        return json.load(f)


def choice(answer):
    numbers = load(answer)["choice"]
    need(all(type(c) is int and c >= 0 for c in numbers), "a choice is no number from 0 on")
    return numbers


def binding(instance, answer):
    p = load(instance)
    return marked(p["nodes"], p["edges"], choice(answer))


def marked(nodes, edges, label):
    need(len(label) == len(nodes), f"{len(label)} choices for {len(nodes)} nodes")
    for i, n in zip(label, nodes):
        need(i < len(n["cost"]), f"{n['name']} has choice {i} of {len(n['cost'])}")
    return (sum(n["cost"][i] for i, n in zip(label, nodes)) +
            sum(e["cost"][label[e["from"]]][label[e["to"]]] for e in edges))


def groups(instance, answer):
    p, done, cost = load(instance), set(), 0
    for k in choice(answer):
        need(k < len(p["groups"]), f"group {k} of {len(p['groups'])}")
        atoms = set(p["groups"][k]["atoms"])
        need(not atoms & done, f"group {k} has atoms {sorted(atoms & done)}, which have run")
        done |= atoms
        for a in atoms:
            late = set(p["reads"][a]) - done
            need(not late, f"group {k} runs before atoms {sorted(late)}, which its atom {a} reads")
        cost += p["groups"][k]["cost"]
    need(len(done) == len(p["reads"]), f"{len(done)} of {len(p['reads'])} atoms run")
    return cost


def partition(instance, answer):
    p, devices = load(instance), load(answer)["devices"]
    nodes, tails = {x["id"]: x for x in p["nodes"]}, {}
    need(len(devices) == p["maxFPGAs"] + p["maxCPUs"], f"{len(devices)} devices of {p['maxFPGAs']} and {p['maxCPUs']}")
    on = {}
    for d, ids in enumerate(devices):
        for i in ids:
            need(i in nodes, f"node {i} is not in the graph")
            need(i not in on, f"node {i} is there twice")
            on[i] = d
    need(len(on) == len(nodes), f"{len(on)} of {len(nodes)} nodes are on a device")
    colors, forward = {}, set()
    for i, x in nodes.items():
        need(x["supportedOnFpga"] or on[i] >= p["maxFPGAs"], f"node {i} runs on CPUs alone")
        c = x.get("colorClass")
        if c is not None:
            need(colors.setdefault(c, on[i]) == on[i], f"node {i} is not where the others of colour {c} are")
            if not x["isBackwardNode"]:
                forward.add(c)
    after = {i: set() for i in nodes}
    row = {d: set() for d in range(len(devices))}  # devices before each
    for e in p["edges"]:
        u, v = e["sourceId"], e["destId"]
        tails[u] = e["cost"]
        after[u].add(v)
        if nodes[u]["isBackwardNode"] and not {nodes[u].get("colorClass"), nodes[v].get("colorClass")} <= forward:
            u, v = v, u
        elif nodes[v]["isBackwardNode"]:
            continue
        if on[u] != on[v]:
            row[on[v]].add(on[u])
    most = 0
    for d, ids in enumerate(devices):
        for back in False, True:
            mine = {i for i in ids if nodes[i]["isBackwardNode"] == back}
            out = {v for i in mine for v in after[i] if nodes[v]["isBackwardNode"] == back} - mine
            seen = set(out)
            while out:
                out = {v for u in out for v in after[u] if nodes[v]["isBackwardNode"] == back} - seen
                seen |= out
            need(not seen & mine, f"a path leaves device {d} and comes back to nodes {sorted(seen & mine)}")
        if d >= p["maxFPGAs"]:
            most = max(most, sum(nodes[i]["cpuLatency"] for i in ids))
            continue
        bytes = sum(nodes[i]["size"] for i in ids)
        need(bytes <= p["maxSizePerFPGA"], f"device {d} holds {bytes} of {p['maxSizePerFPGA']} bytes")
        crosses = [u for u in tails if len({on[v] == d for v in after[u] | {u}}) == 2]
        most = max(most, sum(nodes[i]["fpgaLatency"] for i in ids) + sum(tails[u] for u in crosses))
    while row:
        first = [d for d in row if not row[d] & set(row)]
        need(first, f"devices {sorted(row)} wait for each other")
        for d in first:
            del row[d]
    return most


def up(a, b):
    return -(-a // b)


def certificates():
    """scripts/check_certificate.py, a program that shares nothing with dsasched either: operators, and the bound."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "scripts", "check_certificate.py")
    spec = importlib.util.spec_from_file_location("check_certificate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def network(instance, answer, claimed):
    """Checks that a schedule is of the instance's network, machine and batch; that each operator runs once for each
    element, in an order that its inputs allow; that values lie within their memories, and none on another that lives at
    the same time; and that the bound is what the instance's graph and machine give.

    What it does not compute: the time. That is for `dsasched simulate`, which is the referee; here it must only agree
    with the bound. Of the L1 it knows the least that a value takes of a core, not what passes through besides."""
    c = certificates()
    with open(instance) as f:
        text = f.read()
    p, s = json.loads(text, parse_float=c.number), load(answer)
    need(s["hardware"] == p["hardware"], f"is for {s['hardware']}")
    need(s["batch"] == p["batch"] and "division" not in s, "has another batch, or clusters that divide layers")
    m = c.Machine(p["proof"]["machine"])
    work = [sum(x["iterations"] * s["schedules"][x["schedule"]]["batch"] for x in plan) for plan in s["clusters"]]
    even = [p["batch"] // m.clusters + (i < p["batch"] % m.clusters) for i in range(m.clusters)]
    need(sorted(work, reverse=True) == even, f"clusters have {work} elements, expected {even}")
    for plan in s["schedules"]:
        schedule(c, p, m, plan)
    latency, bound = claimed * 1e-12, p["bound"]["certified_lower_bound_s"]
    facts = {"latency_s": latency, "throughput_per_s": p["batch"] / latency, "gap": latency / bound - 1, "certified_lower_bound_s": float(bound)}
    text = text.replace('"dsasched-bench-network"', '"dsasched-certificate"', 1).replace('"version": 1', '"version": 8', 1)
    text = text.replace("{", "{" + json.dumps(facts)[1:-1] + ",", 1)  # numbers stay as they are written
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as f:
        f.write(text)
    try:
        c.check(f.name)
    except c.Refused as e:
        raise Broken(f"the bound: {e}")
    finally:
        os.remove(f.name)
    return claimed


def linear(one, two, n, found, where):
    """What is found is the network at n elements, of which one and two are given."""
    if isinstance(one, dict) and isinstance(found, dict):
        need(one.keys() == found.keys() == two.keys(), f"{where}: other fields")
        for key in one:
            linear(one[key], two[key], n, found[key], f"{where}.{key}")
    elif isinstance(one, list) and isinstance(found, list):
        need(len(one) == len(found) == len(two), f"{where}: {len(found)} items, expected {len(one)}")
        for i, x in enumerate(zip(one, two, found)):
            linear(x[0], x[1], n, x[2], f"{where}[{i}]")
    elif type(one) is int and type(found) is int:
        need(found == one + (two - one) * (n - 1), f"{where}: {found}, expected {one + (two - one) * (n - 1)}")
    else:
        need(one == found, f"{where}: {found}, expected {one}")


def schedule(c, p, m, s):
    graphs = {g["batch"]: g["graph"] for g in p["proof"]["graphs"]}
    same = graphs.get(s["batch"])
    linear(same or graphs[1], same or graphs[2], s["batch"], s["graph"], "graph")
    g = c.Graph(s["graph"])
    made, where, layer_of = {}, {}, {}  # of tensors their group, of operators group and layer
    for i, group in enumerate(s["groups"]):
        need(sorted(group["operators"]) == sorted(o for l in group["layers"] for o in l), f"group {i}: its layers have other operators")
        for l, layer in enumerate(group["layers"]):
            for o in layer:
                need(0 <= o < len(g.ops) and o not in where, f"operator {o} is in two groups, or none of the network")
                late = [t for t in g.ops[o].inputs if g.maker[t] and t not in made]
                need(not late, f"operator {o} is before what makes its input {late[:1]}")
                where[o] = (i, l)
                for t in g.ops[o].outputs:
                    made[t] = i
    need(len(where) == len(g.ops), f"{len(where)} of {len(g.ops)} operators run")
    outputs = [[t for t in g.maker and made if made[t] == i and
                (t in g.outputs or any(where[o.id][0] != i for o in g.readers[t]))] for i in range(len(s["groups"]))]

    def piece(i, index, t):
        """The positions of a group's output that an instance makes."""
        box, factor = [(1 << n) - 1 for n in g.shape[t]], s["groups"][i]["factor"]
        if factor > 1:
            d = s["groups"][i]["dim"]
            size = up(g.shape[t][d], factor)
            need((factor - 1) * size < g.shape[t][d], f"group {i}: an instance of {factor} is empty")
            box[d] = ((1 << size) - 1) << index * size & box[d]
        return box

    at = {(i, k): None for i, group in enumerate(s["groups"]) for k in range(group["factor"])}
    need(sorted((x["group"], x["index"]) for x in s["instances"]) == sorted(at), "instances are not those of the groups")
    for x in s["instances"]:
        need(0 < math.prod(x["cores"]) <= m.cores, f"instance {x['group']}/{x['index']} is on {x['cores']} of {m.cores} cores")
    need(sorted(map(tuple, s["order"])) == sorted(at), "order does not have each instance once")
    start, last, size = 0, {}, {}
    begun = {}
    for i, k in map(tuple, s["order"]):
        boxes = {t: {tuple(piece(i, k, t))} for t in outputs[i]}
        begun[i, k] = start
        for o in sorted(s["groups"][i]["operators"], reverse=True):
            op, time = g.ops[o], start + where[o][1]
            for n, t in enumerate(op.outputs):
                for box in boxes.get(t, ()):
                    for j, x in enumerate(op.inputs):
                        read = tuple(op.reads[n][j].need(list(box)))
                        if c.elements(read):
                            boxes.setdefault(x, set()).add(read)
        for t, parts in boxes.items():
            if t not in made:
                continue
            if made[t] == i:
                size[i, k, t] = max(map(c.elements, parts)) * g.size[t]
                source = [(i, k)]
            else:
                h = made[t]
                source = [(h, n) for n in range(s["groups"][h]["factor"]) if any(
                    all(a & b for a, b in zip(piece(h, n, t), box)) for box in parts)]
                for x in source:
                    need(x in begun and x != (i, k), f"instance {i}/{k} runs before {x[0]}/{x[1]}, of which it reads {g.tensors[t]['name']}")
            reads = [start + where[o.id][1] for o in g.readers[t] if where[o.id][0] == i]
            for x in source:
                last[x + (t,)] = max([last.get(x + (t,), 0)] + reads)
        start += len(s["groups"][i]["layers"])
    values = {}
    for v in s.get("memory", {}).get("values", []):
        key = v["group"], v["index"], v["tensor"]
        need(key not in values and key[:2] in at and made.get(key[2]) == key[0], f"memory: {key} has two places, or is nobody's")
        need(key[2] not in g.outputs or v["level"] == "ddr", f"memory: output {key[2]} does not end in the DDR")
        values[key] = v
    for level, room in ("lb", m.data), ("gb", (m.gb or 0) - (m.gb or 0) // 16):
        live = []
        for key, v in sorted(values.items()):
            if v["level"] == level and key in size:
                bytes = size[key] if level == "gb" else up(size[key], m.cores)
                need(v["address"] >= 0 and v["address"] % 64 == 0 and v["address"] + bytes <= room,
                     f"memory: {key} of {bytes} bytes lies at {v['address']} of {room}")
                first = begun[key[:2]] + where[g.maker[key[2]].id][1]
                live.append((first, max(first, last.get(key, first)), v["address"], v["address"] + bytes, key))
        live.sort()
        for i, a in enumerate(live):
            for b in live[i + 1:]:
                if b[0] >= a[1]:
                    break
                need(b[1] <= a[0] or b[3] <= a[2] or a[3] <= b[2], f"memory: {a[4]} and {b[4]} share bytes")


def tenths(x):
    return f"{x:.1f}"


def schedules(root):
    """The rows of schedules.csv do not contradict themselves, and claim what their times prove."""
    with open(os.path.join(root, "schedules.csv")) as f:
        rows = list(csv.DictReader(f))
    names = [r["network"] + "-" + r["machine"] for r in rows]
    need(len(set(names)) == len(names), "schedules.csv has a cell twice")
    for name, r in zip(names, rows):
        greedy, exact, tiled, bound, division = (int(r[k] or 0) for k in (
            "greedy_ps", "exact_ps", "tiled_ps", "bound_ps", "any_division_ps"))
        for low, high in ((bound, exact), (exact, greedy), (bound, greedy), (division, tiled), (division, bound)):
            need(0 <= low and (low <= high or high == 0), f"{name}: {low} is above {high}")
        need((0 in (greedy, exact, tiled, bound)) == (r["note"] != ""), f"{name}: a note, or none, without reason")
        above = -(1000 * (bound - greedy) // bound) / 10 if greedy and bound else math.inf
        gains = [100 * (greedy / t - 1) if greedy and t else -math.inf for t in (exact, tiled)]
        verdict = ("not posed" if not greedy else f"within {tenths(above)} %" if above <= 5 else
                   f"exact gains {tenths(gains[0])} %" if gains[0] >= 1 else f"within {tenths(above)} %" if above <= 10 else
                   f"tiled gains {tenths(gains[1])} %" if gains[1] >= 1 else "open")
        for field, value in (("above_bound_percent", above), ("exact_gains_percent", gains[0]),
                             ("tiled_gains_percent", gains[1])):
            need(r[field] == ("" if math.isinf(value) else tenths(value)), f"{name}: {field} is {r[field]}, not {value}")
        need(r["verdict"] == verdict, f"{name}: the verdict is {r['verdict']}, not {verdict}")
    return len(rows)


CHECKS = {"allocation": (allocation, "csv", "csv"), "spilling": (spilling, "csv", "csv"),
          "order": (order, "json", "json"), "binding": (binding, "json", "json"), "joint": (joint, "json", "json"),
          "groups": (groups, "json", "json"), "partition": (partition, "json", "json"), "network": (network, "json", "json")}


def frozen(root, kinds):
    """Instances are those of SHA256SUMS."""
    with open(os.path.join(root, "SHA256SUMS")) as f:
        sums = {name: sum for sum, name in (line.split() for line in f)}
    there = {f"{k}/{name}" for k in CHECKS for name in os.listdir(os.path.join(root, k))}
    for name in sorted(there | set(sums)):
        if name.split("/")[0].split(".")[0] in kinds:
            with open(os.path.join(root, name), "rb") as f:
                need(hashlib.sha256(f.read()).hexdigest() == sums.get(name), f"{name} is not the frozen instance")


def main(root, kinds):
    bad = 0
    known = [*CHECKS, "schedules"]
    for kind in kinds:
        if kind not in known:
            bad += 1
            print(f"broken {kind}: no kind, expected some of {', '.join(known)}")
    try:
        frozen(root, kinds)
    except (Broken, OSError) as e:
        bad += 1
        print(f"broken SHA256SUMS: {e}")
    with open(os.path.join(root, "best.csv")) as f:
        rows = [r for r in csv.DictReader(f) if r["kind"] in kinds]
    for r in rows:
        check, ending, answer = CHECKS[r["kind"]]
        try:
            files = [os.path.join(root, r["kind"], f"{r['instance']}.{ending}"),
                     os.path.join(root, "answers", r["kind"], f"{r['instance']}.{r['best']}.{answer}")]
            need(re.fullmatch(r"\d+", r["best"]) and re.fullmatch(r"\d+", r["bound"]), "best or bound is no whole number")
            value = check(*files, int(r["best"])) if check is network else check(*files)
            need(value == int(r["best"]), f"costs {value}, best.csv says {r['best']}")
            need(int(r["bound"]) <= value, f"costs {value}, below the bound {r['bound']}")
            if check is network:
                bound = round(load(files[0])["bound"]["certified_lower_bound_s"] * 1e12)
                need(bound == int(r["bound"]), f"the bound is {bound}, best.csv says {r['bound']}")
            print(f"ok {r['kind']} {r['instance']}: {value}")
        except (Broken, OSError, KeyError, IndexError, ValueError, TypeError) as e:
            bad += 1
            print(f"broken {r['kind']} {r['instance']}: {e if isinstance(e, (Broken, OSError)) else repr(e)}")
    if "schedules" in kinds:
        try:
            print(f"ok schedules: {schedules(root)} cells")
        except (Broken, OSError, KeyError, ValueError, TypeError) as e:
            bad += 1
            print(f"broken schedules: {e if isinstance(e, (Broken, OSError)) else repr(e)}")
    return 1 if bad else 0


ARGS = sys.argv[1:] + [os.path.dirname(os.path.abspath(__file__))][len(sys.argv) - 1:]
sys.exit(main(ARGS[0], ARGS[1:] or [*CHECKS, "schedules"]))
