package cli

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/systems/mofang/partition"
)

func init() {
	benchKinds = slices.Insert(benchKinds, len(benchKinds)-1, benchKind{"partition", "json", "json",
		"largest load of a device", partition.Methods(), benchPartition})
}

func benchPartition(ctx context.Context, file string, data []byte, method string, l benchLimits) benchAnswer {
	p := try(partition.Read(file, data))
	r := try(solvePartition(ctx, p, method, solve.Options[*partition.Division]{TimeLimit: l.limit, Solver: l.solver}))
	if !r.HasDivision() {
		return benchAnswer{cost: math.Inf(1)}
	}
	check(p.Check(r.Division()))
	b := try(json.Marshal(map[string]any{"devices": r.Devices}))
	return benchAnswer{r.MaxLoad, wholeBound(r.Bound), append(b, '\n')}
}
