// Package plans reads what compilers print of their own memory plans as problems of package allocate, and puts other
// offsets back into the text: XLA, TensorFlow Lite for Microcontrollers, tt-mlir.
package plans

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/formulation/allocate"
)

// A Plan is an allocation problem of a compiler, read from what it prints of its own plan. Hints of the
// buffers are the compiler's offsets.
type Plan struct {
	Tool    string
	Problem *allocate.Problem
	Peak    int64    // of the compiler's plan
	Notes   []string // what was taken together or left out

	text  string
	spans []field
}

// field is a part of the text that says a buffer's offset.
type field struct {
	from, to int
	buffer   int
}

const maxText = 64 << 20

var xlaPlan = regexp.MustCompile(`(?m)^allocation \d+: size `)

// Read reads a plan as one of these tools prints it: XLA (a buffer assignment, with its live ranges in the same
// file or in ranges: the largest allocation of temporaries), TensorFlow Lite for Microcontrollers (lines of
// PrintMemoryPlan) and tt-mlir (a problem of its planner as JSON: what it placed in scratch). In all of them lifetimes
// end with the last use.
func Read(file string, text, ranges string) (*Plan, error) {
	if len(text) > maxText || len(ranges) > maxText {
		return nil, fmt.Errorf("%s: more than %d bytes", file, maxText)
	}
	text = oldMicro.ReplaceAllString(text, "(id=$1): size=$3, offset=$2, first_used=$4 last_used=$5")
	d := &Plan{text: text, Problem: &allocate.Problem{Name: file}}
	var err error
	switch {
	case xlaPlan.MatchString(text):
		d.Tool = "XLA"
		err = d.xla(file, text, ranges)
	case micro.MatchString(text):
		d.Tool = "TFLite Micro"
		err = d.rows(file)
	case strings.HasPrefix(strings.TrimSpace(text), "{") && strings.Contains(text, `"requests"`):
		d.Tool = "tt-mlir"
		err = d.planner(file, text)
	default:
		return nil,
			fmt.Errorf(
				"%s: no plan of XLA (allocation N: size ...), TFLite Micro (size=..., offset=..., first_used=...) or tt-mlir (requests)", file)
	}
	if err != nil {
		return nil, err
	}
	if len(d.Problem.Buffers) == 0 {
		return nil, fmt.Errorf("%s: the plan of %s has no buffer", file, d.Tool)
	}
	if err := d.Problem.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for _, b := range d.Problem.Buffers {
		d.Peak = max(d.Peak, *b.Hint+b.Size)
	}
	return d, nil
}

// WithOffsets is the text of the dump with other offsets, one for each buffer.
func (d *Plan) WithOffsets(offsets []int64) (string, error) {
	if len(offsets) != len(d.Problem.Buffers) {
		return "", fmt.Errorf("%d offsets, expected one for each of %d buffers", len(offsets), len(d.Problem.Buffers))
	}
	var out strings.Builder
	at := 0
	for _, s := range d.spans {
		out.WriteString(d.text[at:s.from])
		out.WriteString(strconv.FormatInt(offsets[s.buffer], 10))
		at = s.to
	}
	out.WriteString(d.text[at:])
	return out.String(), nil
}

var (
	xlaAllocation = regexp.MustCompile(`(?m)^allocation (\d+): size (\d+), (.*):\r?$`)
	xlaValue      = regexp.MustCompile(`(?m)^ +value: <(\d+) (\S+)(?: \(phi\))?(?: @\d+)?> \(size=(\d+),offset=(\d+)\)`)
	xlaAnyValue   = regexp.MustCompile(`(?m)^ +value: .*$`)
	xlaRange      = regexp.MustCompile(`(?m)^    (\S+):(\d+)-(\d+)\r?$`)

	// letter, id, size, offset, first and last use
	micro    = regexp.MustCompile(`(?m)\(id=(\d+)\): size=(\d+), offset=(-?\d+), first_used=(\d+) last_used=(\d+)`)
	oldMicro = regexp.MustCompile(`(?m)^Planner buffer ID: (\d+), calculated offset: (-?\d+), size required: (\d+), ` +
		`first_time_created: (\d+), last_time_used: (\d+)`) // until 2021
)

