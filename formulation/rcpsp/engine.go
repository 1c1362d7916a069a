package rcpsp

import (
	"slices"
)

// A lit is the statement that variable x is at least v. Variables come in pairs: x and
// x^1 have opposite values, so that upper bounds are literals too, and not(x >= v) is
// x^1 >= 1-v.
type lit struct {
	x int32
	v int64
}

func (l lit) not() lit { return lit{l.x ^ 1, 1 - l.v} }

// An event is a literal's becoming true: variable x rose from old to now.
type event struct {
	x        int32
	prev     int32 // the event of x before this one, or -1
	old, now int64
	level    int32
	why      reason
}

// A reason says why an event happened.
type reason struct {
	kind reasonKind
	a, b int32
	w    int64
}

type reasonKind uint8

const (
	byDecision reasonKind = iota
	byClause              // a: the clause, whose first literal is the event
	byArc                 // variable a plus w is at most x; b: the 0-1 variable that it depends on, or always
	byLits                // arena[a:b]
)

// always stands for the variable of an arc that depends on none.
const always = int32(-1)

// An arc says y >= x + w, if variable on is 1 or if on is always, for the x whose list it is in.
type arc struct {
	y, on int32
	w     int64
}

// hung is an arc that begins to hold with the variable whose list it is in.
type hung struct {
	x, y int32
	w    int64
}

type clause struct {
	lits     []lit
	dead     bool
	lbd      int32
	activity float64
}

// A watcher of variable y waits for y >= at, which makes a watched literal false.
type watcher struct {
	at      int64
	clause  int32
	blocker lit
}

// engine propagates bounds and learns clauses from conflicts. See the package's essay.
type engine struct {
	lb     []int64 // of each variable, two for each pair
	last   []int32 // latest event of each variable, or -1
	root   []int64 // lb at level 0
	seen   []int64 // up to where the watchers of each variable have been visited
	trail  []event
	starts []int32 // of the levels from 1, in the trail
	arena  []lit
	arenas []int32 // len(arena) at the start of each level
	arcs   [][]arc
	hung   [][]hung
	head   int // events before it are propagated

	clauses    []clause
	free       []int32
	watches    [][]watcher
	size       int // literals in learnt clauses
	learnt     int
	confl      []lit // true literals that exclude each other
	need       []int64
	marked     []bool
	touched    []int32
	buf        []lit
	lower      []int32
	failed     []int64
	levelSeen  []int64
	levelStamp int64
	lbd        int
	clauseInc  float64
	splits     *splits

	// rose is called for each variable that rises, fell when variables went back.
	rose func(x int32)
	fell func()
}

func newEngine() *engine {
	return &engine{clauseInc: 1, splits: newSplits(), rose: func(int32) {}, fell: func() {}}
}

// pairs is the number of pairs of variables.
func (e *engine) pairs() int { return len(e.lb) / 2 }

// idle reports whether propagateQueue has nothing to do.
func (e *engine) idle() bool { return e.head == len(e.trail) }

// propagateAll follows all arcs once at the root.
func (e *engine) propagateAll() bool {
	for x := range e.arcs {
		for _, a := range e.arcs[x] {
			l := lit{a.y, e.lb[x] + a.w}
			switch {
			case a.on != always && e.isFalse(l):
				l = holds(a.on).not()
			case a.on != always && !e.isTrue(holds(a.on)):
				continue
			}
			if !e.set(l, reason{kind: byLits}) {
				return false
			}
		}
	}
	return true
}

// variable adds a pair with bounds lo and hi and returns its first half.
func (e *engine) variable(lo, hi int64) int32 {
	x := int32(len(e.lb))
	e.lb = append(e.lb, lo, -hi)
	e.root = append(e.root, lo, -hi)
	e.last = append(e.last, -1, -1)
	e.seen = append(e.seen, lo-1, -hi-1)
	e.arcs = append(e.arcs, nil, nil)
	e.hung = append(e.hung, nil, nil)
	e.watches = append(e.watches, nil, nil)
	return x
}

func (e *engine) ub(x int32) int64   { return -e.lb[x^1] }
func (e *engine) fixed(x int32) bool { return e.lb[x] == -e.lb[x^1] }
func (e *engine) level() int32       { return int32(len(e.starts)) }
func (e *engine) isTrue(l lit) bool  { return e.lb[l.x] >= l.v }
func (e *engine) isFalse(l lit) bool { return -e.lb[l.x^1] < l.v }

