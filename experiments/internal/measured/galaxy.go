package measured

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/scheduler"
)

// A part is a kernel of a decoder layer on one of many chips: products or operators, and a collective behind them.
type part struct {
	Name string `json:"name"`
	// Cases are of a row, in Type, or with /4bit in half of it.
	Cases []string `json:"cases"`
	Type  string   `json:"type"`
	// Collective is over a ring of so many chips, of so many bytes; "": none.
	Collective string `json:"collective"`
	Chips      int64  `json:"chips"`
	Bytes      int64  `json:"bytes"`
	// Microseconds of the kernel on the two systems, as their maker publishes them.
	Measured [2]float64 `json:"measured_us"`
	Why      string     `json:"why"` // of what is off by more than 1.5
}

// galaxy is the machine of each of 32 chips, 8 x 4. Links: BasicEthernetGuide.md (tenstorrent/tt-metal@09553f7e1a) has
// 12.5 GB/s and direction, 4 between neighbours, as 16 of a chip are in use, and 690 ns for each hop of a ring of 8.
const galaxy = "wormhole-n150"

var galaxyLink = hardware.Link{BandwidthBytesPerSecond: 4 * 12.5e9, LatencySeconds: 690e-9}

const (
	prefetched = "cores of their own load the weights during the kernels before: the DRAM is too slow for this time"
	smallMoves = "the closed form leaves out additions, and moves by turns through the L1s of Ethernet cores"
)

// galaxyLayer is a layer of Llama-3-70B that decodes a token of 32 users: tenstorrent/tt-metal@02cd859b85,
// models/demos/llama3_70b_galaxy/tests, decoder_perf_targets_4u.json and _6u.json. What a chip has follows from the
// network's extents (8192; 64 + 2 x 8 heads of 128; 28672) over 8 x 4 chips: reductions of 8192 over 4 and of 8192 and
// 28672 over 8. Activations have two bytes; weights one, those of the first two of the feed-forward half of one.
// Left out are kernels whose cases are not given (attention over a cache of some length, its update, positions).
var galaxyLayer = []part{
	{"norm and all-gather", []string{"layernorm 32x2048"}, "bf16", chips.AllGather, 4, 4 * 32 * 32 * 2,
		[2]float64{19.189, 16.720}, smallMoves},
	{"queries, keys, values", []string{"matmul 32x2048x1280"}, "f8", "", 0, 0, [2]float64{7.887, 7.082}, prefetched},
	{"reduce-scatter, heads", nil, "", chips.ReduceScatter, 4, 32 * 1280 * 2, [2]float64{9.729, 8.011}, smallMoves},
	{"all-gather of heads", nil, "", chips.AllGather, 4, 32 * 1024 * 2, [2]float64{10.079, 8.412}, smallMoves},
	{"output", []string{"matmul 32x1024x2048"}, "f8", "", 0, 0, [2]float64{8.588, 7.701}, prefetched},
	{"all-reduce", nil, "", chips.AllReduce, 8, 32 * 2048 * 2, [2]float64{19.107, 13.300}, smallMoves},
	{"norm and all-gather", []string{"layernorm 32x2048"}, "bf16", chips.AllGather, 4, 4 * 32 * 32 * 2,
		[2]float64{18.838, 16.346}, smallMoves},
	{"gate, up, reduce-scatter", []string{"matmul 32x2048x3584", "matmul 32x2048x3584"}, "f8" + halfByte,
		chips.ReduceScatter, 4, 32 * 3584 * 2, [2]float64{20.958, 17.498}, prefetched},
	{"reduce-scatter", nil, "", chips.ReduceScatter, 4, 32 * 3584 * 2, [2]float64{9.457, 7.219}, smallMoves},
	{"all-gather", nil, "", chips.AllGather, 4, 32 * 3584 * 2, [2]float64{9.381, 7.084}, smallMoves},
	{"down", []string{"matmul 32x3584x2048"}, "f8", "", 0, 0, [2]float64{14.982, 13.973}, prefetched},
	{"all-reduce", nil, "", chips.AllReduce, 8, 32 * 2048 * 2, [2]float64{18.900, 13.441}, smallMoves},
}

