package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/suggest"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// An Axis is one setting of a grid with the values that it takes, as text.
type Axis struct {
	Key    string
	Values []string
}

// Grid is a set of settings, each combination of which is a point. Keys are model, hardware, batch, chunk, dtype,
// grain, variant, the names of scheduler.Stages, and hardware.FIELD for the fields of hardware.Description. The last
// axis changes fastest.
type Grid struct {
	Axes []Axis
	// Network and Options hold the settings that no axis varies.
	Network network.Options
	Options scheduler.Options
}

// gridDefaults are the values of axes that a grid does not have; "" are not printed.
var gridDefaults = []Axis{{"hardware", []string{"stcp920"}}, {"dtype", []string{"f16"}}, {"batch", []string{"1"}},
	{"variant", []string{recipes.Default}}}

// stepByStep is the variant whose decisions an axis sets where the grid names none: the default takes the fastest of
// several as a whole.
var stepByStep = []string{"cross-layer"}

const (
	// maxPoints is the most points that a grid may have.
	maxPoints = 100_000

	hardwareField = "hardware."
)

// decides reports whether an axis sets a decision of the scheduler.
func (a Axis) decides() bool {
	_, err := scheduler.LookupStage(a.Key)
	return err == nil
}

// GridKeys lists what an axis may be called, but for the fields of accelerators.
func GridKeys() []string {
	keys := []string{"model", "hardware", "batch", "chunk", "dtype", "grain", "variant"}
	for _, st := range scheduler.Choices() {
		keys = append(keys, st.Name)
	}
	return keys
}

// A GridError is a mistake in a grid: in an axis, or in one of its values.
type GridError struct {
	Key, Value string // Value is "" where the key is wrong
	Err        error
}

func (e *GridError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("%s: %v", e.Key, e.Err)
	}
	return fmt.Sprintf("%s=%s: %v", e.Key, e.Value, e.Err)
}

func (e *GridError) Unwrap() error { return e.Err }

// Plan is a grid whose points can all be run, as far as is known without running them.
type Plan struct {
	// Axes are the axes of the grid, defaults included. Values
	// that are multiples stand as what they come to, if that is the same everywhere.
	Axes   []Axis
	points []point
}

// point is one combination.
type point struct {
	at     []int    // index of the value on each axis
	values []string // on each axis; multiples stand as what they come to
	src    network.Network
	spec   *hardware.Spec
	batch  int64
	v      scheduler.Recipe
	opt    scheduler.Options
}

// Points is the number of points.
func (p *Plan) Points() int { return len(p.points) }

// Plan checks a grid and makes its points.
func (g Grid) Plan() (*Plan, error) {
	p := &Plan{}
	for _, d := range gridDefaults {
		if !slices.ContainsFunc(g.Axes, func(a Axis) bool { return a.Key == d.Key }) {
			if d.Key == "variant" && slices.ContainsFunc(g.Axes, Axis.decides) {
				d.Values = stepByStep
			}
			p.Axes = append(p.Axes, d)
		}
	}
	for _, a := range g.Axes {
		p.Axes = append(p.Axes, Axis{a.Key, slices.Clone(a.Values)})
	}
	total := 1
	for i, a := range p.Axes {
		switch {
		case slices.ContainsFunc(p.Axes[:i], func(b Axis) bool { return b.Key == a.Key }):
			return nil, &GridError{Key: a.Key, Err: errors.New("is set twice: give all its values at once, with commas between")}
		case len(a.Values) == 0:
			return nil, &GridError{Key: a.Key, Err: errors.New("has no value")}
		case !slices.Contains(GridKeys(), a.Key) && !strings.HasPrefix(a.Key, hardwareField):
			keys := append(GridKeys(), hardwareField+"FIELD")
			return nil, &GridError{Key: a.Key,
				Err: fmt.Errorf("no setting%s", suggest.HintOr(a.Key, keys, ", expected one of "+strings.Join(keys, ", ")))}
		}
		for k, v := range a.Values {
			if v == "" {
				return nil, &GridError{Key: a.Key, Err: errors.New("has an empty value")}
			}
			if slices.Contains(a.Values[:k], v) {
				return nil, &GridError{a.Key, v, errors.New("stands there twice")}
			}
		}
		if total *= len(a.Values); total > maxPoints {
			return nil, fmt.Errorf("the grid has more than %d points", maxPoints)
		}
	}
	if !slices.ContainsFunc(p.Axes, func(a Axis) bool { return a.Key == "model" }) {
		return nil, &GridError{Key: "model", Err: errors.New("is missing: name a network")}
	}
	b := builder{grid: g, axes: p.Axes, sources: map[[3]string]network.Network{}, machines: map[string]changedSpec{}}
	at := make([]int, len(p.Axes))
	for range total {
		pt, err := b.point(at)
		if err != nil {
			return nil, err
		}
		p.points = append(p.points, *pt)
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]++; at[i] < len(p.Axes[i].Values) {
				break
			}
			at[i] = 0
		}
	}
	p.resolve()
	return p, nil
}

