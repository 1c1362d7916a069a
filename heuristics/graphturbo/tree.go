package graphturbo

import "math/bits"

// tree is a map from numbers to values that never changes: a Patricia trie (Okasaki and Gill, "Fast mergeable integer
// maps", 1998). What makes a new one of two shares all that only one of them has, so that the cost is that of where
// they meet: of maps of ranges that do not overlap some steps, whatever their size. nil is the empty one.
type tree[V merged[V]] struct {
	key         uint32 // of a leaf; else the bits that all keys have above bit
	bit         uint32 // that parts left from right; 0 of a leaf
	left, right *tree[V]
	value       V // of a leaf, or of all leaves in the order of keys
}

// merged are values of a tree.
type merged[V any] interface {
	with(V) V // both have the same key
	then(V) V // what two sets of keys make together, the lower ones first
}

func leaf[V merged[V]](key int32, v V) *tree[V] { return &tree[V]{key: uint32(key), value: v} }

// all combines the values of all leaves.
func (t *tree[V]) all() (v V) {
	if t != nil {
		v = t.value
	}
	return v
}

// visit goes through the keys in order.
func (t *tree[V]) visit(f func(key int32, v V)) {
	switch {
	case t == nil:
	case t.bit == 0:
		f(int32(t.key), t.value)
	default:
		t.left.visit(f)
		t.right.visit(f)
	}
}

// within reports whether a key may be in t.
func (t *tree[V]) within(key uint32) bool {
	if t.bit == 0 {
		return key == t.key
	}
	return (key^t.key)&^(t.bit<<1-1) == 0
}

func (t *tree[V]) get(key int32) (v V, ok bool) {
	for t != nil && t.within(uint32(key)) {
		if t.bit == 0 {
			return t.value, true
		}
		if uint32(key)&t.bit == 0 {
			t = t.left
		} else {
			t = t.right
		}
	}
	return v, false
}

// over is a node over two trees, if both have something.
func over[V merged[V]](key, bit uint32, left, right *tree[V]) *tree[V] {
	if left == nil {
		return right
	}
	if right == nil {
		return left
	}
	return &tree[V]{key &^ (bit<<1 - 1), bit, left, right, left.value.then(right.value)}
}

// union has the keys of both; of those that both have, what with makes of them.
func union[V merged[V]](a, b *tree[V]) *tree[V] {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	case a.bit == 0 && b.bit == 0 && a.key == b.key:
		return &tree[V]{key: a.key, value: a.value.with(b.value)}
	case a.bit == b.bit && a.key == b.key:
		return over(a.key, a.bit, union(a.left, b.left), union(a.right, b.right))
	case a.bit > b.bit && a.within(b.key):
		if b.key&a.bit == 0 {
			return over(a.key, a.bit, union(a.left, b), a.right)
		}
		return over(a.key, a.bit, a.left, union(a.right, b))
	case b.bit > a.bit && b.within(a.key):
		if a.key&b.bit == 0 {
			return over(b.key, b.bit, union(a, b.left), b.right)
		}
		return over(b.key, b.bit, b.left, union(a, b.right))
	}
	bit := uint32(1) << (bits.Len32(a.key^b.key) - 1)
	if a.key&bit == 0 {
		return over(a.key, bit, a, b)
	}
	return over(a.key, bit, b, a)
}

func (t *tree[V]) without(key int32) *tree[V] {
	switch {
	case t == nil || !t.within(uint32(key)):
		return t
	case t.bit == 0:
		return nil
	case uint32(key)&t.bit == 0:
		return over(t.key, t.bit, t.left.without(key), t.right)
	}
	return over(t.key, t.bit, t.left, t.right.without(key))
}

// common visits the keys that both have.
func common[V merged[V]](a, b *tree[V], visit func(key int32, a, b V)) {
	switch {
	case a == nil || b == nil:
	case a.bit == 0 && b.bit == 0:
		if a.key == b.key {
			visit(int32(a.key), a.value, b.value)
		}
	case a.bit == b.bit:
		if a.key == b.key {
			common(a.left, b.left, visit)
			common(a.right, b.right, visit)
		}
	case a.bit > b.bit:
		if a.within(b.key) {
			if b.key&a.bit == 0 {
				common(a.left, b, visit)
			} else {
				common(a.right, b, visit)
			}
		}
	default:
		if b.within(a.key) {
			if a.key&b.bit == 0 {
				common(a, b.left, visit)
			} else {
				common(a, b.right, visit)
			}
		}
	}
}
