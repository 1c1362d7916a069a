package tiles

import "github.com/dsasched/dsasched/scheduler"

// Keys are those of the choices of tiles for the steps of a draft; "": there is no choice for one.
func Keys(d *scheduler.Draft) ([]string, error) {
	t, err := newTiler(d)
	if err != nil {
		return nil, err
	}
	t.inPlace = true
	keys := make([]string, len(d.Steps))
	for i := range keys {
		if p, ok := t.problem(i); ok && d.Steps[i].Nest == nil {
			keys[i] = t.key(i, t.product(i, p), t.room, p.Shared)
		}
	}
	return keys, nil
}
