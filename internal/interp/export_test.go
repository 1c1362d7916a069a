package interp

import "github.com/dsasched/dsasched/model"

// Source is an element of a constant or of an input.
func Source(seed uint64, t *model.Tensor, element int64) uint64 {
	return source(seed, t, 0, 0, element)
}

// source is an element of a constant, the same in all iterations, or of an input.
func source(seed uint64, t *model.Tensor, cluster, iteration int32, element int64) uint64 {
	h := mixString(seed, t.Name)
	if t.Role != model.Constant {
		h = mix(h, uint64(cluster), uint64(iteration))
	}
	if t.Causal {
		rows, columns := t.Shape[len(t.Shape)-2], t.Shape[len(t.Shape)-1]
		if row, column := element/columns%rows, element%columns; column > row+columns-rows {
			return hidden
		}
		return 0
	}
	return mix(h, uint64(element)) % prime
}