// link adds y >= x + w.
func (e *engine) link(x, y int32, w int64, on int32) {
	e.arcs[x] = append(e.arcs[x], arc{y, on, w})
	e.arcs[y^1] = append(e.arcs[y^1], arc{x ^ 1, on, w})
	if on != always {
		e.hung[on] = append(e.hung[on], hung{x, y, w})
	}
}

// holds is the literal that an arc's variable asks for: 1 of the first of a pair, 0 of
// the second.
func holds(on int32) lit { return lit{on, int64(1 - on&1)} }

// set makes l true. It returns false, with the conflict in confl, if l is false.
func (e *engine) set(l lit, why reason) bool {
	if e.lb[l.x] >= l.v {
		return true
	}
	if -e.lb[l.x^1] < l.v {
		e.confl = e.explain(e.confl[:0], l, why)
		e.confl = append(e.confl, l.not())
		return false
	}
	e.trail = append(e.trail, event{l.x, e.last[l.x], e.lb[l.x], l.v, e.level(), why})
	e.last[l.x] = int32(len(e.trail) - 1)
	e.lb[l.x] = l.v
	e.rose(l.x)
	return true
}

// setBy is set with literals as reason.
func (e *engine) setBy(l lit, lits []lit) bool {
	a := int32(len(e.arena))
	e.arena = append(e.arena, lits...)
	return e.set(l, reason{kind: byLits, a: a, b: int32(len(e.arena))})
}

// explain appends true literals that imply l, which was made true for a reason.
func (e *engine) explain(to []lit, l lit, why reason) []lit {
	switch why.kind {
	case byClause:
		for _, m := range e.clauses[why.a].lits[1:] {
			to = append(to, m.not())
		}
	case byArc:
		to = append(to, lit{why.a, l.v - why.w})
		if why.b != always {
			to = append(to, holds(why.b))
		}
	case byLits:
		to = append(to, e.arena[why.a:why.b]...)
	}
	return to
}

func (e *engine) decide(l lit) {
	e.starts = append(e.starts, int32(len(e.trail)))
	e.arenas = append(e.arenas, int32(len(e.arena)))
	e.set(l, reason{})
}

// back undoes all levels above the given one.
func (e *engine) back(level int32) {
	if e.level() <= level {
		return
	}
	from := e.starts[level]
	for i := len(e.trail) - 1; i >= int(from); i-- {
		ev := &e.trail[i]
		e.lb[ev.x] = ev.old
		e.last[ev.x] = ev.prev
		e.seen[ev.x] = min(e.seen[ev.x], ev.old)
	}
	e.fell()
	e.trail = e.trail[:from]
	e.arena = e.arena[:e.arenas[level]]
	e.starts = e.starts[:level]
	e.arenas = e.arenas[:level]
	e.head = min(e.head, len(e.trail))
	e.splits.back(level)
}

// settle makes the bounds of level 0 the root's; propagation must have ended.
func (e *engine) settle() {
	for i := range e.trail {
		x := e.trail[i].x
		e.root[x] = e.lb[x]
		e.last[x] = -1
	}
	e.trail = e.trail[:0]
	e.arena = e.arena[:0]
	e.head = 0
}

// propagateQueue follows arcs and clauses until nothing changes.
func (e *engine) propagateQueue() bool {
	for e.head < len(e.trail) {
		x, v := e.trail[e.head].x, e.trail[e.head].now
		e.head++
		if v < e.lb[x] {
			continue // a later event of x says more
		}
		for _, h := range e.hung[x] {
			if !e.isTrue(holds(x)) {
				break
			}
			if !e.set(lit{h.y, e.lb[h.x] + h.w}, reason{kind: byArc, a: h.x, b: x, w: h.w}) ||
				!e.set(lit{h.x ^ 1, e.lb[h.y^1] + h.w}, reason{kind: byArc, a: h.y ^ 1, b: x, w: h.w}) {
				return false
			}
		}
		for _, a := range e.arcs[x] {
			if a.on == always || e.isTrue(holds(a.on)) {
				if !e.set(lit{a.y, v + a.w}, reason{kind: byArc, a: x, b: a.on, w: a.w}) {
					return false
				}
			} else if u := e.ub(a.y); v+a.w > u && !e.isFalse(holds(a.on)) {
				// x >= u+1-w and y <= u exclude the arc.
				if !e.setBy(holds(a.on).not(), []lit{{x, u + 1 - a.w}, {a.y ^ 1, -u}}) {
					return false
				}
			}
		}
		if !e.visit(x) {
			return false
		}
	}
	return true
}

