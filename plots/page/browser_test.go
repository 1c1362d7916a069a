package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// browserVariable is "required" where a browser must be there; scripts/setup-chromium.sh
// installs one.
const browserVariable = "DSASCHED_BROWSER"

// variantOf is the recording of a variant in which span ticks are spread over n
// commands of a matrix unit and as many loads.
func variantOf(name string, n, span int, labels []int) map[string]any {
	var gap, length, label, group, amount, address []string
	each := span / n
	for i := range n {
		gap = append(gap, fmt.Sprint(each/2))
		length = append(length, fmt.Sprint(each-each/2))
		label = append(label, fmt.Sprint(labels[i%len(labels)]))
		group = append(group, fmt.Sprint(labels[i%len(labels)]/2))
		amount = append(amount, fmt.Sprint(1000*(i+1)))
		address = append(address, fmt.Sprint(i%4*4096))
	}
	column := func(words []string) string { return strings.Join(words, " ") }
	constant := func(word string) string { return strings.TrimSpace(strings.Repeat(word+" ", n)) }
	shifted := append([]string{"0"}, length[1:]...)
	return map[string]any{
		"name": name, "description": "the variant " + name, "end_ticks": n * each,
		"kinds": []string{"launch", "barrier", "ddr.load", "ddr.store", "lb.load", "lb.store", "exchange", "matrix"},
		"row": map[string]any{"batches_per_cluster": 2, "latency_s": float64(n*each) * 1.0123e-10,
			"throughput_per_s": 1.23456789e11 / float64(span), "kernels_dynamic": n, "mme_busy_share": 0.5,
			"moved_bytes": map[string]any{"ddr": 4096, "llb": 2048, "l1": 0}, "l1_peak_bytes_per_core": 16384,
			"llb_peak_bytes": 32768},
		"queues": []any{
			map[string]any{"name": "mme", "title": "MME", "commands": n, "gap_ticks": column(gap),
				"length_ticks": column(length), "operator": column(label), "group": column(group),
				"kind": constant("7"), "amount": column(amount)},
			map[string]any{"name": "ddr.load", "title": "DDR → LLB", "commands": n,
				"gap_ticks": column(append([]string{"0"}, gap[1:]...)), "length_ticks": column(length),
				"operator": column(label), "group": column(group),
				"kind": constant("2"), "amount": column(amount)},
		},
		"memories": []any{
			map[string]any{"level": "L1", "title": "L1 of each core", "capacity_bytes": 16384, "buffers": n,
				"gap_ticks": column(shifted), "length_ticks": constant(fmt.Sprint(each)),
				"operator": column(label), "group": column(group),
				"address_bytes": column(address), "size_bytes": constant("4096"), "filled_by": constant("2")},
			map[string]any{"level": "LLB", "title": "LLB of the cluster", "capacity_bytes": 65536, "buffers": 0, "gap_ticks": "",
				"length_ticks": "", "operator": "", "group": "", "address_bytes": "", "size_bytes": "", "filled_by": ""},
		},
	}
}

func recordingExample(t *testing.T) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"schema": 1, "tick_ps": 1000, "configurations": []any{
		map[string]any{"name": "net", "title": "Net", "hardware": "chip", "batch": 4, "unit": "images/s",
			"operators": []string{"first", "second", "third", "k0"}, "layers": 3,
			"variants": []any{variantOf("slow", 40, 400_000, []int{0, 0, 1, 1, 2}),
				variantOf("middle", 40, 200_000, []int{0, 1}), variantOf("fast", 20, 100_000, []int{0, 1, 2})}},
		map[string]any{"name": "other", "title": "Other", "hardware": "chip", "batch": 8, "unit": "images/s",
			"operators": []string{"only"}, "layers": 1,
			"variants": []any{variantOf("slow", 10, 50_000, []int{0})}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// browser is an open page. Errors on the console and requests are kept.
type browser struct {
	*testing.T
	ctx      context.Context
	mu       sync.Mutex
	requests []string
	messages []string
}

// open shows a page in a browser without a window, or skips the test.
func open(t *testing.T, html string) *browser {
	t.Helper()
	var program string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		// A name may belong to a script that only says where to get a browser.
		if path, err := exec.LookPath(name); err == nil && exec.Command(path, "--version").Run() == nil {
			program = path
			break
		}
	}
	if program == "" {
		if os.Getenv(browserVariable) == "required" {
			t.Fatalf("found no Chromium, which %s=required asks for: scripts/setup-chromium.sh installs it", browserVariable)
		}
		t.Skip("skipped: found no Chromium to show the page in; scripts/setup-chromium.sh installs it")
	}
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(html), 0o666); err != nil {
		t.Fatal(err)
	}
	// The limit is for a browser that hangs.
	limit, cancelLimit := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancelLimit)
	// A container's root can't have a sandbox, and the page is our own.
	ctx, cancel := chromedp.NewContext(limit,
		chromedp.WithAllocatorOptions(chromedp.ExecPath(program), chromedp.NoSandbox))
	t.Cleanup(cancel)
	b := &browser{T: t, ctx: ctx}
	err := chromedp.Listen(ctx, func(ev any) {
		if e, ok := ev.(*network.EventRequestWillBeSent); ok {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.requests = append(b.requests, e.Request.URL)
		}
	})
	if err != nil {
		t.Fatalf("%s does not start: %v", program, err)
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	console := chromedp.Console(ctx)
	go func() {
		for m, err := range console {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.messages = append(b.messages, m.String())
			b.mu.Unlock()
		}
	}()
	b.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate((&url.URL{Scheme: "file", Path: file}).String()))
	return b
}

