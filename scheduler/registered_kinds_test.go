package scheduler_test

import "github.com/dsasched/dsasched/systems/kinds"

func init() { kinds.Register() }