// visit looks at the clauses that watch x.
func (e *engine) visit(x int32) bool {
	ws := e.watches[x]
	kept := 0
	from, upto := e.seen[x], e.lb[x]
	e.seen[x] = upto
	for n := 0; n < len(ws); n++ {
		w := ws[n]
		if w.at > upto || w.at <= from || e.isTrue(w.blocker) {
			ws[kept] = w
			kept++
			continue
		}
		c := &e.clauses[w.clause]
		if c.dead {
			continue
		}
		falsified := lit{x ^ 1, 1 - w.at}
		if c.lits[0] == falsified {
			c.lits[0], c.lits[1] = c.lits[1], c.lits[0]
		}
		first := c.lits[0]
		if e.isTrue(first) {
			ws[kept] = watcher{w.at, w.clause, first}
			kept++
			continue
		}
		moved := false
		for k := 2; k < len(c.lits); k++ {
			if !e.isFalse(c.lits[k]) {
				c.lits[1], c.lits[k] = c.lits[k], c.lits[1]
				e.watch(c.lits[1], w.clause, first)
				moved = true
				break
			}
		}
		if moved {
			continue
		}
		ws[kept] = w
		kept++
		if !e.set(first, reason{kind: byClause, a: w.clause}) {
			kept += copy(ws[kept:], ws[n+1:])
			e.watches[x] = ws[:kept]
			e.bumpClause(w.clause)
			return false
		}
	}
	e.watches[x] = ws[:kept]
	return true
}

func (e *engine) watch(l lit, c int32, blocker lit) {
	y := l.x ^ 1
	e.watches[y] = append(e.watches[y], watcher{1 - l.v, c, blocker})
}

// on turns a true literal into the event that made it true, or -1 at the root.
func (e *engine) on(l lit) int32 {
	if e.root[l.x] >= l.v {
		return -1
	}
	i := e.last[l.x]
	for e.trail[i].old >= l.v {
		i = e.trail[i].prev
	}
	return i
}

// learn turns the conflict in confl into a clause that it returns with the level to go
// back to, where the clause's first literal follows. The level of the conflict must
// not be 0, and the conflict must have an event of that level.
func (e *engine) learn() ([]lit, int32) {
	for len(e.need) < len(e.trail) {
		e.need = append(e.need, 0)
		e.marked = append(e.marked, false)
		e.failed = append(e.failed, 0)
	}
	e.touched = e.touched[:0]
	e.lower = e.lower[:0]
	// A conflict may lie wholly below the current level.
	top := int32(0)
	for _, l := range e.confl {
		if i := e.on(l); i >= 0 {
			top = max(top, e.trail[i].level)
		}
	}
	if top == 0 {
		return nil, -1
	}
	open := 0
	add := func(l lit) {
		i := e.on(l)
		if i < 0 {
			return
		}
		if e.marked[i] {
			e.need[i] = max(e.need[i], l.v)
			return
		}
		e.marked[i], e.need[i] = true, l.v
		e.touched = append(e.touched, i)
		e.splits.bump(l)
		if e.trail[i].level == top {
			open++
		} else {
			e.lower = append(e.lower, i)
		}
	}
	for _, l := range e.confl {
		add(l)
	}
	at := int32(len(e.trail) - 1)
	if int(top) < len(e.starts) {
		at = e.starts[top] - 1
	}
	for {
		for !e.marked[at] {
			at--
		}
		if open == 1 {
			break
		}
		ev := &e.trail[at]
		if ev.why.kind == byClause {
			e.bumpClause(ev.why.a)
		}
		e.marked[at] = false
		open--
		e.buf = e.explain(e.buf[:0], lit{ev.x, e.need[at]}, ev.why)
		for _, l := range e.buf {
			add(l)
		}
		at--
	}
	out := []lit{lit{e.trail[at].x, e.need[at]}.not()}
	back := int32(0)
	e.levelStamp++
	for len(e.levelSeen) <= len(e.starts) {
		e.levelSeen = append(e.levelSeen, 0)
	}
	e.lbd = 1
	for _, i := range e.lower {
		if lv := e.trail[i].level; e.levelSeen[lv] != e.levelStamp {
			e.levelSeen[lv] = e.levelStamp
			e.lbd++
		}
	}
	slices.Sort(e.lower) // ascending: what implies comes before what is implied
	for n := len(e.lower) - 1; n >= 0; n-- {
		i := e.lower[n]
		ev := &e.trail[i]
		if e.implied(lit{ev.x, e.need[i]}, ev.why, 8) {
			continue // stays marked: it follows from the others
		}
		out = append(out, lit{ev.x, e.need[i]}.not())
	}
	// Of two literals of one variable the stronger nogood says all.
	kept := out[:1]
	for _, l := range out[1:] {
		weaker := false
		for _, m := range out {
			if m.x == l.x && m.v < l.v { // as a clause: the smaller bound is implied by none
				weaker = true
				break
			}
		}
		if !weaker {
			kept = append(kept, l)
		}
	}
	out = kept
	for k := 1; k < len(out); k++ {
		if lv := e.trail[e.on(out[k].not())].level; lv > back {
			back = lv
			out[1], out[k] = out[k], out[1]
		}
	}
	for _, i := range e.touched {
		e.marked[i] = false
	}
	return out, back
}