// quiet checks that the page has fetched nothing but itself and has not complained.
func (b *browser) quiet() {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	pages := 0
	for _, r := range b.requests {
		switch {
		case strings.HasPrefix(r, "file://") && strings.HasSuffix(r, "/report.html"):
			pages++
		case !strings.HasPrefix(r, "data:font/"): // in the page itself
			b.Errorf("the page fetches %.200s", r)
		}
	}
	if pages != 1 {
		b.Errorf("the page was fetched %d times; requests are not seen", pages)
	}
	for _, m := range b.messages {
		b.Errorf("on the console: %s", m)
	}
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatal(err)
	}
}

// js evaluates an expression, to its end if it is a promise.
func js[T any](b *browser, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

func (b *browser) key(keys string) {
	b.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// choose sets a control as a user does.
func (b *browser) choose(id, value string) {
	b.Helper()
	js[any](b,
		fmt.Sprintf(
			`(() => { const e = document.getElementById(%q); e.value = %q; e.dispatchEvent(new Event("input", {bubbles: true})); e.dispatchEvent(new Event("change", {bubbles: true})); })()`, id, value))
}

// shot is a picture of an element.
func (b *browser) shot(selector string) image.Image {
	b.Helper()
	data, err := chromedp.Run(b.ctx, chromedp.Screenshot(chromedp.CSS(selector)))
	if err != nil {
		b.Fatal(err)
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		b.Fatal(err)
	}
	return img
}

// differing is the share of pixels that differ; pictures of other sizes do in all.
func differing(a, b image.Image) float64 {
	if a.Bounds() != b.Bounds() {
		return 1
	}
	n := 0
	r := a.Bounds()
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if a.At(x, y) != b.At(x, y) {
				n++
			}
		}
	}
	return float64(n) / float64(r.Dx()*r.Dy())
}

// changed checks that a picture is another one than before, and returns it.
func (b *browser) changed(what string, before image.Image) image.Image {
	b.Helper()
	after := b.shot("#viewer-canvas")
	if d := differing(before, after); d < 0.005 {
		b.Errorf("%s: %.2f %% of the pixels differ, want a visible change", what, 100*d)
	}
	return after
}

// state is what the viewer says of itself.
type state struct{ Configuration, Variant, Beside, From, To, Pinned, Row, Item string }

func (b *browser) state() state {
	b.Helper()
	return js[state](b, `({...document.getElementById("viewer-app").dataset})`)
}

func (s state) span(t *testing.T) float64 {
	t.Helper()
	var from, to float64
	if _, err := fmt.Sscan(s.From, &from); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscan(s.To, &to); err != nil {
		t.Fatal(err)
	}
	return to - from
}

func (b *browser) ready() {
	b.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS("#viewer-app[data-ready][data-variant]")))
}

