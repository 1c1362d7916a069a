package stablehlo

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/model"
)

// Limits on what a file may hold, far above what compilers print.
const (
	maxNesting  = 200
	maxOps      = 1 << 21
	maxElements = 1 << 16 // of a literal that are kept
)

// bytecode is how MLIR's other format begins.
const bytecode = "ML\xefR"

// position is a place in the file, from 1.
type position struct{ line, col int }

// An Error says where a module is wrong, or what of it lies beyond this package.
type Error struct {
	Line, Col int
	Op        string // such as stablehlo.add; empty outside operators
	Msg       string
}

func (e *Error) Error() string {
	s := fmt.Sprintf("line %d, column %d: ", e.Line, e.Col)
	if e.Op != "" {
		s += e.Op + ": "
	}
	return s + e.Msg
}

func errorAt(at position, op, format string, args ...any) *Error {
	return &Error{at.line, at.col, op, fmt.Sprintf(format, args...)}
}

// dynamic is the extent of a dimension "?".
const dynamic = int64(-1)

// tensorType is a type; tensor is false of others, such as tokens, of which only the text is known.
type tensorType struct {
	tensor bool
	shape  model.Shape
	elem   string
	text   string
}

func (t tensorType) String() string { return t.text }

// attr is the value of an attribute, or an operand.
type attr struct {
	at   position
	word string          // a name, string, symbol, operand (%x) or enumerator
	ints []int64         // all integers in it, in order
	list []attr          // entries of [ ], items of < > without a name
	dict map[string]attr // of { }, and named items of < >
	lit  *literal
}

// literal is the value of dense<...> as far as it is kept.
type literal struct {
	splat  bool
	f      float64 // of a splat
	ints   []int64 // of integers, if there are few
	opaque bool    // a blob, or left out by the printer
}

// op is an operator as it is written.
type op struct {
	at       position
	name     string
	results  []string // with # and number: %0#1
	operands []string
	attrs    map[string]attr
	words    []attr // what stands in the pretty form without a name
	in, out  []tensorType
	regions  []*region
}

type argument struct {
	at    position
	name  string
	typ   tensorType
	attrs map[string]attr
}

// region has one block.
type region struct {
	args []argument
	ops  []*op
}

type function struct {
	at   position
	name string
	region
	out []tensorType // nil: not declared in front of the body
}

type parser struct {
	src   string
	pos   int
	line  int
	start int // of the line
	tok   string
	kind  tokenKind
	at    position
	fresh bool // the token is the first of its line
	depth int
	ops   int
	err   error
	funcs []*function
}

type tokenKind uint8

const (
	eof    tokenKind = iota
	ident            // names with dots
	number           // as written
	quoted           // without the quotes
	value            // %name, with #n if written
	symbol           // @name
	block            // ^name
	punct            // one character, or ->
)

// parse reads a module. The first error is kept, and everything after it is the end of the file.
func parse(src string) ([]*function, error) {
	if strings.HasPrefix(src, bytecode) {
		return nil, errors.New("MLIR bytecode: print it as text (stablehlo-translate --deserialize)")
	}
	p := &parser{src: src, line: 1}
	p.next()
	p.module("")
	if p.err == nil && len(p.funcs) == 0 {
		p.err = errors.New("not StableHLO text: it holds no function")
	}
	return p.funcs, p.err
}

func (p *parser) fail(format string, args ...any) { p.failOp("", format, args...) }

func (p *parser) failOp(op, format string, args ...any) {
	if p.err == nil {
		p.err = errorAt(p.at, op, format, args...)
	}
	p.kind, p.tok, p.pos = eof, "", len(p.src)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isName(c byte) bool   { return isLetter(c) || isDigit(c) || c == '.' || c == '$' }

func (p *parser) peekByte(k int) byte {
	if p.pos+k < len(p.src) {
		return p.src[p.pos+k]
	}
	return 0
}

// space skips blanks and comments.
func (p *parser) space() {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == '\n':
			p.pos++
			p.line++
			p.start = p.pos
			p.fresh = true
		case c == ' ' || c == '\t' || c == '\r':
			p.pos++
		case c == '/' && p.peekByte(1) == '/':
			if n := strings.IndexByte(p.src[p.pos:], '\n'); n >= 0 {
				p.pos += n
			} else {
				p.pos = len(p.src)
			}
		default:
			return
		}
	}
}

