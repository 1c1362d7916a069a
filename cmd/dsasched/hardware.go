package main

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

type hardwareListJSON struct {
	Hardware []hardwareJSON `json:"hardware"`
}

type hardwareJSON struct {
	Name         string         `json:"name"`
	Description  string         `json:"description,omitempty"`
	ClockHz      float64        `json:"clock_hz"`
	Clusters     int            `json:"clusters"`
	Cores        int            `json:"cores_per_cluster"`
	CoreTypes    []coreTypeJSON `json:"core_types"`
	LB           *memoryJSON    `json:"lb"` // per core
	LBWeights    int64          `json:"lb_weights_bytes"`
	GB           *memoryJSON    `json:"gb"` // per cluster
	DDR          *memoryJSON    `json:"ddr"`
	CoreLink     linkJSON       `json:"core_link"`
	DDRLink      linkJSON       `json:"ddr_link"`
	LaunchS      float64        `json:"launch_s"`
	SyncS        float64        `json:"sync_s"`
	Peaks        []peakJSON     `json:"peaks"` // of the chip
	peakF16MACsS float64
}

type coreTypeJSON struct {
	Name  string     `json:"name"`
	Count int        `json:"count_per_cluster"`
	HasLB bool       `json:"has_lb"`
	Units []unitJSON `json:"units"`
}

type unitJSON struct {
	Name       string         `json:"name"`
	Kind       string         `json:"kind"`
	SharesWith string         `json:"shares_with,omitempty"`
	Rows       int            `json:"rows,omitempty"`
	Cols       int            `json:"cols,omitempty"`
	Lanes      int            `json:"lanes,omitempty"`
	FillCycles int64          `json:"fill_cycles"`
	Peaks      []unitPeakJSON `json:"peaks"`
}

// unitPeakJSON is what a unit does per cycle in one dtype; a null is what it
// can't.
type unitPeakJSON struct {
	DType   string   `json:"dtype"`
	MACs    *float64 `json:"macs_per_cycle"`
	Simple  *float64 `json:"simple_ops_per_cycle"`
	Special *float64 `json:"special_ops_per_cycle"`
	Move    *float64 `json:"move_ops_per_cycle"`
}

type memoryJSON struct {
	SizeBytes       int64   `json:"size_bytes"`
	BandwidthBytesS float64 `json:"bandwidth_bytes_per_s"`
	LatencyS        float64 `json:"latency_s"`
}

type linkJSON struct {
	BandwidthBytesS *float64 `json:"bandwidth_bytes_per_s"` // per direction; null: unlimited
	LatencyS        float64  `json:"latency_s"`
	Broadcast       bool     `json:"broadcast"`
}

type peakJSON struct {
	DType string  `json:"dtype"`
	MACsS float64 `json:"macs_per_s"`
}

func newHardware() *cobra.Command {
	var asYAML bool
	cmd := &cobra.Command{
		Use:   "hardware [HARDWARE]",
		Short: "List the built-in accelerators, or describe one",
		Long: `Without an argument, list the built-in accelerators. With one, describe an
accelerator: a built-in one by its name, or one of your own by the path of its
YAML file, which is checked.

LB is a core's local buffer, GB the buffer that the cores of a cluster share, DDR
the off-chip memory. The peak is in multiply-accumulates of f16.

To write a file of your own, start from a built-in one with --yaml; its comments
say where each figure is from.`,
		Example: `  dsasched hardware
  dsasched hardware stcp920
  dsasched hardware stcp920 --yaml > my-npu.yaml
  dsasched hardware ./my-npu.yaml --json`,
		Args: atMostOneArg("accelerator"),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, part string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return completeHardware(cmd, args, part)
		},
	}
	asJSON := addJSON(cmd)
	cmd.Flags().BoolVar(&asYAML, "yaml", false, "print the YAML file of a built-in accelerator")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case asYAML && *asJSON:
			return usagef("--yaml and --json exclude each other")
		case asYAML && len(args) == 0:
			return usagef("--yaml needs the name of a built-in accelerator: %s", oneOf(hardware.Presets()))
		case asYAML:
			text, err := hardware.PresetYAML(args[0])
			if err != nil {
				return err
			}
			return emit(cmd, false, nil, func(b *bytes.Buffer) { b.Write(text) })
		case len(args) == 1:
			spec, err := hardware.Load(args[0])
			if err != nil {
				return err
			}
			return emit(cmd, *asJSON, describeHardware(spec), func(b *bytes.Buffer) { b.WriteString(spec.Describe()) })
		}
		var answer hardwareListJSON
		for _, name := range hardware.Presets() {
			spec, err := hardware.Load(name)
			if err != nil {
				return err
			}
			answer.Hardware = append(answer.Hardware, describeHardware(spec))
		}
		return emit(cmd, *asJSON, answer, func(b *bytes.Buffer) {
			var rows, descriptions [][]string
			for _, h := range answer.Hardware {
				rows = append(rows, []string{h.Name, fmt.Sprint(h.Clusters), fmt.Sprint(h.Cores), unit(h.peakF16MACsS, "MAC/s"),
					memorySize(h.LB), memorySize(h.GB), memorySize(h.DDR), unit(h.DDR.BandwidthBytesS, "B/s")})
				descriptions = append(descriptions, []string{h.Name, h.Description})
			}
			writeTable(b, "lrrrrrrr", []string{"name", "clusters", "cores each", "peak f16", "LB", "GB", "DDR", "DDR rate"}, rows)
			writeDescriptions(b, descriptions)
		})
	}
	return cmd
}