func number(file, what, s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %s is %s, expected a number of 64 bits", file, what, s)
	}
	return n, nil
}

// name replaces the characters of a name that a CSV file can't hold.
func (d *Plan) name(s string, taken map[string]bool) string {
	s = strings.TrimSpace(strings.NewReplacer(",", ";", "\"", "'").Replace(s))
	for n := s; ; s = fmt.Sprintf("%s#%d", n, len(taken)) {
		if s != "" && !taken[s] {
			taken[s] = true
			return s
		}
	}
}

// xla reads the largest allocation of temporaries. Values that share an offset while both live are one buffer: what
// a loop carries has several names.
func (d *Plan) xla(file, text, ranges string) error {
	if k := strings.Index(text, "HloLiveRange ("); k >= 0 {
		ranges = text[k:]
	}
	k := strings.Index(ranges, "BufferLiveRange:")
	if k < 0 {
		return fmt.Errorf("%s: has no live ranges (BufferLiveRange:), and no file -live-range.txt beside it has them", file)
	}
	ranges = ranges[k:]
	if k := strings.Index(ranges, "Live ranges at"); k >= 0 {
		ranges = ranges[:k]
	}
	live := map[string]allocate.Interval{}
	for _, m := range xlaRange.FindAllStringSubmatch(ranges, -1) {
		first, err := number(file, "the live range of "+m[1], m[2])
		if err != nil {
			return err
		}
		last, err := number(file, "the live range of "+m[1], m[3])
		if err != nil {
			return err
		}
		live[m[1]] = allocate.Interval{Lower: first, Upper: last + 1}
	}
	heads := xlaAllocation.FindAllStringSubmatchIndex(text, -1)
	best, size := -1, int64(-1)
	for i, h := range heads {
		n, err := number(file, "the size of an allocation", text[h[4]:h[5]])
		if err != nil {
			return err
		}
		if strings.Contains(text[h[6]:h[7]], "preallocated-temp") && n > size {
			best, size = i, n
		}
	}
	if best < 0 {
		return fmt.Errorf("%s: no allocation is preallocated-temp", file)
	}
	end := len(text)
	if best+1 < len(heads) {
		end = heads[best+1][0]
	}
	if n := len(heads) - 1; n > 0 {
		d.Notes = append(d.Notes,
			fmt.Sprintf("%d other allocations (parameters, results, constants) are memories of their own", n))
	}
	begin := heads[best][1]
	taken := map[string]bool{}
	joined := 0
	for _, line := range xlaAnyValue.FindAllString(text[begin:end], -1) {
		if !xlaValue.MatchString(line) {
			return fmt.Errorf("%s: found %q, expected value: <number name @memory> (size=bytes,offset=bytes)", file,
				strings.TrimSpace(line))
		}
	}
	for _, m := range xlaValue.FindAllStringSubmatchIndex(text[begin:end], -1) {
		at := func(k int) string { return text[begin+m[2*k] : begin+m[2*k+1]] }
		bytes, err := number(file, "a size", at(3))
		if err != nil {
			return err
		}
		offset, err := number(file, "an offset", at(4))
		if err != nil {
			return err
		}
		life, ok := live[at(2)]
		if !ok {
			life, ok = live[at(2)+"{}"]
		}
		if !ok {
			return fmt.Errorf("%s: value %s has no live range", file, at(2))
		}
		if bytes == 0 {
			continue
		}
		same := slices.IndexFunc(d.Problem.Buffers, func(b allocate.Buffer) bool {
			return *b.Hint == offset && b.Size == bytes && b.Lifetime.Lower < life.Upper && life.Lower < b.Lifetime.Upper
		})
		if same >= 0 {
			b := &d.Problem.Buffers[same]
			b.Lifetime = allocate.Interval{Lower: min(b.Lifetime.Lower, life.Lower), Upper: max(b.Lifetime.Upper, life.Upper)}
			joined++
		} else {
			same = len(d.Problem.Buffers)
			d.Problem.Buffers = append(d.Problem.Buffers,
				allocate.Buffer{ID: d.name(at(2), taken), Lifetime: life, Size: bytes, Hint: &offset,
					Alignment: alignment(offset, 64)})
		}
		d.spans = append(d.spans, field{begin + m[8], begin + m[9], same})
	}
	if joined > 0 {
		d.Notes = append(d.Notes,
			fmt.Sprintf("%d values are others by another name, at the same offset at the same time", joined))
	}
	return d.aligned()
}

