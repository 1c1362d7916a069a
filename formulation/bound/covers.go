package bound

import (
	"fmt"

	"github.com/dsasched/dsasched/model/schedule"
)

// Covers reports a layer for which the bounds do not hold: one that is not a straight line of
// operators, each light one behind the one in front of it, whose result only it reads.
// [schedule.Layers] makes no others.
func Covers(s *schedule.Schedule) error {
	for k, layers := range s.Layers {
		for _, l := range layers {
			for i, id := range l.Ops {
				if i == 0 {
					continue
				}
				op, before := s.Graph.Op(id), s.Graph.Op(l.Ops[i-1])
				ok := light(op) && len(before.Outputs) == 1
				if ok {
					t := s.Graph.Tensor(before.Outputs[0])
					ok = len(t.Consumers) == 1 && t.Consumers[0] == id && !s.Graph.IsOutput(t.ID)
				}
				if !ok {
					return fmt.Errorf("group %q, layer %q: %q does not follow %q as the last light operator of a straight line, which the bound rests on",
						s.Grouping.Groups[k].Name, l.Name, op.Name, before.Name)
				}
			}
		}
	}
	return nil
}
