package tuning

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/systems/ansor"
)

// Kind and version of files of tuned kernels, and of logs of trials.
const (
	Kind    = "dsasched-tuned"
	LogKind = "dsasched-trials"
	Version = 1
)

// From is the workload that kernels were tuned for; a log of trials begins with it.
type From struct {
	Kind     string   `json:"kind"`
	Version  int      `json:"version"`
	Networks []string `json:"networks"`
	Graphs   []string `json:"graphs"` // the names in them
	Batch    int64    `json:"batch"`
	Chunk    int64    `json:"chunk"`
	Variant  string   `json:"variant"`
	InPlace  bool     `json:"in_place,omitempty"`
	Uneven   string   `json:"uneven,omitempty"` // which pieces may differ, if not the fastest
	DType    string   `json:"dtype,omitempty"`
	Grain    string   `json:"grain,omitempty"` // how far operators were taken apart, if at all
	// Dims and AllowUnknown are of ONNX files.
	Dims         map[string]int64 `json:"dims,omitempty"`
	AllowUnknown bool             `json:"allow_unknown,omitempty"`
	Hardware     string           `json:"hardware"`
	// Fingerprint is of the hardware as the decisions see it.
	Fingerprint string `json:"hardware_fingerprint"`
	Seed        uint64 `json:"seed"`
	Objective   string `json:"objective"`
	// Enough is the time that is good enough for each network, if f2 was given any.
	Enough    []float64 `json:"enough_s,omitempty"`
	Scheduler string    `json:"scheduler"`
}

// Tuned is the result of [Tune]: a nest for each layer of each kernel.
type Tuned struct {
	From
	Trials int           `json:"trials"`
	Result []Network     `json:"results"`
	Tasks  []Task        `json:"tasks"`
	Curve  []ansor.Point `json:"curve"` // the objective by trials
	// Name is the file that it is from, for errors.
	Name string `json:"-"`
}

// Network is the time of the kernels of a batch, as if none overlapped another.
type Network struct {
	Name        string  `json:"name"`
	RuleSeconds float64 `json:"rule_s"`
	Seconds     float64 `json:"tuned_s"`
	Kernels     int64   `json:"kernels"`
}

// Task is a kernel. Layers can be edited; the times are then another program's.
type Task struct {
	Task        string    `json:"task"` // a hash of all that its time hangs on
	Name        string    `json:"name"`
	Weights     []int64   `json:"weights"` // runs of a cluster in a batch of each network
	Operations  int64     `json:"operations"`
	Trials      int       `json:"trials"`
	RuleSeconds float64   `json:"rule_s"`
	Seconds     float64   `json:"tuned_s"`
	FloorSecs   float64   `json:"bound_s"` // no program is faster
	Rounds      []float64 `json:"best_after_rounds_s"`
	Layers      []Layer   `json:"layers"`
}

// Layer is a layer of a kernel with its nest, as [schedule.Nest.Text] has it, line by line.
type Layer struct {
	Layer string   `json:"layer"`
	Nest  []string `json:"nest"`
}

// TaskName is the short name of a task's key.
func TaskName(key string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(key)))[:12] }

// Read reads what [Tune] has found, as JSON. Nests are looked at when they are used.
func Read(data []byte) (*Tuned, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	t := &Tuned{}
	if err := d.Decode(t); err != nil {
		return nil, fmt.Errorf("found %s, expected tuned kernels of 'dsasched tune'",
			strings.TrimPrefix(err.Error(), "json: "))
	}
	if t.Kind != Kind || t.Version != Version {
		return nil, fmt.Errorf("kind is %q in version %d, expected %q in version %d", t.Kind, t.Version, Kind, Version)
	}
	seen := map[string]bool{}
	for i, x := range t.Tasks {
		if seen[x.Task] {
			return nil, fmt.Errorf("tasks[%d].task: %q stands in the file twice", i, x.Task)
		}
		seen[x.Task] = true
	}
	return t, nil
}

// Program is the program of a task of the file, false if the file does not have the task.
func (t *Tuned) Program(task *ansor.Task) (ansor.Program, bool, error) {
	p, ok, err := t.program(task)
	if err != nil && t.Name != "" {
		err = fmt.Errorf("%s: %w", t.Name, err)
	}
	return p, ok, err
}

func (t *Tuned) program(task *ansor.Task) (ansor.Program, bool, error) {
	name := TaskName(task.Key)
	i := slices.IndexFunc(t.Tasks, func(x Task) bool { return x.Task == name })
	if i < 0 {
		return nil, false, nil
	}
	layers := t.Tasks[i].Layers
	if len(layers) != len(task.Rule) {
		return nil, false, fmt.Errorf("tasks[%d].layers has %d, expected %d", i, len(layers), len(task.Rule))
	}
	p := make(ansor.Program, len(layers))
	for k, l := range layers {
		var err error
		if p[k], err = schedule.ParseNest(strings.Join(l.Nest, "\n"), task.Output(k)); err != nil {
			return nil, false, fmt.Errorf("tasks[%d].layers[%d].nest: %w", i, k, err)
		}
	}
	if err := task.Check(p); err != nil {
		return nil, false, fmt.Errorf("tasks[%d] (%s): %w", i, task.Name, err)
	}
	return p, true, nil
}
