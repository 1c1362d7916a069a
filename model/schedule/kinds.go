package schedule

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model"
)

// LayerKind is the kind of core that runs a layer of a group.
func (s *Schedule) LayerKind(group, layer int) int {
	if s.LayerKinds == nil {
		return 0
	}
	return s.LayerKinds[group][layer]
}

// Runs reports whether a kind of core, of a machine with several, runs all of some operators.
func Runs(kind []hardware.CoreType, g *model.Graph, ops []model.OpID) bool {
	return !slices.ContainsFunc(ops, func(id model.OpID) bool {
		class := g.Op(id).Class()
		return class != model.ViewClass && !slices.Contains(kind[0].Runs, class.String())
	})
}

// CheckKinds verifies that each layer has a kind of core that runs it, and that where kinds are clusters of their own
// ([hardware.Spec.Apart]) it is the kind of the cluster that runs its instance.
func CheckKinds(s *Schedule) error {
	switch {
	case !s.Spec.Mixed() && s.LayerKinds == nil:
		return nil
	case !s.Spec.Mixed():
		return fmt.Errorf("layers have kinds of core, of which %s has one", s.Spec.Name)
	case len(s.LayerKinds) != len(s.Layers):
		return fmt.Errorf("the layers of %d groups have kinds of core, expected those of all %d", len(s.LayerKinds),
			len(s.Layers))
	}
	kinds := s.Spec.Kinds()
	for k, layers := range s.Layers {
		if len(s.LayerKinds[k]) != len(layers) {
			return fmt.Errorf("%d kinds of core for the %d layers of %s", len(s.LayerKinds[k]), len(layers),
				s.Grouping.Groups[k].Name)
		}
		for l := range layers {
			switch kind := s.LayerKinds[k][l]; {
			case kind < 0 || kind >= len(kinds):
				return fmt.Errorf("layer %s runs on kind %d of core, expected 0 to %d", layers[l].Name, kind, len(kinds)-1)
			case !Runs(kinds[kind], s.Graph, layers[l].Ops):
				return fmt.Errorf("layer %s runs on %s cores, which do not run all of it", layers[l].Name, kinds[kind][0].Name)
			}
		}
	}
	if s.Spec.Sides() == 1 {
		return nil
	}
	for i, cluster := range s.Place {
		k := s.Instances.Instances[i].Group
		for l, kind := range s.LayerKinds[k] {
			if kind != cluster%s.Spec.Sides() {
				return fmt.Errorf("layer %s runs on %s cores, which cluster %d does not have", s.Layers[k][l].Name,
					kinds[kind][0].Name, cluster)
			}
		}
	}
	return nil
}
