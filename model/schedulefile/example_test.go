package schedulefile_test

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/schedulefile"
)

// A schedule from a file is judged against an accelerator, here after two instances
// have changed places in its order.
func ExampleCheck() {
	f, err := schedulefile.Load("testdata/toy-fig5.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(schedulefile.Check(context.Background(), f, spec)), "violations")
	order := f.Schedules[0].Order
	first, last := 0, len(order)-1
	order[first], order[last] = order[last], order[first]
	for _, v := range schedulefile.Check(context.Background(), f, spec) {
		fmt.Println(v)
	}
	// Output:
	// 0 violations
	// schedules[0].order[0]: g2/0 runs before g1/0 (position 2), of which it reads 2007040 bytes of "identity.add"
	// schedules[0].order[0]: g2/0 runs before g1/1 (position 3), of which it reads 2007040 bytes of "identity.add"
	// schedules[0].order[2]: g1/0 runs before g0/0 (position 4), of which it reads 2007040 bytes of "conv.add"
	// schedules[0].order[3]: g1/1 runs before g0/0 (position 4), of which it reads 143360 bytes of "conv.add"
}