func TestNumbersInBrowser(t *testing.T) {
	b := open(t, write(t, example(nil)))
	// The font of the figures is the page's own.
	if !js[bool](b,
		`document.fonts.ready.then(f => [...f].some(x => x.family.includes("Liberation Sans") && x.status === "loaded"))`) {
		t.Error("the font in the page is not used")
	}
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="#numbers"]`)), chromedp.WaitVisible(chromedp.CSS("#lines tbody tr")))
	shown := func() string {
		b.Helper()
		return js[string](b,
			`[...document.querySelectorAll("#lines tbody tr")].filter(r => r.offsetParent).map(r => r.cells[1].textContent).join("; ")`)
	}
	expect := func(what, want string) {
		b.Helper()
		if got := shown(); got != want {
			b.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	expect("at first", "throughput <b>; latency; order; none")
	b.choose("filter-experiment", "two")
	expect("one experiment", "order; none")
	if got := js[string](b, `document.getElementById("filter-count").textContent`); got != "2 of 4 lines" {
		t.Errorf("count is %q", got)
	}
	b.choose("filter-verdict", "as in the paper")
	expect("and one verdict", "order")
	b.do(chromedp.Click(chromedp.CSS("#filters button[type=reset]")))
	b.do(chromedp.WaitVisible(chromedp.CSS("#lines tbody tr:nth-child(4)")))
	expect("all again", "throughput <b>; latency; order; none")
	b.do(chromedp.Focus(chromedp.CSS("#filter-text")))
	b.key("MS not")
	expect("searched", "latency")
	// A print shows all rows.
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Media: "print"}); err != nil {
		t.Fatal(err)
	}
	expect("printed", "throughput <b>; latency; order; none")
	if js[bool](b, `document.getElementById("filters").offsetParent !== null`) {
		t.Error("the filters are printed")
	}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{}); err != nil {
		t.Fatal(err)
	}
	b.choose("filter-text", "")

	heading := `#lines th:nth-child(5) button`
	b.do(chromedp.Focus(chromedp.CSS(heading)))
	for _, c := range []struct{ sort, want string }{
		{"ascending", "none; latency; throughput <b>; order"}, {"descending", "throughput <b>; latency; none; order"},
		{"none", "throughput <b>; latency; order; none"},
	} {
		b.key(kb.Enter)
		expect("sorted "+c.sort, c.want)
		if got := js[string](b, `document.querySelector("#lines th:nth-child(5)").getAttribute("aria-sort")`); got != c.sort {
			t.Errorf("aria-sort is %q, want %q", got, c.sort)
		}
	}
	b.do(chromedp.Click(chromedp.CSS("#lines th:nth-child(8) button")))
	expect("sorted by verdict", "throughput <b>; latency; order; none")

	b.quiet()
}

