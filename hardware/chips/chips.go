// Package chips describes a machine of several equal accelerators: how many there are,
// what joins them, what they draw, and the host that loads their data.
//
// A description is a YAML file like the accelerators' own; the presets say of each
// figure where it is from. Times are in seconds, powers in watts, rates per second.
package chips

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dsasched/dsasched/hardware"
)

//go:embed presets/*.yaml
var presets embed.FS

// ErrUnknownPreset is the error of [Load] for a name that is neither a preset nor the path of a file.
var ErrUnknownPreset = errors.New("unknown machine of several devices")

// A Server is a machine of several devices.
type Server struct {
	// File is the description as it was named, for messages.
	File        string `json:"-"`
	Name        string `json:"name"`
	Description string `json:"description"`
	// Device is the name of the accelerator's description.
	Device  string `json:"device"`
	Devices int    `json:"devices"`
	// LinkBytesPerSecond and LinkSeconds are between any two devices, each direction.
	LinkBytesPerSecond float64 `json:"link_bytes_per_s"`
	LinkSeconds        float64 `json:"link_s"`
	IdleWatts          float64 `json:"idle_w"` // of a device
	BusyWatts          float64 `json:"busy_w"`
	Host               *Host   `json:"-"` // nil: nothing is said of one
}

// A Host loads data.
type Host struct {
	Threads        int
	WattsPerThread float64
	ItemSeconds    float64 // of an item on one thread
	// Speedups by threads, ascending.
	Speedups []Speedup
}

// A Speedup is the rate of several threads over the rate of one.
type Speedup struct {
	Threads int
	Factor  float64
}

// Machine is the device with the others beside it.
func (n *Server) Machine() (*hardware.Spec, error) {
	spec, err := hardware.Load(n.Device)
	if err != nil {
		return nil, fmt.Errorf("%s: device: %w", n.File, err)
	}
	spec.Name, spec.Description = n.Name, n.Description
	if n.Devices > 1 {
		spec.Chips = &hardware.Chips{File: n.File, Count: n.Devices,
			Link: hardware.Link{BandwidthBytesPerSecond: n.LinkBytesPerSecond, LatencySeconds: n.LinkSeconds}}
	}
	return spec, nil
}

// LoadMachine reads an accelerator, as [hardware.Load] does, or a machine of several.
func LoadMachine(nameOrPath string) (*hardware.Spec, error) {
	spec, err := hardware.Load(nameOrPath)
	if err == nil {
		return spec, nil
	}
	name, data, readErr := library.Read(nameOrPath)
	if errors.Is(readErr, ErrUnknownPreset) {
		return nil, fmt.Errorf("%w; the machines of several are %s", err, strings.Join(Presets(), ", "))
	}
	var doc yaml.Node
	if readErr != nil || yaml.Unmarshal(data, &doc) != nil || len(doc.Content) == 0 ||
		!slices.ContainsFunc(doc.Content[0].Content, func(n *yaml.Node) bool { return n.Value == "device" }) {
		return nil, err // the file of an accelerator
	}
	n, err := Parse(name, data)
	if err != nil {
		return nil, err
	}
	return n.Machine()
}

var library = hardware.Library{Files: presets, Unknown: ErrUnknownPreset}

// Presets lists the names of the built-in machines, sorted.
func Presets() []string { return library.Names() }

// PresetYAML is the description of a built-in machine with its comments.
func PresetYAML(name string) ([]byte, error) { return library.YAML(name) }

// Load reads a preset by its name, or a file if nameOrPath ends in .yaml or .yml or has a path separator in it.
func Load(nameOrPath string) (*Server, error) {
	name, data, err := library.Read(nameOrPath)
	if err != nil {
		return nil, err
	}
	return Parse(name, data)
}

const maxKeys = 1000

// crowded reports whether a mapping has more than maxKeys.
func crowded(n *yaml.Node) bool {
	return n.Kind == yaml.MappingNode && len(n.Content) > 2*maxKeys || slices.ContainsFunc(n.Content, crowded)
}

