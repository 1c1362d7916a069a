package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/cost"
	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// A tuner keeps the fastest of the schedules of a run.
type tuner struct {
	net           network.Network
	machine, spec *hardware.Spec // as described, and as decisions see it
	batch         int64
	recipes       []Recipe
	opt           run
	wide, tune    bool // see Recipe.wide; several chunks are tried
	best          *Result
	least         int64 // picoseconds of best
	by            int   // its recipe's number
	found         *run  // the options of best; those of opt: the same
	tried         []Trial
	err           error    // of the first chunk that failed, or of the largest whose program is too large
	more          []int64  // chunks that do not divide a share and were tried
	also          []string // what else was tried
	near          func(a attempt, opt run, ps int64)
	far           int   // how many comparisons in a row gave nothing near the fastest
	failed        error // behind which no more is compared
}

// wide reports whether a recipe is tried in all ways; see Recipe.Scouts.
func (r Recipe) wide() bool { return len(r.Scouts) > 0 && len(r.Fallback) > 0 }

const (
	// nearly is how many times slower than the fastest so far its first recipes may be for the others to be tried, too.
	nearly = 1.25
	// busiest is the share of the peak rate that products reach at most where fewer cores or clusters are tried.
	busiest = 0.7
	// weightBound is the share of weight loads in the latency above which fewer clusters are tried: they load fewer.
	weightBound = 0.35
	// hopeful bounds the price of layers over clusters, in times of the fastest latency so far: above it nothing is
	// simulated. fewLayers is the largest network that is priced.
	hopeful   = 1.1
	fewLayers = 64
	// Of at most fewCores cores each smaller number is tried for schedules of fewSteps steps, up to fewBusiest.
	fewSteps   = 40
	fewCores   = 64
	fewBusiest = 0.9
	// oddCores bounds the machines on which shares that do not fit the cores try each number above a power of two.
	oddCores = 16
)

// newTrials lets recipes compete.
func (t *tuner) newTrials(opt run) *trials {
	c := &trials{recipes: t.recipes, weights: opt.Clusters.weights(t.machine), opt: opt, compared: t.tune || t.wide,
		near: t.near, goal: t.least,
		wide: t.wide && !opt.InPlace && opt.Clusters != OverLayer,
		make: func(ctx context.Context, r Recipe, opt run) (*Result, error) {
			return prepare(ctx, t.net, t.machine, t.batch, r, opt)
		},
		measure: func(ctx context.Context, made *Result, limit int64) (int64, error) {
			if opt.alone && made.figures && made.Recipe.Name == t.recipes[0].Name && limit == math.MaxInt64 {
				if err := made.Simulate(ctx); err != nil {
					return 0, err
				}
				return made.Sim.TotalPs, nil
			}
			return made.latency(ctx, limit)
		}}
	if t.wide && opt.Uneven == schedule.UnevenFastest {
		cores := cmp.Or(opt.part.cores, schedule.CoresWithL1(t.spec))
		c.divisors = float64(cores) / float64(int64(1)<<bits.Len64(uint64(cores))/2)
	}
	return c
}

// all tries the chunks and, of a wide recipe, what else may be faster.
func (t *tuner) all(ctx context.Context, chunks []int64) error {
	for i, chunk := range chunks {
		if t.opt.Chunks != nil && t.tune {
			t.opt.Chunks(chunk, i, len(chunks))
		}
		if err := t.chunk(ctx, chunk); err != nil {
			return err
		}
	}
	if t.wide && t.best != nil {
		return t.widen(ctx, chunks)
	}
	return nil
}

func (t *tuner) chunk(ctx context.Context, chunk int64) error {
	c, made := t.newTrials(t.opt), tried{}
	if !t.wide {
		made = c.fastest(ctx, chunk)
	} else if err := c.begin(ctx, chunk); err != nil {
		made.err = err
	} else {
		made = t.compete(ctx, c)
	}
	return t.take(ctx, chunk, made, true)
}

