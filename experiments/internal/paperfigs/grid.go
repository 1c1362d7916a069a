package paperfigs

import (
	"fmt"
	"slices"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/scheduler"
)

// grid is an experiment on rows of configurations.
type grid struct {
	name, description, paper string
	hardware                 string
	variants                 []string
	more                     []scheduler.Recipe // beside those
	policies                 []harness.ChunkPolicy
	configurations           func() []literature.Configuration
	leaves                   func(c literature.Configuration, variant string) bool // out; nil: nothing
	report                   func(rows gridRows, b *harness.Document)
}

// gridRows finds a row.
type gridRows map[string]harness.Row

func gridKey(network string, batch int64, variant string, p harness.ChunkPolicy) string {
	return fmt.Sprintf("%s %d %s %s", network, batch, variant, p)
}

func (g gridRows) at(c literature.Configuration, variant string, p harness.ChunkPolicy) harness.Row {
	return g[gridKey(c.Network, c.BatchSize, variant, p)]
}

func (g grid) experiment() harness.Experiment {
	return harness.Experiment{Name: g.name, Description: g.description, Paper: g.paper, Plan: g.plan}
}

func (g grid) plan() (*harness.Plan, error) {
	spec := harness.Accelerator(g.hardware)
	p := &harness.Plan{}
	for _, c := range g.configurations() {
		src := harness.OpenNetwork(c.Network)
		recipes := slices.Clone(g.more)
		for _, name := range g.variants {
			v := harness.Recipe(name)
			recipes = append(recipes, v)
		}
		for _, v := range recipes {
			if g.leaves != nil && g.leaves(c, v.Name) {
				continue
			}
			for _, policy := range g.policies {
				chunk := int64(0)
				if policy != harness.Tuned {
					chunk = c.PaperChunk(v)
				}
				cell := harness.RowCell(src, model.F16, spec, c.BatchSize, v, scheduler.Options{Chunk: chunk}, policy, c.Unit)
				p.Cells = append(p.Cells, cell)
			}
		}
	}
	p.Report = harness.Of(func(rows []harness.Row) (*harness.Report, error) {
		m := gridRows{}
		for _, r := range rows {
			m[gridKey(r.Model, r.Batch, r.Variant, r.ChunkPolicy)] = r
		}
		return g.experiment().WriteRows(g.hardware, func(b *harness.Document) { g.report(m, b) }, rows)
	})
	return p, nil
}
