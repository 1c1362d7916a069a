package tuning

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

// Files of tuned kernels and logs of trials: what is read is written and read again as
// the same; of a log, each trial that is taken has a time, and a cut line changes nothing.
func FuzzTuned(f *testing.F) {
	const head = `{"kind":"dsasched-tuned","version":1,"networks":["a"],"graphs":["g"],"batch":4,"chunk":1,"variant":"v","in_place":true,"hardware":"h","hardware_fingerprint":"0"`
	f.Add([]byte(head + `,"tasks":[{"task":"t","name":"n","layers":[{"layer":"l","nest":["store"]}]}]}`))
	var from From
	if err := json.Unmarshal([]byte(head+"}"), &from); err != nil {
		f.Fatal(err)
	}
	from.Kind = LogKind
	line, err := json.Marshal(from)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(string(line) + "\n" + `{"task":"t","program":"p","nests":[{}],"ps":7,"runs":1}` + "\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if x, err := Read(data); err == nil {
			text, err := json.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := Read(text); err != nil {
				t.Fatalf("what was written can't be read: %v", err)
			} else if second, err := json.Marshal(again); err != nil || string(second) != string(text) {
				t.Fatalf("written again, the file is another one: %v", err)
			}
		}
		known, err := readTrials(data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "log: line ") {
				t.Fatal(err)
			}
			return
		}
		for _, r := range known {
			for _, x := range r.trials {
				if x.Picoseconds < 1 {
					t.Fatalf("%s takes %d", x.Name, x.Picoseconds)
				}
			}
		}
		if len(data) == 0 || data[len(data)-1] != '\n' {
			return
		}
		if len(known) == 0 {
			return
		}
		if cut, err := readTrials(append(data, `{"task":"t","ps":`...)); err != nil || !reflect.DeepEqual(cut, known) {
			t.Fatalf("with a line cut off: %v, %v, want %v", err, cut, known)
		}
	})
}
