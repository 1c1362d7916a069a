package harnesstest

import (
	"encoding/csv"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Golden compares with a file of testdata.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs (go test -update writes it anew):\n%s\nwant:\n%s", name, got, want)
	}
}

// PublishedCSV reads a file of the published figures by its columns, or skips the test where they are not.
func PublishedCSV(t *testing.T, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "shared", "paper", name))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("the published figures are not beside this checkout: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]string
	for _, r := range records[1:] {
		row := map[string]string{}
		for i, v := range r {
			row[records[0][i]] = v
		}
		rows = append(rows, row)
	}
	return rows
}
