package harness

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/dsasched/dsasched/internal/safefile"
)

// schemaVersion is the version of the files of cells. Raise it when a result of the same
// program would be read in another way.
const schemaVersion = 1

// store keeps the finished cells of one experiment.
type store struct {
	dir     string
	program string
}

// cellFile is a finished cell on disk.
type cellFile struct {
	Schema      int             `json:"schema"`
	Fingerprint string          `json:"fingerprint"`
	Inputs      json.RawMessage `json:"inputs"`
	// ResultHash detects damaged files.
	ResultHash string          `json:"result_sha256"`
	Result     json.RawMessage `json:"result"`
}

// staleError says that a cell is of another program.
type staleError struct{ path string }

func (e *staleError) Error() string { return e.path + " is of another program" }

// open makes the directory and makes sure that it can be written to: better to know before hours of work than after.
func (s *store) open() error {
	if err := MakeFolder(s.dir); err != nil {
		return err
	}
	probe := temporaryName(filepath.Join(s.dir, "probe"))
	f, err := os.OpenFile(probe, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(probe))
	}
	if err != nil {
		return &writeError{naming(s.dir, err)}
	}
	return nil
}

// path has the key, for people, and the inputs: cells of the same key and other inputs live
// side by side, so that one that is not up to date is of another program.
func (s *store) path(c Cell, inputs []byte) string {
	return filepath.Join(s.dir, fmt.Sprintf("%s-%.8s.json", c.Key, hash(inputs)))
}

// fingerprint covers all that a result depends on.
func (s *store) fingerprint(inputs []byte) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%s\n", schemaVersion, s.program)
	h.Write(inputs)
	return hex.EncodeToString(h.Sum(nil))
}

func marshalInputs(c Cell) ([]byte, error) {
	inputs, err := json.Marshal(c.Inputs)
	if err != nil {
		return nil, fmt.Errorf("the inputs can't be written as JSON: %w", err)
	}
	return inputs, nil
}

// load returns the result of a cell that is there and up to date. Otherwise the error is fs.ErrNotExist, a staleError,
// or describes what is wrong with the file.
func (s *store) load(c Cell) (json.RawMessage, error) {
	inputs, err := marshalInputs(c)
	if err != nil {
		return nil, err
	}
	path := s.path(c, inputs)
	data, err := safefile.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("a finished cell can't be read: %w", err)
	}
	return decodeCell(path, data, s.fingerprint(inputs))
}

// decodeCell is the result in the text of a cell's file.
func decodeCell(path string, data []byte, fingerprint string) (json.RawMessage, error) {
	var f cellFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("%s is damaged (%v)", path, err)
	}
	if f.Schema != schemaVersion || f.Fingerprint != fingerprint {
		return nil, &staleError{path}
	}
	var result bytes.Buffer
	if err := json.Compact(&result, f.Result); err != nil || hash(result.Bytes()) != f.ResultHash {
		return nil, fmt.Errorf("%s is damaged (the result does not have the hash that it should)", path)
	}
	return result.Bytes(), nil
}

func (s *store) save(c Cell, result json.RawMessage) error {
	inputs, err := marshalInputs(c)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(cellFile{
		Schema: schemaVersion, Fingerprint: s.fingerprint(inputs), Inputs: inputs,
		ResultHash: hash(result), Result: result,
	}, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(s.path(c, inputs), append(data, '\n'))
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// executableHash distinguishes builds of the program: the same inputs may give another result after a change.
var executableHash = sync.OnceValues(func() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("the running program can't be found: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the running program can't be read: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("the running program can't be read: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
})

// times has wall and processor time of a cell, in seconds.
type times struct{ wall, processor float64 }

// readTiming reads the times of earlier runs. They are for people: what can't be read is dropped.
func readTiming(path string) map[string]times {
	data, _ := safefile.Read(path)
	return decodeTiming(data)
}

func decodeTiming(data []byte) map[string]times {
	list := map[string]times{}
	rows, _ := csv.NewReader(bytes.NewReader(data)).ReadAll()
	for _, row := range rows {
		if len(row) == 3 {
			wall, err1 := strconv.ParseFloat(row[1], 64)
			processor, err2 := strconv.ParseFloat(row[2], 64)
			if err1 == nil && err2 == nil {
				list[row[0]] = times{wall, processor}
			}
		}
	}
	return list
}

func writeTiming(path string, cells []Cell, of map[string]times) error {
	rows := [][]string{{"cell", "wall_time_s", "processor_time_s"}}
	seconds := func(x float64) string { return strconv.FormatFloat(x, 'f', 3, 64) }
	for _, c := range cells {
		if t, ok := of[c.Key]; ok {
			rows = append(rows, []string{c.Key, seconds(t.wall), seconds(t.processor)})
		}
	}
	return WriteFile(path, csvBytes(rows))
}