func (p *parser) next() {
	if p.err != nil {
		p.kind, p.tok = eof, ""
		return
	}
	p.fresh = false
	p.space()
	p.at = position{p.line, p.pos - p.start + 1}
	if p.pos >= len(p.src) {
		p.kind, p.tok = eof, ""
		return
	}
	begin := p.pos
	c := p.src[p.pos]
	p.pos++
	run := func(of func(byte) bool) {
		for p.pos < len(p.src) && of(p.src[p.pos]) {
			p.pos++
		}
	}
	switch {
	case isLetter(c):
		run(isName)
		p.kind = ident
	case isDigit(c) || c == '-' && isDigit(p.peekByte(0)):
		p.kind = number
		if c == '0' && p.peekByte(0) == 'x' && isHex(p.peekByte(1)) {
			p.pos++
			run(isHex)
			break
		}
		run(isDigit)
		if p.peekByte(0) == '.' {
			p.pos++
			run(isDigit)
		}
		if e := p.peekByte(0); e == 'e' || e == 'E' {
			k := 1
			if s := p.peekByte(1); s == '+' || s == '-' {
				k = 2
			}
			if isDigit(p.peekByte(k)) {
				p.pos += k
				run(isDigit)
			}
		}
	case c == '"':
		p.quote()
		return
	case c == '%' || c == '^':
		run(func(c byte) bool { return isName(c) || c == '-' })
		if p.kind = block; c == '%' {
			p.kind = value
			if p.peekByte(0) == '#' && isDigit(p.peekByte(1)) {
				p.pos++
				run(isDigit)
			}
		}
	case c == '@':
		p.kind = symbol
		if p.peekByte(0) == '"' {
			p.pos++
			if p.quote(); p.err == nil {
				p.kind = symbol
			}
			return
		}
		run(func(c byte) bool { return isName(c) || c == '-' })
		p.tok = p.src[begin+1 : p.pos]
		return
	default:
		p.kind = punct
		if c == '-' && p.peekByte(0) == '>' {
			p.pos++
		}
	}
	p.tok = p.src[begin:p.pos]
}

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// quote reads a string behind its first quotation mark.
func (p *parser) quote() {
	begin := p.pos
	for p.pos < len(p.src) && p.src[p.pos] != '"' {
		if p.src[p.pos] == '\n' {
			break
		}
		if p.src[p.pos] == '\\' {
			p.pos++
		}
		p.pos++
	}
	if p.pos >= len(p.src) || p.src[p.pos] != '"' {
		p.fail("a string does not end on its line")
		return
	}
	p.kind, p.tok = quoted, p.src[begin:p.pos]
	p.pos++
}

func (p *parser) is(tok string) bool { return p.kind == punct && p.tok == tok }

func (p *parser) take(tok string) bool {
	if p.is(tok) {
		p.next()
		return true
	}
	return false
}

func (p *parser) shown() string {
	switch {
	case p.kind == eof:
		return "the end of the file"
	case len(p.tok) > 40:
		return strconv.Quote(p.tok[:40] + "...")
	}
	return strconv.Quote(p.tok)
}

func (p *parser) expect(tok string) {
	if !p.take(tok) {
		p.fail("found %s, expected %q", p.shown(), tok)
	}
}

// items calls read for each item up to a token, which it takes; there are commas between items.
func (p *parser) items(end string, read func()) {
	for p.kind != eof && !p.is(end) {
		read()
		if !p.take(",") {
			break
		}
	}
	p.expect(end)
}

// operand reads an operand.
func (p *parser) operand(o *op) {
	o.operands = append(o.operands, operandName(p.tok))
	p.next()
}

func (p *parser) word(w string) bool { return p.kind == ident && p.tok == w }

// enter counts nesting; call the result when leaving.
func (p *parser) enter() func() {
	if p.depth++; p.depth > maxNesting {
		p.fail("nested deeper than %d", maxNesting)
	}
	return func() { p.depth-- }
}

