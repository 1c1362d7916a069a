// The schedule viewer. Times are in ticks of the recording. All state is in `view`;
// draw() makes a picture of it and nothing else.
(() => {
  const $ = id => document.getElementById(id);
  const packed = $("viewer-data");
  if (!packed) return;
  const app = $("viewer-app"), canvas = $("viewer-canvas"), stage = $("viewer-stage"), tip = $("viewer-tip"), status = $("viewer-status");

  async function unpack() {
    const bytes = Uint8Array.from(atob(packed.textContent.trim()), c => c.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(plain).text());
  }

  // column turns "3 1 4" into numbers; running adds up those of the column `plus`.
  function column(s) { return s === "" ? new Float64Array(0) : Float64Array.from(s.split(" "), Number); }
  function queueTrack(q) {
    const gap = column(q.gap_ticks), end = column(q.length_ticks), start = new Float64Array(gap.length);
    for (let i = 0, at = 0; i < gap.length; i++) {
      start[i] = at += gap[i];
      end[i] = at += end[i];
    }
    const critical = column(q.critical || "");
    for (let i = 1; i < critical.length; i++) critical[i] += critical[i - 1];
    return { type: "queue", id: q.name, title: q.title, start, end, label: column(q.operator), group: column(q.group || ""), kind: column(q.kind), amount: column(q.amount), critical };
  }
  function memoryTrack(m) {
    const gap = column(m.gap_ticks), end = column(m.length_ticks), start = new Float64Array(gap.length);
    let longest = 0;
    for (let i = 0, at = 0; i < gap.length; i++) {
      start[i] = at += gap[i];
      longest = Math.max(longest, end[i]);
      end[i] += at;
    }
    return { type: "memory", id: m.level, short: m.short || (m.level === "L1" ? "L1" : "LLB"), title: m.title, capacity: m.capacity_bytes, start, end, longest,
      label: column(m.operator), group: column(m.group || ""), kind: column(m.filled_by), address: column(m.address_bytes), amount: column(m.size_bytes) };
  }

  let recording;
  const view = { critical: true, configuration: 0, variant: 0, beside: "previous", colour: $("viewer-colour").value, from: 0, to: 1, row: 0, item: -1, hover: null, pinned: -1, memories: { L1: true, LLB: true } };
  const configuration = () => recording.configurations[view.configuration];
  const variants = () => configuration().variants;
  function tracks(v) {
    if (v.tracks) return v.tracks;
    const queues = v.instances && v.instances.commands ? [v.instances, ...v.queues] : v.queues;
    v.tracks = [...queues.map(queueTrack), ...v.memories.map(memoryTrack)];
    return v.tracks;
  }
  // The lanes of the picture, from top to bottom: indexes of variants.
  function lanes() {
    const second = view.beside === "previous" ? variants().slice(0, view.variant).findLastIndex(v => !v.other) : view.beside === "" ? -1 : Number(view.beside);
    return second < 0 || second === view.variant || second >= variants().length ? [view.variant] : [view.variant, second];
  }
  const last = () => Math.max(...lanes().map(i => variants()[i].end_ticks));

  // Words.
  const perTick = () => recording.tick_ps * 1e-12;
  const digits = (x, n) => x.toLocaleString("en", { maximumSignificantDigits: n, useGrouping: true });
  function time(t) {
    const s = t * perTick();
    return Math.abs(s) >= 1e-3 ? digits(s * 1e3, 5) + " ms" : Math.abs(s) >= 1e-6 ? digits(s * 1e6, 4) + " µs" : digits(s * 1e9, 4) + " ns";
  }
  function bytes(n) {
    return n >= 1 << 20 ? digits(n / (1 << 20), 4) + " MiB" : n >= 1024 ? digits(n / 1024, 4) + " KiB" : n + " B";
  }
  const kindWords = { launch: "kernel launch", barrier: "barrier", "ddr.load": "load from the DDR", "ddr.store": "store to the DDR", "lb.load": "load from the LLB", "lb.store": "store to the LLB", exchange: "exchange between cores", matrix: "matrix unit", vector: "vector unit", special: "special functions" };
  function describe(at) {
    const v = variants()[at.variant], t = tracks(v)[at.track], i = at.item;
    const kind = v.kinds[t.kind[i]], name = configuration().operators[t.label[i]], d = t.end[i] - t.start[i];
    const lines = [], group = v.groups && v.groups[t.group[i]];
    if (group && group !== name && t.id !== "instances") lines.push(`group ${group}`);
    if (t.id === "instances") lines.push(`instance ${i + 1} of ${t.start.length}`, `${time(d)}, from ${time(t.start[i])} to ${time(t.end[i])}`);
    else if (t.type === "memory") {
      lines.push(`${bytes(t.amount[i])} at ${bytes(t.address[i])} of ${bytes(t.capacity)}, ${t.title}`);
      lines.push(`filled by: ${kindWords[kind] || kind}`);
      lines.push(`held ${time(d)}, from ${time(t.start[i])} to ${time(t.end[i])}`);
    } else {
      lines.push(`${kindWords[kind] || kind} (${t.title})`);
      const n = t.amount[i];
      if (n > 0 && (kind === "matrix" || kind === "vector" || kind === "special")) lines.push(`${digits(n, 4)} ${kind === "matrix" ? "multiply-accumulates" : "operations"}`);
      else if (n > 0) lines.push(bytes(n) + (d > 0 ? `, ${digits(n / (d * perTick()) / 1e9, 3)} GB/s` : ""));
      lines.push(`${time(d)}, from ${time(t.start[i])} to ${time(t.end[i])}`);
      if (t.critical.includes(i)) lines.push("on the critical path");
    }
    return { name, variant: v.name, lines };
  }
  function say(text) { status.textContent = text; }

  // Colours: those of viridis between its ends (Smith and van der Walt), which keep
  // their order for people who are colour-blind; kinds have Okabe and Ito's.
  const viridis = [[72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [109, 205, 89], [180, 222, 44], [240, 228, 60]];
  const kindColours = { launch: "#8d8d8d", barrier: "#bdbdbd", "ddr.load": "#D55E00", "ddr.store": "#E69F00", "lb.load": "#009E73", "lb.store": "#56B4E9", exchange: "#F0E442", matrix: "#0072B2", vector: "#CC79A7", special: "#7a4b8a" };
  const grey = [141, 141, 141];
  function layerColour(k) {
    const n = configuration().layers;
    if (k >= n) return grey;
    // The end that is near to the background stays out.
    const [low, high] = palette.dark ? [1.6, 8] : [0, 7.4];
    const x = low + (n > 1 ? k / (n - 1) : 0) * (high - low), i = Math.min(Math.floor(x), viridis.length - 2), f = x - i;
    return viridis[i].map((a, c) => Math.round(a + f * (viridis[i + 1][c] - a)));
  }
  const hex = c => c.match(/[^#]{2}/g).map(c => parseInt(c, 16));
  const kindColour = kind => hex(kindColours[kind] || "#8d8d8d");
  const rgb = c => `rgb(${c})`;
  // A shade is how items of one colour look: plain, when another operator is pinned, and
  // the ink of names on them.
  const shadeOf = c => ({ plain: rgb(c), faded: `rgba(${c},.16)`, ink: .299 * c[0] + .587 * c[1] + .114 * c[2] > 128 ? "#000" : "#fff" });
  let shades = [];
  function mix() {
    shades = view.colour === "kind" ? variants()[0].kinds.map(k => shadeOf(kindColour(k)))
      : view.colour === "group" ? [...palette.groups, "#8d8d8d"].map(c => shadeOf(hex(c)))
      : configuration().operators.map((_, k) => shadeOf(layerColour(k)));
  }
  // Groups take turns with the colours; the last shade is for what is in none.
  const groupShade = k => shades[k >= 0 ? k % palette.groups.length : shades.length - 1];
  const shadeAt = (t, i) => view.colour === "group" ? groupShade(t.group[i] ?? -1) : shades[view.colour === "kind" ? t.kind[i] : t.label[i]];
  const colourOf = (t, i) => {
    const s = shadeAt(t, i);
    return view.pinned >= 0 && t.label[i] !== view.pinned ? s.faded : s.plain;
  };

  // Places. A box is a track of a lane on the canvas.
  const gutter = () => size.w < 560 ? 64 : 104, rowHeight = 18, axisHeight = 24, titleHeight = 22, overviewHeight = 26, gap = 8;
  const size = { w: 0, h: 0, print: false };
  let boxes = [];
  function layout() {
    readPalette();
    boxes = [];
    let y = axisHeight;
    for (const lane of lanes()) {
      boxes.push({ type: "title", lane, y, h: titleHeight });
      y += titleHeight;
      tracks(variants()[lane]).forEach((t, k) => {
        if (t.type === "memory" && !view.memories[t.id]) return;
        const h = t.type === "queue" ? rowHeight : t.id === "L1" ? 96 : 72;
        if (t.type === "memory") y += 4;
        boxes.push({ type: t.type, lane, track: k, y, h });
        y += h + (t.type === "queue" ? 2 : 4);
      });
      y += gap;
    }
    const items = legend();
    boxes.push({ type: "overview", y, h: overviewHeight });
    y += overviewHeight + 6;
    boxes.push({ type: "legend", y, h: items.height, items });
    size.h = y + items.height + 4;
  }

  const kindsOf = v => v.used ||= new Set(tracks(v).flatMap(t => [...new Set(t.kind)].map(k => v.kinds[k])));

  // legend places the keys of the colours in rows.
  const font = "12px system-ui,-apple-system,'Segoe UI',Roboto,'Liberation Sans',Arial,sans-serif";
  function legend() {
    const g = canvas.getContext("2d"), items = [], left = size.w < 560 ? 4 : gutter(), rowOf = 18;
    g.font = font;
    if (view.colour === "layer") {
      const names = configuration().operators;
      items.push({ ramp: 120, text: `operators in the order of the network, ${names[0]} to ${names[configuration().layers - 1]}; kernels grey`, x: left, y: 0 });
      return Object.assign(items, { height: rowOf });
    }
    if (view.colour === "group") {
      const v = variants()[view.variant], n = (v.groups || []).length;
      items.push({ ramp: 120, groups: Math.min(n, palette.groups.length), text: n > palette.groups.length ? `${n} groups, colours in turn` : (v.groups || []).join(", "), x: left, y: 0 });
      return Object.assign(items, { height: rowOf });
    }
    const used = new Set(lanes().flatMap(l => [...kindsOf(variants()[l])]));
    let x = left, y = 0;
    for (const kind of Object.keys(kindColours).filter(k => used.has(k))) {
      const text = kindWords[kind], w = Math.ceil(16 + g.measureText(text).width + 14);
      if (x + w > size.w && x > left) [x, y] = [left, y + rowOf];
      items.push({ colour: kindColours[kind], text, x, y });
      x += w;
    }
    return Object.assign(items, { height: y + rowOf });
  }
  const rows = () => boxes.filter(b => b.type === "queue" || b.type === "memory");
  const width = () => size.w - gutter() - 8;
  const toX = t => gutter() + (t - view.from) / (view.to - view.from) * width();
  const toTime = x => view.from + (x - gutter()) / width() * (view.to - view.from);

  // The first item of a track that ends after a time; in memories, one before which
  // none does.
  function first(t, time) {
    let lo = 0, hi = t.start.length;
    const at = t.type === "memory" ? time - t.longest : time;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if ((t.type === "memory" ? t.start[mid] < at : t.end[mid] <= at)) lo = mid + 1; else hi = mid;
    }
    return lo;
  }

  let palette = {};
  function readPalette() {
    const s = getComputedStyle(document.documentElement), of = n => s.getPropertyValue(n).trim();
    const groups = of("--groups").split(" ");
    palette = size.print ? { groups, bg: "#fff", fg: "#000", soft: "#444", free: "#eceef2", grid: "#dfe3e9", edge: "#11141a", focus: "#b34700" }
      : { groups, bg: of("--bg"), fg: of("--fg"), soft: of("--soft"), free: of("--free"), grid: of("--grid"), edge: of("--edge"), focus: of("--focus"), dark: matchMedia("(prefers-color-scheme: dark)").matches };
  }

  // The picture is painted on a canvas behind the scenes; what changes as the pointer
  // moves is marked on a copy.
  const base = document.createElement("canvas");
  function draw() {
    if (size.w === 0) return; // in a chapter that is not open
    layout();
    paint();
    canvas.width = base.width;
    canvas.height = base.height;
    canvas.style.height = size.h + "px";
    canvas.style.aspectRatio = size.w + "/" + size.h;
    overlay();
    tell();
  }
  const scale = () => size.print ? 3 : window.devicePixelRatio || 1;
  function paint() {
    base.width = Math.round(size.w * scale());
    base.height = Math.round(size.h * scale());
    const g = base.getContext("2d");
    g.scale(scale(), scale());
    mix();
    g.fillStyle = palette.bg;
    g.fillRect(0, 0, size.w, size.h);
    g.font = font;
    g.textBaseline = "middle";
    drawAxis(g);
    for (const b of boxes) {
      if (b.type === "title") drawTitle(g, b);
      else if (b.type === "overview") drawOverview(g, b);
      else if (b.type === "legend") drawLegend(g, b);
      else drawTrack(g, b);
    }
  }
  function overlay() {
    const g = canvas.getContext("2d");
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.drawImage(base, 0, 0);
    g.scale(scale(), scale());
    for (const [at, colour] of [[view.hover, palette.edge], [selected(), palette.focus]]) {
      const b = at && rows().find(b => b.lane === at.variant && b.track === at.track);
      if (!b) continue;
      const r = rect(b, tracks(variants()[b.lane])[b.track], at.item);
      g.save();
      g.beginPath();
      g.rect(gutter() - 2, b.y - 2, width() + 4, b.h + 4);
      g.clip();
      g.strokeStyle = colour;
      g.lineWidth = 2;
      g.strokeRect(r.x - 1, r.y - 1, r.w + 2, r.h + 2);
      g.restore();
    }
    const row = rows()[view.row];
    if (document.activeElement === canvas && !size.print && row) {
      g.fillStyle = palette.focus;
      g.fillRect(gutter() - 5, row.y, 3, row.h);
    }
  }

  function drawAxis(g) {
    const span = view.to - view.from, aim = span / Math.max(2, width() / 110), power = 10 ** Math.floor(Math.log10(aim));
    const step = Math.max(1, [1, 2, 5, 10].map(m => m * power).find(s => s >= aim));
    g.textAlign = "center";
    for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
      const x = Math.round(toX(k * step)) + .5;
      g.strokeStyle = palette.grid;
      g.beginPath();
      g.moveTo(x, axisHeight - 4);
      g.lineTo(x, boxes.find(b => b.type === "overview").y - 4);
      g.stroke();
      g.fillStyle = palette.soft;
      const text = k === 0 ? "0" : time(k * step), half = g.measureText(text).width / 2;
      g.fillText(text, Math.min(size.w - half - 2, x), axisHeight / 2);
    }
  }

  function drawTitle(g, b) {
    const v = variants()[b.lane], narrow = size.w < 560;
    g.textAlign = "left";
    g.fillStyle = palette.bg;
    g.fillRect(0, b.y, size.w, b.h);
    g.fillStyle = palette.fg;
    g.font = "bold " + g.font;
    g.fillText(v.name, 4, b.y + b.h / 2);
    const x = 4 + g.measureText(v.name).width + 10;
    g.font = g.font.replace("bold ", "");
    g.fillStyle = palette.soft;
    g.fillText(time(v.end_ticks) + (narrow ? "" : `  –  ${v.description}`), x, b.y + b.h / 2, size.w - x - 4);
  }

  // Bars narrower than a pixel are gathered: a column is as opaque as it is busy, in
  // the colour of what takes most of it.
  function bars(g, t, y, h, from, to, x) {
    let column = -1, busy = 0, best = 0, bestColour = "";
    const flush = () => {
      if (busy <= 0) return;
      g.globalAlpha = Math.min(1, .15 + .85 * busy);
      g.fillStyle = bestColour;
      g.fillRect(column, y, 1, h);
      g.globalAlpha = 1;
      busy = best = 0;
    };
    for (let i = first(t, from); i < t.start.length && t.start[i] < to; i++) {
      const x0 = Math.max(x(t.start[i]), x(from)), x1 = Math.min(x(t.end[i]), x(to)), c = colourOf(t, i);
      if (x1 - x0 >= 1.5) {
        flush();
        column = -1;
        g.fillStyle = c;
        g.fillRect(x0, y, x1 - x0 - (x1 - x0 > 4 ? .5 : 0), h);
        continue;
      }
      for (let p = Math.floor(x0); p < x1; p++) {
        if (p !== column) {
          flush();
          column = p;
        }
        const part = Math.min(x1, p + 1) - Math.max(x0, p);
        busy += part;
        if (part > best) {
          best = part;
          bestColour = c;
        }
      }
    }
    flush();
  }

  function drawTrack(g, b) {
    const v = variants()[b.lane], t = tracks(v)[b.track], left = gutter(), end = Math.min(view.to, v.end_ticks);
    g.textAlign = "right";
    g.fillStyle = palette.fg;
    if (t.type === "queue") g.fillText(t.title, left - 8, b.y + b.h / 2, left - 10);
    else {
      g.fillText(t.short, left - 8, b.y + b.h / 2 - 8);
      g.fillStyle = palette.soft;
      g.fillText(bytes(t.capacity), left - 8, b.y + b.h / 2 + 8, left - 10);
    }
    if (end > view.from) {
      g.fillStyle = palette.free;
      g.fillRect(left, b.y, toX(end) - left, b.h);
    }
    g.save();
    g.beginPath();
    g.rect(left, b.y, width(), b.h);
    g.clip();
    if (t.type === "queue") {
      bars(g, t, b.y + 1, b.h - 2, view.from, end, toX);
      if (view.critical) markCritical(g, t, b);
    } else {
      // Of buffers that are a pixel in size, one a pixel is drawn.
      const taken = new Uint8Array(Math.ceil(size.w + 1) * Math.ceil(b.h + 2));
      for (let i = first(t, view.from); i < t.start.length && t.start[i] < view.to; i++) {
        if (t.end[i] <= view.from) continue;
        const r = rect(b, t, i);
        if (r.w < 1.5 && r.h < 2) {
          const at = Math.max(0, Math.floor(r.x)) * Math.ceil(b.h + 2) + Math.max(0, Math.floor(r.y - b.y));
          if (taken[at]++) continue;
        }
        g.fillStyle = colourOf(t, i);
        g.fillRect(r.x, r.y, r.w, r.h);
        if (r.w > 3 && r.h > 3) {
          g.fillStyle = palette.bg;
          g.globalAlpha = .45;
          g.fillRect(r.x, r.y, r.w, .6);
          g.fillRect(r.x, r.y, .6, r.h);
          g.globalAlpha = 1;
        }
      }
    }
    names(g, t, b);
    g.restore();
  }
  // Commands on the critical path have a line below them.
  function markCritical(g, t, b) {
    g.fillStyle = palette.edge;
    let drawn = -1;
    for (const i of t.critical) {
      if (t.end[i] <= view.from || t.start[i] >= view.to) continue;
      const x0 = toX(t.start[i]), x1 = Math.max(toX(t.end[i]), x0 + 1);
      if (x1 <= drawn) continue;
      g.fillRect(Math.max(x0, drawn), b.y + b.h - 3, x1 - Math.max(x0, drawn), 3);
      drawn = x1;
    }
  }
  function rect(b, t, i) {
    const x0 = toX(t.start[i]), w = Math.max(toX(t.end[i]) - x0, .75);
    if (t.type === "queue") return { x: x0, y: b.y + 1, w, h: b.h - 2 };
    const h = Math.max(t.amount[i] / t.capacity * b.h, .5);
    return { x: x0, y: b.y + b.h - t.address[i] / t.capacity * b.h - h, w, h };
  }
  // Names stand in bars that are wide enough, without what they are part of if need be.
  function names(g, t, b) {
    g.textAlign = "left";
    g.font = g.font.replace("12px", "10px");
    for (let i = first(t, view.from); i < t.start.length && t.start[i] < view.to; i++) {
      const r = rect(b, t, i), x0 = Math.max(r.x, gutter()), room = Math.min(r.x + r.w, gutter() + width()) - x0;
      if (room < 18 || r.h < 11) continue;
      let text = configuration().operators[t.label[i]];
      if (room < 400) while (g.measureText(text).width > room - 5 && text.includes(".")) text = text.slice(text.indexOf(".") + 1);
      if (g.measureText(text).width > room - 5) continue;
      g.fillStyle = view.pinned >= 0 && t.label[i] !== view.pinned ? palette.soft : shadeAt(t, i).ink;
      g.fillText(text, x0 + 3, r.y + Math.min(r.h / 2, 40));
    }
    g.font = g.font.replace("10px", "12px");
  }
  // The overview shows the matrix unit (else the first unit) over all time, and which part is above.
  function drawOverview(g, b) {
    const v = variants()[view.variant], t = tracks(v).find(t => t.id === "mme") || tracks(v)[0], end = last(), left = gutter();
    const x = time => left + time / end * width();
    g.textAlign = "right";
    g.fillStyle = palette.soft;
    g.fillText("all", left - 8, b.y + b.h / 2);
    g.fillStyle = palette.free;
    g.fillRect(left, b.y, x(v.end_ticks) - left, b.h);
    bars(g, t, b.y + 4, b.h - 8, 0, v.end_ticks, x);
    g.strokeStyle = palette.fg;
    g.lineWidth = 1.5;
    g.strokeRect(x(view.from) + .75, b.y + .75, Math.max(2, x(view.to) - x(view.from) - 1.5), b.h - 1.5);
    g.lineWidth = 1;
  }

  function drawLegend(g, b) {
    g.textAlign = "left";
    for (const item of b.items) {
      const y = b.y + item.y, w = item.ramp || 10, n = configuration().layers;
      for (let p = 0; p < w; p++) {
        g.fillStyle = item.colour || (item.groups && palette.groups[Math.floor(p / w * item.groups)]) || rgb(layerColour(Math.min(n - 1, Math.floor(p / w * n))));
        g.fillRect(item.x + p, y + 4, 1, 10);
      }
      g.fillStyle = palette.fg;
      g.fillText(item.text, item.x + w + 6, y + 9, size.w - item.x - w - 8);
    }
  }

  // What the picture shows, for those who read the page with a program.
  function tell() {
    app.dataset.configuration = configuration().name;
    app.dataset.variant = variants()[view.variant].name;
    app.dataset.beside = lanes().length > 1 ? variants()[lanes()[1]].name : "";
    app.dataset.from = view.from;
    app.dataset.to = view.to;
    app.dataset.pinned = view.pinned < 0 ? "" : configuration().operators[view.pinned];
    app.dataset.row = rows()[view.row] ? tracks(variants()[rows()[view.row].lane])[rows()[view.row].track].id : "";
    app.dataset.item = view.item;
    canvas.setAttribute("aria-label", `${configuration().title}, ${app.dataset.variant}${app.dataset.beside && " above " + app.dataset.beside}, ${time(view.from)} to ${time(view.to)}`);
  }

  // Changes of the view.
  function setWindow(from, to) {
    view.hover = null;
    tip.hidden = true;
    const end = last(), least = Math.min(end, 50), span = Math.min(end, Math.max(least, to - from));
    from = Math.min(Math.max(0, from + (to - from - span) / 2), end - span);
    view.from = from;
    view.to = from + span;
  }
  function zoom(factor, at) {
    at ??= (view.from + view.to) / 2;
    setWindow(at - (at - view.from) * factor, at + (view.to - at) * factor);
    draw();
  }
  function move(share) {
    const d = share * (view.to - view.from);
    setWindow(view.from + d, view.to + d);
    draw();
  }
  function all() {
    setWindow(0, last());
    draw();
  }
  function selected() {
    const b = rows()[view.row];
    return view.item < 0 || !b ? null : { variant: b.lane, track: b.track, item: view.item };
  }
  // reveal moves the window so that an item is in it.
  function reveal(at) {
    const t = tracks(variants()[at.variant])[at.track], from = t.start[at.item], to = t.end[at.item], span = view.to - view.from;
    if (to <= view.from || from >= view.to || to - from < span && (from < view.from || to > view.to)) {
      const middle = (from + to) / 2;
      setWindow(middle - span / 2, middle + span / 2);
    }
  }
  function chooseVariant(k) {
    if (k < 0 || k >= variants().length || k === view.variant) return;
    const whole = view.from === 0 && view.to >= last(), b = rows()[view.row], id = b && tracks(variants()[b.lane])[b.track].id;
    const centre = (view.from + view.to) / 2;
    view.variant = k;
    view.item = -1;
    layout();
    view.row = Math.max(0, rows().findIndex(r => r.lane === k && tracks(variants()[k])[r.track].id === id));
    if (whole) setWindow(0, last());
    else setWindow(view.from, view.to);
    // A pinned operator stays in the picture, wherever this variant runs it.
    if (!whole && view.pinned >= 0) {
      let near = -1, best;
      tracks(variants()[k]).forEach(t => {
        if (t.type !== "queue") return;
        for (let i = 0; i < t.start.length; i++) {
          if (t.label[i] !== view.pinned) continue;
          const m = (t.start[i] + t.end[i]) / 2;
          if (near < 0 || Math.abs(m - centre) < Math.abs(best - centre)) [near, best] = [i, m];
        }
      });
      if (near >= 0 && (best < view.from || best > view.to)) setWindow(best - (view.to - view.from) / 2, best + (view.to - view.from) / 2);
    }
    const v = variants()[k], l = lanes(), o = l.length > 1 ? variants()[l[1]] : null;
    say(`${v.name}: ${time(v.end_ticks)}` + (o ? `; ${o.name}: ${time(o.end_ticks)}, ${digits(o.end_ticks / v.end_ticks, 3)} times as long` : "") + ".");
    controls();
    draw();
  }
  function pin(label, go) {
    view.pinned = label;
    $("viewer-find").value = label < 0 ? "" : configuration().operators[label];
    if (label >= 0 && go) {
      const v = variants()[view.variant];
      let from = Infinity, to = 0, n = 0;
      for (const t of tracks(v)) {
        if (t.type !== "queue") continue;
        for (let i = 0; i < t.start.length; i++) {
          if (t.label[i] !== label) continue;
          n++;
          if (t.start[i] < from) [from, to] = [t.start[i], t.end[i]];
          else if (t.start[i] < to + (last() / 200)) to = Math.max(to, t.end[i]);
        }
      }
      if (n > 0) setWindow(from - .3 * (to - from), to + .3 * (to - from));
      say(`${configuration().operators[label]}: ${n} commands in ${v.name}.`);
    }
    draw();
  }
  function step(by) {
    const b = rows()[view.row];
    if (!b) return;
    const t = tracks(variants()[b.lane])[b.track];
    if (t.start.length === 0) return say(`${t.title}: nothing.`);
    if (view.item < 0) view.item = Math.min(first(t, view.from), t.start.length - 1);
    else view.item = Math.min(Math.max(0, view.item + by), t.start.length - 1);
    reveal(selected());
    const d = describe(selected());
    say(`${d.name}: ${d.lines.join("; ")}.`);
    draw();
  }
  function chooseRow(by) {
    view.row = Math.min(Math.max(0, view.row + by), rows().length - 1);
    view.item = -1;
    const b = rows()[view.row], v = variants()[b.lane], t = tracks(v)[b.track];
    say(`${v.name}, ${t.title}: ${t.start.length} ${t.type === "memory" ? "buffers" : "commands"}.`);
    draw();
  }
  function letGo() {
    view.item = -1;
    view.hover = null;
    tip.hidden = true;
    say("");
    pin(-1);
  }

  canvas.addEventListener("keydown", e => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const s = selected();
    const centre = s ? (tracks(variants()[s.variant])[s.track].start[s.item] + tracks(variants()[s.variant])[s.track].end[s.item]) / 2 : undefined;
    const keys = {
      ArrowLeft: () => move(-.2), ArrowRight: () => move(.2), ArrowUp: () => chooseRow(-1), ArrowDown: () => chooseRow(1),
      "+": () => zoom(.5, centre), "=": () => zoom(.5, centre), "-": () => zoom(2, centre), _: () => zoom(2, centre), Home: all, End: () => move(1e9), ".": () => step(1), ",": () => step(-1),
      Enter: () => {
        if (!s) return;
        const t = tracks(variants()[s.variant])[s.track], d = Math.max(t.end[s.item] - t.start[s.item], 50);
        setWindow(t.start[s.item] - 2 * d, t.end[s.item] + 2 * d);
        pin(t.label[s.item]);
      },
      Escape: letGo,
    };
    const f = keys[e.key] || (/^[1-9]$/.test(e.key) && Number(e.key) <= variants().length ? () => chooseVariant(Number(e.key) - 1) : null);
    if (!f) return;
    e.preventDefault();
    f();
  });
  canvas.addEventListener("focus", overlay);
  canvas.addEventListener("blur", overlay);

  // Pointers.
  function under(x, y) {
    if (x < gutter() || x > gutter() + width()) return null;
    const b = rows().find(b => y >= b.y && y < b.y + b.h);
    if (!b) return null;
    const t = tracks(variants()[b.lane])[b.track], slack = 1.5 / width() * (view.to - view.from), at = toTime(x);
    let best = null, distance = Infinity;
    for (let i = first(t, at - slack); i < t.start.length && t.start[i] < at + slack; i++) {
      if (t.end[i] <= at - slack) continue;
      if (t.type === "memory") {
        const r = rect(b, t, i);
        if (y < r.y - 1 || y > r.y + r.h + 1) continue;
      }
      const d = Math.max(t.start[i] - at, at - t.end[i], 0);
      if (d < distance) [best, distance] = [i, d];
    }
    return best === null ? null : { variant: b.lane, track: b.track, item: best, row: rows().indexOf(b) };
  }
  const pointers = new Map();
  let drag = null;
  const place = e => ({ x: e.offsetX, y: e.offsetY });
  canvas.addEventListener("pointerdown", e => {
    const p = place(e), o = boxes.find(b => b.type === "overview");
    pointers.set(e.pointerId, p);
    canvas.setPointerCapture(e.pointerId);
    drag = { start: p, from: view.from, to: view.to, moved: false, overview: p.y >= o.y && p.y < o.y + o.h };
    if (drag.overview) jump(p.x);
  });
  function jump(x) {
    const at = (x - gutter()) / width() * last(), half = (view.to - view.from) / 2;
    setWindow(at - half, at + half);
    draw();
  }
  canvas.addEventListener("pointermove", e => {
    const p = place(e);
    if (pointers.has(e.pointerId)) {
      const before = pointers.get(e.pointerId), other = [...pointers].find(([id]) => id !== e.pointerId);
      pointers.set(e.pointerId, p);
      if (other) {
        const was = Math.abs(before.x - other[1].x), is = Math.abs(p.x - other[1].x);
        drag.moved = true;
        if (was > 8 && is > 8) zoom(was / is, toTime((p.x + other[1].x) / 2));
      } else if (drag && drag.overview) jump(p.x);
      else if (drag && (drag.moved || Math.abs(p.x - drag.start.x) > 3)) {
        drag.moved = true;
        const d = (drag.start.x - p.x) / width() * (drag.to - drag.from);
        setWindow(drag.from + d, drag.to + d);
        draw();
      }
      return;
    }
    hover(under(p.x, p.y), p);
  });
  function hover(at, p) {
    const same = at && view.hover && at.variant === view.hover.variant && at.track === view.hover.track && at.item === view.hover.item;
    if (!same && (at || view.hover)) {
      view.hover = at;
      overlay();
    }
    tip.hidden = !at;
    if (!at) return;
    const d = describe(at), b = document.createElement("b");
    b.textContent = d.name;
    tip.replaceChildren(b, ...d.lines.flatMap((l, i) => i ? [document.createElement("br"), l] : [l]));
    const w = tip.offsetWidth, h = tip.offsetHeight;
    tip.style.left = Math.max(0, Math.min(size.w - w, p.x + 14)) + "px";
    tip.style.top = (p.y + 18 + h > size.h ? Math.max(0, p.y - h - 12) : p.y + 18) + "px";
  }
  function up(e) {
    if (!pointers.delete(e.pointerId) || pointers.size > 0) return;
    const d = drag;
    drag = null;
    if (!d || d.moved || d.overview || e.type === "pointercancel") return;
    const p = place(e), at = under(p.x, p.y);
    if (!at) return letGo();
    view.row = at.row;
    view.item = at.item;
    const words = describe(at);
    say(`${words.name}: ${words.lines.join("; ")}.`);
    pin(tracks(variants()[at.variant])[at.track].label[at.item]);
    hover(at, p);
  }
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => hover(null));
  canvas.addEventListener("wheel", e => {
    if (e.ctrlKey || e.metaKey) {
      e.preventDefault();
      zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 120)) * .35), toTime(e.offsetX));
    } else if (Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey) {
      e.preventDefault();
      move((e.deltaX || e.deltaY) / width());
    }
  }, { passive: false });

  // Controls.
  function controls() {
    const box = $("viewer-variants"), legend = box.firstElementChild;
    if (box.dataset.of !== configuration().name) {
      box.dataset.of = configuration().name;
      legend.textContent = variants().some(v => v.other) ? "Cluster" : "Schedule";
      box.replaceChildren(legend, ...variants().map((v, i) => {
        const label = document.createElement("label"), input = document.createElement("input");
        input.type = "radio";
        input.name = "viewer-variant";
        input.value = i;
        input.addEventListener("change", () => chooseVariant(i));
        label.title = v.description;
        label.append(input, " " + v.name);
        return label;
      }));
      $("viewer-operators").replaceChildren(...configuration().operators.slice(0, configuration().layers).map(o => new Option(o)));
      const beside = $("viewer-beside"), chosen = beside.value;
      beside.replaceChildren(beside.options[0], beside.options[1], ...variants().map((v, i) => new Option(v.name, i)));
      beside.value = [...beside.options].some(o => o.value === chosen) ? chosen : "previous";
      view.beside = beside.value;
    }
    box.querySelectorAll("input")[view.variant].checked = true;
    compare();
  }
  // compare fills the table of variants.
  function compare() {
    // The clusters of a schedule are one row.
    const list = variants().filter(v => !v.other), nameOf = v => v.schedule || v.name;
    const table = $("viewer-table"), unit = configuration().unit;
    const columns = [["Schedule", nameOf], ["Chunk", v => v.row.batches_per_cluster], ["Latency (ms)", v => digits(v.row.latency_s * 1e3, 4)], [`Throughput (${unit})`, v => digits(v.row.throughput_per_s, v.row.throughput_per_s < 1e4 ? 4 : Math.ceil(Math.log10(v.row.throughput_per_s)))], ["Energy (mJ)", v => v.row.energy_j ? digits(v.row.energy_j * 1e3, 4) : "–"],
      ["Over the one before (×)", (v, i) => i ? (v.row.throughput_per_s / list[i - 1].row.throughput_per_s).toFixed(2) : "–"], ["Kernels", v => v.row.kernels_dynamic], ["Matrix units busy, mean (%)", v => (100 * v.row.mme_busy_share).toFixed(1)],
      ["DDR moved", v => bytes(v.row.moved_bytes.ddr)], ["LLB moved", v => bytes(v.row.moved_bytes.llb)], ["L1 moved", v => bytes(v.row.moved_bytes.l1)], ["L1 peak", v => bytes(v.row.l1_peak_bytes_per_core)], ["LLB peak", v => bytes(v.row.llb_peak_bytes)]];
    const make = (tag, text, number) => {
      const e = document.createElement(tag);
      e.textContent = text;
      if (number) e.className = "number";
      return e;
    };
    const head = document.createElement("tr");
    head.append(...columns.map((c, i) => {
      const th = make("th", c[0], false);
      th.scope = "col";
      if (i) th.style.textAlign = "right";
      return th;
    }));
    table.tHead.replaceChildren(head);
    table.tBodies[0].replaceChildren(...list.map((v, i) => {
      const tr = document.createElement("tr");
      if (nameOf(v) === nameOf(variants()[view.variant])) {
        tr.className = "shown";
        tr.setAttribute("aria-current", "true");
      }
      tr.append(...columns.map((c, k) => make("td", c[1](v, i), k > 0)));
      return tr;
    }));
  }
  function chooseConfiguration(k) {
    view.configuration = k;
    view.variant = variants().findLastIndex(v => !v.other);
    view.row = Math.max(0, tracks(variants()[view.variant]).findIndex(t => t.id !== "instances"));
    view.item = view.pinned = -1;
    $("viewer-find").value = "";
    controls();
    all();
    say(`${configuration().title}, batch ${configuration().batch} on ${configuration().hardware}.`);
  }

  function resize() {
    const w = stage.clientWidth;
    if (w > 0 && (w !== size.w) && !size.print) {
      size.w = w;
      draw();
    }
  }
  function print(on) {
    if (on === size.print) return;
    size.print = on;
    const keep = [view.hover, view.item];
    if (on) {
      size.w = 1040;
      view.hover = null;
      view.item = -1;
      tip.hidden = true;
    } else size.w = stage.clientWidth;
    draw();
    [view.hover, view.item] = keep;
  }

  unpack().then(r => {
    if (r.schema !== 1) throw new Error(`the recording has schema ${r.schema}, expected 1`);
    recording = r;
    $("viewer-configuration").parentElement.hidden = recording.configurations.length < 2;
    const beside = recording.configurations.some(c => c.variants.length > 1);
    $("viewer-variants").hidden = $("viewer-beside").parentElement.hidden = !beside;
    document.querySelectorAll("[data-operator]").forEach(e => e.addEventListener("click", () => {
      const k = configuration().operators.indexOf(e.dataset.operator);
      if (k >= 0) pin(k, true);
      stage.scrollIntoView({ block: "center" });
    }));
    recording.configurations.forEach((c, i) => $("viewer-configuration").add(new Option(`${c.title}, batch ${c.batch}, ${c.hardware}`, i)));
    $("viewer-configuration").addEventListener("change", e => chooseConfiguration(Number(e.target.value)));
    $("viewer-beside").addEventListener("change", e => {
      const whole = view.from === 0 && view.to >= last();
      view.beside = e.target.value;
      layout();
      view.row = Math.min(view.row, rows().length - 1);
      view.item = -1;
      setWindow(whole ? 0 : view.from, whole ? last() : view.to);
      draw();
    });
    $("viewer-colour").addEventListener("change", e => {
      view.colour = e.target.value;
      draw();
    });
    $("viewer-critical").addEventListener("change", e => {
      view.critical = e.target.checked;
      draw();
    });
    for (const level of ["L1", "LLB"]) {
      $("viewer-" + level).addEventListener("change", e => {
        view.memories[level] = e.target.checked;
        view.row = 0;
        view.item = -1;
        draw();
      });
    }
    $("viewer-find").addEventListener("change", e => {
      const k = configuration().operators.indexOf(e.target.value.trim());
      if (k >= 0) pin(k, true);
      else if (e.target.value.trim() === "") letGo();
      else say(`There is no operator ${e.target.value.trim()} in ${configuration().title}.`);
    });
    $("viewer-in").addEventListener("click", () => zoom(.5));
    $("viewer-out").addEventListener("click", () => zoom(2));
    $("viewer-left").addEventListener("click", () => move(-.2));
    $("viewer-right").addEventListener("click", () => move(.2));
    $("viewer-all").addEventListener("click", all);
    size.w = stage.clientWidth;
    chooseConfiguration(0);
    new ResizeObserver(resize).observe(stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
    addEventListener("beforeprint", () => print(true));
    addEventListener("afterprint", () => print(false));
    app.dataset.ready = Math.round(performance.now());
  }).catch(e => {
    say("The viewer can't be shown: " + e.message + ".");
    console.error(e);
  });
})();