// compete lets the recipes that differ most compete, and if one of them is near the fastest so far the others as well.
// Of groups in place, those whose loops are by rules stand for those with tiles.
func (t *tuner) compete(ctx context.Context, c *trials) tried {
	c.rounds(ctx, func(a attempt) bool { return t.scout(a.recipe) && !t.tiles(a) })
	made := c.best(ctx)
	if made.made == nil && (made.err == nil || fatal(ctx, made.err)) || float64(made.ps) > float64(t.least)*nearly {
		return made
	}
	var placed *Result // the fastest groups in place
	for i, r := range t.recipes {
		x := c.all[i]
		if r.Name == table.Greedy && x.made != nil && x.made.InPlace && float64(x.ps) <= nearly*float64(c.least) {
			placed = x.made
		}
	}
	c.rounds(ctx, func(a attempt) bool {
		if t.tiles(a) {
			return placed != nil && placed.Uneven == a.pieces
		}
		return !t.scout(a.recipe)
	})
	return c.best(ctx)
}

// scout reports whether a recipe is tried before others: those that differ most.
func (t *tuner) scout(recipe int) bool {
	return slices.Contains(t.recipes[0].Scouts, t.recipes[recipe].Name)
}

// tiles reports whether an attempt is of groups in place, with tiles.
func (t *tuner) tiles(a attempt) bool {
	return a.inPlace && t.recipes[a.recipe].Strategy("nest").Tiles
}

// take keeps a schedule if it is the fastest, and lists its chunk.
func (t *tuner) take(ctx context.Context, chunk int64, made tried, list bool) error {
	if made.made == nil {
		if fatal(ctx, made.err) {
			return made.err
		} else if !list {
			return nil
		}
		made.err = cmp.Or(made.err, errSlower)
		if large := new(lower.TooLargeError); t.err == nil || errors.As(made.err, &large) {
			t.err = made.err
		}
		t.tried = append(t.tried, Trial{Chunk: chunk, Err: made.err})
		return nil
	}
	if list {
		t.tried = append(t.tried, Trial{Chunk: chunk, ThroughputPerSecond: float64(t.batch) / (float64(made.ps) * 1e-12)})
	}
	if made.ps < t.least || t.wide && list && made.ps == t.least { // larger ones come first
		t.best, t.least = made.made, made.ps
		t.by = slices.IndexFunc(t.recipes, func(r Recipe) bool { return r.Name == made.made.Recipe.Name })
		if t.opt.rival != nil {
			t.opt.rival.ps = made.ps
		}
	}
	return nil
}

// name gives the fastest schedule the first recipe's name, and says what it was chosen from.
func (t *tuner) name(best *Result) {
	if was := t.opt.Uneven.Alternatives()[0]; best.Uneven != was {
		best.Notes = append(best.Notes, fmt.Sprintf("--uneven %v is faster here than --uneven %v", best.Uneven, was))
	}
	if first, from := t.recipes[0], best.Recipe.Name; from != first.Name {
		best.winner, best.Recipe = best.Recipe, first
		if best.InPlace && !t.opt.InPlace {
			from += " in place"
		}
		best.Notes = append(best.Notes, fmt.Sprintf("%s: the schedule is that of %s, the fastest of %d", first.Name, from,
			len(t.recipes)))
	}
	if more := slices.DeleteFunc(t.more, func(chunk int64) bool { return chunk == best.Chunk }); len(more) > 0 {
		t.also = slices.Insert(t.also, 0, "chunks of "+listed(more))
	}
	best.Also = slices.Compact(t.also)
}

// besides tries sizes with other options, by the fastest recipe so far and those with groups.
func (t *tuner) besides(ctx context.Context, opt run, chunks ...int64) {
	for _, chunk := range chunks {
		t.compare(ctx, opt, chunk, t.least, func(recipe int) bool {
			return recipe == t.by || t.scout(recipe) && (opt.share > 0 || recipe > 0)
		})
	}
}

