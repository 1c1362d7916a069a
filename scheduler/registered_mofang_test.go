package scheduler_test

import "github.com/dsasched/dsasched/systems/mofang/staging"

func init() {
	staging.Register()
	restoredOfSystems = append(restoredOfSystems,
		restored{"resnet18", "stcp920", "cross-layer", 5, 2, staging.Pipelined}, // two schedules
		restored{"bert-128", "stcp920", "cross-layer+bind=search", 2, 1, staging.Pipelined},
		restored{"resnet18", "stcp920x4", "cross-layer", 2, 1, staging.Pipelined})
}
