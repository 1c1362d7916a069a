package hardware

import (
	"bytes"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Resource names the hardware that a unit occupies while it runs: the first,
// in the order of Units, of all units that share with it directly or through
// others. Two units of a core can run at the same time exactly if their
// resources differ. It panics if the core has no such unit.
func (t CoreType) Resource(unit string) string {
	group := t.sharing()
	for i, u := range t.Units {
		if u.Name == unit {
			return t.Units[group[i]].Name
		}
	}
	panic(fmt.Sprintf("hardware: core type %q has no unit %q", t.Name, unit))
}

// YAML is the description as a file, with the comments of what it was made from.
func (d *Description) YAML() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(d.root); err != nil {
		return nil, err
	}
	return b.Bytes(), e.Close()
}

// Comment is the comment behind a field's value, with its #.
func (d *Description) Comment(name string) (string, error) {
	f, err := d.field(name)
	if err != nil {
		return "", err
	}
	return f.node.LineComment, nil
}

// L1TotalBytes is the capacity of "the L1" of a cluster: the data parts of all its
// cores that have one. Separate weight buffers do not count.
func (s *Spec) L1TotalBytes() Bytes {
	if s.L1 == nil {
		return 0
	}
	n := 0
	for _, t := range s.CoreTypes {
		if t.HasL1 {
			n += t.Count
		}
	}
	return s.L1.SizeBytes * Bytes(n)
}