// compare tries a size with other options by some recipes (nil: all), and says how long the fastest takes;
// math.MaxInt64: more than a limit.
func (t *tuner) compare(ctx context.Context, opt run, chunk, limit int64, by func(recipe int) bool) (ps int64) {
	c := t.newTrials(opt)
	if t.failed = cmp.Or(t.failed, c.begin(ctx, chunk)); t.failed != nil {
		return math.MaxInt64
	}
	c.least = limit
	was, made := t.least, tried{}
	if by == nil {
		made = t.compete(ctx, c)
	} else {
		c.rounds(ctx, func(a attempt) bool { return !t.tiles(a) && by(a.recipe) })
		made = c.best(ctx)
	}
	if t.far++; made.made != nil {
		t.far = 0
	}
	if t.failed = t.take(ctx, chunk, made, false); t.least < was {
		t.found = &opt
	}
	return made.ps
}

// widen tries what differs from the fastest of the chunks that divide a share in more than the recipe, and at last all
// recipes in the same way.
func (t *tuner) widen(ctx context.Context, divisors []int64) error {
	t.found = &t.opt
	t.more = t.others(divisors)
	t.besides(ctx, t.opt, t.more...)
	if t.failed != nil || t.opt.Clusters != OverBatch || t.spec.Chips != nil {
		return t.failed
	}
	was := t.found
	again := func() {
		if t.found != was {
			t.compare(ctx, *t.found, t.best.Chunk, t.least, nil)
			was = t.found
		}
	}
	t.fewer(ctx, divisors)
	again()
	t.less(ctx, schedule.LLB)
	t.less(ctx, schedule.L1)
	again()
	return t.failed
}

// promising lists the fastest chunk, and those tried that are nearly as fast or that or accepts.
func (t *tuner) promising(or func(chunk int64) bool) []int64 {
	chunks, rate := []int64{t.best.Chunk}, float64(t.batch)/(nearly*float64(t.least)*1e-12)
	for _, x := range t.tried {
		if x.Err == nil && (x.ThroughputPerSecond >= rate || or(x.Chunk)) {
			chunks = append(chunks, x.Chunk)
		}
	}
	return chunks
}

// rests tries chunks near the fastest with other pieces for what is left of shares.
func (t *tuner) rests(ctx context.Context) {
	opt := t.opt
	opt.rests = t.opt.Uneven == schedule.UnevenFastest && t.spec.Part(1) != nil
	most := schedule.CoresWithL1(t.spec)
	fits := func(n int64) bool { return n%most == 0 || most%n == 0 }
	chunks := append(t.promising(fits), slices.DeleteFunc(slices.Clone(t.more), func(n int64) bool { return !fits(n) })...)
	slices.Sort(chunks)
	chunks = slices.DeleteFunc(slices.Compact(chunks), func(n int64) bool {
		return !opt.rests || !slices.ContainsFunc(t.best.Shares, func(share int64) bool { return share > 1 && share%n > 0 })
	})
	if len(chunks) > 0 {
		t.also = append(t.also, "other pieces for what is left beside chunks of "+listed(chunks))
	}
	t.besides(ctx, opt, chunks...)
	opt.cut = true
	t.besides(ctx, opt, slices.DeleteFunc(chunks, func(n int64) bool { return !fits(n) || n < 4 })...)
}

