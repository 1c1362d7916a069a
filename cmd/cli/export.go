package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/exact"
	"github.com/dsasched/dsasched/formulation/ordering"
	"github.com/dsasched/dsasched/scheduler"
)

// write makes the file, if one was asked for, of what data returns. If that fails, nothing is written any more:
// the answer is printed all the same, and must not name the file.
func (o *outFile) write(data func() ([]byte, error)) error {
	if o.name == "" {
		return nil
	}
	text, err := data()
	if err == nil {
		err = replaceFile(o.name, text)
	}
	if err != nil {
		o.name = ""
	}
	return err
}

// writeJSON writes an answer as JSON.
func (o *outFile) writeJSON(answer any, indent string) error {
	return o.write(func() ([]byte, error) {
		data, err := json.MarshalIndent(answer, "", indent)
		if err != nil {
			return nil, fmt.Errorf("the answer can't be written as JSON: %w", err)
		}
		return append(data, '\n'), nil
	})
}

// A fileToWrite is a file that may be asked for, and what writes it.
type fileToWrite struct {
	file  *outFile
	write func(io.Writer) error
}

// writeFiles writes the files that are asked for, and none any more after one that fails.
func writeFiles(list []fileToWrite) (written []string, err error) {
	for _, f := range list {
		if f.file.name == "" {
			continue
		}
		if _, err := writeFile(f.file.name, f.write); err != nil {
			return written, err
		}
		written = append(written, f.file.name)
	}
	return written, nil
}

// writeFile makes a file of what write writes, in one step as replaceFile does, and returns its bytes.
func writeFile(path string, write func(io.Writer) error) (int64, error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return 0, err
	}
	return int64(b.Len()), replaceFile(path, b.Bytes())
}

// replaceFile writes a file in one step: what was there stays if that fails. It
// takes the place of regular files only, not of a device.
func replaceFile(path string, data []byte) error {
	path, err := replaced(path)
	if err != nil {
		return err
	}
	harness.TidyUp(filepath.Dir(path))
	err = harness.WriteFile(path, data)
	var file *fs.PathError
	if errors.As(err, &file) {
		return file // without words on results
	}
	return err
}

// replaced is the file whose place a file takes: the one that a link points to, not the link.
func replaced(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file, which -o expects", path)
	case err == nil:
		return filepath.EvalSymlinks(path)
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	}
	return path, nil
}

// canReplace finds before any work what would keep a file from being written after it.
func canReplace(path string) error {
	path, err := replaced(path)
	if err != nil {
		return err
	}
	return harness.CanWrite(path)
}

type exportOrderJSON struct {
	Model         string   `json:"model"`
	Hardware      string   `json:"hardware"`
	Variant       string   `json:"variant"`
	Batch         int64    `json:"batch"`
	Chunk         int64    `json:"chunk"`
	File          string   `json:"file"`
	Groups        int      `json:"group_count"`
	Instances     int      `json:"instances"`
	CapacityBytes int64    `json:"capacity_bytes"`
	Notes         []string `json:"notes"`
}

func newExportOrder() *cobra.Command {
	return exportProblem("order", func(_ context.Context, r *scheduler.Result, name string, opt scheduler.Options) (
		p *ordering.Problem, data []byte, notes []string, err error) {
		if p, notes, err = exact.OrderProblem(r.Schedule, opt); err != nil {
			return nil, nil, nil, err
		}
		p.Name = name
		data, err = json.Marshal(p)
		return p, append(data, '\n'), notes, err
	})
}

func newExportJoint() *cobra.Command {
	return exportProblem("joint", func(ctx context.Context, r *scheduler.Result, name string, opt scheduler.Options) (
		*ordering.Problem, []byte, []string, error) {
		n, err := exact.JointProblem(ctx, r.Schedule, opt)
		if err != nil {
			return nil, nil, nil, err
		}
		n.Problem.Order.Name = name
		data, err := n.Problem.File()
		return n.Problem.Order, data, nil, err
	})
}

// exportProblem makes the command that writes a problem of a schedule's order, which pose returns as a file.
func exportProblem(what string, pose func(ctx context.Context, r *scheduler.Result, name string,
	opt scheduler.Options) (p *ordering.Problem, data []byte, notes []string, err error)) *cobra.Command {
	cmd := command("export " + what)
	takesModel(cmd)
	quiet, recipe := addQuiet(cmd), addRecipe(cmd, stepByStep)
	out := addFile(cmd, "o out", "`file` to write")
	out.stdout = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		show := newStatus(cmd, *quiet)
		defer show.end()
		_, r := recipe.run(cmd, args[0], show)
		show.end()
		p, data, notes, err := pose(cmd.Context(), r, fmt.Sprintf("%s/%s/%s, %d per cluster", args[0], r.Machine.Name,
			r.Recipe.Name, r.Chunk), scheduler.Options{InPlace: *recipe.inPlace, Uneven: unevenOf(recipe.uneven),
			Chunk: recipe.chunk.value})
		if err != nil {
			return err
		}
		if out.name == "" || out.name == stdoutName {
			_, err := cmd.OutOrStdout().Write(data)
			return err
		}
		check(replaceFile(out.name, data))
		if err := ordering.NewGraph(p).Feasible(); err != nil {
			notes = append(notes, err.Error())
		}
		a := exportOrderJSON{args[0], r.Machine.Name, r.Recipe.Name, r.Batch, r.Chunk, out.name, len(p.Subgraphs),
			instances(p), p.CapacityBytes, append([]string{}, notes...)}
		return emit(cmd, a, func(b *bytes.Buffer) {
			fmt.Fprintf(b, "%s: %s, %s, capacity %s\n", printable(a.File), plural(a.Groups, "sub-graph"),
				plural(a.Instances, "instance"), size(a.CapacityBytes))
			for _, n := range a.Notes {
				fmt.Fprintf(b, "note: %s\n", printable(n))
			}
		})
	}
	return cmd
}
