package harness

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dsasched/dsasched/experiments/harness/harnesstest"
)

func TestParseShard(t *testing.T) {
	for text, want := range map[string]Shard{"1/1": {1, 1}, "2/3": {2, 3}, "0/3": {}, "4/3": {}, "1": {}, "/": {},
		"a/b": {}, "1/2/3": {}, "-1/2": {}} {
		got, err := ParseShard(text)
		if got != want || (err != nil) != (want == Shard{}) {
			t.Errorf("%s: %v, %v, want %v", text, got, err, want)
		}
	}
}

// two are experiments of which some cells are the same.
func two(runs *atomic.Int64, before func(context.Context, int) error) []Experiment {
	a, b := fake(7, runs, before), fake(5, runs, before)
	b.Name = "other"
	for _, e := range []*Experiment{&a, &b} {
		plan := e.Plan
		e.Plan = func() (*Plan, error) {
			p, err := plan()
			for i := range p.Cells {
				p.Cells[i].Shared = i%2 == 0
			}
			return p, err
		}
	}
	return []Experiment{a, b}
}

// Shards in folders of their own, whose failed cells the same run computes again, come to the
// files and the text that one machine gives, and compute each cell once.
func TestShards(t *testing.T) {
	ctx, one := context.Background(), t.TempDir()
	var alone atomic.Int64
	var want bytes.Buffer
	if err := Run(ctx, two(&alone, nil), Options{Out: one, Stdout: &want}); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 3, 20} {
		var runs, failures atomic.Int64
		var dirs []string
		flaky := two(&runs, func(_ context.Context, i int) error {
			if i == 3 && failures.Add(1) == 1 {
				return errors.New("killed")
			}
			return nil
		})
		failed := 0
		for i := range n {
			dir := t.TempDir()
			dirs = append(dirs, dir)
			opt := Options{Out: dir, Shard: Shard{i + 1, n}}
			if err := Run(ctx, flaky, opt); err != nil {
				if failed++; !strings.Contains(err.Error(), "killed") {
					t.Fatal(err)
				}
				_, missing := fs.Stat(os.DirFS(dir), "fake/fake.txt")
				if !errors.Is(missing, fs.ErrNotExist) {
					t.Error("a shard writes a report")
				}
				if err := Run(ctx, flaky, opt); err != nil {
					t.Fatal(err)
				}
			}
		}
		if failed != 1 || runs.Load() != alone.Load() {
			t.Errorf("%d shards: %d failed, %d cells were computed, one run computes %d", n, failed, runs.Load(), alone.Load())
		}
		merged := t.TempDir()
		var text bytes.Buffer
		opt := Options{Out: merged, From: dirs, Finished: true, Stdout: &text}
		if err := Run(ctx, flaky, opt); err != nil {
			t.Fatal(err)
		}
		if text.String() != want.String() || runs.Load() != alone.Load() {
			t.Errorf("%d shards print %q, want %q", n, &text, &want)
		}
		got, expected := harnesstest.Tree(t, merged), harnesstest.Tree(t, one)
		harnesstest.SameTree(t, got, expected)
		if n < 2 {
			continue
		}
		opt.Out, opt.From = t.TempDir(), dirs[1:]
		var missing *MissingError
		if err := Run(ctx, flaky, opt); !errors.As(err, &missing) ||
			!strings.Contains(err.Error(), "cells of fake are missing, the first is cell 0") {
			t.Errorf("without the first of %d: %v", n, err)
		}
	}
}
