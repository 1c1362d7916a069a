package allocate

import (
	"context"
	"testing"

	"github.com/dsasched/dsasched/formulation/milp"
)

// The pathological graph of MODeL's tests (Steiner et al., ICML 2023;
// github.com/facebookresearch/MODel_opt, MIT: model_opt/native_graphs/pathological_graph.py),
// with the schedule that tests/scheduler_test.py gives: tensors of 1 byte that live long
// have to stand where those of 7 to 9 bytes between them fit in 10. From the step that
// makes a tensor to the one that reads it, both included.
func TestLiterature(t *testing.T) {
	p := &Problem{}
	for _, b := range []struct {
		id          string
		first, last int64
		size        int64
	}{{"T0", 1, 10, 1}, {"T1", 2, 3, 9}, {"T2", 4, 13, 1}, {"T3", 5, 6, 8}, {"T4", 7, 16, 1}, {"T5", 8, 9, 7},
		{"T6", 11, 12, 8}, {"T7", 14, 15, 7}} {
		p.Buffers = append(p.Buffers, Buffer{ID: b.id, Lifetime: Interval{Lower: b.first, Upper: b.last + 1}, Size: b.size})
	}
	sol, err := Minimize(context.Background(), p, Options{})
	if err != nil || sol.Status != milp.Optimal || peak(sol) != 10 {
		t.Errorf("%+v (%v), published 10", sol, err)
	}
}
