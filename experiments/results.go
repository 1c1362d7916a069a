package experiments

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Results are the files that experiments have in a folder.
type Results struct {
	Out         string              `json:"out"`
	Experiments []ExperimentResults `json:"experiments"`
}

// ExperimentResults are the files of one experiment.
type ExperimentResults struct {
	Name  string    `json:"name"`
	Dir   string    `json:"dir"`
	Cells int       `json:"cells"` // finished pieces that are kept
	Files []Written `json:"files"` // by name
}

// Written is a file that was written.
type Written struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// ResultsIn lists the files that the experiments that Run takes have in its folder.
func ResultsIn(names []string, opt Options) (*Results, error) {
	picked, err := Select(names, opt)
	if err != nil {
		return nil, err
	}
	list := &Results{Out: opt.Dir(), Experiments: []ExperimentResults{}}
	for _, e := range picked {
		r, err := resultsOf(e.Name, filepath.Join(opt.Dir(), e.Name))
		if err != nil {
			return nil, fmt.Errorf("the results can't be listed: %w", err)
		}
		list.Experiments = append(list.Experiments, r)
	}
	return list, nil
}

func resultsOf(name, dir string) (ExperimentResults, error) {
	r := ExperimentResults{Name: name, Dir: dir, Files: []Written{}}
	cells, err := os.ReadDir(filepath.Join(dir, "cells"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, err
	}
	r.Cells = len(cells)
	entries, err := os.ReadDir(dir) // by name
	for _, e := range entries {
		if e.Type().IsRegular() {
			info, err := e.Info()
			if err != nil {
				return r, err
			}
			r.Files = append(r.Files, Written{filepath.Join(dir, e.Name()), info.Size()})
		}
	}
	return r, err
}
