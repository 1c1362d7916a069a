package paperfigs

import (
	"fmt"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/literature"
)

// grid is an experiment on rows of configurations.
type grid struct {
	name, description, paper string
	hardware                 string
	variants                 []string
	policies                 []harness.ChunkPolicy
	configurations           func() []literature.Configuration
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
		for _, name := range g.variants {
			for _, policy := range g.policies {
				chunk := int64(0)
				if policy != harness.Tuned {
					chunk = c.PaperChunk(harness.Recipe(name))
				}
				p.Cells = append(p.Cells, literature.Cell(spec, c.Network, c.BatchSize, name, chunk, policy, c.Unit))
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
