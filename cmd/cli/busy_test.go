package cli

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/scheduler"
)

// Every view of a schedule has one name and one number for each unit and bandwidth.
func TestOneNameAndNumber(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range []string{"squeezenet --batch 16 --chunk 4", "mobilenetv2 --batch 6 --variant cross-layer",
		"dlrm --hardware a100 --batch 4 --variant l1", "squeezenet --hardware wormhole-n150 --variant tvm",
		"toy-fig3 --hardware gemmini --dtype i8", "toy-fig5 --hardware tpu-v3 --batch 2",
		"mobilenetv2 --hardware ipu --variant l1", "toy-fig3 --batch 8 --clusters pipeline --variant cross-layer",
		"toy-fig5 --batch 8 --clusters layers --variant cross-layer"} {
		text := answer(t, strings.Fields("schedule -o s.json --gantt g.svg --quiet "+args)...)
		var report struct {
			LimitedBy string `json:"limited_by"`
			Busy      []scheduler.Use
			Resources []struct {
				What        string
				Utilization float64
			}
		}
		data := answer(t, strings.Fields("schedule --json --quiet "+args)...)
		if err := json.Unmarshal([]byte(data), &report); err != nil {
			t.Fatal(err)
		}
		busy, most := map[string]string{}, map[string]float64{}
		for _, u := range report.Busy {
			if busy[u.What] != "" {
				t.Errorf("%s: %s is listed twice", args, u.What)
			}
			busy[u.What] = percent(u.Share)
		}
		for _, r := range report.Resources {
			most[r.What] = max(most[r.What], r.Utilization)
		}
		for what, share := range most {
			if got := busy[what]; share > 0 && got != percent(share) {
				t.Errorf("%s: %s has %s and %s", args, what, got, percent(share))
			}
		}
		found := 0
		see := func(view, what, share string) {
			if found++; busy[what] != share {
				t.Errorf("%s: %s of %s in the %s, %q in JSON", args, share, what, view, busy[what])
			}
		}
		explained, page := answer(t, "explain", "s.json"), html.UnescapeString(answer(t, "view", "s.json", "-o", "-"))
		limit := regexp.MustCompile(`[Ll]imited by\s+([^,.:]+), busy for ([\d.]+ %)`)
		for view, s := range map[string]string{"summary": text, "explanation": explained, "page": page,
			"JSON's limit": "limited by " + report.LimitedBy} {
			if m := limit.FindStringSubmatch(s); m != nil {
				see(view, m[1], m[2])
			} else if !strings.Contains(s, "no unit is busy for half of the time") {
				t.Errorf("%s: the %s says nothing of the limit", args, view)
			}
		}
		_, rest, _ := strings.Cut(text, "\nbusy ")
		rest, _, _ = strings.Cut(rest, "\nshares ")
		for _, item := range strings.Split(strings.Join(strings.Fields(rest), " "), ", ") {
			m := regexp.MustCompile(`^(.*) ([\d.]+ %)$`).FindStringSubmatch(item)
			see("summary", m[1], m[2])
		}
		for _, m := range regexp.MustCompile(`(?m)^bound +([^:]+): .*\(([\d.]+ %)\)$`).FindAllStringSubmatch(explained, -1) {
			if m[1] != "longest chain of dependencies" && !strings.HasSuffix(m[1], "alone") {
				see("explanation's bounds", m[1], m[2])
			}
		}
		_, waits, _ := strings.Cut(explained, "\n unit ")
		picture := string(readFile(t, "g.svg"))
		for _, m := range regexp.MustCompile(`(?m)^ (\S.*?) +([\d.]+ %)  (.*)$`).FindAllStringSubmatch(waits, -1) {
			see("explanation", m[1], m[2])
			if cause, _, _ := strings.Cut(m[3], ", "); !strings.Contains(page, cause) {
				t.Errorf("%s: %s waits for %s in the explanation, and not in the page", args, m[1], cause)
			}
			if !strings.Contains(picture, ">"+m[1]+"<") {
				t.Errorf("%s: the picture has no %s", args, m[1])
			}
			if !strings.Contains(page, fmt.Sprintf("<td>%s</td><td>%s</td>", m[1], m[2])) {
				t.Errorf("%s: the page has not %s, %s", args, m[1], m[2])
			}
		}
		if found <= len(busy) {
			t.Errorf("%s: %d numbers in all views of %d units and bandwidths", args, found, len(busy))
		}
		if _, machine, _ := strings.Cut(text, "\nL1 "); strings.Contains(text, "LLB") && !strings.Contains(machine, "\nLLB ") {
			t.Errorf("%s: an LLB on a machine without:\n%s", args, text)
		}
	}
}
