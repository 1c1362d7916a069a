package balancing

import (
	"context"
	"fmt"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/internal/bail"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/plots"
	"github.com/dsasched/dsasched/systems/mofang"
	"github.com/dsasched/dsasched/systems/mofang/balance"
	"github.com/dsasched/dsasched/systems/mofang/devicepipe"
	"github.com/dsasched/dsasched/systems/mofang/pipelining"
)

// The machine of the paper, and what it trains with: single precision, as TensorFlow does where nothing else is said.
const (
	machine        = "v100x16"
	loadingDevices = 4   // of Figs. 13 and 14; not published
	deviceBatch    = 256 // of each device; not published
	queued         = 2   // batches in the queue; not published
)

// trainRate is the number of images a device trains on in a second.
func trainRate(name string, n *chips.Server, batch int) float64 {
	net := bail.Of(network.Open(name, network.Options{DType: model.F32}))
	c := bail.Of(balance.NewChain(net, n, batch, 0))
	seconds := 0.0
	for _, l := range c.Costs {
		seconds += l.Forward.At(batch) + l.Backward.At(batch)
	}
	return float64(batch) / seconds
}

// loading is the data side of training at a rate.
func loading(n *chips.Server, rate float64, batch int) *pipelining.Loading {
	l := &pipelining.Loading{ItemSeconds: n.Host.ItemSeconds, TrainSeconds: float64(batch) / rate, Batch: batch}
	for _, s := range n.Host.Speedups {
		l.Speedups = append(l.Speedups, pipelining.Speedup(s))
	}
	return l
}

// choose is Mofang's number of threads.
func choose(l *pipelining.Loading) mofang.Speedup {
	table := harness.Each(l.Speedups, func(s pipelining.Speedup) mofang.Speedup { return mofang.Speedup(s) })
	return mofang.Threads(l.NamesSeconds, l.ItemSeconds, l.TrainSeconds, l.Batch, table)
}

// threadTable has the numbers of Figs. 13 and 14: rates in images per second.
type threadTable struct {
	Model  string      `json:"model"`
	Train  float64     `json:"train_per_s"`
	Rows   []threadRow `json:"rows"`
	Mofang int         `json:"mofang_threads"`
	Scan   int         `json:"scan_threads"`
}

type threadRow struct {
	Threads int     `json:"threads"`
	Load    float64 `json:"load_per_s"`
	Total   float64 `json:"total_per_s"`
	Watts   float64 `json:"host_watts"`
	// Queue is the result of a queue of two batches.
	Queue devicepipe.Loaded `json:"queue"`
}

func threads(name, net string, figure, published int) harness.Experiment {
	inputs := struct {
		Model, Server  string
		Devices, Batch int
	}{net, machine, loadingDevices, deviceBatch}
	return harness.Single(name, fmt.Sprintf("threads that load data for %s, by trying all and by Mofang's rule", net),
		fmt.Sprintf("%s§3.1 and Fig. %d", paper, figure), inputs,
		func(context.Context) threadTable {
			n := bail.Of(chips.Load(machine))
			t := threadTable{Model: net, Train: loadingDevices * trainRate(net, n, deviceBatch)}
			l := loading(n, t.Train, loadingDevices*deviceBatch)
			for _, s := range l.Speedups {
				const batches = 20
				q := bail.Of(devicepipe.Loading{Threads: s.Threads, ItemSeconds: l.ItemSeconds * float64(s.Threads) / s.Factor,
					Room: queued * l.Batch, Batch: l.Batch, TrainSeconds: l.TrainSeconds, Batches: batches}.Simulate())
				t.Rows = append(t.Rows, threadRow{s.Threads, s.Factor / l.ItemSeconds, float64(l.Batch) / l.BatchSeconds(s),
					float64(s.Threads) * n.Host.WattsPerThread, q})
			}
			t.Mofang, t.Scan = choose(l).Threads, bail.Of(pipelining.Threads(l)).Threads
			return t
		},
		func(d *harness.Document, t threadTable) {
			table := harness.Table{Title: fmt.Sprintf("Training %s on %d devices: images/s by threads that load data", t.Model,
				loadingDevices), Name: "threads",
				Columns: harness.Columns("Threads", "Loading", "Training", "Together",
					"Queue of two batches|training\nwaits %|threads\nwait %", "Host W")}
			for _, r := range t.Rows {
				table.Add(r.Threads, harness.Fixed(r.Load, 0), harness.Fixed(t.Train, 0), harness.Fixed(r.Total, 0),
					harness.Percent(r.Queue.EmptyShare), harness.Percent(r.Queue.FullShare), harness.Fixed(r.Watts, 0))
			}
			table.Notes = append(table.Notes,
				"Waits are of 20 simulated batches: a thread waits with an item where the queue is full, training where it has no batch.", "The time of an image on one thread and the number of devices are not published: their product is chosen so that 16 threads are just enough for ResNet-50; the other network's number follows.")
			d.Table(table)
			d.Claim("threads that Mofang chooses", fmt.Sprint(published), fmt.Sprint(t.Mofang),
				harness.Agreement(t.Mofang == published))
			d.Given()
			d.Claim("threads by trying all", fmt.Sprint(t.Mofang), fmt.Sprint(t.Scan), harness.Agreement(t.Mofang == t.Scan))
			d.Given()
			c := plots.Curves{Title: t.Model, XLabel: "Threads", YLabel: "Images/s",
				Series: []plots.Series{{Name: "loading"}, {Name: "together"}}}
			for _, r := range t.Rows {
				c.X = append(c.X, float64(r.Threads))
				c.Series[0].Values = append(c.Series[0].Values, r.Load)
				c.Series[1].Values = append(c.Series[1].Values, r.Total)
			}
			d.Curves("threads", "Images/s by threads", c)
		})
}

