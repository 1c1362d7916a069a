package answers

import "github.com/dsasched/dsasched/systems/mofang/staging"

func init() {
	staging.Register()
	streamedOfSystems = append(streamedOfSystems, streamed{"toy-fig3", "stcp920", 4, 1, staging.Pipelined})
}
