package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsasched/dsasched/hardware/lower"
	"github.com/dsasched/dsasched/model/schedule"
)

// mostPieces is the number of instances that a group may have, as in schedule files.
const mostPieces = 1 << 14

// limitInstances refuses groups of too many instances.
func limitInstances(d *Draft) error {
	n, largest := 0, 0
	for _, sg := range d.Grouping.Groups {
		n += int(sg.Factor())
		largest = max(largest, int(sg.Factor()))
	}
	if most := d.state.mostInstances; most > 0 && n > most || largest > mostPieces {
		return &lower.TooLargeError{Program: d.Graph.Name,
			What: fmt.Sprintf("have %d instances, %d of one group", n, largest)}
	}
	return nil
}

var instances = Strategy{Name: "derived", Description: "from groups and factors",
	Decide: func(_ context.Context, d *Draft) error {
		d.Instances = d.Memo.Instances(d.Graph, d.Grouping)
		return nil
	}}

func checkInstances(s *schedule.Schedule) error {
	if s.Instances == nil {
		return errors.New("there are no instances")
	}
	return schedule.CheckInstances(s.Graph, s.Grouping, s.Instances)
}
