package simt

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dsasched/dsasched/hardware"
)

//go:embed presets/*.yaml
var presets embed.FS

// ErrUnknownPreset is the error of [Load] for a name that is neither a preset nor the path of a file.
var ErrUnknownPreset = errors.New("unknown SIMT machine")

var library = hardware.Library{Files: presets, Unknown: ErrUnknownPreset}

// Presets lists the names of the built-in machines, sorted.
func Presets() []string { return library.Names() }

// PresetYAML is the description of a built-in machine with its comments, which give the source of each figure.
func PresetYAML(name string) ([]byte, error) { return library.YAML(name) }

// Load reads a preset by its name, or a file if nameOrPath ends in .yaml or .yml or has a path separator in it.
func Load(nameOrPath string) (*Machine, error) {
	name, data, err := library.Read(nameOrPath)
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}

// A field of a description: its path, and what stores its text.
type field struct {
	path string
	set  func(text string) error
}

// fields lists the fields of a description, all of which must be there. The clock comes
// first: others may be given in its cycles.
func (m *Machine) fields() []field {
	bad := func(text, expected string) error { return fmt.Errorf("found %q, expected %s", text, expected) }
	count := func(to *int64, limit int64) func(string) error {
		return func(text string) error {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < 1 || n > limit {
				return bad(text, fmt.Sprintf("a whole number from 1 to %d", limit))
			}
			*to = n
			return nil
		}
	}
	size := func(to *int64) func(string) error {
		return func(text string) error {
			b, err := hardware.ParseSize(text)
			if err == nil && (b < 1 || b > 1<<40) {
				err = bad(text, "a size from 1B to 1TiB")
			}
			*to = int64(b)
			return err
		}
	}
	scaled := func(to *float64, lo, hi float64, expected string, parse func(string) (float64, error)) func(string) error {
		return func(text string) error {
			v, err := parse(text)
			if err == nil && !(v >= lo && v <= hi) {
				err = bad(text, expected)
			}
			*to = v
			return err
		}
	}
	rate := func(to *float64) func(string) error {
		return scaled(to, 1e6, 1e18, "a bandwidth from 1MB/s to 1e6TB/s",
			func(s string) (float64, error) { return hardware.ParseBandwidth(s, m.ClockHz) })
	}
	time := func(to *float64) func(string) error {
		return scaled(to, 0, 1, "a time from 0s to 1s",
			func(s string) (float64, error) { return hardware.ParseTime(s, m.ClockHz) })
	}
	number := func(to *float64, lo, hi float64) func(string) error {
		expected := fmt.Sprintf("a number from %g to %g", lo, hi)
		return scaled(to, lo, hi, expected, func(s string) (float64, error) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return 0, bad(s, expected)
			}
			return v, nil
		})
	}
	return []field{
		{"clock", scaled(&m.ClockHz, 1e6, 1e11, "a clock from 1MHz to 100GHz", hardware.ParseClock)},
		{"name", func(s string) error {
			if m.Name = s; s == "" {
				return bad(s, "a name for the machine")
			}
			return nil
		}},
		{"description", func(s string) error { m.Description = s; return nil }},
		{"sms", count(&m.SMs, 1<<16)},
		{"sm.threads", count(&m.SM.Threads, 1<<20)},
		{"sm.blocks", count(&m.SM.Blocks, 1<<16)},
		{"sm.registers", count(&m.SM.Registers, 1<<30)},
		{"sm.shared", size(&m.SM.SharedBytes)},
		{"sm.lanes", count(&m.SM.Lanes, 1<<20)},
		{"sm.special", count(&m.SM.Special, 1<<20)},
		{"sm.shared_bandwidth", rate(&m.SM.SharedBytesPerSecond)},
		{"block.warp", count(&m.Block.Warp, 1<<10)},
		{"block.threads", count(&m.Block.Threads, 1<<16)},
		{"block.registers", count(&m.Block.Registers, 1<<16)},
		{"block.shared", size(&m.Block.SharedBytes)},
		{"block.start", time(&m.Block.StartSeconds)},
		{"block.sync", time(&m.Block.SyncSeconds)},
		{"dram.bandwidth", rate(&m.DRAM.BytesPerSecond)},
		{"dram.latency", time(&m.DRAM.LatencySeconds)},
		{"dram.transaction", size(&m.DRAM.TransactionBytes)},
		{"l2.size", size(&m.L2.SizeBytes)},
		{"l2.bandwidth", rate(&m.L2.BytesPerSecond)},
		{"atomics", number(&m.AtomicsPerSecond, 1, 1e18)},
		{"launch", time(&m.LaunchSeconds)},
		{"barrier", time(&m.BarrierSeconds)},
		{"barrier_per_block", time(&m.BarrierSecondsPerBlock)},
		{"library_efficiency", number(&m.LibraryEfficiency, 1e-6, 1)},
	}
}

