package interp

// attend computes an element of an attention as the operators that it stands for would, key by key. It
// reads no key or value that the query does not see.
func (o *operator) attend(at []int64, read reader) uint64 {
	shares := o.shares(at, read)
	sum := uint64(0)
	v := o.ofKeys(at)
	v[len(v)-1] = at[len(at)-1]
	for j, share := range shares {
		if share != 0 {
			part, j := o.inPart(int64(j))
			v[len(v)-2] = j
			sum = add(sum, mul(share, read(2*part+2, v)))
		}
	}
	return sum
}

// ofKeys is where the head of keys, or of values, of an element lies; its last two positions are to be set.
func (o *operator) ofKeys(at []int64) []int64 {
	p := append([]int64{}, at...)
	p[len(p)-3] /= o.op.Attr.Group
	return p
}

// inPart is the part of the keys that has key j, and which one of it that is.
func (o *operator) inPart(j int64) (part int, key int64) {
	for start := int64(0); ; part++ {
		end := o.g.KeyStart(o.op, part+1)
		if j < end {
			return part, j - start
		}
		start = end
	}
}

// sees is the number of keys the query of an element sees.
func (o *operator) sees(at []int64) int64 {
	n := len(at)
	keys := o.g.KeyStart(o.op, o.op.KeyParts())
	if o.op.Attr.Causal {
		return at[n-2] + 1 + keys - o.in[0][n-2]
	}
	return keys
}

// shares are the weights of each key's value for a query.
func (o *operator) shares(at []int64, read reader) []uint64 {
	n := len(at)
	a, all := o.op.Attr, o.g.KeyStart(o.op, o.op.KeyParts())
	scores := make([]uint64, all)
	q, k := append([]int64{}, at...), o.ofKeys(at)
	key, depth := n-2, n-1
	if a.TransB {
		key, depth = depth, key
	}
	of := make([]uint64, 0, 3)
	for j := range scores {
		if scores[j] = hidden; int64(j) >= o.sees(at) {
			continue
		}
		part, place := o.inPart(int64(j))
		k[key] = place
		s := uint64(0)
		for d := range o.in[0][n-1] {
			q[n-1], k[depth] = d, d
			s = add(s, mul(read(0, q), read(2*part+1, k)))
		}
		input := 1 + 2*o.op.KeyParts()
		for _, step := range a.Scores {
			of = of[:0]
			for i := range step.Operands {
				if i == step.At {
					of = append(of, s)
					continue
				}
				of = append(of, read(input, o.onScore(input, at, int64(j))))
				input++
			}
			s = pointwise(step.Kind, step.Variant, of)
		}
		scores[j] = s
	}
	if !a.Softmax {
		return scores
	}
	shares, seed := make([]uint64, all), mix(seedOf("Softmax", a.Variant), 0)
	for j := range shares {
		if scores[j] == hidden {
			continue
		}
		h := seed
		if all > 1 {
			h = mix(h, uint64(j))
		}
		shares[j] = mix(h, scores...) % prime
	}
	return shares
}

// onScore is where the operand of a score operator lies for one score.
func (o *operator) onScore(input int, at []int64, key int64) []int64 {
	s := o.in[input]
	p := make([]int64, len(s))
	for d := range s {
		if x := len(at) - len(s) + d; s[d] > 1 {
			if p[d] = at[x]; x == len(at)-1 {
				p[d] = key
			}
		}
	}
	return p
}
