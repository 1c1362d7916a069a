package balance

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/dsasched/dsasched/systems/mofang/pipelining"
)

// mostSamples is the number of rows that an operator may have.
const mostSamples = 64

// profileColumns are those of a measured profile, with times of a device in seconds.
var profileColumns = []string{"operator", "samples", "forward_s", "backward_s"}

// Measured takes the operators' times from a profile, CSV with the columns operator, samples, forward_s and backward_s,
// in place of the model's. An operator's time is the straight line through its least and its largest number of samples,
// or proportional where it has one. The name stands for the file in errors, which are of type [pipelining.InputError].
func (c *Chain) Measured(name string, data []byte) error {
	r := csv.NewReader(bytes.NewReader(data))
	r.FieldsPerRecord, r.ReuseRecord, r.TrimLeadingSpace = -1, true, true
	bad := func(field, found, expected string) error {
		return &pipelining.InputError{File: name, Field: field, Found: found, Expected: expected}
	}
	type row struct {
		samples           int
		forward, backward float64
	}
	rows := make([][]row, len(c.Names))
	number := map[string]int{}
	for i, n := range c.Names {
		number[n] = i
	}
	for first := true; ; first = false {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var syntax *csv.ParseError
		if errors.As(err, &syntax) {
			return bad(fmt.Sprintf("line %d", syntax.Line), syntax.Err.Error(), "CSV")
		}
		if err != nil {
			return err
		}
		line, _ := r.FieldPos(0)
		if first {
			if !slices.Equal(record, profileColumns) {
				return bad("line 1", fmt.Sprintf("%.100q", record), fmt.Sprintf("the columns %q", profileColumns))
			}
			continue
		}
		if len(record) != len(profileColumns) {
			return bad(fmt.Sprintf("line %d", line), fmt.Sprintf("%d fields", len(record)), fmt.Sprint(len(profileColumns)))
		}
		i, known := number[record[0]]
		if !known {
			return bad(fmt.Sprintf("line %d: operator", line), fmt.Sprintf("%.100q", record[0]), "an operator of "+c.Name)
		}
		var x row
		const most = 1 << 20
		if x.samples, err = strconv.Atoi(record[1]); err != nil || x.samples < 1 || x.samples > most {
			return bad(fmt.Sprintf("line %d: samples", line), fmt.Sprintf("%.100q", record[1]), fmt.Sprintf("1 to %d", most))
		}
		for k, to := range []*float64{&x.forward, &x.backward} {
			if *to, err = strconv.ParseFloat(record[2+k], 64); err != nil || !(*to >= 0) || *to > 1e9 {
				return bad(fmt.Sprintf("line %d: %s", line, profileColumns[2+k]), fmt.Sprintf("%.100q", record[2+k]),
					"seconds, up to 1e9")
			}
		}
		if slices.ContainsFunc(rows[i], func(o row) bool { return o.samples == x.samples }) {
			return bad(fmt.Sprintf("line %d: samples", line),
				fmt.Sprintf("%d of operator %.100q again", x.samples, record[0]), "each once")
		}
		if len(rows[i]) == mostSamples {
			return bad(fmt.Sprintf("line %d: operator", line), fmt.Sprintf("%.100q in more rows", record[0]),
				fmt.Sprintf("at most %d", mostSamples))
		}
		rows[i] = append(rows[i], x)
	}
	all := 0.0
	for i, of := range rows {
		if len(of) == 0 {
			return bad(fmt.Sprintf("operator %.100q", c.Names[i]), "no row", "one at least")
		}
		lo, hi := row{samples: math.MaxInt}, row{}
		for _, x := range of {
			if x.samples < lo.samples {
				lo = x
			}
			if x.samples > hi.samples {
				hi = x
			}
		}
		all += hi.forward + hi.backward
		c.Costs[i].Forward = between(lo.samples, lo.forward, hi.samples, hi.forward)
		c.Costs[i].Backward = between(lo.samples, lo.backward, hi.samples, hi.backward)
	}
	if all == 0 {
		return bad("forward_s and backward_s", "0 in all rows", "a time above 0")
	}
	return nil
}