// alignment is the largest power of two up to most that divides an offset.
func alignment(offset, most int64) int64 {
	for most > 1 && offset%most != 0 {
		most /= 2
	}
	return most
}

// aligned gives all buffers the alignment that all offsets have; no dump says it.
func (d *Plan) aligned() error {
	all := int64(1) << 20
	for _, b := range d.Problem.Buffers {
		all = min(all, max(1, b.Alignment))
	}
	for i := range d.Problem.Buffers {
		d.Problem.Buffers[i].Alignment = all
	}
	if all > 1 {
		d.Notes = append(d.Notes, fmt.Sprintf("all offsets are multiples of %d, which is taken as alignment", all))
	}
	return nil
}

// rows reads a plan with a line for each buffer, as TFLite Micro prints it.
func (d *Plan) rows(file string) error {
	taken, known := map[string]bool{}, map[[5]int64]int{}
	for _, at := range micro.FindAllStringSubmatchIndex(d.text, -1) {
		var n [5]int64 // id, size, offset, first and last use
		for k := range n {
			var err error
			if n[k], err = number(file, "a number of a buffer", d.text[at[2*k+2]:at[2*k+3]]); err != nil {
				return err
			}
		}
		if n[2] < 0 {
			return fmt.Errorf("%s: buffer t%d has offset %d, expected one of a finished plan", file, n[0], n[2])
		}
		i, there := known[n]
		if !there {
			i = len(d.Problem.Buffers)
			known[n] = i
			d.Problem.Buffers = append(d.Problem.Buffers, allocate.Buffer{ID: d.name(fmt.Sprint("t", n[0]), taken),
				Lifetime: allocate.Interval{Lower: n[3], Upper: n[4] + 1}, Size: n[1], Hint: &n[2], Alignment: alignment(n[2], 16)})
		}
		d.spans = append(d.spans, field{at[6], at[7], i})
	}
	return d.aligned()
}

var ttRequest = regexp.MustCompile(`\[\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*\]`)

// planner reads a problem of tt-mlir's planner. A variable is in scratch or spilled and has requests for either case;
// those of the case that it is in count.
func (d *Plan) planner(file, text string) error {
	var p struct {
		Variables []struct {
			Placement string           `json:"placement"`
			Domain    map[string][]int `json:"domain"`
		} `json:"variables"`
		Requests [][5]int64 `json:"requests"`
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	from := strings.Index(text, `"requests"`)
	at := ttRequest.FindAllStringSubmatchIndex(text[from:], -1)
	if len(at) != len(p.Requests) {
		return fmt.Errorf("%s: requests are not lists of five numbers behind the variables", file)
	}
	spilled := 0
	for v, x := range p.Variables {
		if x.Placement == "spill" {
			spilled++
		}
		for k, r := range x.Domain[x.Placement] {
			if r < 0 || r >= len(p.Requests) {
				return fmt.Errorf("%s: variable %d has request %d of %d", file, v, r, len(p.Requests))
			}
			q, m := p.Requests[r], at[r]
			if q[4] < 0 {
				return fmt.Errorf("%s: request %d has offset %d, expected one of a finished plan", file, r, q[4])
			}
			d.spans = append(d.spans, field{from + m[10], from + m[11], len(d.Problem.Buffers)})
			d.Problem.Buffers = append(d.Problem.Buffers,
				allocate.Buffer{ID: fmt.Sprintf("v%d.%d", v, k), Lifetime: allocate.Interval{Lower: q[1], Upper: q[2] + 1},
					Size: q[3], Hint: &q[4],
					Alignment: alignment(q[4], 32)})
		}
	}
	slices.SortFunc(d.spans, func(a, b field) int { return cmp.Compare(a.from, b.from) })
	if spilled > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d of %d variables are spilled: their streams are what is placed",
			spilled, len(p.Variables)))
	}
	return d.aligned()
}
