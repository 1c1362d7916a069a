package benchmarks

import (
	"context"
	"fmt"
	"syscall"
	"testing"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// BenchmarkDefault schedules networks by default. cpu-s/op is the time of processors, user and system, which other
// programs on the machine change less than the wall clock; us is the latency that was found. Package tiles remembers
// tilings from run to run, so that one iteration is the first run: -bench Default -benchtime 1x.
func BenchmarkDefault(b *testing.B) {
	usual, err := recipes.Lookup(recipes.Default)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		network, machine string
		batch            int64
	}{{"mobilenetv2", "stcp920", 4}, {"resnet50", "stcp920", 4}, {"resnet50", "a100", 64},
		{"llama2-7b-prefill", "stcp920", 1}} {
		b.Run(fmt.Sprintf("%s/%s/%d", c.network, c.machine, c.batch), func(b *testing.B) {
			spec, err := hardware.Load(c.machine)
			if err != nil {
				b.Fatal(err)
			}
			net, err := network.Open(c.network, network.Options{})
			if err != nil {
				b.Fatal(err)
			}
			before := used(b)
			for b.Loop() {
				made, err := scheduler.Run(context.Background(), net, spec, c.batch, usual, scheduler.Options{})
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(made.LatencySeconds()*1e6, "us")
			}
			b.ReportMetric((used(b)-before)/float64(b.N), "cpu-s/op")
		})
	}
}

// used is the time of processors, user and system, in seconds.
func used(b *testing.B) float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) * 1e-9
}
