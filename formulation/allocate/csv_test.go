package allocate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func p64(v int64) *int64 { return &v }

func TestReadCSV(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []Buffer
	}{
		{"any order of columns", "lower,size,id,upper\n6,18,1,12\n5,15,0,10\n", []Buffer{
			{ID: "1", Lifetime: Interval{6, 12}, Size: 18}, {ID: "0", Lifetime: Interval{5, 10}, Size: 15}}},
		{"other names", "begin,size,buffer,upper,alignment\n6,18,1,12,2\n", []Buffer{
			{ID: "1", Lifetime: Interval{6, 12}, Size: 18, Alignment: 2}}},
		{"inclusive ends", "id,start,end,size\nx,6,11,18\n", []Buffer{
			{ID: "x", Lifetime: Interval{6, 12}, Size: 18}}},
		{"offsets, hints, costs", "id,lower,upper,size,offset,hint,spill_cost\nx,0,1,2,21,-1,7\ny,0,1,2,,4,\n", []Buffer{
			{ID: "x", Lifetime: Interval{0, 1}, Size: 2, Offset: p64(21), SpillCost: p64(7)},
			{ID: "y", Lifetime: Interval{0, 1}, Size: 2, Hint: p64(4)}}},
		{"line ends and spaces", "\ufeffid, lower,upper,size\r\nx , 0,1,2\r\n\r\n\n",
			[]Buffer{{ID: "x", Lifetime: Interval{0, 1}, Size: 2}}},
		{"no last line end", "id,lower,upper,size\nx,0,1,2", []Buffer{{ID: "x", Lifetime: Interval{0, 1}, Size: 2}}},
		{"no buffers", "id,lower,upper,size\n", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := ReadCSV("f.csv", []byte(c.text))
			if err != nil || !reflect.DeepEqual(p.Buffers, c.want) {
				t.Fatalf("found %+v, %v, want %+v", p, err, c.want)
			}
			checkRoundTrip(t, p)
		})
	}
}

func checkRoundTrip(t *testing.T, p *Problem) {
	t.Helper()
	var b bytes.Buffer
	if err := WriteCSV(&b, p, nil); err != nil {
		t.Fatal(err)
	}
	q, err := ReadCSV(p.Name, b.Bytes())
	if err != nil {
		t.Fatalf("%v in:\n%s", err, b.Bytes())
	}
	var again bytes.Buffer
	if err := WriteCSV(&again, q, nil); err != nil || again.String() != b.String() {
		t.Errorf("first %q, then %q, %v", b.String(), again.String(), err)
	}
	if len(p.Buffers) != len(q.Buffers) || p.Bound() != q.Bound() || p.Reach() != q.Reach() || p.Step() != q.Step() {
		t.Errorf("read again, %+v is %+v", p.Buffers, q.Buffers)
	}
}

func TestReadCSVErrors(t *testing.T) {
	const head = "id,lower,upper,size\n"
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", []string{`f.csv:1: found an empty file, expected a first line`}},
		{"\n\n", []string{`f.csv:1: found an empty file`}},
		{"id,lower,upper\n", []string{`f.csv:1: column size: found no such column`}},
		{"id,lower,upper,size,aligment\n", []string{`f.csv:1: column 5: found "aligment", expected one of id, buffer`}},
		{"id,lower,upper,size,end\n",
			[]string{`f.csv:1: column 5: found "end", expected one column with this meaning: column "upper"`}},
		{head + "x,0,1\n", []string{`f.csv:2: found 3 fields, expected 4`}},
		{head + "x,0,1,2,3\n", []string{`f.csv:2: found 5 fields`}},
		{head + "\nx,0,1,2\n", []string{`f.csv:2: found an empty line, expected empty lines at the end only`}},
		{head + "x,a,b,2\ny,0,1,1e9\n", []string{`f.csv:2: column lower: found "a", expected a whole number`}},
		{head + "x,0,1,2\ny,0,1,1e9\n", []string{`f.csv:3: column size: found "1e9"`}},
		{head + "x,0,1,99999999999999999999\n", []string{`column size: found "99999999999999999999"`}},
		{head + "x,0,1,300000000000000\n", []string{`column size: found 300000000000000, expected bytes from 0 to`}},
		{head + "x,3,3,2\n", []string{`f.csv:2: column upper: found 3, expected an end of the lifetime after its start 3`}},
		{head + "x,-1,3,2\n", []string{`column lower: found -1`}},
		{head + "x,0,3,-2\n", []string{`column size: found -2`}},
		{head + ",0,3,2\n", []string{`column id: found "", expected a name`}},
		{head + "x,0,3,2\ny,0,3,2\nx,4,5,1\n",
			[]string{`f.csv:4: column id: found "x", expected a name that line 2 does not have`}},
		{head + "\"x\",0,3,2\n", []string{`column id: found "\"x\""`}},
		{head + "\xff,0,3,2\n", []string{`bytes that are not UTF-8`}},
		{"buffer,start,end,size,gaps\nx,0,5,2,3-4\n", []string{`f.csv:1: column 5: found "gaps", expected one of id,`}},
		{"buffer,start,end,size\nx,5,4,2\n",
			[]string{`column end: found 5, expected an end of the lifetime after its start 5`}},
		{"id,lower,upper,size,alignment\nx,0,9,2,0\n",
			[]string{`column alignment: found "0", expected a whole number of at least 1`}},
		{"id,lower,upper,size,alignment\nx,0,9,2,-8\n", []string{`column alignment: found -8`}},
		{"id,lower,upper,size,alignment,offset\nx,0,9,2,8,12\n",
			[]string{`column offset: found 12, expected a multiple of the alignment 8`}},
		{"id,lower,upper,size,offset\nx,0,9,2,-8\n", []string{`column offset: found -8`}},
		{"id,lower,upper,size,hint\nx,0,9,2,-2\n", []string{`column hint: found -2`}},
		{"id,lower,upper,size,spill_cost\nx,0,9,2,-2\n", []string{`column spill_cost: found -2`}},
		{head + strings.Repeat("x\n", 30), []string{`f.csv:2: found 1 fields`}},
	} {
		p, err := ReadCSV("f.csv", []byte(c.text))
		if err == nil {
			t.Errorf("%q is read as %+v", c.text, p.Buffers)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q: found %q, want %q", c.text, err, want)
			}
		}
		var e *Error
		if !errors.As(err, &e) || e.File != "f.csv" || e.Line < 1 || e.Found == "" || e.Expected == "" {
			t.Errorf("%q: the error is %#v", c.text, err)
		}
	}
}