// chapters checks that chapters are closed until a link leads into them.
func (b *browser) chapters() {
	b.Helper()
	open := func() string {
		b.Helper()
		return js[string](b,
			`[...document.querySelectorAll(".chapter")].filter(c => c.offsetParent).map(c => c.id + (c.querySelector(":scope > script:not([id])") ? " packed" : "")).join(" ")`)
	}
	follow := func(hash, wait, want string) {
		b.Helper()
		b.do(chromedp.Click(chromedp.CSS(fmt.Sprintf(`a[href="%s"]`, hash))), chromedp.WaitVisible(chromedp.CSS(wait)))
		js[any](b, `new Promise(done => requestAnimationFrame(() => done(1)))`)
		if got := open(); got != want {
			b.Errorf("behind %s: %q is open, want %q", hash, got, want)
		}
	}
	if got := open(); got != "brief" {
		b.Errorf("at first %q is open, want what is concluded", got)
	}
	follow("#one", "#one figure svg", "chapter-both") // a card's link to its experiment
	follow("#origin", "#origin table", "origin")
	if got := js[string](b, `document.querySelector("nav [aria-current]").textContent`); got != "Origin" {
		b.Errorf("the menu marks %q", got)
	}
	// The menu stays where the page is scrolled to.
	follow("#all", "#lines tbody tr", "brief viewer chapter-both numbers origin")
	if y := js[float64](b, `(scrollTo(0, 1e6), document.querySelector("nav.menu").getBoundingClientRect().top)`); y != 0 {
		b.Errorf("the menu is at %v of a scrolled page, want its top", y)
	}
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="#brief"]`)),
		chromedp.WaitVisible(chromedp.CSS(`body[data-chapter="brief"]`)))
	if got := open(); got != "brief" {
		b.Errorf("back again: %q is open", got)
	}
}

func TestViewerInBrowser(t *testing.T) {
	b := open(t, write(t, example(recordingExample(t))))
	b.chapters()
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="#viewer"]`)))
	b.ready()
	whole := b.state()
	if want := (state{"net", "fast", "middle", "0", "200000", "", "mme", "-1"}); whole != want {
		t.Fatalf("at first %+v, want %+v", whole, want)
	}
	picture := b.shot("#viewer-canvas")

	// Zooming, with buttons.
	b.do(chromedp.Click(chromedp.CSS("#viewer-in")))
	zoomed := b.state()
	if got, want := zoomed.span(t), whole.span(t)/2; got != want {
		t.Errorf("zoomed in to %v, want %v", got, want)
	}
	picture = b.changed("zoom in", picture)
	b.do(chromedp.Click(chromedp.CSS("#viewer-out")))
	if got := b.state(); got != whole {
		t.Errorf("zoomed out to %+v, want %+v", got, whole)
	}

	// Variants, by their controls and by keys.
	b.do(chromedp.Click(chromedp.CSS("#viewer-variants input[value='0']")))
	slow := b.state()
	if want := (state{"net", "slow", "", "0", "400000", "", "mme", "-1"}); slow != want {
		t.Errorf("first variant %+v, want %+v", slow, want)
	}
	if got := js[string](b, `document.querySelector("#viewer-table tr.shown td").textContent`); got != "slow" {
		t.Errorf("the table marks %q", got)
	}
	if got := js[string](b, `document.querySelector("#viewer-table tr.shown").cells[2].textContent + " ms, " +
		document.querySelector("#viewer-table tr.shown").cells[3].textContent`); got != "0.04049 ms, 308,642" {
		t.Errorf("the table has %q, want all digits", got)
	}
	picture = b.changed("another variant", picture)
	b.choose("viewer-beside", "2")
	if got := b.state(); got.Beside != "fast" {
		t.Errorf("beside it is %q", got.Beside)
	}
	picture = b.changed("two variants", picture)
	b.choose("viewer-beside", "previous")

	// Everything by keyboard.
	b.do(chromedp.Focus(chromedp.CSS("#viewer-canvas")))
	b.key("2")
	if got := b.state(); got.Variant != "middle" || got.Beside != "slow" {
		t.Errorf("key 2 gives %+v", got)
	}
	picture = b.changed("key 2", picture)
	b.key("++")
	near := b.state()
	if got := near.span(t); got != 100_000 {
		t.Errorf("keys + + give %v", got)
	}
	b.key(kb.ArrowLeft)
	left := b.state()
	if left.span(t) != 100_000 || left.From != "130000" {
		t.Errorf("the arrow gives %+v", left)
	}
	picture = b.changed("moved", picture)
	b.key(kb.ArrowRight)
	if got := b.state(); got != near {
		t.Errorf("back again %+v, want %+v", got, near)
	}
	b.key("-")
	if got := b.state().span(t); got != 200_000 {
		t.Errorf("key - gives %v", got)
	}
	b.key(kb.Home)
	if got := b.state(); got.span(t) != 400_000 {
		t.Errorf("Home gives %+v", got)
	}
	b.key(kb.ArrowDown)
	if got := b.state(); got.Row != "ddr.load" {
		t.Errorf("the row is %q", got.Row)
	}
	b.key("..")
	if got := b.state(); got.Item != "1" {
		t.Errorf("the item is %q", got.Item)
	}
	status := js[string](b, `document.getElementById("viewer-status").textContent`)
	if want := "second: load from the DDR (DDR → LLB); 1.953 KiB, 0.8 GB/s; 2.5 µs, from 5 µs to 7.5 µs."; status != want {
		t.Errorf("read aloud is %q, want %q", status, want)
	}
	b.key(kb.Enter)
	if got := b.state(); got.Pinned != "second" || got.span(t) != 12_500 {
		t.Errorf("Enter gives %+v", got)
	}
	picture = b.changed("pinned", picture)
	// A pinned operator stays in the picture when the variant changes.
	b.key("3")
	if got := b.state(); got.Pinned != "second" || got.Variant != "fast" {
		t.Errorf("pinned and switched: %+v", got)
	}
	picture = b.changed("pinned and switched", picture)
	b.key(kb.Escape)
	if got := b.state(); got.Pinned != "" {
		t.Errorf("Escape leaves %+v", got)
	}
	b.key("9x")
	if got := b.state(); got.Variant != "fast" {
		t.Errorf("key 9 gives %+v", got)
	}

	// Pointers.
	b.key(kb.Home)
	b.changed("all again", picture)
	box := js[struct{ X, Y float64 }](b,
		`(() => { const e = document.getElementById("viewer-canvas"); e.scrollIntoView(); const r = e.getBoundingClientRect(); return {x: r.x, y: r.y}; })()`)
	x, y := box.X+104+48, box.Y+24+22+9 // on the matrix unit of the first lane
	b.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y))
	tip := js[string](b,
		`document.getElementById("viewer-tip").hidden ? "" : document.getElementById("viewer-tip").innerText`)
	if !strings.Contains(tip, "matrix unit (MME)") || !strings.Contains(tip, "multiply-accumulates") ||
		!strings.Contains(tip, "µs") {
		t.Errorf("the tip says %q", tip)
	}
	b.do(chromedp.MouseClickXY(x, y))
	if got := b.state(); got.Pinned == "" || got.Row != "mme" {
		t.Errorf("a click gives %+v", got)
	}
	b.key(kb.Escape)

	// Controls.
	b.choose("viewer-find", "third")
	if got := b.state(); got.Pinned != "third" {
		t.Errorf("found %+v", got)
	}
	b.choose("viewer-find", "")
	b.key(kb.Home)
	picture = b.shot("#viewer-canvas")
	b.choose("viewer-colour", "kind")
	picture = b.changed("other colours", picture)
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}); err != nil {
		t.Fatal(err)
	}
	js[any](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))`)
	picture = b.changed("dark", picture)
	b.do(chromedp.Click(chromedp.CSS("#viewer-L1")))
	b.changed("without a memory", picture)
	b.choose("viewer-configuration", "1")
	if got := b.state(); got.Configuration != "other" || got.Variant != "slow" || got.span(t) != 50_000 {
		t.Errorf("another configuration: %+v", got)
	}
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="#all"]`)), chromedp.WaitVisible(chromedp.CSS("#origin details")))
	js[any](b,
		`addEventListener("beforeprint", () => { window.unfolded = document.querySelectorAll("details[open]").length; })`)
	pdf, err := chromedp.Run(b.ctx, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize()))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Errorf("a print begins with %.20q", pdf)
	}
	if n := js[int](b, `window.unfolded`); n != 2 {
		t.Errorf("a print unfolds %d of 2", n)
	}
	if js[bool](b, `[...document.querySelectorAll("details")].some(d => d.open)`) {
		t.Error("what a print unfolds stays open")
	}
	b.quiet()
}

