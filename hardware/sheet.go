package hardware

// sheetTypes has the dtypes in the order of package model, f16 first.
var sheetTypes = append([]string{"f16", "f32", "f64"}, dtypes[3:]...)

// Sheet is the data sheet of an accelerator: what [Spec] says, with what follows from
// it, and the answer of `dsasched hardware --json`. Bandwidths are in bytes per second.
type Sheet struct {
	Name          string       `json:"name"`
	Description   string       `json:"description,omitempty"`
	ClockHz       float64      `json:"clock_hz"`
	LoadClockHz   float64      `json:"clock_under_load_hz,omitempty"`
	Clusters      int          `json:"clusters"`
	Cores         int          `json:"cores_per_cluster"`
	CoreTypes     []sheetCores `json:"core_types"`
	L1            *sheetMemory `json:"lb"` // per core; null: none
	L1WeightBytes Bytes        `json:"lb_weights_bytes"`
	LLB           *sheetMemory `json:"gb"` // per cluster; null: none
	DDR           *sheetMemory `json:"ddr"`
	CoreLink      sheetLink    `json:"core_link"`
	Network       *Network     `json:"network,omitempty"` // between the cores of a cluster; none: all-to-all
	DDRLink       sheetLink    `json:"ddr_link"`
	LaunchSeconds float64      `json:"launch_s"`
	SyncSeconds   float64      `json:"sync_s"`
	GapSeconds    float64      `json:"gap_s,omitempty"`
	MatrixStart   float64      `json:"matrix_start_s,omitempty"`
	HostSeconds   float64      `json:"host_s,omitempty"`
	Peaks         []sheetPeak  `json:"peaks"`  // of the chip
	Energy        *sheetEnergy `json:"energy"` // null: no figures
}

// sheetCores are the cores of a type.
type sheetCores struct {
	Name  string      `json:"name"`
	Count int         `json:"count_per_cluster"`
	HasL1 bool        `json:"has_lb"`
	Runs  []string    `json:"runs,omitempty"`
	Units []sheetUnit `json:"units"`
}

// sheetUnit is a compute unit with what it does per cycle.
type sheetUnit struct {
	Name       string          `json:"name"`
	Kind       UnitKind        `json:"kind"`
	SharesWith string          `json:"shares_with,omitempty"`
	Rows       int             `json:"rows,omitempty"`
	Cols       int             `json:"cols,omitempty"`
	Lanes      int             `json:"lanes,omitempty"`
	FillCycles Cycles          `json:"fill_cycles"`
	ClockHz    float64         `json:"clock_hz,omitempty"`
	Least      Cycles          `json:"least_cycles,omitempty"`
	InFlight   int             `json:"in_flight,omitempty"`
	Waits      bool            `json:"synchronous,omitempty"`
	Peaks      []sheetUnitPeak `json:"peaks"`
}

// sheetUnitPeak is a unit's rate per cycle in one dtype; null: it can't compute in it.
type sheetUnitPeak struct {
	DType   string   `json:"dtype"`
	MACs    *float64 `json:"macs_per_cycle"`
	Simple  *float64 `json:"simple_ops_per_cycle"`
	Special *float64 `json:"special_ops_per_cycle"`
	Move    *float64 `json:"move_ops_per_cycle"`
}

// sheetMemory is a [Memory].
type sheetMemory struct {
	SizeBytes               Bytes   `json:"size_bytes"`
	BandwidthBytesPerSecond float64 `json:"bandwidth_bytes_per_s"`
	LatencySeconds          float64 `json:"latency_s"`
}

// sheetLink is a [Link].
type sheetLink struct {
	BandwidthBytesPerSecond *float64 `json:"bandwidth_bytes_per_s"` // per direction; null: unlimited
	LatencySeconds          float64  `json:"latency_s"`
	Broadcast               bool     `json:"broadcast"`
	InFlight                int      `json:"in_flight,omitempty"` // loads; 0: one
}

