package schedule

import (
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/model"
)

// Divisors lists the divisors of n up to most, ascending.
func Divisors(n, most int64) []int64 {
	var d []int64
	for i := int64(1); i <= min(n, most); i++ {
		if n%i == 0 {
			d = append(d, i)
		}
	}
	return d
}

// Shares divides a batch over clusters as evenly as whole elements allow.
func Shares(batch int64, clusters int) []int64 {
	s := make([]int64, clusters)
	for k := range s {
		s[k] = batch / int64(clusters)
		if int64(k) < batch%int64(clusters) {
			s[k]++
		}
	}
	return s
}

// Word is the level's name in files and answers: l1, llb or ddr.
func (l Level) Word() string { return strings.ToLower(l.String()) }

// Text writes the dimensions of a tensor that are spread over cores: "n:4 h:2".
func (b Binding) Text(t *model.Tensor) string {
	var parts []string
	for d, cores := range b {
		if cores > 1 {
			parts = append(parts, fmt.Sprintf("%s:%d", t.DimName(d), cores))
		}
	}
	if len(parts) == 0 {
		return "one core"
	}
	return strings.Join(parts, " ")
}

// A GroupCut is a sub-graph with its factor.
type GroupCut struct {
	Group     string `json:"group"`
	First     string `json:"first_operator"`
	Last      string `json:"last_operator"`
	Operators int    `json:"operators"`
	Factor    int64  `json:"factor"`
	Dimension string `json:"dimension"` // empty: not split
}

// GroupCuts lists groups with their factors.
func (s *Schedule) GroupCuts(groups *Grouping) []GroupCut {
	list := []GroupCut{}
	for _, sg := range groups.Groups {
		x := GroupCut{Group: sg.Name, First: s.Graph.Op(sg.Ops[0]).Name, Last: s.Graph.Op(sg.Ops[len(sg.Ops)-1]).Name,
			Operators: len(sg.Ops), Factor: sg.Factor()}
		if d := sg.SplitDim(); d >= 0 {
			x.Dimension = s.Graph.Tensor(sg.Outputs[0]).DimName(d)
		}
		list = append(list, x)
	}
	return list
}
