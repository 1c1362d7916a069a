package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// Shard is a part of the cells of a run: those whose number, counted over all experiments
// from 0, is Index-1 modulo Count. The zero value is all of them. Cells that several
// experiments have count once.
type Shard struct{ Index, Count int }

// ParseShard reads i/n.
func ParseShard(text string) (Shard, error) {
	i, n, _ := strings.Cut(text, "/")
	index, err1 := strconv.Atoi(i)
	count, err2 := strconv.Atoi(n)
	if errors.Join(err1, err2) != nil || index < 1 || count < index {
		return Shard{}, fmt.Errorf("found %q, expected i/n with i from 1 to n", text)
	}
	return Shard{index, count}, nil
}

func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// number is a cell's number, given where it first appears.
func (j *job) number(c Cell, known map[string]int) (int, error) {
	inputs, err := marshalInputs(c)
	if err != nil {
		return 0, err
	}
	path := j.store(c).path(c, inputs)
	n, ok := known[path]
	if !ok {
		n = len(known)
		known[path] = n
	}
	return n, nil
}

// from are the folders of other results that have a folder like this one of Out.
func (r *runner) from(parts ...string) []string {
	return Each(r.From, func(dir string) string { return filepath.Join(append([]string{dir}, parts...)...) })
}

// MissingError reports cells that are not finished where none may be computed.
type MissingError struct {
	Experiment     string
	Missing, Total int
	First          string // its label
}

func (e *MissingError) Error() string {
	return fmt.Sprintf(
		"%d of %d cells of %s are missing, the first is %s: run its shards again, which goes on where they were",
		e.Missing, e.Total, e.Experiment, e.First)
}

func (e *MissingError) Unwrap() error { return fs.ErrNotExist }
