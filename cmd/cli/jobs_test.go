package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const points = "sweep toy-fig5 --set batch=1,2,3,4 --set variant=tvm,cross-layer"

// words are the arguments of a command line.
func words(line string, more ...string) []string { return append(strings.Fields(line), more...) }

func file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Shards of a sweep, merged, print and write what one machine does.
func TestMerge(t *testing.T) {
	t.Chdir(t.TempDir())
	files := []string{"--csv=a.csv", "--jsonl=a.jsonl", "-o=a.svg"}
	for _, as := range []string{"", "--json"} {
		sweep := append(words(points+" "+as), files...)
		for i := range 3 {
			shard := []string{"1/3", "2/3", "3/3"}[i]
			answer(t, append(sweep, "--quiet", "--shard", shard, "--cells", "d"+as+shard[:1])...)
		}
		if _, err := os.Stat("a.csv"); err == nil && as == "" {
			t.Error("a shard writes the answer")
		}
		if r := call(t, "merge", "d"+as+"1", "d"+as+"3"); r.status != exitFailure ||
			!strings.Contains(r.stderr, "cells of sweep are missing, the first is toy-fig5 1 cross-layer") {
			t.Errorf("with a shard missing: status %d, %s", r.status, r.stderr)
		}
		merged := answer(t, "merge", "d"+as+"1", "d"+as+"2", "d"+as+"3", "--out", "all"+as)
		var got []string
		for _, name := range []string{"a.csv", "a.jsonl", "a.svg"} {
			got = append(got, file(t, name))
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
		for _, how := range [][]string{nil, {"--cells", "all" + as}, {"--cells", "new" + as}} {
			if one := answer(t, append(append(sweep, "--quiet"), how...)...); one != merged {
				t.Errorf("%q prints\n%s\nmerged\n%s", how, one, merged)
			}
			for i, name := range []string{"a.csv", "a.jsonl", "a.svg"} {
				if file(t, name) != got[i] {
					t.Errorf("%q: %s differs from that of merge", how, name)
				}
			}
		}
	}
}

func TestJobErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("PATH", "/nonexistent")
	answer(t, words(points+" --quiet --shard 1/8 --cells d")...)
	if err := os.Mkdir("odd", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("odd/shards.json", []byte(`{"schema": 9, "command": ["sweep"]}`), 0o666); err != nil {
		t.Fatal(err)
	}
	for k, more := range []string{"--shard=1/2", "--cells=/x", "--", "-o", "--csv=/x.csv", "--jsonl=../x",
		"--out=up/x.svg", "--csv=there.csv", "--csv=nowhere.csv", "--finished=false", "--nothing=1"} {
		dir := fmt.Sprintf("foreign%d", k)
		data, err := json.Marshal(shardsJSON{shardsSchema, []string{"sweep", "toy-fig5", more}})
		if err == nil {
			err = errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(dir+"/shards.json", data, 0o666))
		}
		if err != nil {
			t.Fatal(err)
		}
		if k == 0 {
			outside := filepath.Join(t.TempDir(), "there.csv")
			if err := errors.Join(os.WriteFile(outside, nil, 0o666), os.Symlink("..", "up"), os.Symlink(outside, "there.csv"),
				os.Symlink(outside+"x", "nowhere.csv")); err != nil {
				t.Fatal(err)
			}
		}
		if r := call(t, "merge", dir); r.status != exitFailure ||
			!strings.Contains(r.stderr, dir+"/shards.json: found "+strconv.Quote(more)+", expected a ") {
			t.Errorf("merge of a command with %s: status %d, %q", more, r.status, r.stderr)
		}
	}
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{points + " --shard 9/8", exitUsage, `--shard: found "9/8", expected i/n`},
		{"sweep toy-fig5 --set batch=5 --shard 1/8 --cells d", exitFailure, "another command"},
		{"run fig3 --shard x", exitUsage, `--shard: found "x"`},
		{"merge", exitUsage, "DIR is missing"},
		{"merge none", exitFailure, "none has no shards"},
		{"merge odd", exitFailure, "found schema 9"},
		{"merge d odd", exitFailure, "odd has no shards"},
	} {
		if r := call(t, strings.Fields(c.args)...); r.status != c.status ||
			!strings.Contains(r.stderr, c.want) || r.stdout != "" {
			t.Errorf("%s: status %d, %q, %q, want %q", c.args, r.status, r.stdout, r.stderr, c.want)
		}
	}
}

// What a command was told comes back from its shards: sizes of dimensions, and what is left out.
func TestWholeCommand(t *testing.T) {
	root := newRoot(fakeExperiment)
	for _, line := range []string{
		"sweep net.onnx --dim=S=8 --dim=T=2 --set=batch=1,2",
		"run table3 --no-exact=true",
	} {
		words := strings.Fields(line)
		cmd, args, err := root.Find(words)
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(wholeCommand(cmd, cmd.Flags().Args(), "cells"), " ")
		if got != line {
			t.Errorf("%q becomes %q", line, got)
		}
	}
}
