package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/model"
)

// A machineKind is a kind of machines whose descriptions are not those of accelerators.
type machineKind struct {
	key     string   // in JSON
	columns []string // of the list; the first is the kind's heading
	align   string
	presets func() []string
	yaml    func(name string) ([]byte, error)
	load    func(name string) (*machineView, error)
}

// A machineView is how a machine is shown: as JSON, in a row of the list, and by itself.
type machineView struct {
	machine           any
	name, description string
	row               []string
	write             func(b *bytes.Buffer)
}

// several are the machines of several accelerators.
var several = machineKind{"several", []string{"machine of several", "devices", "each", "link"}, "lrll", chips.Presets,
	chips.PresetYAML, func(name string) (*machineView, error) {
		n, err := chips.Load(name)
		if err != nil {
			return nil, err
		}
		return &machineView{n, n.Name, n.Description, []string{n.Name, fmt.Sprint(n.Devices), n.Device, link(n)},
			func(b *bytes.Buffer) {
				row(b, "name", "%s", n.Name)
				row(b, "description", "%s", n.Description)
				row(b, "devices", "%d of %s", n.Devices, n.Device)
				row(b, "link", "%s", link(n))
				row(b, "power", "%g W of an idle device, %g W of a busy one", n.IdleWatts, n.BusyWatts)
			}}, nil
	}}

// machinesOfSystems are kinds of machines that commands of systems take.
var machinesOfSystems []machineKind

// otherMachines lists the kinds of machines that are no accelerators.
func otherMachines() []machineKind { return append(slices.Clone(machinesOfSystems), several) }

// allMachines lists the names of all built-in machines.
func allMachines() []string {
	names := hardware.Presets()
	for _, kind := range otherMachines() {
		names = append(names, kind.presets()...)
	}
	return names
}

func newHardware() *cobra.Command {
	var asYAML bool
	cmd := command("hardware")
	cmd.Args = atMostOneArg("accelerator")
	cmd.ValidArgsFunction = completeOne(allMachines(), cobra.ShellCompDirectiveDefault)
	cmd.Flags().BoolVar(&asYAML, "yaml", false, "print the YAML file of a built-in accelerator")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		kinds := otherMachines()
		at := slices.IndexFunc(kinds, func(k machineKind) bool {
			return len(args) == 1 && slices.Contains(k.presets(), args[0])
		})
		switch {
		case asYAML && asJSON(cmd):
			return usagef("--yaml and --json exclude each other")
		case asYAML && (len(args) == 0 || strings.ContainsAny(args[0], "./")):
			return usagef("--yaml needs the name of a built-in accelerator: %s", oneOf(hardware.Presets()))
		case asYAML:
			read := hardware.PresetYAML
			if at >= 0 {
				read = kinds[at].yaml
			}
			text := try(read(args[0]))
			return emit(cmd, nil, func(b *bytes.Buffer) { b.Write(text) })
		case at >= 0:
			m := try(kinds[at].load(args[0]))
			return emit(cmd, m.machine, m.write)
		case len(args) == 1:
			spec := try(hardware.Load(args[0]))
			return emit(cmd, spec.Sheet(), func(b *bytes.Buffer) { b.WriteString(spec.Describe()) })
		}
		var answer struct {
			Hardware []*hardware.Sheet `json:"hardware"`
			SIMT     []any             `json:"simt,omitempty"`
			Several  []any             `json:"several"`
		}
		var rows, descriptions [][]string
		for _, name := range hardware.Presets() {
			spec := try(hardware.Load(name))
			answer.Hardware = append(answer.Hardware, spec.Sheet())
			rows = append(rows, []string{spec.Name, fmt.Sprintf("%d x %d", spec.Clusters, spec.Cores()), peak(spec),
				memorySize(spec.L1), memorySize(spec.LLB), memorySize(spec.DDR), unit(spec.DDR.BandwidthBytesPerSecond, "B/s")})
			descriptions = append(descriptions, []string{spec.Name, spec.Description})
		}
		lists := map[string]*[]any{"simt": &answer.SIMT, several.key: &answer.Several}
		var tables bytes.Buffer
		for _, kind := range kinds {
			machines, list := lists[kind.key], [][]string(nil)
			for _, name := range kind.presets() {
				m := try(kind.load(name))
				*machines, list = append(*machines, m.machine), append(list, m.row)
				descriptions = append(descriptions, []string{m.name, m.description})
			}
			tables.WriteByte('\n')
			writeTable(&tables, kind.align, kind.columns, list)
		}
		return emit(cmd, answer, func(b *bytes.Buffer) {
			writeTable(b, "lrrrrrr", []string{"name", "cores", "peak", "L1", "LLB", "DDR", "DDR rate"}, rows)
			b.Write(tables.Bytes())
			writeDescriptions(b, descriptions)
		})
	}
	return cmd
}

func link(n *chips.Server) string {
	return fmt.Sprintf("%s, latency %s", unit(n.LinkBytesPerSecond, "B/s"), duration(n.LinkSeconds))
}

// peak is the rate of products in 16-bit floats, or in the type that the machine is faster in if it has none.
func peak(spec *hardware.Spec) string {
	for _, t := range []model.DType{model.F16, model.BF16, model.I8, model.F32} {
		if rate := spec.PeakMACsPerSecond(t.String()); rate > 0 {
			return fmt.Sprintf("%s %s", unit(rate, "MAC/s"), t)
		}
	}
	return "-"
}

func memorySize(m *hardware.Memory) string {
	if m == nil {
		return "none"
	}
	return size(int64(m.SizeBytes))
}