// module reads functions and modules up to and with a closing brace, or up to the end of the file.
func (p *parser) module(end string) {
	defer p.enter()()
	for p.kind != eof && !(end != "" && p.is(end)) {
		switch {
		case p.kind == ident && (p.tok == "module" || p.tok == "builtin.module"):
			p.next()
			if p.kind == symbol {
				p.next()
			}
			if p.word("attributes") {
				p.next()
				p.value(false)
			}
			p.expect("{")
			p.module("}")
			p.location()
		case p.kind == ident && (p.tok == "func.func" || p.tok == "func"):
			p.next()
			p.function()
		case p.kind == quoted && (p.tok == "builtin.module" || p.tok == "func.func"):
			p.genericFunction(p.tok == "builtin.module")
		case p.is("{"): // {-# resources #-}
			n := strings.Index(p.src[p.pos:], "#-}")
			if p.peekByte(0) != '-' || n < 0 {
				p.fail("found %s, expected a function", p.shown())
				return
			}
			p.line += strings.Count(p.src[p.pos:p.pos+n], "\n")
			p.pos += n + 3
			p.next()
		case p.is("#"), p.is("!"), p.kind == ident && strings.Contains(p.tok, "."):
			// An alias, or an operator of another dialect beside the functions: up to the next line at this depth.
			p.skipStatement()
		default:
			p.fail("found %s, expected a function", p.shown())
			return
		}
	}
	if end != "" {
		p.expect(end)
	}
}

// skipStatement goes on to the first token of a line outside all brackets.
func (p *parser) skipStatement() {
	for d := 0; ; {
		switch {
		case p.is("(") || p.is("[") || p.is("{"):
			d++
		case p.is(")") || p.is("]") || p.is("}"):
			d--
		}
		p.next()
		if p.kind == eof || d <= 0 && p.fresh || d <= 0 && p.is("}") {
			return
		}
	}
}

func (p *parser) location() {
	if p.word("loc") {
		p.next()
		if p.is("(") {
			p.skipGroup()
		}
	}
}

// skipGroup skips ( ... ), or what is in other brackets, those of all sorts inside matched.
func (p *parser) skipGroup() {
	for d := 0; p.kind != eof; {
		switch {
		case p.is("(") || p.is("[") || p.is("{") || p.is("<"):
			d++
		case p.is(")") || p.is("]") || p.is("}") || p.is(">"):
			d--
		}
		p.next()
		if d == 0 {
			return
		}
	}
}

// function reads a function behind the word func.
func (p *parser) function() {
	f := &function{at: p.at}
	for p.kind == ident {
		p.next() // public, private
	}
	if p.kind != symbol {
		p.fail("found %s, expected the name of a function", p.shown())
		return
	}
	f.name = p.tok
	p.next()
	f.args = p.arguments()
	if p.take("->") {
		if p.take("(") {
			p.items(")", func() {
				f.out = append(f.out, p.typ())
				if p.is("{") {
					p.value(false)
				}
				p.location()
			})
		} else {
			f.out = append(f.out, p.typ())
		}
	}
	if p.word("attributes") {
		p.next()
		p.value(false)
	}
	if p.is("{") {
		p.next()
		f.ops = p.block()
		p.funcs = append(p.funcs, f)
	} // else a declaration
	p.location()
}

// arguments reads (%a: type {attributes} loc(...), ...).
func (p *parser) arguments() []argument {
	var list []argument
	p.expect("(")
	for p.kind == value {
		a := argument{at: p.at, name: p.tok}
		p.next()
		p.expect(":")
		a.typ = p.typ()
		if p.is("{") {
			a.attrs = p.value(false).dict
		}
		p.location()
		list = append(list, a)
		if !p.take(",") {
			break
		}
	}
	p.expect(")")
	return list
}

// genericFunction reads "func.func"() <{...}> ({...}) {...} : () -> (), or a module in that form.
func (p *parser) genericFunction(module bool) {
	f := &function{at: p.at}
	p.next()
	p.expect("(")
	p.expect(")")
	attrs := map[string]attr{}
	for p.kind != eof && !p.is(":") {
		switch {
		case p.is("<") || p.is("{"):
			p.properties(attrs)
		case p.take("("):
			p.expect("{")
			if module {
				p.blockHead()
				p.module("}")
			} else {
				f.args = p.blockHead()
				f.ops = p.block()
			}
			p.expect(")")
		default:
			p.fail("found %s in a function of the generic form", p.shown())
		}
	}
	p.expect(":")
	p.types()
	p.location()
	if module {
		return
	}
	if f.name = attrs["sym_name"].word; f.name == "" && p.err == nil {
		p.err = errorAt(f.at, "func.func", "has no sym_name")
	}
	if len(f.ops) > 0 {
		p.funcs = append(p.funcs, f)
	}
}

