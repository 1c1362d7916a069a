package interp

import "github.com/dsasched/dsasched/model"

// Source is an element of a constant or of an input.
func Source(seed uint64, t *model.Tensor, element int64) uint64 {
	return source(seed, t, 0, 0, element)
}
