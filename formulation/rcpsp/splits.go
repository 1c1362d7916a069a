package rcpsp

// splits ranks the values at which conflicts have cut variables, the most active of
// late first. Split (pair, v) parts the domain of the pair's first variable into what
// is below v and what is not.
type splits struct {
	index map[splitKey]int32
	all   []split
	heap  []int32
	out   []popped
	inc   float64
}

type splitKey struct {
	pair int32
	v    int64
}

type split struct {
	splitKey
	activity float64
	place    int32 // in the heap, or -1
}

type popped struct{ id, level int32 }

func newSplits() *splits { return &splits{index: map[splitKey]int32{}, inc: 1} }

func (s *splits) before(a, b int32) bool {
	x, y := &s.all[a], &s.all[b]
	return x.activity > y.activity || x.activity == y.activity && a < b
}

func (s *splits) bump(l lit) {
	key := splitKey{l.x >> 1, l.v}
	if l.x&1 == 1 {
		key.v = 1 - l.v
	}
	id, known := s.index[key]
	if !known {
		id = int32(len(s.all))
		s.index[key] = id
		s.all = append(s.all, split{key, 0, -1})
		s.all[id].activity = s.inc
		s.push(id)
		return
	}
	s.all[id].activity += s.inc
	if s.all[id].activity > 1e100 {
		for i := range s.all {
			s.all[i].activity *= 1e-100
		}
		s.inc *= 1e-100
	}
	if s.all[id].place >= 0 {
		s.up(s.all[id].place)
	}
}

func (s *splits) decay() { s.inc /= 0.95 }

func (s *splits) push(id int32) {
	s.heap = append(s.heap, id)
	s.all[id].place = int32(len(s.heap) - 1)
	s.up(s.all[id].place)
}

func (s *splits) up(i int32) {
	id := s.heap[i]
	for i > 0 && s.before(id, s.heap[(i-1)/2]) {
		s.heap[i] = s.heap[(i-1)/2]
		s.all[s.heap[i]].place = i
		i = (i - 1) / 2
	}
	s.heap[i] = id
	s.all[id].place = i
}

func (s *splits) pop() int32 {
	top := s.heap[0]
	n := int32(len(s.heap) - 1)
	id := s.heap[n]
	s.heap = s.heap[:n]
	s.all[top].place = -1
	if n == 0 {
		return top
	}
	i := int32(0)
	for {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && s.before(s.heap[c+1], s.heap[c]) {
			c++
		}
		if !s.before(s.heap[c], id) {
			break
		}
		s.heap[i] = s.heap[c]
		s.all[s.heap[i]].place = i
		i = c
	}
	s.heap[i] = id
	s.all[id].place = i
	return top
}

// next is the most active split that still parts a domain.
func (s *splits) next(e *engine) (splitKey, bool) {
	for len(s.heap) > 0 {
		id := s.heap[0]
		k := s.all[id].splitKey
		if x := 2 * k.pair; e.lb[x] < k.v && k.v <= e.ub(x) {
			return k, true
		}
		s.pop()
		s.out = append(s.out, popped{id, e.level()})
	}
	return splitKey{}, false
}

// back returns what was taken out above a level.
func (s *splits) back(level int32) {
	for n := len(s.out); n > 0 && s.out[n-1].level > level; n = len(s.out) {
		id := s.out[n-1].id
		s.out = s.out[:n-1]
		s.push(id)
	}
}
