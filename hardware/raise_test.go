package hardware

import (
	"strings"
	"testing"
)

// One level up, a machine computes and stores as much as before.
func TestRaise(t *testing.T) {
	for _, c := range []struct {
		name  string
		cores int
		lb    Bytes
		link  float64
	}{
		{"stcp920", 4, 8 << 20, 108e9},
		{"goya", 1, 50_600_000, 42.7e9},
		{"ascend910", 1, 32 << 20, 1.2e12},
		{"a100", 1, 40 << 20, 1555e9},
	} {
		s := load(t, c.name)
		before := s.Describe()
		r, err := Raise(s)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if s.Describe() != before {
			t.Errorf("%s: raising changes the original", c.name)
		}
		if r.Clusters != 1 || r.Cores() != c.cores || r.LLB != nil || r.L1.SizeBytes != c.lb || r.L1WeightBytes != 0 {
			t.Errorf("%s: %d clusters of %d cores with an LB of %v, want 1 of %d with %v and no GB", c.name, r.Clusters,
				r.Cores(), r.L1.SizeBytes, c.cores, c.lb)
		}
		if got := r.CoreLink.BandwidthBytesPerSecond; got != c.link {
			t.Errorf("%s: core link of %g B/s, want %g", c.name, got, c.link)
		}
		for _, dtype := range []string{"f16", "f32", "i8"} {
			if got, want := r.PeakMACsPerSecond(dtype), s.PeakMACsPerSecond(dtype); got != want {
				t.Errorf("%s: peak of %s is %g, was %g", c.name, dtype, got, want)
			}
		}
		if *r.DDR != *s.DDR {
			t.Errorf("%s: the DDR changes", c.name)
		}
	}
	if _, err := Raise(load(t, "ipu")); err == nil || !strings.Contains(err.Error(), `"ipu" has no LLB`) {
		t.Errorf("raising a machine without a GB gives %v", err)
	}
}

// Units of one name on cores of two types stay apart, and sharing with them.
func TestRaiseRenames(t *testing.T) {
	s := load(t, "stcp920")
	other := s.CoreTypes[0]
	other.Name = "other"
	s.CoreTypes = append(s.CoreTypes, other)
	r, err := Raise(s)
	if err != nil {
		t.Fatal(err)
	}
	core := r.CoreTypes[0]
	if got := core.Resource("other.vector-core"); got != "other.vme" {
		t.Errorf("the vector core of the other cores occupies %q, want other.vme", got)
	}
	if got, want := r.PeakMACsPerSecond("f16"), s.PeakMACsPerSecond("f16"); got != want {
		t.Errorf("peak is %g, was %g", got, want)
	}
}

func TestNeedsRaise(t *testing.T) {
	one := load(t, "stcp920")
	one.CoreTypes[0].Count = 1
	bare := load(t, "stcp920")
	bare.L1, bare.L1WeightBytes, bare.CoreTypes[0].HasL1 = nil, 0, false
	for _, c := range []struct {
		name string
		spec *Spec
		want bool
	}{
		{"all cores have an LB", load(t, "stcp920"), false},
		{"SMs", load(t, "a100"), false},
		{"nothing to raise to", load(t, "ipu"), false},
		{"a matrix engine without", load(t, "goya"), true},
		{"one core in each cluster", one, true},
		{"no LB", bare, true},
	} {
		if got := c.spec.NeedsRaise(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