// properties reads <{...}> or {...} into attrs.
func (p *parser) properties(attrs map[string]attr) {
	angle := p.take("<")
	if !p.is("{") {
		p.fail("found %s, expected attributes in braces", p.shown())
		return
	}
	maps.Copy(attrs, p.value(false).dict)
	if angle {
		p.expect(">")
	}
}

// blockHead reads ^bb0(%a: type): if it is there.
func (p *parser) blockHead() []argument {
	if p.kind != block {
		return nil
	}
	p.next()
	var args []argument
	if p.is("(") {
		args = p.arguments()
	}
	p.expect(":")
	return args
}

// block reads operators and the closing brace behind them.
func (p *parser) block() []*op {
	defer p.enter()()
	var ops []*op
	for p.kind != eof && !p.is("}") {
		if p.kind == block {
			p.fail("a second block; control flow by branches is not supported")
			break
		}
		if p.ops++; p.ops > maxOps {
			p.fail("more than %d operators", maxOps)
			break
		}
		if o := p.op(); o != nil {
			ops = append(ops, o)
		}
	}
	p.expect("}")
	return ops
}

// op reads an operator with its results.
func (p *parser) op() *op {
	o := &op{at: p.at, attrs: map[string]attr{}}
	for p.kind == value {
		name := p.tok
		p.next()
		n := 1
		if p.take(":") {
			k, err := strconv.Atoi(p.tok)
			if p.kind != number || err != nil || k < 1 || k > 1<<12 {
				p.fail("found %s, expected the number of results", p.shown())
				return nil
			}
			n = k
			p.next()
		}
		if len(o.results)+n > 1<<12 {
			p.fail("more than %d results of one operator", 1<<12)
			return nil
		}
		for i := range n {
			o.results = append(o.results, fmt.Sprintf("%s#%d", name, i))
		}
		if !p.take(",") {
			break
		}
	}
	if len(o.results) > 0 {
		p.expect("=")
	}
	o.at = p.at
	switch p.kind {
	case quoted:
		o.name = p.tok
		p.next()
		p.generic(o)
	case ident:
		o.name = p.tok
		p.next()
		p.pretty(o)
	default:
		p.fail("found %s, expected an operator", p.shown())
		return nil
	}
	p.location()
	var e *Error
	if errors.As(p.err, &e) && e.Op == "" {
		e.Op = o.name
	}
	return o
}

// short is the name without the dialect of StableHLO or its ancestor.
func short(name string) string {
	for _, d := range []string{"stablehlo.", "mhlo."} {
		if s, ok := strings.CutPrefix(name, d); ok {
			return s
		}
	}
	return name
}

func (p *parser) generic(o *op) {
	p.expect("(")
	for p.kind == value {
		p.operand(o)
		if !p.take(",") {
			break
		}
	}
	p.expect(")")
	for p.kind != eof && !p.is(":") {
		switch {
		case p.is("<") || p.is("{"):
			p.properties(o.attrs)
		case p.take("("):
			for p.take("{") {
				r := &region{}
				r.args = p.blockHead()
				r.ops = p.block()
				o.regions = append(o.regions, r)
				if !p.take(",") {
					break
				}
			}
			p.expect(")")
		default:
			p.fail("found %s, expected attributes, a region or the types", p.shown())
		}
	}
	p.expect(":")
	o.in, o.out = p.types()
}

func operandName(tok string) string {
	if strings.Contains(tok, "#") {
		return tok
	}
	return tok + "#0"
}

