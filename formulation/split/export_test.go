package split

import (
	"math"

	"github.com/dsasched/dsasched/model/schedule"
)

// Seconds is the cost of a grouping with its own factors, priced anew.
func (n *Network) Seconds(gr *schedule.Grouping) float64 {
	sum := 0.0
	for _, sg := range gr.Groups {
		sum += n.p.seconds(n.p.part(n.atoms(sg), sg.Ops), sg.Split, math.Inf(1))
	}
	return sum
}

// ILP is integerProgram.
var ILP = integerProgram