// implied reports whether the marked literals imply l, which was made true for a reason.
// It follows reasons down to a depth; what it finds on the way it remembers.
func (e *engine) implied(l lit, why reason, depth int) bool {
	if why.kind == byDecision {
		return false
	}
	from := len(e.buf)
	e.buf = e.explain(e.buf, l, why)
	ok := true
	for n := from; n < len(e.buf) && ok; n++ {
		m := e.buf[n]
		i := e.on(m)
		if i < 0 || e.marked[i] && e.need[i] >= m.v {
			continue
		}
		ev := &e.trail[i]
		if depth == 0 || e.levelSeen[ev.level] != e.levelStamp || e.failed[i] == e.levelStamp {
			ok = false
			break
		}
		if !e.implied(m, ev.why, depth-1) {
			e.failed[i] = e.levelStamp
			ok = false
		}
	}
	e.buf = e.buf[:from]
	return ok
}

// add stores a learnt clause whose first literal is the one to follow, and sets it.
func (e *engine) add(lits []lit) bool {
	if len(lits) == 1 {
		return e.set(lits[0], reason{kind: byLits})
	}
	c := clause{lits: lits, activity: e.clauseInc, lbd: int32(e.lbd)}
	var id int32
	if n := len(e.free); n > 0 {
		id = e.free[n-1]
		e.free = e.free[:n-1]
		e.clauses[id] = c
	} else {
		id = int32(len(e.clauses))
		e.clauses = append(e.clauses, c)
	}
	e.learnt++
	e.size += len(lits)
	e.watch(lits[0], id, lits[1])
	e.watch(lits[1], id, lits[0])
	return e.set(lits[0], reason{kind: byClause, a: id})
}

// reduce forgets the less active half of the learnt clauses but for the best, and more
// of them if they hold more literals than they may. No level may be open; what
// is left of level 0's reasons goes.
func (e *engine) reduce(literals int) {
	for i := range e.trail {
		e.trail[i].why = reason{kind: byLits}
	}
	var ids []int32
	for i := range e.clauses {
		c := &e.clauses[i]
		if !c.dead && len(c.lits) > 2 {
			ids = append(ids, int32(i))
		}
	}
	slices.SortFunc(ids, func(a, b int32) int {
		x, y := &e.clauses[a], &e.clauses[b]
		switch {
		case x.lbd <= bestLBD != (y.lbd <= bestLBD):
			if x.lbd <= bestLBD {
				return 1
			}
			return -1
		case x.activity < y.activity:
			return -1
		case x.activity > y.activity:
			return 1
		}
		return int(a - b)
	})
	for n, id := range ids {
		if n >= len(ids)/2 && e.size <= literals/2 {
			break
		}
		c := &e.clauses[id]
		e.size -= len(c.lits)
		e.learnt--
		c.dead, c.lits = true, nil
	}
	for x, ws := range e.watches {
		kept := ws[:0]
		for _, w := range ws {
			if !e.clauses[w.clause].dead {
				kept = append(kept, w)
			}
		}
		e.watches[x] = kept
	}
	e.free = e.free[:0]
	for i := range e.clauses {
		if e.clauses[i].dead {
			e.free = append(e.free, int32(i))
		}
	}
}

func (e *engine) bumpClause(id int32) {
	c := &e.clauses[id]
	c.activity += e.clauseInc
	if c.activity > 1e100 {
		for i := range e.clauses {
			e.clauses[i].activity *= 1e-100
		}
		e.clauseInc *= 1e-100
	}
}

// bestLBD is up to how many decision levels meet in a clause that is kept for longest.
const bestLBD = 2

func (e *engine) decay() {
	e.splits.decay()
	e.clauseInc /= 0.999
}
