package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"
)

// A command that is interrupted, wherever it is, ends with its status, prints no more
// than one line to the standard error, and leaves no goroutine behind.
func TestInterruptedAnywhere(t *testing.T) {
	workspace(t)
	for _, args := range []string{
		"schedule resnet50 --batch 64 --quiet",
		"schedule toy-fig3 --batch 64 --bind search --order search --quiet",
		"simulate net.schedule.json",
		"explain resnet50 --batch 64 --quiet",
		"export order resnet50 --batch 32 --quiet",
		"sweep resnet50 --set batch=8,16,32,64 --quiet",
		"compare-hardware net.onnx --batch 64 --quiet",
		"calibrate",
		"solve bind toy-fig3 --batch 64 --quiet",
		"solve split toy-fig3 --batch 64 --quiet",
		"compare toy-fig3 --batch 32 --quiet",
		"solve allocate buffers.csv --minimize --quiet",
		"solve order chain.json --quiet",
	} {
		t.Run(args, func(t *testing.T) {
			before := runtime.NumGoroutine()
			// The deadline falls somewhere into the work; that of 0 before it.
			for _, after := range []time.Duration{0, time.Millisecond, 20 * time.Millisecond} {
				ctx, cancel := context.WithCancel(context.Background())
				timer := time.AfterFunc(after, cancel)
				if after == 0 {
					cancel()
				}
				var stdout, stderr bytes.Buffer
				status := report(&stderr, execute(ctx, &stdout, &stderr, strings.Fields(args), fakeExperiment))
				timer.Stop()
				cancel()
				if finished := status == exitOK && stderr.Len() == 0; !finished &&
					(status != exitInterrupted || strings.Count(stderr.String(), "\n") != 1) {
					t.Errorf("after %v: status %d, stderr %q", after, status, &stderr)
				}
			}
			// What ends by itself may need a moment for it.
			for range 100 {
				if runtime.NumGoroutine() <= before {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			stacks := make([]byte, 1<<16)
			t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		})
	}
}

// The command lets its heap grow before it is collected, unless the caller says how far.
func TestCollectLess(t *testing.T) {
	for _, c := range []struct {
		environment string
		few         bool
	}{{"GOGC=", true}, {"GOGC=25", false}} {
		cmd := exec.Command(os.Args[0], "inspect", "resnet50")
		cmd.Env = append(os.Environ(), asMain+"=1", "GODEBUG=gctrace=1", "GOMEMLIMIT=", c.environment)
		var stderr bytes.Buffer
		if cmd.Stderr = &stderr; cmd.Run() != nil {
			t.Fatal(&stderr)
		}
		if n := strings.Count(stderr.String(), "\ngc "); n < 5 != c.few {
			t.Errorf("%s: %d collections, want fewer than 5: %v", c.environment, n, c.few)
		}
	}
}