func memorySize(m *memoryJSON) string {
	if m == nil {
		return "none"
	}
	return size(m.SizeBytes)
}

func describeHardware(s *hardware.Spec) hardwareJSON {
	h := hardwareJSON{
		Name: s.Name, Description: s.Description, ClockHz: s.ClockHz, Clusters: s.Clusters, Cores: s.Cores(),
		LB: memoryOf(s.LB), LBWeights: int64(s.LBWeightBytes), GB: memoryOf(s.GB), DDR: memoryOf(s.DDR),
		CoreLink: linkOf(s.CoreLink), DDRLink: linkOf(s.DDRLink), LaunchS: s.LaunchSeconds, SyncS: s.SyncSeconds,
		Peaks: []peakJSON{}, peakF16MACsS: s.PeakMACsPerSecond(model.F16.String()),
	}
	for _, t := range dtypes() {
		if p := s.PeakMACsPerSecond(t.String()); p > 0 {
			h.Peaks = append(h.Peaks, peakJSON{t.String(), p})
		}
	}
	for _, ct := range s.CoreTypes {
		c := coreTypeJSON{Name: ct.Name, Count: ct.Count, HasLB: ct.HasLB}
		for _, u := range ct.Units {
			c.Units = append(c.Units, describeUnit(u))
		}
		h.CoreTypes = append(h.CoreTypes, c)
	}
	return h
}

func describeUnit(u hardware.Unit) unitJSON {
	j := unitJSON{Name: u.Name, Kind: string(u.Kind), SharesWith: u.SharesWith,
		Rows: u.Rows, Cols: u.Cols, Lanes: u.Lanes, FillCycles: int64(u.FillCycles)}
	known := func(v float64) *float64 {
		if v == 0 {
			return nil
		}
		return &v
	}
	for _, t := range dtypes() {
		if d := t.String(); u.Supports(d) {
			p := unitPeakJSON{DType: d, Simple: known(u.OpsPerCycle(hardware.OpSimple, d)),
				Special: known(u.OpsPerCycle(hardware.OpSpecial, d)), Move: known(u.OpsPerCycle(hardware.OpMove, d))}
			if u.Kind == hardware.Matrix {
				p.MACs = known(u.MACsPerCycle(d))
			}
			j.Peaks = append(j.Peaks, p)
		}
	}
	return j
}

func memoryOf(m *hardware.Memory) *memoryJSON {
	if m == nil {
		return nil
	}
	return &memoryJSON{int64(m.SizeBytes), m.BandwidthBytesPerSecond, m.LatencySeconds}
}

func linkOf(l hardware.Link) linkJSON {
	j := linkJSON{LatencyS: l.LatencySeconds, Broadcast: l.Broadcast}
	if l.BandwidthBytesPerSecond > 0 {
		j.BandwidthBytesS = &l.BandwidthBytesPerSecond
	}
	return j
}
