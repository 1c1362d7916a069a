package picture

import (
	"context"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/isa"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

func simulated(t *testing.T, model, machine string, batch int64) *scheduler.Result {
	t.Helper()
	src, err := network.Open(model, network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load(machine)
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("cross-layer")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), src, spec, batch, v, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Kernels follow each other, are named as their launches, and own the commands of
// their layers.
func TestOwners(t *testing.T) {
	r := simulated(t, "resnet50", "stcp920", 36)
	for cluster := range r.Program.Clusters {
		owner, kernels := Owners(r, cluster)
		n := 0
		for i := range r.Program.Commands {
			c := &r.Program.Commands[i]
			if own := int(r.Program.Queues[c.Queue].Cluster) == cluster; own != (owner[i] >= 0) {
				t.Fatalf("command %d has the owner %d", i, owner[i])
			}
			if owner[i] < 0 {
				continue
			}
			k := kernels[owner[i]]
			inst := &r.Schedule.Instances.Instances[k.Instance]
			sg := r.Schedule.Grouping.Groups[inst.Group]
			label := r.Program.Labels[c.Label]
			if c.Kind == isa.Launch {
				if n != owner[i] || k.FromPs != r.Sim.Start[i] || !strings.HasPrefix(label, sg.Name+"/") {
					t.Fatalf("launch %d of %s has the owner %d, %+v", n, label, owner[i], k)
				}
				n++
				continue
			}
			found := false
			for _, l := range r.Schedule.Layers[inst.Group] {
				found = found || l.Name == label
			}
			if !found {
				t.Fatalf("command %d of layer %s is of group %s", i, label, sg.Name)
			}
		}
		if n != len(kernels) || n == 0 {
			t.Errorf("%d launches, %d kernels", n, len(kernels))
		}
		for i := 1; i < len(kernels); i++ {
			if kernels[i-1].ToPs != kernels[i].FromPs {
				t.Errorf("kernel %d ends at %d, the next begins at %d", i-1, kernels[i-1].ToPs, kernels[i].FromPs)
			}
		}
	}
}

func svg(t *testing.T, f *plots.Figure, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	data, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestGantt(t *testing.T) {
	r := simulated(t, "resnet50", "stcp920", 64)
	f, err := Gantt(r)
	whole := svg(t, f, err)
	for _, w := range []string{
		"resnet50 on stcp920, cross-layer, batch 64: cluster 0", "matrix unit", "DDR loads", "L1 in use",
		"Time (ms)", "g3/1", "g0: stem.conv .. stage1.block2.add"} {
		if !strings.Contains(whole, ">"+w+"<") {
			t.Errorf("the chart has no %q", w)
		}
	}
	// However many commands there are, the picture stays of a size that can be used.
	if len(whole) > 3<<20 {
		t.Errorf("the chart has %d bytes", len(whole))
	}
	// More groups than colours.
	f, err = Gantt(simulated(t, "resnet50", "stcp920-paper", 4))
	if s := svg(t, f, err); !strings.Contains(s, "a colour for each group, in turn") {
		t.Error("nothing says what colours mean")
	}
}