// sheetEnergy is an [Energy]: in joules of an operation or a byte, in watts.
type sheetEnergy struct {
	Types       []sheetTypeEnergy `json:"types"`
	L1          float64           `json:"lb_byte_j"`
	LLB         float64           `json:"gb_byte_j"`
	DDR         float64           `json:"ddr_byte_j"`
	StaticWatts float64           `json:"static_w"`
}

// sheetTypeEnergy has the energies of operations in a dtype; null: no figure.
type sheetTypeEnergy struct {
	DType  string   `json:"dtype"`
	MAC    *float64 `json:"mac_j"`
	Vector *float64 `json:"vector_op_j"`
}

func (e *Energy) sheet() *sheetEnergy {
	if e == nil {
		return nil
	}
	a := &sheetEnergy{L1: e.L1, LLB: e.LLB, DDR: e.DDR, StaticWatts: e.StaticWatts}
	for _, d := range sheetTypes {
		x := sheetTypeEnergy{DType: d}
		if v, ok := e.MAC[d]; ok {
			x.MAC = &v
		}
		if v, ok := e.Vector[d]; ok {
			x.Vector = &v
		}
		if x.MAC != nil || x.Vector != nil {
			a.Types = append(a.Types, x)
		}
	}
	return a
}

// sheetPeak is the multiply-accumulates of a chip in one dtype.
type sheetPeak struct {
	DType         string  `json:"dtype"`
	MACsPerSecond float64 `json:"macs_per_s"`
}

// Sheet makes the data sheet.
func (s *Spec) Sheet() *Sheet {
	known := func(v float64) *float64 {
		if v == 0 {
			return nil
		}
		return &v
	}
	link := func(l Link) sheetLink {
		return sheetLink{known(l.BandwidthBytesPerSecond), l.LatencySeconds, l.Broadcast, l.InFlight}
	}
	a := &Sheet{
		Name: s.Name, Description: s.Description, ClockHz: s.ClockHz, LoadClockHz: s.LoadClockHz,
		Clusters: s.Clusters, Cores: s.Cores(),
		L1: (*sheetMemory)(s.L1), L1WeightBytes: s.L1WeightBytes, LLB: (*sheetMemory)(s.LLB), DDR: (*sheetMemory)(s.DDR),
		CoreLink: link(s.CoreLink), Network: s.Network, DDRLink: link(s.DDRLink),
		LaunchSeconds: s.LaunchSeconds, SyncSeconds: s.SyncSeconds,
		GapSeconds: s.GapSeconds, MatrixStart: s.MatrixStartSeconds,
		HostSeconds: s.HostSeconds, Peaks: []sheetPeak{}, Energy: s.Energy.sheet(),
	}
	for _, d := range sheetTypes {
		if p := s.PeakMACsPerSecond(d); p > 0 {
			a.Peaks = append(a.Peaks, sheetPeak{d, p})
		}
	}
	for _, t := range s.CoreTypes {
		c := sheetCores{Name: t.Name, Count: t.Count, HasL1: t.HasL1, Runs: t.Runs}
		for _, u := range t.Units {
			x := sheetUnit{Name: u.Name, Kind: u.Kind, SharesWith: u.SharesWith, Rows: u.Rows, Cols: u.Cols, Lanes: u.Lanes,
				FillCycles: u.FillCycles, ClockHz: u.ClockHz, Least: u.LeastCycles, InFlight: u.InFlight, Waits: u.Synchronous}
			for _, d := range sheetTypes {
				if !u.Supports(d) {
					continue
				}
				p := sheetUnitPeak{DType: d, Simple: known(u.OpsPerCycle(OpSimple, d)), Special: known(u.OpsPerCycle(OpSpecial, d)),
					Move: known(u.OpsPerCycle(OpMove, d))}
				if u.Kind == Matrix {
					p.MACs = known(u.MACsPerCycle(d))
				}
				x.Peaks = append(x.Peaks, p)
			}
			c.Units = append(c.Units, x)
		}
		a.CoreTypes = append(a.CoreTypes, c)
	}
	return a
}