// fewer tries shares as large as the largest even one for all but the last cluster; and fewer clusters and cores as far
// as products leave time for it and, of clusters, weights take much of it.
func (t *tuner) fewer(ctx context.Context, divisors []int64) {
	t.rests(ctx)
	even := t.best.Shares[0]
	share := func(size int64, chunks ...int64) {
		t.also = append(t.also, fmt.Sprintf("shares of %d", size))
		try := t.opt
		try.share = size
		t.besides(ctx, try, chunks...)
	}
	if t.tune && !t.opt.Lines && t.best.Shares[t.best.active()-1] < even {
		chunks := append(t.others(divisors), min(even, MaxTunedChunk))
		chunks = append(chunks, t.promising(func(int64) bool { return false })...)
		slices.Sort(chunks)
		share(even, slices.Compact(chunks)...)
	}
	busy, loads, err := t.busy()
	if t.failed = cmp.Or(t.failed, err); t.failed != nil {
		return
	}
	shares := t.larger(even, busy, loads)
	for _, p := range shares {
		share(p.share, p.chunk)
	}
	most := schedule.CoresWithL1(t.spec)
	if t.spec.Part(most) == nil {
		return
	}
	try, tried := *t.found, []int64(nil)
	power, limit := int64(1)<<bits.Len64(uint64(most-1))/2, int64(nearly*float64(t.least))
	few, within := len(t.best.Schedule.Steps) <= fewSteps && most <= fewCores && t.near == nil, busiest
	odd := t.tune && most%even != 0 && even%most != 0 && most <= oddCores && t.near == nil
	if few || odd {
		within = fewBusiest
	}
	chunks, fastest := slices.Concat(divisors, t.more), t.best.Chunk
	for n := most - 1; n > 0 && busy*float64(most)/float64(n) <= within && (t.far < 2 || n >= power); n-- {
		if try.part.cores = n; t.spec.Part(n) == nil {
			continue
		}
		few := few || odd && n > power
		for _, chunk := range chunks {
			alike := chunk > 1 && n&(n-1) != 0 && n == most-most%chunk // as many for each element
			if few && (alike || chunk == even) && (try.share > 0 || chunk != fastest) {
				own := t.opt
				own.part.cores, own.rests = n, even%chunk > 0
				t.besides(ctx, own, chunk)
			}
		}
		if n == power && most%n != 0 && t.tune { // most layers have no use for more: whatever is fastest may be so here
			for _, chunk := range divisors {
				t.compare(ctx, try, chunk, limit, nil)
			}
		} else if few || (most%n == 0 || n&(n-1) == 0) && loads <= busiest && try.share == 0 {
			t.besides(ctx, try, fastest)
		} else {
			continue
		}
		tried = append(tried, n)
	}
	if try = *t.found; try.part.cores > 0 && try.share == 0 { // with so many cores a larger share may be faster
		for _, p := range shares {
			if try.share = p.share; busy*float64(p.share*most)/float64(even*try.part.cores) < busiest {
				t.besides(ctx, try, p.chunk)
			}
		}
	}
	if tried != nil {
		t.also = append(t.also, t.best.raise(fmt.Sprintf("%s of %d cores", listed(tried), most)))
	}
}

// overLayers tries to divide the layers over clusters instead of the batch, which becomes one chunk. It prices divisors
// of the clusters, powers of two, and one for each element, and simulates those with hopeful prices; the fastest also
// with results in the LLB where the L1s have less than half of them. Where there are several kinds of core it divides
// them over these, by the last recipe whose groups are not split, and if that is faster in quarters of the batch, too.
func (t *tuner) overLayers(ctx context.Context, options Options) error {
	own := slices.DeleteFunc(slices.Clone(t.recipes), func(r Recipe) bool { return len(r.Strategy("split").Needs) > 0 })
	for _, x := range dividers {
		if _, wrong := x.Name.machine(t.machine, t.opt.Level); x.Kinds && wrong == nil && t.batch <= MaxTunedChunk {
			if len(own) == 0 {
				return nil
			}
			in, quarter := state{tiles: &Memory{}}, slices.Max(schedule.Divisors(t.batch, max(1, t.batch/4)))
			for _, chunk := range slices.Compact([]int64{t.batch, quarter}) {
				t.divide(ctx, options, x.Name, in, own[len(own)-1], chunk)
				if t.best.Clusters != x.Name { // the whole batch is no faster: a quarter is not tried
					break
				}
			}
			return t.failed
		}
	}
	g, err := t.net.Graph(t.batch)
	if err != nil || len(schedule.Layers(g, schedule.ExecutionOrder(g))) > fewLayers {
		return err
	}
	by := -1
	for i, r := range t.recipes {
		if t.scout(i) && r.Name != table.Greedy && !r.wide() {
			by = i // the last, of groups that are split
		}
	}
	fastest, within := tried{ps: math.MaxInt64}, state{}
	for n := 2; n <= t.spec.Clusters && by >= 0; n++ {
		if t.spec.Clusters%n != 0 && n&(n-1) != 0 && int64(n) != t.batch {
			continue
		}
		in := state{tiles: &Memory{}, within: n}
		_, s, err := in.tiles.spread(ctx, g, clustersOf(t.spec, n), options, 1)
		if err != nil || s > hopeful*1e-12*float64(t.least) {
			continue
		}
		if made := t.divide(ctx, options, OverLayer, in, t.recipes[by], t.batch); made.made != nil && made.ps < fastest.ps {
			fastest, within = made, in
		}
	}
	if t.failed == nil && float64(fastest.ps) <= nearly*float64(t.least) && mostlyOutsideL1(fastest.made.Schedule) {
		t.divide(ctx, options, OverLayer, within, t.recipes[0], t.batch)
	}
	return cmp.Or(t.failed, ctx.Err())
}