// pretty reads the body of an operator: items up to the types.
func (p *parser) pretty(o *op) {
	if short(o.name) == "while" {
		p.while(o)
		return
	}
	if o.name == "return" || strings.HasSuffix(o.name, ".return") {
		for p.kind == value && !(len(o.operands) == 0 && p.fresh) {
			p.operand(o)
			if !p.take(",") {
				if p.take(":") {
					o.in, _ = p.types()
				}
				return
			}
		}
		return
	}
	for p.kind != eof && !p.is(":") && !p.is("}") {
		if p.fresh && p.kind == value && len(o.operands)+len(o.words) > 0 {
			p.fail("found %s on a new line, expected the types of %s", p.shown(), o.name)
			return
		}
		p.item(o)
	}
	if !p.take(":") {
		p.fail("found %s, expected the types of %s", p.shown(), o.name)
		return
	}
	o.in, o.out = p.types()
	if len(o.out) == 1 && len(o.results) > 1 && len(o.results) == len(o.in) {
		o.out = o.in // of several values the types are written once
	}
	if p.word("reducer") {
		p.next()
		r := &region{}
		for p.is("(") {
			r.args = append(r.args, p.arguments()...)
		}
		p.expect("{")
		r.ops = p.block()
		o.regions = append(o.regions, r)
	}
}

// while reads (%a = %b, ...) : types cond { ... } do { ... }.
func (p *parser) while(o *op) {
	var args []argument
	p.expect("(")
	p.items(")", func() {
		args = append(args, argument{at: p.at, name: p.tok})
		p.next()
		p.expect("=")
		p.operand(o)
	})
	if len(args) > 0 {
		p.expect(":")
		o.in, _ = p.types()
		o.out = o.in
	}
	for i := range args[:min(len(args), len(o.in))] {
		args[i].typ = o.in[i]
	}
	if p.word("attributes") {
		p.next()
		p.value(false)
	}
	for _, w := range []string{"cond", "do"} {
		if !p.word(w) {
			p.fail("found %s, expected %q", p.shown(), w)
			return
		}
		p.next()
		p.expect("{")
		r := &region{args: args}
		r.ops = p.block()
		o.regions = append(o.regions, r)
	}
}

// item reads one part of a pretty body at the outermost level.
func (p *parser) item(o *op) {
	switch {
	case p.kind == value:
		p.operand(o)
	case p.take(","), p.take("->"):
	case p.is("("): // operands, with init: between
		p.next()
		for p.kind != eof && !p.is(")") {
			switch {
			case p.kind == value:
				p.operand(o)
			case p.word("init"):
				p.next()
				p.expect(":")
				if p.kind == value { // an initial value behind each operand
					o.words = append(o.words, attr{at: p.at, word: "init " + operandName(p.tok)})
					p.next()
				}
			case p.take(","):
			case p.kind == ident && p.assigned():
				o.attrs[p.assignee()] = p.value(true)
			default:
				p.fail("found %s, expected an operand", p.shown())
			}
		}
		p.expect(")")
	case p.is("{"):
		maps.Copy(o.attrs, p.value(false).dict)
	case p.is("<") && strings.HasPrefix(o.name, "sdy."): // a sharding
		p.skipGroup()
	case p.is("<"):
		p.properties(o.attrs)
	case p.kind == ident && p.assigned():
		name := p.assignee()
		v := p.value(true)
		for p.word("x") || p.is("->") { // [0] x [1], or [b, 0, f]x[0, i, o]->[b, 0, f]
			p.next()
			if len(v.list) == 0 || v.list[0].word != "*" {
				v = attr{at: v.at, list: []attr{{word: "*"}, v}}
			}
			v.list = append(v.list, p.value(true))
		}
		o.attrs[name] = v
	default:
		o.words = append(o.words, p.value(true))
	}
}

// assigned reports whether = follows the name that is the token.
func (p *parser) assigned() bool {
	rest := strings.TrimLeft(p.src[p.pos:min(len(p.src), p.pos+64)], " \t")
	return strings.HasPrefix(rest, "=")
}

// assignee reads a name and the = behind it.
func (p *parser) assignee() string {
	name := p.tok
	p.next()
	p.expect("=")
	return name
}

// types reads (a, b) -> (c, d), or a, b.
func (p *parser) types() (in, out []tensorType) {
	list := func() (list []tensorType) {
		if p.take("(") {
			p.items(")", func() { list = append(list, p.typ()) })
			return list
		}
		for more := true; more; more = p.take(",") {
			list = append(list, p.typ())
		}
		return list
	}
	if in = list(); !p.take("->") {
		return in, in[max(0, len(in)-1):]
	}
	return in, list()
}