// rateRow is training with chosen threads beside training with all.
type rateRow struct {
	Label   int     `json:"label"`
	Threads int     `json:"threads"`
	Mofang  float64 `json:"mofang_per_s"`
	All     float64 `json:"all_threads_per_s"`
}

func rateTable(d *harness.Document, title, label string, rows []rateRow) {
	t := harness.Table{Title: title, Name: "rates",
		Columns: harness.Columns(label, "Threads chosen", "Images/s", "Images/s with all threads", "Gain %")}
	for _, r := range rows {
		t.Add(r.Label, r.Threads, harness.Fixed(r.Mofang, 0), harness.Fixed(r.All, 0),
			harness.Fixed(100*(r.Mofang/r.All-1), 1))
	}
	d.Table(t)
}

func compare(n *chips.Server, label int, rate float64, batch int) rateRow {
	l := loading(n, rate, batch)
	best := choose(l)
	all := l.Speedups[len(l.Speedups)-1]
	return rateRow{label, best.Threads, float64(batch) / l.BatchSeconds(pipelining.Speedup(best)),
		float64(batch) / l.BatchSeconds(all)}
}

func largestGain(rows []rateRow) float64 {
	best := 0.0
	for _, r := range rows {
		best = max(best, r.Mofang/r.All-1)
	}
	return best
}

func scaling() harness.Experiment {
	return harness.Single("mofang-fig15", "ResNet-50 on 1 to 16 devices with chosen threads and with all",
		paper+"§3.2 and Fig. 15", machine,
		func(context.Context) (rows []rateRow) {
			n := bail.Of(chips.Load(machine))
			rate := trainRate("resnet50", n, deviceBatch)
			for devices := 1; devices <= n.Devices; devices *= 2 {
				rows = append(rows, compare(n, devices, float64(devices)*rate, devices*deviceBatch))
			}
			return rows
		},
		func(d *harness.Document, rows []rateRow) {
			rateTable(d, "Training ResNet-50", "Devices", rows)
			d.Number("largest gain over other frameworks", "%", 3, 100*largestGain(rows))
			d.Given()
			d.Why("the baseline here starts all threads of the host; what else differs between the frameworks is not modelled")
		})
}

func batches() harness.Experiment {
	return harness.Single("mofang-fig16", "ResNet-50 on 16 devices by batch size, with chosen threads and with all",
		paper+"§3.2 and Fig. 16", machine,
		func(context.Context) (rows []rateRow) {
			n := bail.Of(chips.Load(machine))
			for batch := 2; batch <= 256; batch *= 2 {
				rate := trainRate("resnet50", n, batch)
				rows = append(rows, compare(n, batch, float64(n.Devices)*rate, n.Devices*batch))
			}
			return rows
		},
		func(d *harness.Document, rows []rateRow) {
			rateTable(d, "Training ResNet-50 on 16 devices", "Batch of a device", rows)
			d.Number("largest gain over other frameworks", "%", 8, 100*largestGain(rows))
			d.Cause(causeHost)
			d.Why("the baseline here starts all threads of the host; what else differs between the frameworks is not modelled")
			gain := func(r rateRow) float64 { return r.Mofang/r.All - 1 }
			falls := true
			for i := range rows[1:] {
				falls = falls && gain(rows[i+1]) <= gain(rows[i])+1e-9
			}
			first, last := rows[0], rows[len(rows)-1]
			falls = falls && gain(last) < gain(first)-1e-3
			d.Claim("the gain falls as the batch grows", "from 8 to 2 %",
				fmt.Sprintf("from %s to %s %%", harness.Fixed(100*gain(first), 1), harness.Fixed(100*gain(last), 1)),
				harness.Agreement(falls))
			d.Cause(causeHost)
			if !falls {
				d.Why("16 devices train faster than all threads load at any batch, so that the same number of threads is chosen")
			}
		})
}