// mostlyOutsideL1 reports whether the L1s have less than half of the bytes of all results.
func mostlyOutsideL1(s *schedule.Schedule) bool {
	inside, all := int64(0), int64(0)
	for _, v := range s.Values {
		all += v.Bytes
		if v.Level == schedule.L1 {
			inside += v.Bytes
		}
	}
	return 2*inside < all
}

// divide tries a division of the layers, by a recipe and in chunks of n.
func (t *tuner) divide(ctx context.Context, o Options, by Division, in state, r Recipe, n int64) (m tried) {
	x := *t
	x.recipes, x.wide, x.opt = []Recipe{r}, false, run{Options: o, state: in}
	x.opt.Clusters = by
	c := x.newTrials(x.opt)
	c.divisors = t.newTrials(t.opt).divisors
	m = c.fastest(ctx, n)
	t.failed = cmp.Or(t.failed, x.take(ctx, n, m, true))
	over := map[bool]string{true: "clusters", false: "kinds of core"}[by == OverLayer]
	t.best, t.least, t.also = x.best, x.least, append(t.also, "layers over "+over)
	return m
}

// A part is what of a cluster may be used.
type part struct {
	cores int64             // 0: all
	bytes [2]hardware.Bytes // of each L1, and of the LLB; 0: all
}

// part is the run's machine with a part of each cluster, the same for the same part.
func (m *Memory) part(spec *hardware.Spec, p part) *hardware.Spec {
	if p == (part{}) {
		return spec
	}
	made, known := m.parts.Load(p)
	if !known {
		less := spec.Clone()
		if p.cores > 0 {
			less = less.Part(p.cores)
		}
		for level, memory := range []*hardware.Memory{less.L1, less.LLB} {
			if p.bytes[level] > 0 {
				memory.SizeBytes = p.bytes[level]
			}
		}
		made, _ = m.parts.LoadOrStore(p, less)
	}
	return made.(*hardware.Spec)
}

// less tries to use powers of two of a memory's bytes, the same whatever its size is: of an LLB that the fastest
// schedule fills further, or that has most results, while that is faster; and of the L1s, whose size bounds tiles,
// until one is slower than the one before or far slower than the fastest. Where blocks repeat, bounds of tiles stay.
func (t *tuner) less(ctx context.Context, level schedule.Level) {
	memory := []*hardware.Memory{t.spec.L1, t.spec.LLB}[level]
	if memory == nil || level == schedule.L1 && (t.spec != t.machine || t.near != nil) {
		return
	}
	var tried []string
	last := []int64{math.MaxInt64, t.least - 1}[level]
	for n := bits.Len64(uint64(memory.SizeBytes-1)) - 1; n > 0; n-- {
		opt, fits := *t.found, level == schedule.LLB && t.best.Schedule.LLBActivationBytes <= 1<<n
		if fits { // the part bounds tiles alone; fewer cores were chosen for other tiles
			opt = t.opt
			opt.share = t.found.share
		}
		if opt.part.bytes[level] = 1 << n; fits && (t.near != nil || !mostlyOutsideL1(t.best.Schedule)) {
			break
		}
		tried = append(tried, opt.part.bytes[level].String())
		limit := min(last, int64(nearest*float64(t.least)))
		last = t.compare(ctx, opt, t.best.Chunk, limit, func(recipe int) bool {
			if split := len(t.recipes[t.by].Strategy("split").Needs) > 0; level == schedule.L1 {
				return recipe == 0 && split || recipe == t.by && !split // splits take long
			}
			return recipe == t.by || t.scout(recipe) && recipe > 0 && !fits
		})
		if t.failed != nil || last > limit {
			break
		}
	}
	if tried != nil {
		t.also = append(t.also, fmt.Sprintf("%s of the %s", strings.Join(tried, ", "), level.String()))
	}
}

