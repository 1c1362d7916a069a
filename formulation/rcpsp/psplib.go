package rcpsp

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Limits of what ParsePSPLIB reads. The largest published projects have 302 jobs
// and 4 resources.
const (
	maxJobs      = 100_000
	maxResources = 1000
)

// A TextError says where a text is not a project.
type TextError struct {
	File  string
	Line  int // from 1; 0 for the text as a whole
	Found string
	Want  string
}

func (e *TextError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: found %s, expected %s", e.File, e.Found, e.Want)
	}
	return fmt.Sprintf("%s:%d: found %s, expected %s", e.File, e.Line, e.Found, e.Want)
}

// ParsePSPLIB reads a single-mode project in PSPLIB's .sm format. File is the name
// that errors and the project have. Job n becomes activity n-1; source and sink stay
// activities of no duration. Each section must be there, in PSPLIB's order, with
// every job in ascending order; what the file says of itself in its head (horizon,
// due date, MPM time) is not used. Errors are of type *TextError where the text is at
// fault, else *InputError.
func ParsePSPLIB(r io.Reader, file string) (*Project, error) {
	s := &smReader{in: bufio.NewScanner(r), file: file}
	s.in.Buffer(nil, 1<<20)
	p, err := s.project()
	if err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	return p, nil
}

type smReader struct {
	in   *bufio.Scanner
	file string
	line int
	text string
}

func (s *smReader) project() (*Project, error) {
	jobs, err := s.count("jobs", 1, maxJobs)
	if err != nil {
		return nil, err
	}
	resources, err := s.count("- renewable", 0, maxResources)
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{"- nonrenewable", "- doubly constrained"} {
		if _, err := s.count(kind, 0, 0); err != nil {
			return nil, err
		}
	}
	p := &Project{Name: s.file}
	if err := s.precedence(p, jobs); err != nil {
		return nil, err
	}
	if err := s.requests(p, resources); err != nil {
		return nil, err
	}
	if err := s.capacities(p, resources); err != nil {
		return nil, err
	}
	for s.next() {
		if strings.Trim(s.text, "* \t\x1a") != "" {
			return nil, s.bad(quote(s.text), "nothing more")
		}
	}
	return p, s.in.Err()
}

// next goes to the next line that is not empty.
func (s *smReader) next() bool {
	for s.in.Scan() {
		s.line++
		if s.text = strings.TrimSpace(s.in.Text()); s.text != "" {
			return true
		}
	}
	return false
}

func (s *smReader) bad(found, want string, args ...any) error {
	return &TextError{s.file, s.line, found, fmt.Sprintf(want, args...)}
}

// end is the error of a text that ends too soon.
func (s *smReader) end(want string, args ...any) error {
	if err := s.in.Err(); err != nil {
		return fmt.Errorf("%s: after line %d: %w", s.file, s.line, err)
	}
	return &TextError{s.file, 0, "the end of the file", fmt.Sprintf(want, args...)}
}

// count finds the line "name ... : N ...".
func (s *smReader) count(name string, lo, hi int) (int, error) {
	for s.next() {
		key, value, ok := strings.Cut(s.text, ":")
		if !strings.HasPrefix(key, name) {
			continue
		}
		fields := strings.Fields(value)
		if !ok || len(fields) == 0 {
			return 0, s.bad(quote(s.text), "a colon and a number after %q", name)
		}
		n, err := strconv.Atoi(fields[0])
		if err != nil || n < lo || n > hi {
			if lo == hi {
				return 0, s.bad(quote(fields[0]), "%d for %q", lo, name)
			}
			return 0, s.bad(quote(fields[0]), "%d to %d for %q", lo, hi, name)
		}
		return n, nil
	}
	return 0, s.end("a line %q", name+" ... : N")
}

// section finds the line that begins with title, then the line of column names.
func (s *smReader) section(title, columns string) error {
	for s.next() {
		if strings.HasPrefix(s.text, title) {
			if !s.next() {
				return s.end("the columns of %s", title)
			}
			if !strings.HasPrefix(s.text, columns) {
				return s.bad(quote(s.text), "the columns of %s, from %q on", title, columns)
			}
			return nil
		}
	}
	return s.end("a line %q", title)
}

