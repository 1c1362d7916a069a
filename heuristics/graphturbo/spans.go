package graphturbo

// spans holds things that are there from one step to another, both included, and finds those
// that are there at a step: a segment tree over the steps.
type spans[T any] struct {
	steps  int
	nodes  [][]T // of a step i the leaf is steps+i, of a node k the parent k/2
	starts [][]T // by their first step
}

func newSpans[T any](steps int) *spans[T] {
	return &spans[T]{steps, make([][]T, 2*steps), make([][]T, steps)}
}

func (s *spans[T]) add(first, last int, x T) {
	s.starts[first] = append(s.starts[first], x)
	for from, to := first+s.steps, last+s.steps+1; from < to; from, to = from/2, to/2 {
		if from%2 == 1 {
			s.nodes[from] = append(s.nodes[from], x)
			from++
		}
		if to%2 == 1 {
			to--
			s.nodes[to] = append(s.nodes[to], x)
		}
	}
}

// at visits what is there at a step, and forgets there what need not be visited again.
func (s *spans[T]) at(step int, visit func(T) (again bool)) {
	for k := step + s.steps; k > 0; k /= 2 {
		kept := s.nodes[k][:0]
		for _, x := range s.nodes[k] {
			if visit(x) {
				kept = append(kept, x)
			}
		}
		s.nodes[k] = kept
	}
}

// between lists what is there at any step from first to last.
func (s *spans[T]) between(first, last int, list []T) []T {
	for k := first + s.steps; k > 0; k /= 2 {
		list = append(list, s.nodes[k]...)
	}
	for i := first + 1; i <= last; i++ {
		list = append(list, s.starts[i]...)
	}
	return list
}