// typ reads a type. The token is its first.
func (p *parser) typ() tensorType {
	defer p.enter()()
	begin := p.pos - len(p.tok)
	switch {
	case p.kind == ident:
	case p.is("!"):
		p.next()
	case p.is("("):
		p.skipGroup()
		if p.take("->") {
			p.typ()
		}
		return tensorType{text: "function"}
	default:
		p.fail("found %s, expected a type", p.shown())
		return tensorType{}
	}
	name := p.tok
	if p.peekByte(0) != '<' {
		p.next()
		return tensorType{text: name}
	}
	d, end := 0, p.pos
	for ; end < len(p.src); end++ {
		switch p.src[end] {
		case '<':
			d++
		case '>':
			if p.src[end-1] != '-' {
				d--
			}
		case '\n':
			p.line++
			p.start = end + 1
		}
		if d == 0 {
			break
		}
	}
	if end >= len(p.src) {
		p.fail("a type does not end")
		return tensorType{}
	}
	inner := p.src[p.pos+1 : end]
	p.pos = end + 1
	t := tensorType{text: p.src[begin:p.pos]}
	if name == "tensor" {
		t.tensor = true
		inner = strings.TrimSpace(inner)
		for {
			k := strings.IndexByte(inner, 'x')
			if k <= 0 {
				break
			}
			n := dynamic
			if d := strings.TrimSpace(inner[:k]); d != "?" {
				var err error
				if n, err = strconv.ParseInt(d, 10, 64); err != nil {
					break
				}
				if n > model.MaxElements {
					p.fail("type %s has more than %d elements", t, model.MaxElements)
				}
			}
			t.shape = append(t.shape, n)
			if inner = inner[k+1:]; len(t.shape) > 64 {
				p.fail("a tensor of more than 64 dimensions")
				break
			}
		}
		t.elem, _, _ = strings.Cut(inner, ",")
		t.elem = strings.TrimSpace(t.elem)
	}
	p.next()
	return t
}

// value reads the value of an attribute. In the body of a pretty operator what follows ":" are
// the operator's types, and not the value's.
func (p *parser) value(pretty bool) attr {
	defer p.enter()()
	a := attr{at: p.at}
	typed := func() {
		if !pretty && p.is(":") {
			p.next()
			p.typ()
		}
	}
	switch {
	case p.kind == number:
		a.word = p.tok
		_, a.ints = parseNumber(p.tok)
		p.next()
		typed()
	case p.kind == quoted || p.kind == symbol:
		a.word = p.tok
		p.next()
		for p.is(":") && p.peekByte(0) == ':' { // @a::@b
			p.next()
			p.next()
			p.next()
		}
		typed()
	case p.kind == value:
		a.word = operandName(p.tok)
		p.next()
	case p.is("["):
		p.next()
		p.items("]", func() {
			e := p.value(true)
			if p.is(":") { // 0:4:2
				e = attr{at: e.at, list: []attr{e}, ints: e.ints}
				for p.take(":") {
					if p.kind != number {
						p.typ()
						continue
					}
					n := p.value(true)
					e.list = append(e.list, n)
					e.ints = append(e.ints, n.ints...)
				}
			}
			a.list = append(a.list, e)
			a.ints = append(a.ints, e.ints...)
		})
	case p.is("{"):
		p.next()
		a.dict = map[string]attr{}
		for p.kind == ident || p.kind == quoted {
			name := p.tok
			p.next()
			v := attr{word: "unit"}
			if p.take("=") {
				v = p.value(false)
			}
			a.dict[name] = v
			if !p.take(",") {
				break
			}
		}
		p.expect("}")
	case p.is("#"), p.is("!"):
		p.next()
		if p.kind != ident {
			p.fail("found %s, expected the name of an attribute", p.shown())
			return a
		}
		a.word = p.tok
		p.next()
		if p.is("<") && strings.HasPrefix(a.word, "sdy.") {
			p.skipGroup()
		} else if p.is("<") {
			p.angle(&a)
		}
		typed()
	case p.is("("): // a function type
		p.skipGroup()
		if p.take("->") {
			if p.is("(") {
				p.skipGroup()
			} else {
				p.typ()
			}
		}
	case p.is("<"): // the short form of an attribute that its name says the type of
		p.angle(&a)
	case p.word("dense"), p.word("dense_resource"):
		resource := p.tok != "dense"
		p.next()
		a.lit = p.dense(resource)
		a.ints = a.lit.ints
		typed()
	case p.word("array"):
		p.next()
		p.expect("<")
		p.typ()
		if p.take(":") {
			for p.kind == number || p.kind == ident {
				_, n := parseNumber(p.tok)
				if p.word("true") {
					n = []int64{1}
				} else if p.word("false") {
					n = []int64{0}
				}
				a.ints = append(a.ints, n...)
				p.next()
				if !p.take(",") {
					break
				}
			}
		}
		p.expect(">")
	case p.word("tensor"), p.word("tuple"), p.word("vector"):
		p.typ()
	case p.word("loc"):
		p.location()
	case p.kind == ident:
		a.word = p.tok
		switch p.tok {
		case "true":
			a.ints = []int64{1}
		case "false":
			a.ints = []int64{0}
		}
		p.next()
		if p.is("<") {
			p.angle(&a)
		}
		typed()
	default:
		p.fail("found %s, expected a value", p.shown())
	}
	return a
}