// numbers reads a line of whole numbers; what names the line in errors.
func (s *smReader) numbers(want string, args ...any) ([]int64, error) {
	if !s.next() {
		return nil, s.end(want, args...)
	}
	fields := strings.Fields(s.text)
	row := make([]int64, len(fields))
	for i, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return nil, s.bad(quote(f), "a whole number of "+want, args...)
		}
		row[i] = n
	}
	return row, nil
}

func (s *smReader) precedence(p *Project, jobs int) error {
	if err := s.section("PRECEDENCE RELATIONS", "jobnr."); err != nil {
		return err
	}
	type link struct{ from, to int }
	var links []link
	seen := make([]int, jobs+1) // the last job with the successor
	for job := 1; job <= jobs; job++ {
		row, err := s.numbers("job %d's modes and successors", job)
		if err != nil {
			return err
		}
		switch {
		case len(row) < 3:
			return s.bad(fmt.Sprintf("%d numbers", len(row)), "job %d's number, modes, number of successors and successors", job)
		case row[0] != int64(job):
			return s.bad(fmt.Sprintf("job %d", row[0]), "job %d", job)
		case row[1] != 1:
			return s.bad(fmt.Sprintf("%d modes", row[1]), "1 for job %d", job)
		case row[2] != int64(len(row)-3):
			return s.bad(fmt.Sprintf("%d successors", len(row)-3), "the %d that job %d announces", row[2], job)
		}
		// Grown as lines come, so that a false number of jobs takes no memory.
		p.Activities = append(p.Activities, Activity{Name: strconv.Itoa(job)})
		for _, to := range row[3:] {
			if to < 1 || to > int64(jobs) || to == int64(job) {
				return s.bad(fmt.Sprintf("successor %d", to), "another of jobs 1 to %d for job %d", jobs, job)
			}
			if seen[to] == job {
				return s.bad(fmt.Sprintf("successor %d twice", to), "each once for job %d", job)
			}
			seen[to] = job
			links = append(links, link{job - 1, int(to) - 1})
		}
	}
	for _, l := range links {
		p.Activities[l.to].After = append(p.Activities[l.to].After, l.from)
	}
	return nil
}

func (s *smReader) requests(p *Project, resources int) error {
	if err := s.section("REQUESTS/DURATIONS", "jobnr."); err != nil {
		return err
	}
	if !s.next() || strings.Trim(s.text, "-*") != "" {
		return s.bad(quote(s.text), "a line of dashes")
	}
	for i := range p.Activities {
		row, err := s.numbers("job %d's duration and requests", i+1)
		if err != nil {
			return err
		}
		switch {
		case len(row) != 3+resources:
			return s.bad(fmt.Sprintf("%d numbers", len(row)), "%d: job %d's number, mode, duration and %d requests",
				3+resources, i+1, resources)
		case row[0] != int64(i+1):
			return s.bad(fmt.Sprintf("job %d", row[0]), "job %d", i+1)
		case row[1] != 1:
			return s.bad(fmt.Sprintf("mode %d", row[1]), "mode 1 of job %d", i+1)
		case row[2] < 0 || row[2] > MaxHorizon:
			return s.bad(fmt.Sprintf("duration %d", row[2]), "0 to %d for job %d", MaxHorizon, i+1)
		}
		for k, r := range row[3:] {
			if r < 0 || r > maxCapacity {
				return s.bad(fmt.Sprintf("request %d", r), "0 to %d of resource %d for job %d", maxCapacity, k+1, i+1)
			}
		}
		p.Activities[i].Duration, p.Activities[i].Demand = row[2], row[3:]
	}
	return nil
}

func (s *smReader) capacities(p *Project, resources int) error {
	if err := s.section("RESOURCEAVAILABILITIES", ""); err != nil {
		return err
	}
	if resources == 0 {
		return nil
	}
	row, err := s.numbers("the resources' capacities")
	if err != nil {
		return err
	}
	if len(row) != resources {
		return s.bad(fmt.Sprintf("%d capacities", len(row)), "one for each of %d resources", resources)
	}
	for k, c := range row {
		if c < 0 || c > maxCapacity {
			return s.bad(fmt.Sprintf("capacity %d", c), "0 to %d for resource %d", maxCapacity, k+1)
		}
		p.Resources = append(p.Resources, Resource{"R" + strconv.Itoa(k+1), c})
	}
	return nil
}

func quote(text string) string {
	if len(text) > 40 {
		text = text[:37] + "..."
	}
	return strconv.Quote(text)
}
