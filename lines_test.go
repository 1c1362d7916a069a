package dsasched_test

import (
	"bytes"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// Lines have at most 120 characters, unless a string literal, and at most a comma and a bracket behind it, pass the
// limit: split strings are hard to search for.
func TestLinesAreShort(t *testing.T) {
	const limit = 120
	for file, src := range sources(t) {
		long := map[int]int{} // line: offset of its first character beyond the limit
		at := 0
		for i, line := range strings.SplitAfter(string(src), "\n") {
			if text := strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(text) > limit {
				long[i+1] = at + len(string([]rune(text)[:limit]))
			}
			at += len(line)
		}
		if len(long) == 0 {
			continue
		}
		var s scanner.Scanner
		tokens := token.NewFileSet().AddFile(file, -1, len(src))
		s.Init(tokens, src, nil, scanner.ScanComments)
		output := false // what an example prints
		for {
			pos, kind, text := s.Scan()
			if kind == token.EOF {
				break
			}
			output = kind == token.COMMENT && (output || strings.HasPrefix(text, "// Output:"))
			if kind != token.STRING && !output {
				continue
			}
			first := tokens.Line(pos)
			for line := first; line <= first+bytes.Count([]byte(text), []byte("\n")); line++ {
				begin := tokens.Offset(pos)
				if past, ok := long[line]; ok && (line > first || begin <= past) && past <= begin+len(text)+2 {
					delete(long, line)
				}
			}
		}
		for line := range long {
			t.Errorf("%s:%d is longer than %d characters", file, line, limit)
		}
	}
}

// sources are the project's Go files, by path.
func sources(t *testing.T) map[string][]byte {
	files := map[string][]byte{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "build" || len(d.Name()) > 1 && d.Name()[0] == '.'):
			return filepath.SkipDir
		case filepath.Ext(file) == ".go":
			files[file], err = os.ReadFile(file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
