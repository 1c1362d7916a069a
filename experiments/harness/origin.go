package harness

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/hardware"
)

// OriginFile is beside the results of an experiment and says what made them.
const OriginFile = "origin.json"

// Origin names the program and the inputs that made an experiment's results: the same on every run of the same
// program, so it says nothing of time and place.
type Origin struct {
	// Schema is the schema number of all files beside this one; 0, before there were numbers, is 1.
	Schema   int               `json:"schema"`
	Version  string            `json:"version"`
	Revision string            `json:"revision,omitempty"` // of the source
	Modified bool              `json:"modified"`           // since that revision
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	Solver   string            `json:"solver,omitempty"` // that was at hand
	Modules  []originModule    `json:"modules"`
	Hardware []originHardware  `json:"hardware"`
	Seeds    []json.RawMessage `json:"seeds"`           // of cells that draw random numbers
	Quick    bool              `json:"quick,omitempty"` // the quick form of an experiment that has a full one too
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
func originOf(cells []Cell, opt Options) (*Origin, error) {
	o := &Origin{Schema: originSchema, Version: programVersion(), Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Solver: opt.SolverVersion,
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
		if in.Seed != nil && !slices.ContainsFunc(o.Seeds,
			func(s json.RawMessage) bool { return string(s) == string(in.Seed) }) {
			o.Seeds = append(o.Seeds, in.Seed)
		}
		h := originHardware{Hash: in.Hash}
		if err := json.Unmarshal(in.Hardware, &h.Name); err != nil ||
			slices.ContainsFunc(o.Hardware, func(x originHardware) bool { return x.Name == h.Name && x.Hash == h.Hash }) {
			continue
		}
		// A variation has another hash than the preset that it is named after.
		if spec, err := hardware.Load(h.Name); err == nil {
			if hash, err := Hash(spec); err == nil && hash == h.Hash {
				if yaml, err := hardware.PresetYAML(h.Name); err == nil {
					h.YAML = string(yaml)
				}
			}
		}
		o.Hardware = append(o.Hardware, h)
	}
	return o, nil
}

// originSchema is raised when an older program would read the results of an experiment in
// a wrong way. Fields that are new or unknown are no reason.
const originSchema = 1

// ReadOrigin reads the text of an [OriginFile]; path is for errors. Results of a later schema are refused.
func ReadOrigin(path string, data []byte) (*Origin, error) {
	o := &Origin{}
	if err := json.Unmarshal(data, o); err != nil {
		return nil, fmt.Errorf("%s: not what 'dsasched run' writes: %w", path, err)
	}
	if o.Schema < 0 || o.Schema > originSchema {
		return nil, fmt.Errorf("%s: schema: found %d, expected at most %d: the results are of a later dsasched (%s)", path,
			o.Schema, originSchema, o.Version)
	}
	return o, nil
}

func (o *Origin) file() (File, error) {
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return File{}, fmt.Errorf("%s: %w", OriginFile, err)
	}
	return File{OriginFile, append(data, '\n')}, nil
}
