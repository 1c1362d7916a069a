package main

import (
	"strings"
	"testing"
)

// The files that commands read themselves: shards, and start times of a project.
func FuzzFiles(f *testing.F) {
	p, err := readProject(fiveJobs)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"schema": 1, "command": ["sweep", "toy-fig5"]}`))
	f.Add([]byte(`{"method": "m", "status": "optimal", "start": [0, 0, 9, 18, 27]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := decodeShards("f.json", data); err == nil && len(s.Command) == 0 ||
			err != nil && !strings.HasPrefix(err.Error(), "f.json: ") {
			t.Errorf("shards %v, error %v", s, err)
		}
		if start, err := decodeStarts("f.json", data, p); err == nil &&
			(len(start) != len(p.Activities) || p.Makespan(start) < 0) ||
			err != nil && !strings.HasPrefix(err.Error(), "f.json: ") {
			t.Errorf("start %v, error %v", start, err)
		}
	})
}