// resolve writes multiples as what they come to where all points agree.
func (p *Plan) resolve() {
	for i := range p.Axes {
		for k := range p.Axes[i].Values {
			var same []string
			for _, pt := range p.points {
				if pt.at[i] == k && !slices.Contains(same, pt.values[i]) {
					same = append(same, pt.values[i])
				}
			}
			if len(same) == 1 {
				p.Axes[i].Values[k] = same[0]
			}
		}
	}
}

type builder struct {
	grid     Grid
	axes     []Axis
	sources  map[[3]string]network.Network // by model, type and grain
	machines map[string]changedSpec        // by name and changes
}

type changedSpec struct {
	spec   *hardware.Spec
	values []string // of its changed fields
}

func (b *builder) point(at []int) (*point, error) {
	pt := &point{at: slices.Clone(at), opt: b.grid.Options}
	set := map[string]string{}
	for i, a := range b.axes {
		pt.values = append(pt.values, a.Values[at[i]])
		set[a.Key] = a.Values[at[i]]
	}
	whole := func(key string, least int64) (int64, error) {
		n, err := strconv.ParseInt(set[key], 10, 64)
		if err != nil || n < least {
			return 0, &GridError{key, set[key], fmt.Errorf("expected a whole number of at least %d", least)}
		}
		return n, nil
	}
	var err error
	if pt.batch, err = whole("batch", 1); err != nil {
		return nil, err
	}
	if _, ok := set["chunk"]; ok {
		if pt.opt.Chunk, err = whole("chunk", 0); err != nil {
			return nil, err
		}
	}
	if pt.src, err = b.source(set["model"], set["dtype"], set["grain"]); err != nil {
		return nil, err
	}
	if pt.spec, err = b.machine(pt, set["hardware"]); err != nil {
		return nil, err
	}
	if pt.v, err = recipes.Lookup(set["variant"]); err != nil {
		return nil, &GridError{"variant", set["variant"], err}
	}
	var picks []scheduler.Pick
	for _, a := range b.axes {
		if st, err := scheduler.LookupStage(a.Key); err == nil {
			if _, err := st.Lookup(set[a.Key]); err != nil {
				return nil, &GridError{a.Key, set[a.Key], err}
			}
			picks = append(picks, scheduler.Pick{Stage: a.Key, Strategy: set[a.Key]})
		}
	}
	if pt.v, err = pt.v.Replace(pt.opt, picks...); err != nil {
		key := "variant"
		if len(picks) > 0 {
			key = picks[len(picks)-1].Stage
		}
		return nil, &GridError{Key: key, Err: err}
	}
	return pt, nil
}

func (b *builder) source(name, dtype, parts string) (network.Network, error) {
	key := [3]string{name, dtype, parts}
	if s, ok := b.sources[key]; ok {
		return s, nil
	}
	opt := b.grid.Network
	var err error
	if opt.DType, err = model.ParseDType(dtype); err != nil {
		return network.Network{}, &GridError{"dtype", dtype, err}
	}
	if parts != "" {
		if opt.Grain, err = grain.Parse(parts); err != nil {
			return network.Network{}, &GridError{"grain", parts, err}
		}
	}
	s, err := network.Open(name, opt)
	if err != nil {
		return network.Network{}, err
	}
	b.sources[key] = s
	return s, nil
}

