package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/safefile"
)

// jobFlags are the settings of commands that can be run in parts, on many machines.
type jobFlags struct {
	shard    string
	from     []string // of merge
	finished bool
}

func addJob(cmd *cobra.Command) *jobFlags {
	j, f := &jobFlags{}, cmd.Flags()
	f.StringVar(&j.shard, "shard", "", "compute only part `i/n` of what there is to compute, for 'dsasched merge'")
	f.StringArrayVar(&j.from, "from", nil, "")
	f.BoolVar(&j.finished, "finished", false, "")
	for _, hidden := range []string{"from", "finished"} {
		if err := f.MarkHidden(hidden); err != nil {
			panic("dsasched: " + err.Error())
		}
	}
	return j
}

// settings puts what the flags say into the options of a run.
func (j *jobFlags) settings(opt *harness.Options) error {
	if j.shard != "" {
		var err error
		if opt.Shard, err = harness.ParseShard(j.shard); err != nil {
			return usagef("--shard: %v", err)
		}
	}
	opt.From, opt.Finished = j.from, j.finished
	return nil
}

// shardsFile is in a folder of results and says of which command they are.
const shardsFile = "shards.json"

type shardsJSON struct {
	Schema  int      `json:"schema"`
	Command []string `json:"command"`
}

const shardsSchema = 1

// partFlags say which part of a command, how fast, and where to, beside the flag of its folder.
var partFlags = []string{"shard", "from", "finished", "workers", "quiet"}

// wholeCommand is the command line of a command without what says which part of it, how
// fast, and where to.
func wholeCommand(cmd *cobra.Command, args []string, folder string) []string {
	list := append([]string{cmd.Name()}, args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if several, ok := f.Value.(pflag.SliceValue); ok {
			values = several.GetSlice()
		}
		if !slices.Contains(partFlags, f.Name) && f.Name != folder {
			for _, v := range values {
				list = append(list, "--"+f.Name+"="+v)
			}
		}
	})
	return list
}

// checkWhole refuses a command that wholeCommand does not write, and files outside of the present
// folder that it would write: a folder of shards can come from anyone.
func checkWhole(cmd *cobra.Command, command []string, folder string) error {
	for _, word := range command[1:] {
		if !strings.HasPrefix(word, "-") {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if !ok || cmd.Flags().Lookup(name) == nil || slices.Contains(partFlags, name) || name == folder {
			return fmt.Errorf("found %q, expected a setting of %s as --NAME=VALUE", word, cmd.Name())
		}
		if slices.Contains([]string{"csv", "jsonl", "out"}, name) && !within(value) {
			return fmt.Errorf("found %q, expected a file in the present folder or below: merge where it lies", word)
		}
	}
	return nil
}

// within reports whether a file lies in the present folder or below, links followed.
func within(path string) bool {
	rel, err := attempt(func() string {
		path, here := try(filepath.Abs(path)), try(filepath.EvalSymlinks(try(os.Getwd())))
		if _, err := os.Lstat(path); err != nil { // it is not there yet, not even as a link
			path = filepath.Dir(path)
		}
		return try(filepath.Rel(here, try(filepath.EvalSymlinks(path))))
	})
	return err == nil && filepath.IsLocal(rel)
}

func readShards(dir string) (*shardsJSON, error) {
	path := filepath.Join(dir, shardsFile)
	data, err := safefile.Read(path)
	if err != nil {
		return nil, err
	}
	return decodeShards(path, data)
}

func decodeShards(path string, data []byte) (*shardsJSON, error) {
	var s shardsJSON
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Schema != shardsSchema || len(s.Command) == 0 {
		return nil, fmt.Errorf("%s: found schema %d and a command of %d words, expected schema %d and a command", path,
			s.Schema, len(s.Command), shardsSchema)
	}
	return &s, nil
}

// claim notes in a folder of which command its shards are. Another command's are refused.
func claim(dir string, command []string) {
	switch old, err := readShards(dir); {
	case err == nil && slices.Equal(old.Command, command):
		return
	case err == nil:
		check(fmt.Errorf("%s has shards of another command, %q: choose another folder", dir, strings.Join(old.Command, " ")))
	case !errors.Is(err, fs.ErrNotExist):
		check(err)
	}
	data := try(json.MarshalIndent(shardsJSON{shardsSchema, command}, "", "  "))
	check(harness.MakeFolder(dir))
	check(harness.WriteFile(filepath.Join(dir, shardsFile), append(data, '\n')))
}

func newMerge(experiment runner) *cobra.Command {
	var out string
	cmd := command("merge")
	cmd.Args = func(_ *cobra.Command, dirs []string) error {
		if len(dirs) == 0 {
			return usagef("DIR is missing: give the folders of the shards")
		}
		return nil
	}
	cmd.ValidArgsFunction = completeFolders
	cmd.Flags().StringVarP(&out, "out", "o", "", "`folder` where all is put together (default: the first DIR)")
	completeFlag(cmd, "out", completeFolders)
	cmd.RunE = func(cmd *cobra.Command, dirs []string) error {
		first, err := readShards(dirs[0])
		if err != nil {
			return fmt.Errorf("%s has no shards: %w", dirs[0], err)
		}
		for _, dir := range dirs[1:] {
			s, err := readShards(dir)
			if err != nil {
				return fmt.Errorf("%s has no shards: %w", dir, err)
			}
			if !slices.Equal(s.Command, first.Command) {
				return fmt.Errorf("%s has shards of %q, expected %q as in %s", dir, strings.Join(s.Command, " "),
					strings.Join(first.Command, " "), dirs[0])
			}
		}
		folder, ok := folders[first.Command[0]]
		if !ok {
			return fmt.Errorf("%s: found the command %q, expected sweep or run",
				filepath.Join(dirs[0], shardsFile), first.Command[0])
		}
		whole, _, err := cmd.Root().Find(first.Command[:1])
		if err == nil {
			err = checkWhole(whole, first.Command, folder)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dirs[0], shardsFile), err)
		}
		args := append(slices.Clone(first.Command), "--finished", "--quiet", "--"+folder+"="+cmp.Or(out, dirs[0]))
		for _, dir := range dirs {
			args = append(args, "--from="+dir)
		}
		if asJSON(cmd) {
			args = append(args, "--json")
		}
		return execute(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args, experiment)
	}
	return cmd
}

// folders are the flags of the commands with shards that name their folder.
var folders = map[string]string{"sweep": "cells", "run": "out"}
