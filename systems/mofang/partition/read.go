package partition

import (
	"encoding/json"
	"fmt"

	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/internal/strict"
)

// Load reads a problem from a file.
func Load(path string) (*Problem, error) { return safefile.Load(path, Read) }

// LoadDivision reads a division of p from a file.
func LoadDivision(path string, p *Problem) (*Division, error) {
	data, err := safefile.Read(path)
	if err != nil {
		return nil, err
	}
	return readDivision(path, data, p)
}

// Read reads and validates a problem in the format of the published data set of Tarnawski et al. The name of the file
// is for errors, which are of type [*InputError]. Missing and repeated fields are errors, and so are unknown ones but
// in nodes and edges, where the format allows remarks.
//
// The files do not say for which of the data set's two objectives they are made; one that has the field "objective"
// with another value than "throughput" is refused.
func Read(file string, data []byte) (*Problem, error) {
	var f struct {
		MemoryBytes  amount `json:"maxSizePerFPGA"`
		Accelerators int    `json:"maxFPGAs"`
		CPUs         int    `json:"maxCPUs"`
		Nodes        []struct {
			ID          int     `json:"id"`
			Name        string  `json:"name,omitempty"`
			Supported   flag    `json:"supportedOnFpga"`
			CPU         amount  `json:"cpuLatency"`
			FPGA        amount  `json:"fpgaLatency"`
			Backward    flag    `json:"isBackwardNode"`
			Color       *int    `json:"colorClass,omitempty"`
			Bytes       amount  `json:"size,omitempty"`
			Contracted  refused `json:"containedSubnodes,omitempty"`
			strict.Rest `json:"*"`
		} `json:"nodes"`
		Edges []struct {
			From        int    `json:"sourceId"`
			To          int    `json:"destId"`
			Cost        amount `json:"cost"`
			strict.Rest `json:"*"`
		} `json:"edges"`
		Objective string `json:"objective,omitempty"`
		Name      string `json:"name,omitempty"`
	}
	if err := strict.Decode(file, data, &f); err != nil {
		return nil, err
	}
	if f.Objective != "" && f.Objective != "throughput" {
		return nil, strict.Error(file, "objective", strict.Quote(f.Objective), `"throughput", the largest load of a device`)
	}
	p := &Problem{Name: file, MemoryBytes: float64(f.MemoryBytes), Accelerators: f.Accelerators, CPUs: f.CPUs}
	index := map[int]int{}
	for i, n := range f.Nodes {
		if _, twice := index[n.ID]; twice {
			return nil, strict.Error(file, fmt.Sprintf("nodes[%d].id", i), fmt.Sprintf("%d twice", n.ID), "an id of its own")
		}
		index[n.ID] = i
		v := Node{n.ID, n.Name, bool(n.Supported), float64(n.CPU), float64(n.FPGA), bool(n.Backward), NoColor,
			float64(n.Bytes)}
		if n.Color != nil {
			v.Color = *n.Color
		}
		p.Nodes = append(p.Nodes, v)
	}
	for i, e := range f.Edges {
		from, known := index[e.From]
		to, end := index[e.To]
		switch {
		case !known:
			return nil, strict.Error(file, fmt.Sprintf("edges[%d].sourceId", i), fmt.Sprint(e.From), "the id of a node")
		case !end:
			return nil, strict.Error(file, fmt.Sprintf("edges[%d].destId", i), fmt.Sprint(e.To), "the id of a node")
		}
		p.Edges = append(p.Edges, Edge{from, to, float64(e.Cost)})
	}
	return p, p.Validate()
}

// readDivision reads a division of p: {"fpgas": [{"nodes": [ids]}], "cpus": ...}
// as the published program writes it, or a [Result]. It does not check it.
func readDivision(file string, data []byte, p *Problem) (*Division, error) {
	type device struct {
		Nodes       []int `json:"nodes"`
		strict.Rest `json:"*"`
	}
	var f struct {
		Devices     [][]int  `json:"devices,omitempty"`
		FPGAs       []device `json:"fpgas,omitempty"`
		CPUs        []device `json:"cpus,omitempty"`
		strict.Rest `json:"*"`
	}
	if err := strict.Decode(file, data, &f); err != nil {
		return nil, err
	}
	d := &Division{}
	switch n := len(f.Devices); {
	case f.Devices != nil && n > p.Accelerators+p.CPUs:
		most := fmt.Sprintf("%d accelerators and %d CPUs", p.Accelerators, p.CPUs)
		return nil, strict.Error(file, "devices", fmt.Sprint(n), most)
	case f.Devices != nil:
		k := min(n, p.Accelerators)
		d.Accelerators, d.CPUs = f.Devices[:k], f.Devices[k:]
		return d, nil
	case f.FPGAs == nil:
		return nil, strict.Error(file, "fpgas", "nothing", "the field")
	case f.CPUs == nil:
		return nil, strict.Error(file, "cpus", "nothing", "the field")
	}
	for _, x := range f.FPGAs {
		d.Accelerators = append(d.Accelerators, x.Nodes)
	}
	for _, x := range f.CPUs {
		d.CPUs = append(d.CPUs, x.Nodes)
	}
	return d, nil
}

// An amount is a number that all sums take.
type amount float64

func (a *amount) Take(t json.Token) string {
	if n, ok := t.(json.Number); ok {
		if x, err := n.Float64(); err == nil && usable(x) {
			*a = amount(x)
			return ""
		}
	}
	return "a number from 0 to 1e18"
}

// A flag is true or false, or 1 or 0.
type flag bool

func (f *flag) Take(t json.Token) string {
	switch t {
	case true, json.Number("1"):
		*f = true
	case false, json.Number("0"):
		*f = false
	default:
		return "true, false, 1 or 0"
	}
	return ""
}

// refused takes nothing.
type refused struct{}

func (*refused) Take(json.Token) string { return "a graph that was not contracted" }