// A page that can't show its recording says so, and the rest works.
func TestBadRecordingInBrowser(t *testing.T) {
	b := open(t, write(t, example([]byte(`{"schema": 7}`))))
	b.do(chromedp.Click(chromedp.CSS(`nav a[href="#all"]`)), chromedp.WaitVisible(chromedp.CSS("#lines tbody tr")))
	b.do(chromedp.WaitVisible(chromedp.CSS("#viewer-status:not(:empty)")))
	if got := js[string](b, `document.getElementById("viewer-status").textContent`); got !=
		"The viewer can't be shown: the recording has schema 7, expected 1." {
		t.Errorf("status %q", got)
	}
	b.choose("filter-experiment", "two")
	if got := js[string](b, `document.getElementById("filter-count").textContent`); got != "2 of 4 lines" {
		t.Errorf("count is %q", got)
	}
}

// scheduleExample is the page of two schedules of n commands each.
func scheduleExample(t *testing.T, n int) *Schedule {
	t.Helper()
	slow, fast := variantOf("slow", n/2, 400*n, []int{0, 0, 1, 1, 2}), variantOf("fast", n/2, 200*n, []int{0, 1, 2})
	for _, v := range []map[string]any{slow, fast} {
		v["groups"] = []string{"g0", "g1"}
		v["instances"] = map[string]any{"name": "instances", "title": "instances", "commands": 2, "gap_ticks": "0 10",
			"length_ticks": fmt.Sprintf("%d %d", 50*n, 50*n), "operator": "4 5",
			"group": "0 1", "kind": "0 0", "amount": "0 0", "critical": ""}
		v["queues"].([]any)[0].(map[string]any)["critical"] = "0 1 2"
	}
	data, err := json.Marshal(map[string]any{"schema": 1, "tick_ps": 1000,
		"configurations": []any{map[string]any{"name": "net", "title": "Net", "hardware": "chip", "batch": 4, "unit": "/s",
			"operators": []string{"first", "second", "third", "k0", "g0/0", "g1/0"}, "layers": 3,
			"variants": []any{slow, fast}}}})
	if err != nil {
		t.Fatal(err)
	}
	return &Schedule{Title: "Net <on> chip", Preface: []string{"A note."},
		Facts: []Fact{{"latency", "2", "ms", "at <least> 1 ms"}}, Recording: data, ByGroup: true,
		Sections: []Section{
			{ID: "path", Title: "Path", Parts: []Part{{Title: "By kind", Shares: []Share{{"matrix", "1 ms, 50 %", 0.5}},
				Table: &Table{Columns: []string{"A"}, Rows: [][]string{{"x<y"}}}}}},
			{ID: "groups", Title: "Groups", Parts: []Part{{Folded: []Folded{{11, "g11: the <last>", []string{"because"}}}}}},
			{ID: "graph", Title: "Graph", Parts: []Part{
				{Graph: &Graph{Title: "net", Nodes: []Node{{"first", "first (Conv)", "first", 0, "g0"},
					{"second", "second (Add)", "second", 1, "g1"}, {"third", "<third>", "third", 1, "g1"}},
					Edges: [][2]int{{0, 1}, {1, 2}, {0, 2}}}}}},
		}}
}

