package hardware

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

const (
	// MaxFileBytes bounds a description.
	MaxFileBytes = 1 << 20
	// Enough to mend a file in one go; what is beyond it is only counted.
	maxReported = 20
	// A file of nothing but mistakes must not fill the memory with messages.
	maxCollected = 1000
)

// Parse reads a description. The name stands for the file in messages. All mistakes are reported, as *Error values in
// one joined error, in the order of their lines.
func Parse(name string, data []byte) (*Spec, error) {
	if len(data) > MaxFileBytes {
		return nil, &Error{File: name, Problem: problem("more than 1MiB", "a description of an accelerator")}
	}
	d := &decoder{file: name, source: make(map[string]source)}
	d.check = checker{report: d.reportInvalid}
	root := d.document(data)
	if root == nil {
		return nil, d.err()
	}
	spec := d.spec(root)
	d.check.spec(spec)
	if err := d.err(); err != nil {
		return nil, err
	}
	return spec, nil
}

// A decoder turns the YAML tree into a Spec. It does not use yaml's own decoding into structures, which knows no lines
// for missing fields or for values out of range and which follows aliases.
type decoder struct {
	file    string
	errs    []*Error
	dropped int
	source  map[string]source // by path
	check   checker
	clockHz float64
	// By what factor the clock may be faster, and the ends of what is not a unit's.
	clockEnd float64
	fast     ends
}

// A source is where a field stands in the file and, for a scalar, how it is written there.
type source struct {
	line  int
	found string
}

func (d *decoder) err() error {
	slices.SortStableFunc(d.errs, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })
	var errs []error
	for i, e := range d.errs {
		if i == maxReported {
			errs = append(errs, &Error{File: d.file, Problem: fmt.Sprintf("%d more mistakes", len(d.errs)-i+d.dropped)})
			break
		}
		errs = append(errs, e)
	}
	return errors.Join(errs...)
}

// add reports a mistake in the way a value is written.
func (d *decoder) add(line int, path, problem string) {
	d.check.markBad(path)
	if len(d.errs) >= maxCollected {
		d.dropped++
		return
	}
	d.errs = append(d.errs, &Error{File: d.file, Line: line, Field: path, Problem: problem})
}

// reportInvalid reports a value that breaks a rule, as the file has it.
func (d *decoder) reportInvalid(path, found, expected string) {
	src, ok := d.source[path]
	for p := path; !ok && p != ""; { // a field that is left out: where it should stand
		p = p[:max(0, strings.LastIndexAny(p, ".["))]
		src.line = d.source[p].line
		ok = src.line > 0
	}
	if src.found != "" {
		found = src.found
	}
	d.add(max(src.line, 1), path, problem(found, expected))
}

// yamlLine is how the library begins a message about a certain line.
var yamlLine = regexp.MustCompile(`^line ([0-9]+): `)

// offByOne are the messages of the library whose line is one too small: those
// of its parser, unlike those of its scanner.
var offByOne = regexp.MustCompile(`^(did not find expected (<|node content|key|'-' indicator|',' or ')|` +
	`found (undefined tag handle|duplicate %|incompatible YAML document))`)

