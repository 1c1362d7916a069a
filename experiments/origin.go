package experiments

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/experiments/page"
	"github.com/dsasched/dsasched/hardware"
)

// originFile is beside the results of an experiment and says what made them.
const originFile = "origin.json"

// origin is what made the results of an experiment: the same on every run of the same
// program, so it says nothing of time and place.
type origin struct {
	Version  string            `json:"version"`
	Revision string            `json:"revision,omitempty"` // of the source
	Modified bool              `json:"modified"`           // since that revision
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Solver   string            `json:"solver,omitempty"` // that was at hand
	Modules  []originModule    `json:"modules"`
	Hardware []originHardware  `json:"hardware"`
	Seeds    []json.RawMessage `json:"seeds"` // of cells that draw random numbers
}

type originModule struct {
	Path    string `json:"path"`
	Version string `json:"version"`
}

// originHardware is an accelerator that cells name.
type originHardware struct {
	Name string `json:"name"`
	Hash string `json:"sha256"`
	// YAML is its description, if it is a preset as it stands.
	YAML string `json:"yaml,omitempty"`
}

// originOf finds the accelerators and seeds in the inputs of the cells.
func originOf(cells []cell, opt Options) (*origin, error) {
	o := &origin{Version: programVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Solver: opt.SolverVersion,
		Modules: []originModule{}, Hardware: []originHardware{}, Seeds: []json.RawMessage{}}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				o.Revision = s.Value
			case "vcs.modified":
				o.Modified = s.Value == "true"
			}
		}
		for _, m := range info.Deps {
			o.Modules = append(o.Modules, originModule{m.Path, m.Version})
		}
	}
	if o.Revision == "" {
		o.Revision, o.Modified = strings.CutSuffix(opt.Revision, "-dirty")
	}
	for _, c := range cells {
		data, err := marshalInputs(c)
		if err != nil {
			return nil, err
		}
		var in struct {
			Hardware json.RawMessage `json:"hardware"`
			Hash     string          `json:"hardware_sha256"`
			Seed     json.RawMessage `json:"seed"`
		}
		if err := json.Unmarshal(data, &in); err != nil {
			continue // inputs of another form
		}
		if in.Seed != nil && !slices.ContainsFunc(o.Seeds, func(s json.RawMessage) bool { return string(s) == string(in.Seed) }) {
			o.Seeds = append(o.Seeds, in.Seed)
		}
		h := originHardware{Hash: in.Hash}
		if err := json.Unmarshal(in.Hardware, &h.Name); err != nil || slices.ContainsFunc(o.Hardware, func(x originHardware) bool { return x.Name == h.Name && x.Hash == h.Hash }) {
			continue
		}
		// A variation has another hash than the preset that it is named after.
		if spec, err := hardware.Load(h.Name); err == nil {
			if hash, err := hashOf(spec); err == nil && hash == h.Hash {
				if yaml, err := hardware.PresetYAML(h.Name); err == nil {
					h.YAML = string(yaml)
				}
			}
		}
		o.Hardware = append(o.Hardware, h)
	}
	return o, nil
}

func (o *origin) file() (file, error) {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return file{}, fmt.Errorf("%s: %w", originFile, err)
	}
	return file{originFile, append(data, '\n')}, nil
}

// origins is the end of the page: a row for all experiments of one origin, the modules
// and the accelerators.
func (c *collection) origins() (page.Table, []page.Modules, []page.Hardware) {
	var modules []page.Modules
	t := page.Table{Columns: []string{"Experiments", "dsasched", "Commit", "Go", "Solver", "Accelerators", "Seeds"}}
	var list []page.Hardware
	for _, e := range c.experiments {
		row := []string{e.name, "not recorded", "–", "–", "–", "–", "–"}
		if o := e.origin; o != nil {
			commit := o.Revision
			switch {
			case commit == "":
				commit = "not recorded"
			case o.Modified:
				commit += ", with changes"
			}
			var linked, machines, seeds []string
			for _, m := range o.Modules {
				linked = append(linked, m.Path+" "+m.Version)
			}
			if same := slices.IndexFunc(modules, func(m page.Modules) bool { return slices.Equal(m.List, linked) }); same >= 0 {
				modules[same].Experiments += ", " + e.name
			} else if len(linked) > 0 {
				modules = append(modules, page.Modules{Experiments: e.name, List: linked})
			}
			for _, h := range o.Hardware {
				name := h.Name
				if h.YAML == "" {
					name += " (varied)"
				}
				if !slices.Contains(machines, name) {
					machines = append(machines, name)
				}
				x := page.Hardware{Name: h.Name, Hash: h.Hash, YAML: h.YAML}
				if h.YAML != "" && !slices.Contains(list, x) {
					list = append(list, x)
				}
			}
			for _, s := range o.Seeds {
				seeds = append(seeds, string(s))
			}
			or := func(words []string, none string) string {
				if len(words) == 0 {
					return none
				}
				return strings.Join(words, ", ")
			}
			solver := o.Solver
			if solver == "" {
				solver = "none"
			}
			row = []string{e.name, o.Version, commit, o.Go + " " + o.Platform, solver, or(machines, "none"), or(seeds, "no random numbers")}
		}
		// Experiments of the same origin share a row.
		same := slices.IndexFunc(t.Rows, func(r []string) bool { return slices.Equal(r[1:], row[1:]) })
		if same < 0 {
			t.Rows = append(t.Rows, row)
		} else {
			t.Rows[same][0] += ", " + e.name
		}
	}
	slices.SortFunc(list, func(a, b page.Hardware) int {
		return strings.Compare(a.Name+" "+a.Hash, b.Name+" "+b.Hash)
	})
	return t, modules, list
}