// busy is the share of the peak rate that the products of the fastest schedule reach, and loads that of the DDR's for
// all weights, once for each cluster and chunk.
func (t *tuner) busy() (products, loads float64, err error) {
	g, err := t.net.Graph(t.best.Chunk)
	m, wrong := cost.NewWith(t.spec, t.opt.Cost)
	if err = cmp.Or(err, wrong); err != nil {
		return 0, 0, err
	}
	times := 1e12 / float64(t.least) * float64(t.best.Shares[0]) / float64(t.best.Chunk)
	ddr := float64(weightBytes(g)) * float64(t.best.active()) / t.spec.DDR.BandwidthBytesPerSecond
	return times * productSeconds(g, nil, m), times * ddr, nil
}

// others are the chunks beside the divisors of a share: powers of two, halves and so on, near the fastest.
func (t *tuner) others(divisors []int64) (list []int64) {
	if !t.tune {
		return nil
	}
	share, best := t.best.Shares[0], t.best.Chunk
	add := func(n int64) {
		if n <= min(MaxTunedChunk, 4*best) && 4*n >= best && !slices.Contains(divisors, n) && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	for n := int64(2); n < share; n *= 2 {
		add(n)
	}
	for n := int64(2); n <= 4; n++ {
		add((share + n - 1) / n)
	}
	slices.SortFunc(list, func(a, b int64) int { return cmp.Compare(b, a) })
	return list
}

// A portion is a cluster's share in chunks that divide it.
type portion struct{ share, chunk int64 }

// larger are shares beyond even ones, as far as products and loads leave time, for fewer clusters: the next power of
// two, whole chunks as many as even ones begin, and where loads take long up to four, powers of two, what divides all.
func (t *tuner) larger(even int64, busy, loads float64) (list []portion) {
	if !t.tune || t.opt.Lines { // bounds and certificates are of even shares
		return nil
	}
	passes := float64(t.best.active()) * float64(even) / float64(t.best.Chunk)
	add := func(p portion) {
		rarer := float64((t.batch+p.share-1)/p.share) * float64(p.share/p.chunk) / passes
		if p.share > even && p.chunk <= MaxTunedChunk && !slices.Contains(list, p) &&
			max(busy*float64(p.share)/float64(even)/busiest, loads*rarer) < 1 {
			list = append(list, p)
		}
	}
	if n := int64(1) << bits.Len64(uint64(even)); n < min(2*even, t.batch) {
		add(portion{n, n})
	}
	for _, chunk := range t.more {
		if n := (even + chunk - 1) / chunk * chunk; n < t.batch {
			add(portion{n, chunk})
		}
	}
	for all, k := int64(t.spec.Clusters), int64(t.spec.Clusters)-1; loads > weightBound && k > 0; k-- {
		if n := (t.batch + k - 1) / k; k <= 4 || all%k == 0 || k&(k-1) == 0 {
			add(portion{n, n})
		}
	}
	return list
}

func listed(numbers []int64) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ", ")
}

// trials lists the chunks in order, that of the fastest schedule with its throughput.
func (t *tuner) trials() []Trial {
	list := slices.DeleteFunc(t.tried, func(x Trial) bool { return x.Chunk == t.best.Chunk })
	list = append(list, Trial{Chunk: t.best.Chunk, ThroughputPerSecond: float64(t.batch) / (float64(t.least) * 1e-12)})
	slices.SortFunc(list, func(a, b Trial) int { return cmp.Compare(a.Chunk, b.Chunk) })
	return list
}
