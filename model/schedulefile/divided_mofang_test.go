package schedulefile_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
	"github.com/dsasched/dsasched/systems/mofang/staging"
)

func init() { staging.Register() }

// A schedule of clusters that divide a chunk: what is wrong with it is named.
func TestDivided(t *testing.T) {
	src, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := recipes.Lookup("ordering")
	if err != nil {
		t.Fatal(err)
	}
	r, err := scheduler.Run(context.Background(), src, machine(t), 5, v,
		scheduler.Options{Chunk: 2, Clusters: staging.Pipelined})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name   string
		damage func(f *schedulefile.File)
		want   string // "" where it is right
	}{
		{"right", func(*schedulefile.File) {}, ""},
		{"no such cluster", func(f *schedulefile.File) { f.Schedules[0].Instances[0].Cluster = 4 },
			"schedules[0].instances[0].cluster: is 4, expected 0 to 3"},
		{"other segments", func(f *schedulefile.File) { f.Clusters[2] = f.Clusters[2][:1] },
			"clusters[2]: runs other segments than clusters[0]"},
		{"another batch", func(f *schedulefile.File) { f.Batch = 20 },
			"clusters: they work on 5 batch elements, the batch is 20"},
		{"no division", func(f *schedulefile.File) { f.Division = "" }, "instances["},
		{"order", func(f *schedulefile.File) { slices.Reverse(f.Schedules[1].Order) }, "schedules[1].order[0]: "},
	} {
		data, err := r.File(schedulefile.Origin{}).Write()
		if err != nil {
			t.Fatal(err)
		}
		f, err := schedulefile.Read("divided", data)
		if err != nil {
			t.Fatal(err)
		}
		tt.damage(f)
		var said []string
		for _, v := range schedulefile.Check(t.Context(), f, machine(t)) {
			said = append(said, v.String())
		}
		if all := strings.Join(said, "\n"); (tt.want == "") != (all == "") || !strings.Contains(all, tt.want) {
			t.Errorf("%s: %s\nexpected %q", tt.name, all, tt.want)
		}
	}
	f := r.File(schedulefile.Origin{})
	f.Division = "rows"
	data, err := f.Write()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := schedulefile.Read("divided", data); err == nil ||
		!strings.Contains(err.Error(), `division: found "rows", expected "pipeline", "layers" or "kinds"`) {
		t.Error(err)
	}
}
