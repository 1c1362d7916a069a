package measured

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed rows.csv
var file []byte

// Kinds of rows.
const (
	networks  = "network"
	products  = "product"
	operators = "operator"
	attention = "attention"
	rtl       = "rtl"
)

// row is a measurement as it was published, with what its case is.
type row struct {
	Kind    string `json:"kind"`
	Machine string `json:"machine"`
	Case    string `json:"case"`
	Batch   int64  `json:"batch"`
	Type    string `json:"type"`
	// Rate names the rate of the matrix unit where a fidelity decides, "8/4bit" for formats of half a byte; "": the
	// file's.
	Rate   string `json:"rate,omitempty"`
	Cores  int64  `json:"cores"`  // that divide batches between them
	Flight int64  `json:"flight"` // batches in flight on all
	// Host is "no", "yes", or the microseconds that the row's authors take of it as the framework's call.
	Host   string  `json:"host"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
	Source string  `json:"source"`
	Remark string  `json:"remark,omitempty"`
}

// seconds of one batch; of RTL, cycles.
func (r *row) seconds() float64 {
	switch r.Unit {
	case "ms":
		return r.Value * 1e-3
	case "us":
		return r.Value * 1e-6
	case "per_s":
		return float64(r.Cores*r.Batch) / r.Value
	}
	return r.Value
}

// hidden says that the host works for one batch while a core computes another.
func (r *row) hidden() bool { return r.Flight > r.Cores }

// readRows reads the file: comments, a header, and rows.
func readRows(data []byte) (list []row, err error) {
	in := csv.NewReader(bytes.NewReader(data))
	in.Comment = '#'
	records, err := in.ReadAll()
	if err != nil {
		return nil, err
	}
	for i, f := range records[min(1, len(records)):] {
		r := row{Kind: f[0], Machine: f[1], Case: f[2], Type: f[4], Rate: f[5], Host: f[8], Unit: f[10],
			Source: f[11], Remark: f[12]}
		for k, p := range map[int]*int64{3: &r.Batch, 6: &r.Cores, 7: &r.Flight} {
			if *p, err = strconv.ParseInt(f[k], 10, 64); err != nil || *p < 1 {
				return nil, fmt.Errorf("row %d has %s %q, expected a positive number", i+1, records[0][k], f[k])
			}
		}
		if r.Value, err = strconv.ParseFloat(f[9], 64); err != nil || !(r.Value > 0) {
			return nil, fmt.Errorf("row %d has the value %q, expected a positive number", i+1, f[9])
		}
		if !slices.Contains([]string{"ms", "us", "per_s", "cycles"}, r.Unit) {
			return nil, fmt.Errorf("row %d has the unit %q, expected ms, us, per_s or cycles", i+1, r.Unit)
		}
		list = append(list, r)
	}
	return list, nil
}

// family names the network or the operator of a row.
func (r *row) family() string {
	name, _, _ := strings.Cut(r.Case, " ")
	return name
}