// A page of a hundred thousand commands is drawn, zoomed and moved over, in light and dark,
// on a desk and on a phone.
func TestScheduleInBrowser(t *testing.T) {
	var html bytes.Buffer
	if err := WriteSchedule(&html, scheduleExample(t, 100_000)); err != nil {
		t.Fatal(err)
	}
	b := open(t, html.String())
	b.ready()
	t.Logf("a page of 2 x 100,000 commands (%.2f MB) is drawn %s ms after its beginning", float64(html.Len())/1e6,
		js[string](b, `document.getElementById("viewer-app").dataset.ready`))
	if got := b.state(); got.Variant != "fast" || got.Beside != "slow" || got.Row != "mme" {
		t.Errorf("at first %+v", got)
	}
	picture := b.shot("#viewer-canvas")
	whole := b.state().span(t)
	b.do(chromedp.Focus(chromedp.CSS("#viewer-canvas")))
	for range 9 {
		b.key("+")
	}
	if got := b.state().span(t); got != whole/512 {
		t.Errorf("nine times zoomed in to %v of %v", got, whole)
	}
	picture = b.changed("zoomed in", picture)
	b.key(kb.Home)
	b.key(kb.ArrowRight + "++")
	b.key(kb.ArrowRight)
	picture = b.changed("moved", picture)
	b.choose("viewer-colour", "kind")
	picture = b.changed("by kind", picture)
	b.choose("viewer-colour", "group")
	// The critical path is a line below its commands, at the very beginning here.
	b.key(kb.Home)
	for range 13 {
		b.do(chromedp.Click(chromedp.CSS("#viewer-in")), chromedp.Focus(chromedp.CSS("#viewer-canvas")))
		b.key(kb.ArrowLeft + kb.ArrowLeft + kb.ArrowLeft)
	}
	marked := b.shot("#viewer-canvas")
	b.do(chromedp.Click(chromedp.CSS("#viewer-critical")))
	if d := differing(marked, b.shot("#viewer-canvas")); d == 0 {
		t.Error("without the critical path the picture is the same")
	}
	b.do(chromedp.Focus(chromedp.CSS("#viewer-canvas")))
	b.key("." + kb.Enter)
	if got := js[string](b, `document.getElementById("viewer-status").textContent`); !strings.Contains(got, "group g0") ||
		!strings.Contains(got, "on the critical path") {
		t.Errorf("read aloud is %q", got)
	}
	b.key(kb.Escape)
	// A node of the graph is looked at in the timeline.
	b.do(chromedp.Click(chromedp.CSS(`[data-operator="third"] rect`)))
	if got := b.state(); got.Pinned != "third" {
		t.Errorf("a click on a node pins %q", got.Pinned)
	}
	for _, width := range []int64{390, 1600} {
		for _, scheme := range []string{"light", "dark"} {
			if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}); err != nil {
				t.Fatal(err)
			}
			b.do(chromedp.EmulateViewport(width, 900))
			js[any](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))`)
			if over := js[float64](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%d pixels wide, %s: the page is %v pixels too wide", width, scheme, over)
			}
			if over := js[float64](b, `Math.max(...[...document.querySelectorAll("caption")].map(c =>
				c.getBoundingClientRect().right)) - innerWidth`); over > 0 {
				t.Errorf("%d pixels wide, %s: a caption is cut by %v pixels", width, scheme, over)
			}
			picture = b.changed(fmt.Sprint(width, scheme), picture)
		}
	}
	b.quiet()
}
