package milp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

func TestFileNames(t *testing.T) {
	m := New("names")
	long := strings.Repeat("n", 3*maxFileName)
	for _, name := range []string{"x", "x 1", "x_1", "x-1", "2x", "e5", "Free", "größe", long, long + "2", "x_1_2"} {
		m.Binary(name, 0)
		m.AddLE(name, nil, 1)
	}
	m.AddLE("objective", nil, 1)
	vars, rows := m.FileNames()
	cut := strings.Repeat("n", maxFileName)
	want := []string{"x", "x_1", "x_1_2", "x_1_3", "_2x", "_e5", "_Free", "gr__e", cut, cut + "_2", "x_1_2_2"}
	if !slices.Equal(vars, want) {
		t.Errorf("variables %q, want %q", vars, want)
	}
	if want := append(want, "objective_2"); !slices.Equal(rows, want) {
		t.Errorf("constraints %q, want %q", rows, want)
	}
}

func small() *Model {
	m := New("a shop")
	x := m.Continuous("hours of a", 0, inf, 3)
	y := m.Integer("batches", -2, 4, 0)
	z := m.Continuous("free", -inf, inf, -1)
	m.AddRange("machine", 1, []Term{x.Times(1), z.Times(-0.5)}, 10)
	m.AddEQ("batch size", []Term{x.Times(1), y.Times(-2)}, 0)
	m.AddRange("nothing", -inf, Sum(z), inf)
	return m
}

func TestWriteLP(t *testing.T) {
	var b bytes.Buffer
	if err := small().WriteLP(&b); err != nil {
		t.Fatal(err)
	}
	const want = `\ a_shop
minimize
 objective: + 3 hours_of_a + 0 batches - 1 _free
subject to
 machine: + 1 hours_of_a - 0.5 _free >= 1
 machine_upper: + 1 hours_of_a - 0.5 _free <= 10
 batch_size: + 1 hours_of_a - 2 batches = 0
bounds
 hours_of_a >= 0
 -2 <= batches <= 4
 _free free
general
 batches
end
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrors(t *testing.T) {
	if err := New("empty").WriteLP(io.Discard); !errors.Is(err, ErrNoVariables) ||
		!strings.Contains(err.Error(), `"empty"`) {
		t.Errorf("a model without variables gives %v", err)
	}
	bad := New("bad")
	bad.Binary("x", nan)
	var in *InputError
	if err := bad.WriteLP(io.Discard); !errors.As(err, &in) {
		t.Errorf("an invalid model gives %v", err)
	}
	if err := small().WriteLP(failing{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("a closed pipe gives %v", err)
	}
}

// million has a million terms in constraints of ten.
func million() *Model {
	m := New("million")
	vars := make([]Var, 100_000)
	for j := range vars {
		vars[j] = m.Binary(fmt.Sprintf("x[%d]", j), float64(j%7))
	}
	terms := make([]Term, 10)
	for i := range 100_000 {
		for k := range terms {
			terms[k] = vars[(i*31+k*997)%len(vars)].Times(float64(1 + k))
		}
		m.AddGE(fmt.Sprintf("cover[%d]", i), terms, 5)
	}
	return m
}

func BenchmarkBuildMillionTerms(b *testing.B) {
	for b.Loop() {
		if err := million().Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriteMillionTerms(b *testing.B) {
	m := million()
	for b.Loop() {
		if err := m.WriteLP(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
