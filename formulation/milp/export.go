package milp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// maxFileName bounds the length of a name in a file; the LP format ends there.
const maxFileName = 200

// ErrNoVariables says that a model is not written because it has no variables:
// the LP format has no way to say so, and no solver needs it.
var ErrNoVariables = errors.New("the model has no variables")

// FileNames are the names that [Model.WriteLP] gives the variables and constraints, in the model's order: their own,
// with all but ASCII letters, digits and underscores replaced by underscores. A name that the LP format would read as a
// number or a keyword gets a leading underscore, the second, third, ... of several that become the same a number.
func (m *Model) FileNames() (vars, constraints []string) {
	v, c := newNamer(), newNamer()
	// The objective has a row name of its own.
	c.taken[objectiveName] = true
	for i := range m.vars {
		vars = append(vars, v.name(m.vars[i].Name))
	}
	for i := range m.rows {
		constraints = append(constraints, c.name(m.rows[i].Name))
	}
	return vars, constraints
}

const objectiveName = "objective"

// lpWords are the words that the LP format keeps for itself, in lower case.
var lpWords = map[string]bool{
	"min": true, "minimum": true, "minimize": true, "minimise": true,
	"max": true, "maximum": true, "maximize": true, "maximise": true,
	"subject": true, "such": true, "st": true, "to": true, "that": true,
	"bound": true, "bounds": true, "free": true, "inf": true, "infinity": true,
	"bin": true, "binary": true, "binaries": true, "gen": true, "general": true, "generals": true,
	"int": true, "integer": true, "integers": true, "semi": true, "semis": true, "sec": true, "sos": true, "sos1": true,
	"sos2": true, "end": true,
}

type namer struct {
	taken map[string]bool
	// next is the number that a clash of the name tries first; it keeps a thousand equal names from a million tries.
	next map[string]int
}

func newNamer() *namer { return &namer{map[string]bool{}, map[string]int{}} }

func (n *namer) name(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
	if len(s) > maxFileName {
		s = s[:maxFileName]
	}
	// "e5" could be the exponent of the number before it.
	if s == "" || s[0] <= '9' || s[0] == 'e' || s[0] == 'E' || lpWords[strings.ToLower(s)] {
		s = "_" + s
	}
	base := s
	for k := max(2, n.next[base]); n.taken[s]; k++ {
		s = fmt.Sprintf("%s_%d", base, k)
		n.next[base] = k + 1
	}
	n.taken[s] = true
	return s
}

// WriteLP writes the model in the LP format, with the names of [Model.FileNames]. A constraint with two different
// bounds becomes two, of which the second has "_upper" after its name; one without bounds is left out.
func (m *Model) WriteLP(w io.Writer) error {
	if err := m.writable(); err != nil {
		return err
	}
	vars, rows := m.FileNames()
	taken := newNamer()
	for _, r := range rows {
		taken.taken[r] = true
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "\\ %s\nminimize\n %s:", newNamer().name(m.name), objectiveName)
	sum := func(terms []Term) {
		if len(terms) == 0 {
			terms = []Term{{0, 0}} // a sum must name a variable
		}
		for k, t := range terms {
			if k > 0 && k%8 == 0 {
				b.WriteString("\n ")
			}
			fmt.Fprintf(b, " %s %s", signed(t.Coef), vars[t.Var])
		}
	}
	// All variables, even those that cost nothing: a reader numbers them as they come.
	costs := make([]Term, len(m.vars))
	for j, v := range m.vars {
		costs[j] = Term{Var(j), v.Cost}
	}
	sum(costs)
	fmt.Fprintf(b, "\nsubject to\n")
	for i, row := range m.rows {
		line := func(name, relation string, side float64) {
			fmt.Fprintf(b, " %s:", name)
			sum(row.Terms)
			fmt.Fprintf(b, " %s %s\n", relation, number(side))
		}
		switch lo, hi := !math.IsInf(row.Lo, 0), !math.IsInf(row.Hi, 0); {
		case lo && hi && row.Lo == row.Hi:
			line(rows[i], "=", row.Lo)
		case lo && hi:
			line(rows[i], ">=", row.Lo)
			line(taken.name(rows[i]+"_upper"), "<=", row.Hi)
		case lo:
			line(rows[i], ">=", row.Lo)
		case hi:
			line(rows[i], "<=", row.Hi)
		}
	}
	fmt.Fprintf(b, "bounds\n")
	for j, v := range m.vars {
		switch lo, hi := !math.IsInf(v.Lo, 0), !math.IsInf(v.Hi, 0); {
		case !lo && !hi:
			fmt.Fprintf(b, " %s free\n", vars[j])
		case lo && hi && v.Lo == v.Hi:
			fmt.Fprintf(b, " %s = %s\n", vars[j], number(v.Lo))
		case lo && hi:
			fmt.Fprintf(b, " %s <= %s <= %s\n", number(v.Lo), vars[j], number(v.Hi))
		case lo:
			fmt.Fprintf(b, " %s >= %s\n", vars[j], number(v.Lo))
		default:
			fmt.Fprintf(b, " -inf <= %s <= %s\n", vars[j], number(v.Hi))
		}
	}
	// Binary variables are listed as integers: a list of binary ones would set their bounds anew, and some are fixed.
	heading := "general\n"
	for j, v := range m.vars {
		if v.Type.Integral() {
			fmt.Fprintf(b, "%s %s\n", heading, vars[j])
			heading = ""
		}
	}
	fmt.Fprintf(b, "end\n")
	return b.Flush()
}

func (m *Model) writable() error {
	if err := m.Err(); err != nil {
		return err
	}
	if len(m.vars) == 0 {
		return fmt.Errorf("milp: model %q: %w", m.name, ErrNoVariables)
	}
	return nil
}

// number is the shortest text that reads back as f.
func number(f float64) string { return strconv.FormatFloat(f+0, 'g', -1, 64) }

func signed(f float64) string {
	if f < 0 {
		return "- " + number(-f)
	}
	return "+ " + number(f)
}
