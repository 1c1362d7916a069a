package cost

import (
	"cmp"
	"fmt"
	"math"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

// Model answers for one accelerator.
type Model struct {
	spec                    *hardware.Spec
	matrix, vector, special hardware.Unit
	hasMatrix               bool
	// loadCyclesPerByte is the time to bring a weight block from the L1.
	loadCyclesPerByte float64
	// Of elements of each type: times the matrix unit's rate, and by class of operations.
	paces [model.DTypes]struct {
		matrix                float64
		simple, move, special pace
	}
	custom   Custom // in place of formulas
	formulas *Model
	kinds    []*Model // of each kind of core, if there are several
}

// Custom is an operator cost of the caller's own: how long commands occupy the units of one core. Its methods get the
// formulas of this package for the machine at hand, to begin with or to scale. The answers must be positive where there
// is work and depend on the arguments alone: the schedulers and the generator of commands ask for the same tile again.
type Custom interface {
	// MatrixCycles is the time of one command of the matrix unit; of a transposed convolution's, of each of its
	// plain products, which add up.
	MatrixCycles(formulas *Model, d model.MatrixDims, dt model.DType) hardware.Cycles
	// VectorCycles is the time of one command of the vector unit and of one of the special unit.
	VectorCycles(formulas *Model, w model.VectorWork, dt model.DType) (vector, special hardware.Cycles)
}

// NewWith is New with another operator cost; nil is the formulas'. Peak rates, what
// is native and the size of weight blocks stay those of the description.
func NewWith(spec *hardware.Spec, c Custom) (*Model, error) {
	base, err := New(spec)
	if err != nil || c == nil {
		return base, err
	}
	own := func(formulas *Model) *Model {
		m := *formulas
		m.custom, m.formulas = c, formulas
		return &m
	}
	m := own(base)
	m.kinds = nil
	for _, k := range base.kinds {
		m.kinds = append(m.kinds, own(k))
	}
	return m, nil
}

// Spec is the accelerator. Of a [Model.Kind] it has the cores of the kind alone.
func (m *Model) Spec() *hardware.Spec { return m.spec }

// Kind is the model of a kind of core, by its place in [hardware.Spec.Kinds].
func (m *Model) Kind(k int) *Model {
	if m.kinds == nil {
		return m
	}
	return m.kinds[k]
}

// Kinds are the models of all kinds of core.
func (m *Model) Kinds() []*Model {
	if m.kinds == nil {
		return []*Model{m}
	}
	return m.kinds
}

// New prepares the cost model. It fails if the accelerator has no vector unit:
// every network has element-wise work. Of several kinds of core it answers for the first, but for peaks.
func New(spec *hardware.Spec) (*Model, error) {
	m, err := newModel(spec)
	if err != nil || !spec.Mixed() {
		return m, err
	}
	for k := range spec.Kinds() {
		kind, err := newModel(spec.Kind(k))
		if err != nil {
			return nil, err
		}
		m.kinds = append(m.kinds, kind)
	}
	return m, nil
}

func newModel(spec *hardware.Spec) (*Model, error) {
	m := &Model{spec: spec}
	m.matrix, m.hasMatrix = spec.UnitOf(hardware.Matrix)
	var hasVector, hasSpecial bool
	m.vector, hasVector = spec.UnitOf(hardware.Vector)
	m.special, hasSpecial = spec.UnitOf(hardware.Special)
	switch {
	case !hasVector && !hasSpecial:
		return nil, fmt.Errorf("accelerator %q has neither a vector nor a special unit", spec.Name)
	case !hasVector:
		m.vector = m.special
	case !hasSpecial:
		m.special = m.vector
	}
	if spec.L1 != nil {
		m.loadCyclesPerByte = spec.ClockHz / spec.L1.BandwidthBytesPerSecond
	}
	for i := range m.paces {
		dt, p := model.DType(i), &m.paces[i]
		p.matrix, _ = rate(m.matrix, dt)
		p.simple, p.move = m.pace(&m.vector, hardware.OpSimple, dt), m.pace(&m.vector, hardware.OpMove, dt)
		p.special = m.pace(&m.special, hardware.OpSpecial, dt)
	}
	return m, nil
}

// A pace is that of a class of operations on elements of a type.
type pace struct {
	lanes, cycles, ratio, least float64
	fill                        hardware.Cycles
}

func (m *Model) pace(u *hardware.Unit, class string, dt model.DType) pace {
	r, _ := rate(*u, dt)
	ratio := u.ClockRatio(m.spec)
	return pace{float64(u.Lanes) * r, u.CyclesPerOp[class], ratio, math.Ceil(float64(u.LeastCycles) * ratio), m.fill(*u)}
}

// of is the time of so many operations.
func (p *pace) of(n int64) hardware.Cycles {
	work := math.Ceil(math.Ceil(float64(n)/p.lanes) * p.cycles * p.ratio)
	return hardware.Cycles(math.Max(work, p.least)) + p.fill
}

// rate is the throughput multiplier for a dtype: the spec's own figure or, where it has none, that of F16 scaled by the
// element size, as a unit with a fixed width in bytes has, and not less than that of a wider type, to which elements
// are unpacked. of is the type whose figure it is.
func rate(u hardware.Unit, dt model.DType) (r float64, of model.DType) {
	f, size, of := figure(u.Rate, dt)
	if r = f / size; r == 0 {
		r = 1
	}
	for d := range model.DType(model.DTypes) {
		if v := u.Rate[d.String()]; v > r && !u.Supports(dt.String()) && d.Bits() > dt.Bits() &&
			d.IsFloat() == dt.IsFloat() {
			r, of = v, d
		}
	}
	return r, of
}

// figure returns the figure of a dtype, or of the first that there is of F16, F32, BF16 and I8; size is
// how many times larger an element of the dtype is than one that the figure is for, of less than a byte one of a byte.
func figure(m map[string]float64, dt model.DType) (f, size float64, of model.DType) {
	for _, d := range []model.DType{dt, model.F16, model.F32, model.BF16, model.I8} {
		if v, ok := m[d.String()]; ok {
			return v, float64(max(dt.Bits(), min(8, d.Bits()))) / float64(d.Bits()), d
		}
	}
	return 0, 1, dt
}

// Assumed says from which type the matrix unit's rate for a dtype is taken; empty: the rate stands in the spec.
func (m *Model) Assumed(dt model.DType) string {
	r, of := rate(m.matrix, dt)
	switch f := m.matrix.Rate[of.String()]; {
	case !m.hasMatrix || m.matrix.Supports(dt.String()):
		return ""
	case f == 0:
		return "1"
	default:
		return fmt.Sprintf("%.3g times that of %v", r/f, of)
	}
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// MatrixCycles is the time of one matrix command on one unit. Without a matrix
// unit the vector unit does one multiply-add per lane.
func (m *Model) MatrixCycles(d model.MatrixDims, dt model.DType) hardware.Cycles {
	if d.Reps <= 0 || d.M <= 0 || d.N <= 0 || d.K <= 0 {
		return 0
	}
	if m.custom != nil {
		sum := hardware.Cycles(0)
		for p := range d.Products() {
			sum += m.custom.MatrixCycles(m.formulas, p, dt)
		}
		return sum
	}
	if !m.hasMatrix {
		macs := int64(0)
		for p := range d.Products() {
			macs += p.Reps * p.M * p.N * p.K
		}
		return m.paces[dt].simple.of(macs)
	}
	r, ratio, fill := m.paces[dt].matrix, m.matrix.ClockRatio(m.spec), m.fill(m.matrix)
	all, busy := 0.0, 0.0
	for p := range d.Products() {
		blocks := float64(p.Reps) * float64(ceilDiv(p.K, int64(m.matrix.Rows))*ceilDiv(p.N, int64(m.matrix.Cols)))
		a := Array{int64(m.matrix.Rows), int64(m.matrix.InFlight), ratio/r + m.feed(float64(p.M), float64(p.N), dt),
			m.blockCycles(dt), float64(fill)}
		all, busy = all+blocks, busy+blocks*a.Cycles(p.M, p.Line)
	}
	return hardware.Cycles(math.Ceil(busy+(all-1)*m.matrix.BlockCycles*ratio)) + fill
}

// Array is how a matrix unit passes rows by a block of weights: Row cycles each, and Load at least. Of commands in
// flight, each passes at most Rows, of one line of a convolution's results, and leaves Fill cycles after them.
type Array struct {
	Rows, InFlight  int64
	Row, Load, Fill float64
}

// Cycles is the time of so many rows and a block, in lines of so many rows; 0: in one line.
func (a *Array) Cycles(rows, line int64) float64 {
	if a.InFlight == 0 || rows == 0 {
		return math.Max(float64(rows)*a.Row, a.Load)
	}
	if line == 0 || line > rows {
		line = rows
	}
	commands := rows/line*ceilDiv(line, a.Rows) + ceilDiv(rows%line, a.Rows)
	// The first command brings the weights.
	busy := float64(rows)*a.Row + math.Max(0, a.Load-float64(min(line, a.Rows))*a.Row)
	return math.Max(busy, (busy+float64(commands)*a.Fill)/float64(a.InFlight))
}

// blockCycles is the least time of a block of the matrix unit's stationary operand.
func (m *Model) blockCycles(dt model.DType) float64 {
	load := m.loadCyclesPerByte * float64(int64(m.matrix.Rows)*int64(m.matrix.Cols)) * dt.Size()
	return math.Max(load, float64(m.matrix.LeastCycles)*m.matrix.ClockRatio(m.spec))
}

// feed is what a row and a block take longer than at the unit's rate: by the clock under load, and by the operands
// where the matrix unit loads them in turn with computing. Of the tiles of results that it holds, it is least for
// squares, or for all of the shorter side.
func (m *Model) feed(rows, columns float64, dt model.DType) float64 {
	u, slower := &m.matrix, 0.0
	if load := m.spec.LoadClockHz; load > 0 {
		slower = (m.spec.ClockHz/load - 1) * u.ClockRatio(m.spec) / m.paces[dt].matrix
	}
	if u.OperandBytesPerSecond == 0 {
		return slower
	}
	held := float64(u.ResultsHeld)
	high := math.Min(rows, math.Max(math.Sqrt(held), held/columns))
	wide := math.Min(columns, held/high)
	bytes := float64(int64(u.Rows)*int64(u.Cols)) * dt.Size() * (1/high + 1/wide)
	return slower + bytes/u.OperandBytesPerSecond*m.spec.ClockHz
}

// fill is a unit's fill in the chip's cycles.
func (m *Model) fill(u hardware.Unit) hardware.Cycles {
	return hardware.Cycles(math.Ceil(float64(u.FillCycles) * u.ClockRatio(m.spec)))
}

// VectorCycles is the time of a vector command's simple operations and moves on
// the vector unit and of its special functions on the special unit.
func (m *Model) VectorCycles(w model.VectorWork, dt model.DType) (vector, special hardware.Cycles) {
	if m.custom != nil && w.Total() > 0 {
		return m.custom.VectorCycles(m.formulas, w, dt)
	}
	p := &m.paces[dt]
	if w.Simple > 0 {
		vector += p.simple.of(w.Simple)
	}
	if w.Move > 0 {
		vector += p.move.of(w.Move)
	}
	if w.Simple > 0 && w.Move > 0 {
		vector -= p.simple.fill
	}
	if w.Special > 0 {
		special = p.special.of(w.Special)
	}
	return vector, special
}

// SharedVector reports whether special functions run on the vector unit's hardware, so that the two cannot overlap.
func (m *Model) SharedVector() bool {
	return m.special.Name == m.vector.Name || m.special.SharesWith == m.vector.Name ||
		m.vector.SharesWith == m.special.Name
}

// MatrixRows and MatrixCols are the geometry that tiles should be multiples of.
func (m *Model) MatrixRows() int64 { return max(1, int64(m.matrix.Rows)) }

// MatrixCols is the other side of the geometry.
func (m *Model) MatrixCols() int64 { return max(1, int64(m.matrix.Cols)) }

// Picoseconds converts cycles; it rounds up.
func (m *Model) Picoseconds(c hardware.Cycles) int64 {
	return int64(math.Ceil(float64(c) * 1e12 / m.spec.ClockHz))
}

// PeakVectorOpsPerSecond is the chip's rate of simple F16 operations.
func (m *Model) PeakVectorOpsPerSecond(dt model.DType) float64 {
	sum := 0.0
	for _, k := range m.Kinds() {
		r, _ := rate(k.vector, dt)
		n := cmp.Or(k.spec.CoresWith(hardware.Vector), k.spec.CoresWith(hardware.Special))
		c := cmp.Or(k.vector.CyclesPerOp[hardware.OpSimple], 1)
		sum += float64(k.spec.Clusters/k.spec.Sides()*n) * float64(k.vector.Lanes) * r / c * k.spec.ClockHz /
			k.vector.ClockRatio(k.spec)
	}
	return sum
}

// PeakMACsPerSecond is the chip's rate of multiply-accumulates: of its matrix units, if there are any.
func (m *Model) PeakMACsPerSecond(dt model.DType) float64 {
	if !m.hasMatrix {
		return m.PeakVectorOpsPerSecond(dt)
	}
	sum := 0.0
	for _, k := range m.Kinds() {
		if k.hasMatrix {
			r, _ := rate(k.matrix, dt)
			n := k.spec.CoresWith(hardware.Matrix)
			sum += float64(k.spec.Clusters/k.spec.Sides()*n) * float64(k.matrix.Rows*k.matrix.Cols) * r * k.spec.ClockHz /
				k.matrix.ClockRatio(k.spec)
		}
	}
	return sum
}