// unknownAnchor is a message of the library that comes without a line.
var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced`)

// document reads the only document of the file; nil if it can't be read.
func (d *decoder) document(data []byte) *yaml.Node {
	if line := badText(data); line > 0 {
		d.add(line, "", problem("bytes that are not text in UTF-8", "the YAML of an accelerator"))
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, next yaml.Node
	err := dec.Decode(&doc)
	if err == io.EOF {
		d.add(1, "", problem("an empty file", "a description of an accelerator"))
		return nil
	}
	if err == nil {
		if err = dec.Decode(&next); err == io.EOF {
			return doc.Content[0]
		} else if err == nil {
			d.add(next.Line, "", problem("a second document", "only one in a file"))
			return nil
		}
	}
	line, message := 1, strings.TrimPrefix(err.Error(), "yaml: ")
	if m := yamlLine.FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = message[len(m[0]):]
		if offByOne.MatchString(message) {
			line++
		}
	} else if m := unknownAnchor.FindStringSubmatch(message); m != nil {
		before, _, _ := bytes.Cut(data, []byte("*"+m[1]))
		line += bytes.Count(before, []byte("\n"))
	}
	d.add(line, "", "not valid YAML: "+strings.ReplaceAll(message, "\n", " "))
	return nil
}

// badText is the line of the first character that no text has; 0 if there is
// none. The library finds them as well, but without the line.
func badText(data []byte) int {
	line := 1
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && n == 1, r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return line
		}
		i += n
	}
	return 0
}

// fields is a mapping whose keys have been checked.
type fields struct {
	d     *decoder
	path  string
	line  int // of the key that the mapping belongs to
	value map[string]*yaml.Node
}

func (f fields) at(key string) string {
	if f.path == "" {
		return key
	}
	return f.path + "." + key
}

// mapping reads the keys of a mapping, all of which must be among known; noun says what they are and expected what the
// mapping should be. A nil result means that it is no mapping.
func (d *decoder) mapping(n *yaml.Node, path string, line int, expected, noun string, known []string) *fields {
	if n.Kind != yaml.MappingNode || tagged(n) {
		d.add(n.Line, path, problem(describe(n), expected))
		return nil
	}
	f := &fields{d: d, path: path, line: line, value: make(map[string]*yaml.Node)}
	lines := make(map[string]int)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			d.add(k.Line, path, problem(describe(k)+" as a key", "one of "+list(known)))
			continue
		}
		at := f.at(key(k.Value))
		switch {
		case !slices.Contains(known, k.Value):
			d.add(k.Line, at, problem("an unknown "+noun, "one of "+list(known)))
		case f.value[k.Value] != nil:
			d.add(k.Line, at, problem("a duplicate", fmt.Sprintf("it only once (first in line %d)", lines[k.Value])))
		default:
			f.value[k.Value] = v
			lines[k.Value] = k.Line
			src := source{line: k.Line}
			if v.Kind == yaml.ScalarNode {
				src = source{line: v.Line, found: describe(v)}
			}
			d.source[at] = src
		}
	}
	return f
}

// sequence gives the items of a required list.
func (f *fields) sequence(key, expected string) []*yaml.Node {
	n := f.required(key, expected)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode || tagged(n) || len(n.Content) == 0 {
		f.d.add(n.Line, f.at(key), problem(describe(n), expected))
		return nil
	}
	return n.Content
}

// required gives the value of a field that must be there; nil if it is not.
func (f *fields) required(key, expected string) *yaml.Node {
	n := f.value[key]
	if n == nil {
		f.d.add(f.line, f.at(key), "missing, expected "+expected)
	}
	return n
}

// text gives the scalar that a field must have.
func (f *fields) text(key, expected string) (string, bool) {
	n := f.required(key, expected)
	if n == nil {
		return "", false
	}
	if n.Kind != yaml.ScalarNode || tagged(n) || n.ShortTag() == "!!null" {
		f.d.add(n.Line, f.at(key), problem(describe(n), expected))
		return "", false
	}
	return n.Value, true
}

// wrong reports a scalar that can't be read.
func (f *fields) wrong(key, expected string) {
	n := f.value[key]
	f.d.add(n.Line, f.at(key), problem(describe(n), expected))
}

func (f *fields) name(key, expected string) string {
	s, _ := f.text(key, expected)
	return s
}

func (f *fields) has(key string) bool { return f.value[key] != nil }

// optional reads a field that may be left out.
func optional[T any](f *fields, key string, read func(key string) T) (v T) {
	if f.has(key) {
		v = read(key)
	}
	return v
}

// isNone reports whether a field has the value none.
func (f *fields) isNone(key string) bool {
	n := f.value[key]
	return n != nil && n.Kind == yaml.ScalarNode && n.Value == "none"
}

func (f *fields) size(key string) Bytes {
	s, ok := f.text(key, expectSize)
	if !ok {
		return 0
	}
	b, expected := parseSize(s)
	if expected != "" {
		f.wrong(key, expected)
	}
	return b
}

// scaled reads a number with a unit. A number in cycles of an unknown clock is
// passed over: the clock has been reported.
func (f *fields) scaled(key, expected string, parse func(string, float64) (float64, bool)) float64 {
	s, ok := f.text(key, expected)
	if !ok {
		return 0
	}
	v, ok := parse(s, f.d.clockHz)
	if !ok {
		f.wrong(key, expected)
	} else if math.IsNaN(v) {
		f.d.check.markBad(f.at(key))
	}
	return v
}

func (f *fields) clock(key string) float64 {
	return f.scaled(key, expectClock, func(text string, _ float64) (float64, bool) { return parseClock(text) })
}

func (f *fields) bandwidth(key string) float64 { return f.scaled(key, expectBandwidth, parseBandwidth) }

func (f *fields) time(key string) float64 { return f.scaled(key, expectTime, parseTime) }

func (f *fields) count(key string, limit int) int {
	expected := expectCount(limit)
	s, ok := f.text(key, expected)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(s)
	if err != nil || !wholeNumber.MatchString(s) {
		f.wrong(key, expected)
	}
	return n
}

func (f *fields) cycles(key string) Cycles {
	const expected = "a whole number of cycles such as 24cycles"
	s, ok := f.text(key, expected)
	if !ok {
		return 0
	}
	c, ok := parseCycles(s)
	if !ok {
		f.wrong(key, expected)
	}
	return c
}

const (
	expectBlock      = "a number of cycles of zero or more such as 3.5cycles"
	expectEfficiency = "a share above 0 and up to 1"
)

// fraction reads a number that may have this unit behind it.
func (f *fields) fraction(key, expected, unit string) float64 {
	s, ok := f.text(key, expected)
	if !ok {
		return 0
	}
	number, u, ok := splitQuantity(s)
	v, err := strconv.ParseFloat(number, 64)
	if !ok || u != "" && u != unit || err != nil {
		f.wrong(key, expected)
		return 0
	}
	return v
}

const expectGrid = "two or more whole numbers above zero such as 9x12"

// grid reads "9x12".
func (f *fields) grid(key string) []int {
	text, ok := f.text(key, expectGrid)
	if !ok {
		return nil
	}
	var grid []int
	for _, part := range strings.Split(text, "x") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || !wholeNumber.MatchString(part) {
			f.wrong(key, expectGrid)
			return nil
		}
		grid = append(grid, n)
	}
	return grid
}

// words gives a list of words, each in its field's terms.
func (f *fields) words(key, expected string) []string {
	var words []string
	for _, n := range f.sequence(key, expected) {
		if n.Kind != yaml.ScalarNode || tagged(n) || n.ShortTag() == "!!null" {
			f.d.add(n.Line, f.at(key), problem(describe(n), expected))
			return nil
		}
		words = append(words, n.Value)
	}
	return words
}

// boolean reads an optional field.
func (f *fields) boolean(key string, without bool) bool {
	if !f.has(key) {
		return without
	}
	switch s, ok := f.text(key, "true or false"); {
	case ok && s == "true":
		return true
	case ok && s == "false":
		return false
	case ok:
		f.wrong(key, "true or false")
	}
	return without
}

// numbers reads a mapping from known names to numbers, and adds their fast ends to those of the other figures.
func (f *fields) numbers(key, noun string, known []string, fast ends) map[string]float64 {
	m := f.child(key, "a mapping with a number for any "+noun+" of "+list(known), noun, known)
	if m == nil {
		return nil
	}
	v := make(map[string]float64)
	for _, k := range known {
		if !m.has(k) {
			continue
		}
		const expected = "a number above zero"
		s, ok := m.text(k, expected)
		if !ok {
			continue
		}
		number, unit, ok := splitQuantity(s)
		if !ok || unit != "" {
			m.wrong(k, expected)
			continue
		}
		v[k], _ = strconv.ParseFloat(number, 64) // an infinity is refused by the limits
	}
	if len(v) == 0 && len(f.value[key].Content) > 0 {
		f.d.check.markBad(f.at(key)) // its keys have been reported
	}
	m.ends(key+".", fast)
	return v
}

var specFields = []string{
	"name", "description", "clock", "clock_under_load", "clusters", "core_types",
	"lb", "gb", "ddr", "core_link", "ddr_link", "launch", "sync", "gap", "matrix_start", "host", "energy",
}

func (d *decoder) spec(root *yaml.Node) *Spec {
	f := d.mapping(root, "", root.Line, "a description: a mapping with "+list(specFields), "field", specFields)
	s := &Spec{}
	if f == nil {
		return s
	}
	s.Name = f.name("name", "a name for the accelerator")
	if f.has("description") {
		s.Description = strings.TrimRight(f.name("description", "one line of text"), "\n")
	}
	// The clock comes first: other values may be given in its cycles.
	s.ClockHz, s.LoadClockHz = f.clock("clock"), optional(f, "clock_under_load", f.clock)
	if s.ClockHz >= minClock && s.ClockHz <= maxClock {
		d.clockHz = s.ClockHz
	}
	d.clockEnd = f.ends("", ends{})["clock"]
	d.fast = f.ends("", ends{})
	s.fast = d.fast
	s.Clusters = f.count("clusters", maxClusters)

	s.L1, s.L1WeightBytes = d.localBuffer(f)
	s.LLB = d.memory(f, "gb", true)
	s.DDR, s.DDRActivationEfficiency = d.offChip(f)
	hasL1 := s.L1 != nil || !f.isNone("lb")
	for i, n := range f.sequence("core_types", "a list of core types, each with name, count, units") {
		s.CoreTypes = append(s.CoreTypes, d.coreType(n, fmt.Sprintf("core_types[%d]", i), hasL1))
	}

	s.CoreLink, s.Network = d.link(f, "core_link", true)
	s.DDRLink, _ = d.link(f, "ddr_link", false)
	s.LaunchSeconds = f.time("launch")
	s.SyncSeconds = f.time("sync")
	s.GapSeconds = optional(f, "gap", f.time)
	s.MatrixStartSeconds = optional(f, "matrix_start", f.time)
	s.HostSeconds = optional(f, "host", f.time)
	s.Energy = d.energy(f, s.L1 != nil, s.LLB != nil)
	return s
}

func (d *decoder) coreType(n *yaml.Node, path string, hasL1 bool) CoreType {
	f := d.item(n, path, []string{"name", "count", "grid", "has_lb", "runs", "units"})
	if f == nil {
		return CoreType{}
	}
	t := CoreType{
		Name:  f.name("name", "a name for the core type"),
		Count: f.count("count", maxCores),
		HasL1: f.boolean("has_lb", hasL1),
		Grid:  optional(f, "grid", f.grid),
	}
	if f.has("runs") {
		t.Runs = f.words("runs", "a list of "+list(operatorClasses))
	}
	for i, n := range f.sequence("units", "a list of units, each with name, kind, rate") {
		t.Units = append(t.Units, d.unit(n, fmt.Sprintf("%s.units[%d]", path, i)))
	}
	return t
}

func (d *decoder) unit(n *yaml.Node, path string) Unit {
	f := d.item(n, path, []string{"name", "kind", "shares_with", "clock", "rows", "cols", "lanes", "rate", "fill", "block",
		"least", "in_flight", "synchronous", "operands", "results", "cycles_per_op"})
	if f == nil {
		return Unit{}
	}
	u := Unit{
		Name: f.name("name", "a name for the unit"),
		Kind: UnitKind(f.name("kind", "matrix, vector or special")),
		fast: f.ends("", ends{}),
	}
	if f.has("shares_with") {
		// "" would read as "shares with none".
		if u.SharesWith = f.name("shares_with", "the name of a unit"); u.SharesWith == "" {
			f.wrong("shares_with", "the name of a unit")
		}
	}
	u.Rate = f.numbers("rate", "dtype", dtypes, u.fast)
	u.FillCycles = f.cycles("fill")
	if f.has("block") {
		u.BlockCycles = f.fraction("block", expectBlock, "cycles")
	}
	if f.has("operands") || f.has("results") {
		u.OperandBytesPerSecond, u.ResultsHeld = f.bandwidth("operands"), f.count("results", maxResults)
	}
	u.LeastCycles = optional(f, "least", f.cycles)
	if f.has("in_flight") {
		u.InFlight = f.count("in_flight", maxWidth)
	}
	u.Synchronous = f.boolean("synchronous", false)
	if f.has("clock") {
		if u.ClockHz = f.clock("clock"); u.ClockHz == 0 && !d.check.isBad(f.at("clock")) {
			f.wrong("clock", expectClock) // in the Spec, 0 stands for the chip's
		}
	}
	// What the kind calls for must be there. The rest is read if it is there,
	// so that the check can say why it should not be.
	lanes := u.Kind == Vector || u.Kind == Special
	if u.Kind == Matrix || f.has("rows") {
		u.Rows = f.count("rows", maxWidth)
	}
	if u.Kind == Matrix || f.has("cols") {
		u.Cols = f.count("cols", maxWidth)
	}
	if lanes || f.has("lanes") {
		u.Lanes = f.count("lanes", maxWidth)
	}
	if lanes || f.has("cycles_per_op") {
		u.CyclesPerOp = f.numbers("cycles_per_op", "operation class", opClasses, u.fast)
	}
	return u
}

// item reads the mapping that is one item of a list.
func (d *decoder) item(n *yaml.Node, path string, known []string) *fields {
	d.source[path] = source{line: n.Line}
	return d.mapping(n, path, n.Line, "a mapping with "+list(known), "field", known)
}

// child reads a required mapping that belongs to a key.
func (f *fields) child(key, expected, noun string, known []string) *fields {
	n := f.required(key, expected)
	if n == nil {
		return nil
	}
	m := f.d.mapping(n, f.at(key), f.d.source[f.at(key)].line, expected, noun, known)
	if m != nil && f.path == "" && key != "energy" {
		m.ends(key+".", f.d.fast)
	}
	return m
}

var (
	memoryFields = []string{"size", "bandwidth", "latency"}
	bufferFields = []string{"size", "weights", "bandwidth", "latency"}
	ddrFields    = []string{"size", "bandwidth", "activation_efficiency", "latency"}
)

func (d *decoder) memory(f *fields, key string, mayBeNone bool) *Memory {
	if mayBeNone && f.isNone(key) {
		return nil
	}
	expected := "a mapping with " + list(memoryFields)
	if mayBeNone {
		expected = "none or " + expected
	}
	m := f.child(key, expected, "field", memoryFields)
	if m == nil {
		return nil
	}
	return m.memory()
}

func (d *decoder) offChip(f *fields) (*Memory, float64) {
	m := f.child("ddr", "a mapping with "+list(memoryFields), "field", ddrFields)
	if m == nil {
		return nil, 0
	}
	efficiency := 0.0
	if m.has("activation_efficiency") {
		if efficiency = m.fraction("activation_efficiency", expectEfficiency, ""); efficiency == 0 &&
			!d.check.isBad("ddr.activation_efficiency") {
			m.wrong("activation_efficiency", expectEfficiency) // in the Spec, 0 stands for 1
		}
	}
	return m.memory(), efficiency
}

func (f *fields) memory() *Memory {
	return &Memory{
		SizeBytes:               f.size("size"),
		BandwidthBytesPerSecond: f.bandwidth("bandwidth"),
		LatencySeconds:          f.time("latency"),
	}
}

func (d *decoder) localBuffer(f *fields) (*Memory, Bytes) {
	if f.isNone("lb") {
		return nil, 0
	}
	m := f.child("lb", "none or a mapping with "+list(bufferFields), "field", bufferFields)
	if m == nil {
		return nil, 0
	}
	if m.isNone("size") {
		// The likeliest reason: a core with a weight buffer alone.
		m.wrong("size", expectSize+"; a core without it is written lb: none and can't have weights either")
	}
	var weights Bytes
	if m.has("weights") && !m.isNone("weights") {
		if weights = m.size("weights"); weights <= 0 && !d.check.isBad("lb.weights") {
			m.wrong("weights", expectSize+", or none")
		}
	}
	if m.isNone("size") {
		return &Memory{BandwidthBytesPerSecond: m.bandwidth("bandwidth"), LatencySeconds: m.time("latency")}, weights
	}
	return m.memory(), weights
}

func (d *decoder) link(f *fields, key string, core bool) (l Link, net *Network) {
	known := []string{"bandwidth", "latency"}
	if core {
		known = append(known, "broadcast", "in_flight", "network")
	} else {
		known = append(known, "in_flight")
	}
	m := f.child(key, "a mapping with "+list(known), "field", known)
	if m == nil {
		return Link{}, nil
	}
	if m.has("network") {
		net = m.network()
	}
	l = Link{LatencySeconds: m.time("latency"), Broadcast: m.boolean("broadcast", false)}
	if m.has("in_flight") {
		l.InFlight = m.count("in_flight", MostInFlight)
	}
	if n := m.value["bandwidth"]; !core && n != nil && n.Kind == yaml.ScalarNode && n.Value == "unlimited" {
		return l, nil
	}
	l.BandwidthBytesPerSecond = m.bandwidth("bandwidth")
	if !core && l.BandwidthBytesPerSecond == 0 && !d.check.isBad(m.at("bandwidth")) {
		// In the Spec, 0 stands for unlimited; nobody means that by 0B/s.
		m.wrong("bandwidth", expectBandwidth+", or unlimited")
	}
	return l, net
}

const expectMemory = "a list of numbers of cores, counted from 0, beside which the memory is"

// network reads how cores are linked; nil for all-to-all, which needs no more.
func (f *fields) network() *Network {
	known := []string{"kind", "memory"}
	m := f.child("network", "a mapping with "+list(known), "field", known)
	if m == nil {
		return nil
	}
	n := &Network{Kind: m.name("kind", expectNetwork)}
	if m.has("memory") {
		for _, s := range m.words("memory", expectMemory) {
			c, err := strconv.Atoi(s)
			if err != nil || !wholeNumber.MatchString(s) {
				f.d.add(m.value["memory"].Line, m.at("memory"), problem(quote(s), expectMemory))
				break
			}
			n.Memory = append(n.Memory, c)
		}
	}
	if n.Kind == allToAll && n.Memory == nil {
		return nil
	}
	return n
}

// tagged reports whether a node has a tag of its own, such as !!binary.
func tagged(n *yaml.Node) bool { return n.Style&yaml.TaggedStyle != 0 }

// describe says what a node is, in a few words.
func describe(n *yaml.Node) string {
	if tagged(n) {
		return "a value with the tag " + quote(n.Tag)
	}
	switch n.Kind {
	case yaml.MappingNode:
		if len(n.Content) == 0 {
			return "an empty mapping"
		}
		return "a mapping"
	case yaml.SequenceNode:
		if len(n.Content) == 0 {
			return "an empty list"
		}
		return "a list"
	case yaml.AliasNode:
		// Refused, so that nothing small in the file is large when read.
		return "an alias, which is not supported"
	}
	if n.ShortTag() == "!!null" {
		return "nothing"
	}
	return quote(n.Value)
}
