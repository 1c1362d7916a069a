// Package heap is a priority queue of values of one type, as container/heap is of any. The
// searches and the orders that take the first of what is ready are its users.
package heap

// A Heap gives its values in the order of Before. Where that is a strict total order, the
// order in which they came does not matter.
type Heap[T any] struct {
	Before func(a, b T) bool
	list   []T
}

// Of returns an empty heap.
func Of[T any](before func(a, b T) bool) *Heap[T] { return &Heap[T]{Before: before} }

// Len is the number of values.
func (h *Heap[T]) Len() int { return len(h.list) }

// First is the value that Pop would give. The heap must not be empty.
func (h *Heap[T]) First() T { return h.list[0] }

// Push adds a value.
func (h *Heap[T]) Push(x T) {
	h.list = append(h.list, x)
	for i := len(h.list) - 1; i > 0; {
		up := (i - 1) / 2
		if !h.Before(h.list[i], h.list[up]) {
			return
		}
		h.list[i], h.list[up] = h.list[up], h.list[i]
		i = up
	}
}

// Pop takes the first value. The heap must not be empty.
func (h *Heap[T]) Pop() T {
	first, n := h.list[0], len(h.list)-1
	h.list[0] = h.list[n]
	var none T
	h.list[n] = none // nothing that left is kept alive
	h.list = h.list[:n]
	for i := 0; 2*i+1 < n; {
		down := 2*i + 1
		if right := down + 1; right < n && h.Before(h.list[right], h.list[down]) {
			down = right
		}
		if !h.Before(h.list[down], h.list[i]) {
			break
		}
		h.list[i], h.list[down] = h.list[down], h.list[i]
		i = down
	}
	return first
}