// angle reads < ... > of an attribute: items with and without names.
func (p *parser) angle(a *attr) {
	defer p.enter()()
	p.expect("<")
	a.dict = map[string]attr{}
	for p.kind != eof && !p.is(">") {
		if p.kind == ident && p.assigned() {
			a.dict[p.assignee()] = p.value(false)
			continue
		}
		switch {
		case p.take(","), p.take("->"), p.take(":"), p.take("*"), p.take("+"), p.take("-"), p.take("?"):
		default:
			v := p.value(false)
			a.list = append(a.list, v)
			a.ints = append(a.ints, v.ints...)
		}
	}
	p.expect(">")
}

// dense reads < ... > of dense.
func (p *parser) dense(resource bool) *literal {
	l := &literal{opaque: resource}
	p.expect("<")
	depth, count := 0, 0
	for p.kind != eof && !p.is(">") {
		switch {
		case p.take("["):
			if depth++; depth > maxNesting {
				p.fail("nested deeper than %d", maxNesting)
			}
			continue
		case p.take("]"):
			depth--
			continue
		case p.take(","):
			continue
		case p.is("("): // a complex number
			p.skipGroup()
			l.opaque = true
			continue
		case p.is("-"):
			p.next()
			continue
		case p.kind == number || p.kind == ident:
			f, n := parseNumber(p.tok)
			switch p.tok {
			case "true":
				f, n = 1, []int64{1}
			case "false":
				n = []int64{0}
			default:
				l.opaque = l.opaque || p.kind == ident // __elided__
			}
			if count++; count == 1 {
				l.splat, l.f = depth == 0, f
			}
			if len(n) == 0 || count > maxElements {
				l.ints = nil
			} else if len(l.ints) == count-1 {
				l.ints = append(l.ints, n...)
			}
		case p.kind == quoted || p.kind == symbol:
			l.opaque = true
		default:
			p.fail("found %s in a literal", p.shown())
		}
		p.next()
	}
	if l.opaque {
		l.splat, l.ints = false, nil
	}
	if depth != 0 {
		p.fail("brackets of a literal do not match")
	}
	p.expect(">")
	return l
}

// parseNumber reads a number; ints is empty unless it is an integer. Hexadecimal ones are patterns of bits, of which
// zeros and infinities are told.
func parseNumber(s string) (f float64, ints []int64) {
	if h, ok := strings.CutPrefix(s, "0x"); ok {
		n, err := strconv.ParseUint(h, 16, 64)
		switch {
		case err != nil || n == 0:
			return 0, nil
		case strings.TrimRight(strings.ToUpper(h), "0") == "FF8", strings.ToUpper(h) == "FC00", strings.ToUpper(h) == "FF80",
			strings.TrimRight(strings.ToUpper(h), "0") == "FFF":
			return math.Inf(-1), nil
		}
		return math.NaN(), nil
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return float64(n), []int64{n}
	}
	f, _ = strconv.ParseFloat(s, 64)
	return f, nil
}