// Parse reads a description. The name stands for the file in messages.
func Parse(name string, data []byte) (*Server, error) {
	if len(data) > hardware.MaxFileBytes {
		return nil, fmt.Errorf("%s: more than 1MiB, expected the description of a machine", name)
	}
	var y struct {
		Name, Description, Device string
		Devices                   int
		Link                      struct{ Bandwidth, Latency string }
		Power                     struct{ Idle, Busy float64 }
		Host                      *struct {
			Threads        int
			WattsPerThread float64 `yaml:"watts_per_thread"`
			Item           string
			Speedup        map[int]float64
		}
	}
	// The library compares all keys of a mapping with each other.
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err == nil && crowded(&doc) {
		return nil, fmt.Errorf("%s: more than %d keys of a mapping, expected the description of a machine", name, maxKeys)
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	dec.KnownFields(true)
	if err := dec.Decode(&y); err != nil {
		if e := new(yaml.TypeError); errors.As(err, &e) { // its words go on with types of Go
			what, _, _ := strings.Cut(e.Errors[0], " in")
			err = errors.New(what)
		}
		return nil, fmt.Errorf("%s: not the description of a machine: %w", name, err)
	}
	n := &Server{File: name, Name: y.Name, Description: y.Description, Device: y.Device, Devices: y.Devices,
		IdleWatts: y.Power.Idle, BusyWatts: y.Power.Busy}
	var errs []error
	check := func(field string, ok bool, found any, want string) {
		if !ok {
			errs = append(errs, &hardware.Error{File: name, Field: field,
				Problem: fmt.Sprintf("found %v, expected %s", found, want)})
		}
	}
	parse := func(field, text string, to *float64, parse func(string) (float64, error)) {
		v, err := parse(text)
		if *to = v; err != nil {
			errs = append(errs, &hardware.Error{File: name, Field: field, Problem: err.Error()})
		} else {
			check(field, v >= 0 && v <= 1e18, text, "up to 1e18")
		}
	}
	const noClock = 1
	time := func(s string) (float64, error) { return hardware.ParseTime(s, noClock) }
	parse("link.bandwidth", y.Link.Bandwidth, &n.LinkBytesPerSecond,
		func(s string) (float64, error) { return hardware.ParseBandwidth(s, noClock) })
	parse("link.latency", y.Link.Latency, &n.LinkSeconds, time)
	check("name", y.Name != "", `""`, "a name")
	check("device", y.Device != "", `""`, "the name of an accelerator's description")
	check("devices", y.Devices >= 1 && y.Devices <= 1<<16, y.Devices, "1 to 65536")
	check("link.bandwidth", n.LinkBytesPerSecond > 0 || len(errs) > 0, y.Link.Bandwidth, "more than 0")
	check("power.idle", y.Power.Idle >= 0 && y.Power.Idle <= 1e6, y.Power.Idle, "0 to 1e6 watts")
	check("power.busy", y.Power.Busy >= y.Power.Idle && y.Power.Busy <= 1e6, y.Power.Busy, "power.idle to 1e6 watts")
	if y.Host != nil {
		n.Host = &Host{Threads: y.Host.Threads, WattsPerThread: y.Host.WattsPerThread}
		parse("host.item", y.Host.Item, &n.Host.ItemSeconds, time)
		check("host.threads", y.Host.Threads >= 1 && y.Host.Threads <= 1<<16, y.Host.Threads, "1 to 65536")
		check("host.watts_per_thread", y.Host.WattsPerThread >= 0 && y.Host.WattsPerThread <= 1e6,
			y.Host.WattsPerThread, "0 to 1e6 watts")
		check("host.speedup", len(y.Host.Speedup) > 0, "none", "the factor of at least one number of threads")
		for threads, factor := range y.Host.Speedup {
			n.Host.Speedups = append(n.Host.Speedups, Speedup{threads, factor})
		}
		slices.SortFunc(n.Host.Speedups, func(a, b Speedup) int { return a.Threads - b.Threads })
		for _, s := range n.Host.Speedups {
			check("host.speedup", s.Threads >= 1 && s.Threads <= y.Host.Threads, s.Threads,
				fmt.Sprintf("1 to %d threads", y.Host.Threads))
			check("host.speedup", s.Factor > 0 && s.Factor <= 1e6, s.Factor, "a factor above 0")
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return n, nil
}
