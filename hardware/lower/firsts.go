package lower

// firsts finds the place of the least key, the first of several, where one key at a time changes: each block of places
// knows its own, and is looked at again only if that has changed.
type firsts struct {
	keys  []int64 // never: the place has none
	least []int32 // the place of the least key of each block; unused: there is none; unknown: to be looked for
	all   int32   // of all blocks
}

const (
	unused      = -1
	unknown     = -2
	firstsBlock = 16
)

// add appends a place without a key.
func (f *firsts) add() {
	if f.keys = append(f.keys, never); len(f.keys)%firstsBlock == 1 {
		f.least = append(f.least, unused)
	}
}

// set gives a place its key.
func (f *firsts) set(place int32, key int64) {
	f.keys[place] = key
	for _, least := range [...]*int32{&f.least[place/firstsBlock], &f.all} {
		switch was := *least; {
		case was == unknown:
		case was == place:
			*least = unknown
		case key < never && (was == unused || key < f.keys[was] || key == f.keys[was] && place < was):
			*least = place
		}
	}
}

// first is the place of the least key and that, or unused and never.
func (f *firsts) first() (place int32, key int64) {
	if f.all == unknown {
		f.all, key = unused, never
		for b := range f.least {
			if f.least[b] == unknown {
				f.look(b)
			}
			if i := f.least[b]; i != unused && f.keys[i] < key {
				f.all, key = i, f.keys[i]
			}
		}
	}
	if f.all == unused {
		return unused, never
	}
	return f.all, f.keys[f.all]
}

// look finds the least key of a block.
func (f *firsts) look(block int) {
	from, least := block*firstsBlock, int64(never)
	f.least[block] = unused
	for i, key := range f.keys[from:min(from+firstsBlock, len(f.keys))] {
		if key < least {
			f.least[block], least = int32(from+i), key
		}
	}
}
