package ansor

import (
	"context"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/model/schedule"
)

// A Neighbour is a program that differs from another one in one decision.
type Neighbour struct {
	Layer    string `json:"layer"`
	Decision string `json:"decision"`
	// Lines are the lines of the nest that differ or are missing.
	Lines   []string `json:"lines"`
	Seconds float64  `json:"kernel_s"`
}

var decisionNames = [decisionsOfLayer]string{ofCores: "cores", ofTiles: "tiles", ofColumns: "columns",
	ofReduction: "reduction", ofGroup: "weights in the LLB",
	ofPlaces: "places", ofPieces: "pieces", ofLoads: "loads", ofStage: "inputs in the LLB", ofDepth: "room"}

// Neighbours measures the programs that differ from p in one decision of one layer: what each other choice would cost.
func (t *Task) Neighbours(ctx context.Context, p Program) ([]Neighbour, error) {
	var list []Neighbour
	p = t.settled(slices.Clone(p))
	seen := map[string]bool{p.id(): true}
	for i, sp := range t.space {
		was := strings.Split(p[i].Text(t.Output(i)), "\n")
		for d, choices := range sp.decisions() {
			for _, change := range choices {
				n := *p[i]
				change(&n)
				out := sp.mend(&n)
				if !sp.allowed(out) {
					continue
				}
				made := slices.Clone(p)
				made[i] = out
				if id := made.id(); seen[id] {
					continue
				} else {
					seen[id] = true
				}
				x := Neighbour{Layer: t.Layer(i), Decision: decisionNames[d], Lines: changed(was, out, t, i)}
				var err error
				if x.Seconds, err = t.Seconds(ctx, made); err != nil {
					return nil, err
				}
				list = append(list, x)
			}
		}
	}
	return list, nil
}

// changed are the lines of a nest that another one does not have, or that it is without.
func changed(was []string, n *schedule.Nest, t *Task, layer int) (list []string) {
	now := strings.Split(n.Text(t.Output(layer)), "\n")
	for _, l := range now {
		if !slices.Contains(was, l) {
			list = append(list, strings.TrimSpace(l))
		}
	}
	if list == nil {
		for _, l := range was {
			if !slices.Contains(now, l) {
				list = append(list, "no "+strings.TrimSpace(l))
			}
		}
	}
	return list
}
