package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/internal/safefile"
)

// jobFlags are the settings of commands that can be run in parts, on many machines.
type jobFlags struct {
	shard, array  string
	slurm, dryRun bool
	from          []string // of merge
	finished      bool
}

func addJob(cmd *cobra.Command) *jobFlags {
	j, f := &jobFlags{}, cmd.Flags()
	f.StringVar(&j.shard, "shard", "", "compute only part `i/n` of what there is to compute, for 'dsasched merge'")
	f.BoolVar(&j.slurm, "slurm", false,
		"submit the parts to Slurm as tasks of an array job (sbatch); again: those that are not finished")
	f.StringVar(&j.array, "array", "",
		"with --slurm: number of tasks, `N` (default: 16, or one for each point or cell if these are fewer)")
	f.BoolVar(&j.dryRun, "dry-run", false, "with --slurm: print the script and submit nothing")
	f.StringArrayVar(&j.from, "from", nil, "")
	f.BoolVar(&j.finished, "finished", false, "")
	for _, hidden := range []string{"from", "finished"} {
		if err := f.MarkHidden(hidden); err != nil {
			panic("dsasched: " + err.Error())
		}
	}
	return j
}

// active reports whether a part is asked for, or all parts as tasks.
func (j *jobFlags) active() bool { return j.shard != "" || j.slurm }

// settings puts what the flags say into the options of a run.
func (j *jobFlags) settings(opt *harness.Options) error {
	if j.slurm && j.shard != "" {
		return usagef("--slurm makes the shards itself, expected no --shard %s", j.shard)
	}
	if !j.slurm && (j.array != "" || j.dryRun) {
		return usagef("--array and --dry-run are of --slurm, which is missing")
	}
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
var partFlags = []string{"shard", "slurm", "array", "dry-run", "from", "finished", "workers", "quiet"}

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

// run computes a shard of experiments, or submits them all to Slurm.
func (j *jobFlags) run(cmd *cobra.Command, command []string, folder string, list []harness.Experiment,
	opt harness.Options) error {
	dir := opt.Dir()
	if !j.dryRun {
		claim(dir, command)
	}
	if j.shard != "" {
		return harness.Run(cmd.Context(), list, opt)
	}
	answer := slurmJSON{Shards: 0, Tasks: []int{}, Folder: dir}
	if j.array != "" {
		n, err := strconv.Atoi(j.array)
		if err != nil || n < 1 || n > maxTasks {
			return usagef("--array: found %q, expected a number from 1 to %d", j.array, maxTasks)
		}
		answer.Shards = n
	} else {
		counts := try(harness.Unfinished(list, opt, usualTasks))
		for _, n := range counts {
			answer.Shards += n
		}
		answer.Shards = max(1, min(usualTasks, answer.Shards))
	}
	counts := try(harness.Unfinished(list, opt, answer.Shards))
	for i, n := range counts {
		if answer.Unfinished += n; n > 0 {
			answer.Tasks = append(answer.Tasks, i+1)
		}
	}
	if answer.Unfinished > 0 {
		answer.Script = slurmScript(command, folder, dir, answer.Shards, answer.Tasks, max(1, opt.Workers))
	}
	if answer.Unfinished > 0 && !j.dryRun {
		answer.Job = submit(cmd, answer.Script)
	}
	return emit(cmd, answer, func(b *bytes.Buffer) {
		switch merge := "'dsasched merge " + shellWord(dir) + "'"; {
		case answer.Unfinished == 0:
			fmt.Fprintf(b, "all is finished: %s makes the answer of it\n", merge)
		case j.dryRun:
			b.WriteString(answer.Script)
		default:
			row(b, "submitted", "%s as job %s, for what is not finished: %d", plural(len(answer.Tasks), "task"),
				printable(answer.Job), answer.Unfinished)
			row(b, "when done", "%s; where a task failed, first the same command again", merge)
		}
	})
}

const (
	usualTasks = 16
	maxTasks   = 100_000
)

type slurmJSON struct {
	Job        string `json:"job"` // empty: none was submitted
	Shards     int    `json:"shards"`
	Tasks      []int  `json:"tasks"` // the shards with unfinished cells
	Unfinished int    `json:"unfinished_cells"`
	Folder     string `json:"folder"`
	Script     string `json:"script"`
}

// slurmScript is the batch script of an array job of which each task computes one shard.
// Partition, time and memory are sbatch's own settings, also from its environment variables.
func slurmScript(command []string, folder, dir string, shards int, tasks []int, workers int) string {
	program, err := os.Executable()
	check(blame("the running program can't be found", err))
	here := try(os.Getwd())
	dir = try(filepath.Abs(dir))
	if strings.ContainsAny(dir, "\n%\\\"") {
		check(fmt.Errorf(
			"folder %q: Slurm can't write logs there, expected a name without quotes, backslashes, %% and line ends", dir))
	}
	var b strings.Builder
	fmt.Fprintf(&b,
		"#!/bin/sh\n#SBATCH --job-name=dsasched-%s\n#SBATCH --array=%s\n#SBATCH --cpus-per-task=%d\n#SBATCH --output=\"%s/slurm-%%A_%%a.log\"\n",
		command[0], ranges(tasks), workers, dir)
	fmt.Fprintf(&b, "cd %s || exit 1\nexec %s", shellWord(here), shellWord(program))
	for _, word := range command {
		b.WriteString(" " + shellWord(word))
	}
	fmt.Fprintf(&b, " --%s=%s --shard=\"$SLURM_ARRAY_TASK_ID/%d\" --workers=%d --quiet\n", folder,
		shellWord(dir), shards, workers)
	return b.String()
}

// ranges writes ascending numbers as Slurm reads them: 1-3,7.
func ranges(list []int) string {
	var parts []string
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		part := strconv.Itoa(list[i])
		if k > i {
			part += "-" + strconv.Itoa(list[k])
		}
		parts, i = append(parts, part), k+1
	}
	return strings.Join(parts, ",")
}

// shellWord is a text as one word of a shell's command.
func shellWord(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./=:,+@*", r)
	}
	if text != "" && !strings.ContainsRune(text, '*') &&
		strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// submit hands a script to sbatch and returns the number of the job.
func submit(cmd *cobra.Command, script string) string {
	sbatch, err := exec.LookPath("sbatch")
	if err != nil {
		check(fmt.Errorf(
			"there is no sbatch to submit with (%w): --dry-run prints the script, --shard i/n computes a part without Slurm",
			err))
	}
	c := exec.CommandContext(cmd.Context(), sbatch, "--parsable")
	var out, said bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(script), &out, &said
	if err := c.Run(); err != nil {
		check(fmt.Errorf("sbatch: %w: %s", err, printable(strings.TrimSpace(said.String()))))
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out.String()), ";") // a cluster's name may follow
	return id
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