// machine is the accelerator of a point, the values of whose changed fields it sets.
func (b *builder) machine(pt *point, name string) (*hardware.Spec, error) {
	key := name
	for i, a := range b.axes {
		if strings.HasPrefix(a.Key, hardwareField) {
			key += "\x00" + pt.values[i]
		}
	}
	m, ok := b.machines[key]
	if !ok {
		d, err := hardware.Describe(name)
		if err != nil {
			return nil, err
		}
		paths := map[string]string{}
		var last *GridError
		for i, a := range b.axes {
			field, ok := strings.CutPrefix(a.Key, hardwareField)
			if !ok {
				continue
			}
			path, err := d.Field(field)
			if err != nil {
				return nil, &GridError{Key: a.Key, Err: err}
			}
			if other, twice := paths[path]; twice {
				return nil, &GridError{Key: a.Key, Err: fmt.Errorf("is the field %s, which %s sets too", path, other)}
			}
			paths[path] = a.Key
			last = &GridError{Key: a.Key, Value: pt.values[i]}
			if d, err = d.With(field, pt.values[i]); err != nil {
				last.Err = err
				return nil, last
			}
			text, err := d.Value(field)
			if err != nil {
				return nil, err
			}
			m.values = append(m.values, text)
		}
		if m.spec, err = d.Spec(); err != nil {
			// The mistake is in the field that it names, if that is one of the grid's.
			var wrong *hardware.Error
			if errors.As(err, &wrong) && paths[wrong.Field] != "" {
				i := slices.IndexFunc(b.axes, func(a Axis) bool { return a.Key == paths[wrong.Field] })
				return nil, &GridError{b.axes[i].Key, pt.values[i], err}
			}
			return nil, err
		}
		b.machines[key] = m
	}
	n := 0
	for i, a := range b.axes {
		if strings.HasPrefix(a.Key, hardwareField) {
			pt.values[i] = m.values[n]
			n++
		}
	}
	return m.spec, nil
}

// Explored is a point that was computed.
type Explored struct {
	Values []string     `json:"-"`   // on each axis of the plan
	Row    *harness.Row `json:"row"` // nil: no schedule, see Err
	// LimitedBy is the bottleneck, and LimitShare how much of the time it is busy; see Result.Limit.
	LimitedBy  string  `json:"limited_by"`
	LimitShare float64 `json:"limit_share"`
	Err        string  `json:"error"`
	at         []int
}

// ExploreOptions are the settings of Explore. The zero value is good.
type ExploreOptions struct {
	// Workers is the number of points computed at a time; 0: GOMAXPROCS. The results do not depend on it.
	Workers int
	// Progress, if not nil, is called at each start and end, by one goroutine at a time.
	Progress func(harness.Progress)
}

// Experiment is the grid as an experiment, whose cells are the points: to be kept, and to be
// computed in parts. Its report calls done with all of them, in the order of [Plan.Explore].
func (p *Plan) Experiment(name string, done func([]Explored) error) harness.Experiment {
	return harness.Experiment{Name: name, Plan: func() (*harness.Plan, error) {
		h := &harness.Plan{Report: harness.Of(func(list []Explored) (*harness.Report, error) {
			for i := range list {
				list[i].Values, list[i].at = p.points[i].values, p.points[i].at
			}
			return &harness.Report{}, done(list)
		})}
		networks := map[string]string{} // hashes by model, type and grain
		for i := range p.points {
			pt := &p.points[i]
			what := ""
			for k, a := range p.Axes {
				if a.Key == "model" || a.Key == "dtype" || a.Key == "grain" {
					what += pt.values[k] + "\x00"
				}
			}
			if networks[what] == "" {
				g, err := pt.src.Graph(1)
				if err != nil {
					return nil, err
				}
				if networks[what], err = harness.Hash(g); err != nil {
					return nil, err
				}
			}
			machine, err := harness.Hash(pt.spec)
			if err != nil {
				return nil, err
			}
			h.Cells = append(h.Cells, harness.Cell{
				Key: fmt.Sprintf("point-%d", i), Label: p.label(i),
				Inputs: map[string]any{
					"model": pt.src.Name, "network_sha256": networks[what], "hardware": pt.spec.Name,
					"hardware_sha256": machine, "batch": pt.batch, "variant": pt.v, "options": pt.opt,
				},
				Run: func(ctx context.Context) (any, error) { return pt.run(ctx), nil },
			})
		}
		return h, nil
	}}
}

// Explore schedules and simulates all points, and returns results in their order. A point without a legal schedule or
// value has its error as result. If ctx ends, Explore returns the finished results and ctx's error.
func (p *Plan) Explore(ctx context.Context, opt ExploreOptions) ([]Explored, error) {
	if opt.Workers < 0 {
		return nil, fmt.Errorf("workers is %d, expected 0 or more", opt.Workers)
	}
	opt.Workers = cmp.Or(opt.Workers, runtime.GOMAXPROCS(0))
	track := harness.NewTracker("", 0, len(p.points), opt.Progress)
	found := make([]*Explored, len(p.points))
	var g errgroup.Group
	g.SetLimit(opt.Workers)
	for i := range p.points {
		g.Go(func() error {
			if ctx.Err() != nil {
				return nil
			}
			label := p.label(i)
			track.Start(label)
			e := p.points[i].run(ctx)
			track.End(label, ctx.Err() == nil)
			if ctx.Err() == nil {
				found[i] = &e
			}
			return nil
		})
	}
	_ = g.Wait() // a point's error is a result
	var list []Explored
	for _, e := range found {
		if e != nil {
			list = append(list, *e)
		}
	}
	if len(list) < len(found) {
		return list, ctx.Err()
	}
	return list, nil
}

