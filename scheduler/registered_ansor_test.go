package scheduler_test

import "github.com/dsasched/dsasched/systems/ansor/tuning"

func init() { tuning.Register() }