// matrixTypes are the element types that sm.matrix may have.
var matrixTypes = []string{"f16", "bf16", "f32", "f64", "f8", "i8", "u8", "i16", "i32"}

// Parse reads a description. The name stands for the file in messages. All mistakes
// are reported, as *[hardware.Error] values in one joined error.
func Parse(name string, data []byte) (*Machine, error) {
	var errs []error
	fail := func(line int, path, problem string) {
		errs = append(errs, &hardware.Error{File: name, Line: line, Field: path, Problem: problem})
	}
	if len(data) > hardware.MaxFileBytes {
		fail(0, "", "more than 1MiB, expected the description of a SIMT machine")
		return nil, errors.Join(errs...)
	}
	values, lines, err := scalars(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m := &Machine{SM: SM{MatrixMACs: Peaks{}}}
	fields := m.fields()
	for _, t := range matrixTypes {
		path := "sm.matrix." + t
		if _, ok := values[path]; ok || t == "f32" {
			fields = append(fields, field{path, func(text string) error {
				v, err := strconv.ParseFloat(text, 64)
				if err != nil || !(v > 0 && v <= 1e9) {
					return fmt.Errorf("found %q, expected a number above 0 and up to 1e9", text)
				}
				m.SM.MatrixMACs[t] = v
				return nil
			}})
		}
	}
	known := map[string]bool{}
	for _, f := range fields {
		known[f.path] = true
		text, ok := values[f.path]
		if !ok {
			fail(0, f.path, "missing")
			continue
		}
		if err := f.set(text); err != nil {
			fail(lines[f.path], f.path, err.Error())
		}
		if f.path == "clock" && !(m.ClockHz > 0) {
			break // others are in its cycles
		}
	}
	var unknown []string
	for path := range values {
		if !known[path] && m.ClockHz > 0 {
			unknown = append(unknown, path)
		}
	}
	slices.SortFunc(unknown, func(a, b string) int { return lines[a] - lines[b] })
	for _, path := range unknown {
		fail(lines[path], path, "an unknown field")
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	switch {
	case m.Block.Threads > m.SM.Threads:
		fail(lines["block.threads"], "block.threads",
			fmt.Sprintf("found %d, expected at most the %d of sm.threads", m.Block.Threads, m.SM.Threads))
	case m.Block.Warp > m.Block.Threads:
		fail(lines["block.warp"], "block.warp",
			fmt.Sprintf("found %d, expected at most the %d of block.threads", m.Block.Warp, m.Block.Threads))
	case m.Block.SharedBytes > m.SM.SharedBytes:
		fail(lines["block.shared"], "block.shared",
			fmt.Sprintf("found %dB, expected at most the %dB of sm.shared", m.Block.SharedBytes, m.SM.SharedBytes))
	case m.SM.Registers/m.Block.Threads < startRegisters:
		fail(lines["sm.registers"], "sm.registers",
			fmt.Sprintf("found %d, expected at least %d for each of the %d threads of a block", m.SM.Registers,
				startRegisters, m.Block.Threads))
	case m.Block.Registers < startRegisters:
		fail(lines["block.registers"], "block.registers",
			fmt.Sprintf("found %d, expected at least %d", m.Block.Registers, startRegisters))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return m, nil
}

// scalars reads the scalars of nested mappings by their paths.
func scalars(data []byte) (values map[string]string, lines map[string]int, err error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, nil, errors.New("not valid YAML: " +
			strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "))
	}
	values, lines = map[string]string{}, map[string]int{}
	var walk func(prefix string, n *yaml.Node) error
	walk = func(prefix string, n *yaml.Node) error {
		for i := 0; i+1 < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			path := prefix + k.Value
			if _, dup := lines[path]; dup {
				return fmt.Errorf("line %d: %s is a duplicate", k.Line, path)
			}
			lines[path] = k.Line
			switch {
			case v.Kind == yaml.ScalarNode:
				values[path] = v.Value
			case v.Kind == yaml.MappingNode && prefix != "sm.matrix.": // three levels at most
				if err := walk(path+".", v); err != nil {
					return err
				}
			default:
				return fmt.Errorf("line %d: %s is a list, expected a SIMT machine, whose fields have one value each", v.Line, path)
			}
		}
		return nil
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, nil, errors.New("a mapping with the fields of a SIMT machine expected")
	}
	return values, lines, walk("", doc.Content[0])
}

// startRegisters is the number of a thread's registers before the wave is known (AStitch, section
// 4.3); it is relaxed afterwards.
const startRegisters = 32

// Start is the block from which the wave of stitched kernels is computed: as many
// threads as may be, 32 registers each, no shared memory.
func (m *Machine) Start() Block { return Block{Threads: m.Block.Threads, Registers: startRegisters} }