// label names a point by the axes with several values.
func (p *Plan) label(i int) string {
	var parts []string
	for k, a := range p.Axes {
		if len(a.Values) > 1 || a.Key == "model" {
			parts = append(parts, p.points[i].values[k])
		}
	}
	return strings.Join(parts, " ")
}

func (pt *point) run(ctx context.Context) Explored {
	e := Explored{Values: pt.values, at: pt.at}
	r, err := scheduler.Run(ctx, pt.src, pt.spec, pt.batch, pt.v, pt.opt)
	if err != nil {
		e.Err = err.Error()
		return e
	}
	policy := harness.Tuned
	if pt.opt.Chunk != 0 {
		policy = "given"
	}
	row := harness.RowOf(r, policy, "1/s")
	e.Row = &row
	e.LimitedBy, e.LimitShare = r.Limit()
	e.LimitShare = harness.Round(e.LimitShare)
	return e
}

// exploredJSON is a row as JSON. Settings that are no columns of their own stand under settings.
type exploredJSON struct {
	Settings   map[string]string `json:"settings"` // by key of the axis
	Variant    string            `json:"variant"`  // with what replaces its decisions
	Chunk      int64             `json:"chunk"`    // that was used
	Throughput *float64          `json:"throughput_per_s"`
	Latency    *float64          `json:"latency_s"`
	Energy     *float64          `json:"energy_j"` // null also: no figures
	Power      *float64          `json:"average_power_w"`
	Bound      *float64          `json:"lower_bound_s"`
	MME        *float64          `json:"mme_utilization"`
	VME        *float64          `json:"vme_utilization"`
	Moved      *harness.Levels   `json:"moved_bytes"`
	PeakLLB    *int64            `json:"llb_peak_bytes"`
	PeakL1     *int64            `json:"l1_peak_bytes_per_core"`
	Time       *harness.TimeLost `json:"time"`
	LimitedBy  string            `json:"limited_by"`
	LimitShare float64           `json:"limit_share"`
	Notes      []string          `json:"notes,omitempty"`
	Error      string            `json:"error,omitempty"`
}

// JSON is a value that package encoding/json writes as one object: all numbers are null where there is no schedule.
func (p *Plan) JSON(e Explored) any {
	j := exploredJSON{Settings: map[string]string{}, LimitedBy: e.LimitedBy, LimitShare: e.LimitShare, Error: e.Err}
	for i, a := range p.Axes {
		j.Settings[a.Key] = e.Values[i]
	}
	if r := e.Row; r != nil {
		j.Variant, j.Chunk, j.Notes = r.Variant, r.BatchesPerCluster, r.Notes
		j.Throughput, j.Latency, j.Bound = &r.ThroughputPerSecond, &r.LatencySeconds, &r.LowerBoundSeconds
		j.Energy, j.Power = r.EnergyJoules, r.AveragePowerWatts
		j.MME, j.VME, j.Moved, j.PeakLLB, j.PeakL1, j.Time = &r.MMEUtilization, &r.VMEUtilization, &r.MovedBytes,
			&r.PeakLLBBytes, &r.PeakL1CoreBytes, &r.Time
	}
	return j
}

// CSV has a header, a column per axis, and the numbers, which are empty where there is no schedule.
func (p *Plan) CSV(list []Explored) []byte {
	var fields []harness.Field[Explored]
	for i, a := range p.Axes {
		fields = append(fields, harness.Field[Explored]{Name: a.Key, Of: func(e Explored) any { return e.Values[i] }})
	}
	scheduled := func(name string, of func(Explored) any) {
		fields = append(fields, harness.Field[Explored]{Name: name, Of: func(e Explored) any {
			if e.Row == nil {
				return nil
			}
			return of(e)
		}})
	}
	scheduled("used_chunk", func(e Explored) any { return e.Row.BatchesPerCluster })
	for _, f := range harness.Fields[harness.Row](
		"throughput_per_s latency_s energy_j average_power_w lower_bound_s mme_utilization vme_utilization ddr_moved_bytes llb_moved_bytes l1_moved_bytes llb_peak_bytes l1_peak_bytes_per_core " +
			"compute_s move_s launch_s idle_s") {
		scheduled(f.Name, func(e Explored) any { return f.Of(*e.Row) })
	}
	scheduled("limited_by", func(e Explored) any { return e.LimitedBy })
	scheduled("limit_share", func(e Explored) any { return e.LimitShare })
	fields = append(fields, harness.Field[Explored]{Name: "error", Of: func(e Explored) any { return e.Err }})
	return harness.CSV(list, fields)
}
