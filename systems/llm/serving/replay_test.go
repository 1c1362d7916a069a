package serving

import (
	"errors"
	"fmt"
)

// replay is the referee: it lets a plan pass step by step and returns the mean time from arrival to last token,
// in seconds. An error says which rule is broken.
func (p *Problem) replay(steps []Step) (float64, error) {
	s := &state{had: make([]progress, len(p.Requests))}
	for k, step := range steps {
		if step.Start < s.now {
			return 0, fmt.Errorf("step %d: begins at %d ps, expected %d or later", k, step.Start, s.now)
		}
		s.now = step.Start
		if err := p.step(s, step.Parts); err != nil {
			return 0, fmt.Errorf("step %d: %w", k, err)
		}
	}
	if !p.finished(s) {
		return 0, errors.New("not all requests have finished")
	}
	return p.mean(s.cost), nil
}