// Sums of the numbers of a file stay in range.
func TestReadCSVTotal(t *testing.T) {
	var b strings.Builder
	b.WriteString("id,lower,upper,size\n")
	for i := range 100 {
		fmt.Fprintf(&b, "%d,0,1,%d\n", i, maxBytes)
	}
	if _, err := ReadCSV("f.csv", []byte(b.String())); err == nil ||
		!strings.Contains(err.Error(), "bytes in all with the lines before") {
		t.Errorf("found %v", err)
	}
}

func TestWriteCSV(t *testing.T) {
	p := &Problem{Buffers: []Buffer{
		{ID: "Little", Lifetime: Interval{5, 10}, Size: 15},
		{ID: "Big", Lifetime: Interval{6, 12}, Size: 18, Alignment: 2},
	}}
	var b bytes.Buffer
	if err := WriteCSV(&b, p, []int64{1, 22}); err != nil {
		t.Fatal(err)
	}
	const want = "id,lower,upper,size,alignment,offset\nLittle,5,10,15,1,1\nBig,6,12,18,2,22\n"
	if b.String() != want {
		t.Errorf("found %q, want %q", b.String(), want)
	}
	if err := WriteCSV(&b, p, []int64{1}); err == nil {
		t.Error("too few offsets are written")
	}
	for _, id := range []string{"a,b", "a\nb", `a"b`, " a"} {
		p.Buffers[0].ID = id
		if err := WriteCSV(&b, p, nil); err == nil {
			t.Errorf("the name %q is written", id)
		}
	}
}

// MiniMalloc's own files.
func TestSharedFiles(t *testing.T) {
	files, err := filepath.Glob("../../../shared/data/minimalloc/*.csv")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("skipped: ../shared/data is not there")
	}
	want := map[string]struct {
		buffers int
		bound   int64
	}{
		"input.12.csv": {5, 12}, "A.1048576.csv": {154, 1048576}, "C.1048576.csv": {203, 1039360},
		"E.1048576.csv": {215, 1048576}, "F.1048576.csv": {296, 1048576}, "K.1048576.csv": {454, 1048576},
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			p, err := ReadCSV(f, data)
			if err != nil {
				t.Fatal(err)
			}
			if w, ok := want[filepath.Base(f)]; ok && (len(p.Buffers) != w.buffers || p.Bound() != w.bound) {
				t.Errorf("%d buffers, bound %d, want %+v", len(p.Buffers), p.Bound(), w)
			}
			var b bytes.Buffer
			if err := WriteCSV(&b, p, nil); err != nil || !bytes.Equal(b.Bytes(), data) {
				t.Errorf("written again, the file is another one: %v", err)
			}
		})
	}
}

// What is read can be written and is then the same; nothing makes the reader or
// the problem's methods panic.
func FuzzReadCSV(f *testing.F) {
	for _, s := range []string{
		"id,lower,upper,size\nb1,0,3,4\nb2,3,9,4\n",
		"buffer_id,start,end,size,alignment\nx,0,8,20,4\ny,0,3,1,1\n",
		"id,begin,upper,size,hint,spill_cost,offset\nx,0,1,2,-1,7,21\ny,0,1,2,4,,\n",
		"id,lower,upper,size\n\nx,4611686018427387904,4611686018427387905,281474976710656\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ReadCSV("f.csv", data)
		if err != nil {
			if p != nil {
				t.Error("an error and a problem")
			}
			return
		}
		if err := p.Validate(); err != nil {
			t.Fatalf("the reader takes what is not valid: %v", err)
		}
		if len(p.Buffers) < 100 {
			checkRoundTrip(t, p)
		}
	})
}