// predict is a part's time in seconds: each of its operators as a row alone, and the collective with a launch of its
// own unless it is behind them.
func (p *part) predict(ctx context.Context, pick scheduler.Recipe, launch float64) (seconds float64, err error) {
	known := map[string]float64{}
	for _, c := range p.Cases {
		if known[c] == 0 {
			r := row{Kind: products, Machine: galaxy, Case: c, Batch: 1, Cores: 1, Flight: 1, Host: "no", Remark: gapsExcluded}
			var half bool
			if r.Type, half = strings.CutSuffix(p.Type, halfByte); half {
				r.Rate = halfByte
			}
			made, err := r.predict(ctx, pick)
			if err != nil {
				return 0, err
			}
			known[c] = made.Seconds
		}
		seconds += known[c]
	}
	if p.Collective == "" {
		return seconds, nil
	}
	ring := chips.Group{Chips: p.Chips, Link: galaxyLink, Torus: []int{int(p.Chips)}}
	if len(p.Cases) == 0 {
		seconds += launch
	}
	return seconds + ring.Seconds(p.Collective, p.Bytes), nil
}

func planGalaxy(pl *harness.Plan, pick scheduler.Recipe) {
	spec, hash := harness.Machine(galaxy)
	pl.Cells = append(pl.Cells, harness.Cell{Key: "galaxy", Label: "a layer of Llama-3-70B over 32 chips of " + galaxy,
		Inputs: struct {
			HardwareHash string           `json:"hardware_sha256"`
			Variant      scheduler.Recipe `json:"variant"`
			Link         hardware.Link    `json:"link"`
			Parts        []part           `json:"parts"`
		}{hash, pick, galaxyLink, galaxyLayer},
		Run: func(ctx context.Context) (any, error) {
			var list []float64
			for i := range galaxyLayer {
				s, err := galaxyLayer[i].predict(ctx, pick, spec.LaunchSeconds)
				if err != nil {
					return nil, err
				}
				list = append(list, s)
			}
			return list, nil
		}})
}

// galaxyTable has a line for each part, and what they take together.
func galaxyTable(result json.RawMessage) (t harness.Table, err error) {
	var list []float64
	if err := json.Unmarshal(result, &list); err != nil {
		return t, fmt.Errorf("a result can't be read: %w", err)
	}
	if len(list) != len(galaxyLayer) {
		return t, fmt.Errorf("a result can't be read: %d parts, expected %d", len(list), len(galaxyLayer))
	}
	t = harness.Table{Name: "galaxy", Title: "A layer of Llama-3-70B over 32 Wormholes, decoding for 32 users",
		Columns: []harness.Column{{Name: "Part", Text: true}, {Group: "Measured, us", Name: "4U"},
			{Group: "Measured, us", Name: "6U"}, {Name: "Predicted, us"}, {Group: "Predicted over measured", Name: "4U"},
			{Group: "Predicted over measured", Name: "6U"}, {Name: "Why, if off by more than 1.5", Text: true}}}
	var sum part
	total := 0.0
	line := func(p *part, seconds float64) {
		us := 1e6 * seconds
		why := ""
		for _, m := range p.Measured {
			if us/m > 1.5 || m/us > 1.5 {
				why = p.Why
			}
		}
		t.Rows = append(t.Rows, []string{p.Name, number(p.Measured[0]), number(p.Measured[1]), number(us),
			number(us / p.Measured[0]), number(us / p.Measured[1]), why})
	}
	for i := range galaxyLayer {
		p := &galaxyLayer[i]
		line(p, list[i])
		for k := range sum.Measured {
			sum.Measured[k] += p.Measured[k]
		}
		total += list[i]
	}
	sum.Name = "together"
	line(&sum, total)
	t.Notes = []string{"Kernels alone, without the gaps between them, and predicted with a launch each. " +
		"Both systems have the same chips and links in their files here. " +
		"Products read their weights from the DRAM within the kernel, " +
		"collectives take their closed forms on rings of 4 or 8 chips. " +
		"Attention over the cache is left out, as its length is not given."}
	return t, nil
}
