// Package certificate writes and checks certificates: a schedule with its simulated time and
// the bound that no schedule beats, in a file that anyone can check.
//
// [Check] trusts nothing in the file. It opens network and accelerator anew, computes the
// bound from these alone (formulation/bound, which shares nothing with any search), checks
// and simulates the schedule, and refuses what differs, field by field.
package certificate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dsasched/dsasched/formulation/bound"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/internal/strict"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
	"github.com/dsasched/dsasched/model/schedulefile"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// Kind and Version are the first two fields of each file. The version changes with the bound.
const (
	Kind    = "dsasched-certificate"
	Version = 8
)

// maxBytes bounds the text of a certificate, which has about a kilobyte for an operator: ten times as much takes
// a minute to read.
const maxBytes = 16 << 20

// A File is a certificate. Gap is latency over bound, less 1.
type File struct {
	Kind     string                `json:"kind"`
	Version  int                   `json:"version"`
	Network  Network               `json:"network"`
	Hardware schedulefile.Hardware `json:"hardware"`
	Batch    int64                 `json:"batch"`

	ThroughputPerSecond   float64 `json:"throughput_per_s"`
	LatencySeconds        float64 `json:"latency_s"`
	CertifiedBoundSeconds float64 `json:"certified_lower_bound_s"`
	Gap                   float64 `json:"gap"`
	// GreedyThroughputPerSecond is the throughput of variant cross-layer with default options at
	// its best chunk; it is left out where that fails or was not reached.
	GreedyThroughputPerSecond *float64 `json:"greedy_throughput_per_s,omitempty"`

	Bound    bound.Bound       `json:"bound"`
	Proof    Proof             `json:"proof"`
	Schedule schedulefile.File `json:"schedule"`
}

// A Proof has what the bound is computed from, so that another program can (scripts/check_certificate.py).
type Proof struct {
	Witness bound.Witness `json:"witness"`
	// Machine is the accelerator as the decisions see it (hardware.Raise).
	Machine hardware.Spec `json:"machine"`
	// Fast is Machine with estimates at their fast ends, of which the bound is (hardware.Spec.Fast).
	Fast            hardware.Spec `json:"fast"`
	FastFingerprint string        `json:"fast_fingerprint"`
	Graphs          []Graph       `json:"graphs"`
}

// A Graph is the network at a number of batch elements.
type Graph struct {
	Batch int64              `json:"batch"`
	Graph schedulefile.Graph `json:"graph"`
}

// Prove bounds a network's batch, and says from what.
func Prove(ctx context.Context, net network.Network, spec *hardware.Spec, batch int64) (*bound.Bound, *Proof, error) {
	b, w, err := bound.Prove(ctx, net, spec, batch)
	if err != nil {
		return nil, nil, err
	}
	p := &Proof{Witness: *w, Machine: *spec, Fast: *spec.Fast()}
	p.Machine.Description, p.Fast.Description = "", ""
	p.FastFingerprint = schedulefile.Fingerprint(&p.Fast)
	for _, n := range w.Sizes() {
		g, err := net.Graph(n)
		if err != nil {
			return nil, nil, err
		}
		p.Graphs = append(p.Graphs, Graph{n, schedulefile.NewGraph(g)})
	}
	return b, p, nil
}

// Network has the source and options that open the network.
type Network struct {
	Model        string      `json:"model"`
	DType        string      `json:"dtype"`
	Grain        string      `json:"grain"`
	Dims         []Dimension `json:"dims"`
	AllowUnknown bool        `json:"allow_unknown"`
	// See Form.
	AttentionFused bool    `json:"attention_fused,omitempty"`
	Slices         []int64 `json:"slices,omitempty"`
	// Fingerprint is of the network at batch 1; see schedulefile.GraphFingerprint.
	Fingerprint string `json:"fingerprint"`
}

// A Form says how a schedule changes a network's graph.
type Form struct {
	// AttentionFused: each attention is one operator (network.FuseAttention), in the schedule as in the bound.
	AttentionFused bool `json:"attention_fused"`
	// Slices has the number of slices of each feed-forward (network.Slice); empty: none is cut.
	Slices []int64 `json:"slices,omitempty"`
}

// of is the network in this form.
func (f *Form) of(net network.Network) network.Network {
	if f.AttentionFused {
		net = network.FuseAttention(net)
	}
	return network.Slice(net, f.Slices)
}

// Text names a form; "": it is the network's own.
func (f *Form) Text() string {
	var list []string
	if f.AttentionFused {
		list = append(list, "each attention one operator")
	}
	if len(f.Slices) > 0 {
		list = append(list, fmt.Sprintf("feed-forwards in up to %d slices", slices.Max(f.Slices)))
	}
	return strings.Join(list, ", ")
}

// Dimension is the size of a symbolic dimension of an ONNX file.
type Dimension struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// New certifies a result of a network that was opened as name with the options from.
// greedy is cross-layer's throughput, nil if it fails.
func New(ctx context.Context, name string, from network.Options, r *scheduler.Result, greedy *float64) (*File, error) {
	if r.Lower.Cost != nil {
		return nil, errors.New("certificate: the schedule has operator costs of its own, which the bound does not cover")
	}
	if r.Spec.Mixed() {
		return nil, fmt.Errorf("certificate: %s has cores of several kinds, which its check does not know", r.Spec.Name)
	}
	net, err := network.Open(name, from)
	if err != nil {
		return nil, err
	}
	net, form, err := GraphOf(net, r)
	if err != nil {
		return nil, err
	}
	g, err := net.Graph(1)
	if err != nil {
		return nil, err
	}
	b, proof, err := Prove(ctx, net, r.Spec, r.Batch)
	if err != nil {
		return nil, err
	}
	if err := cmp.Or(Covers(r), b.Check(r.LatencySeconds())); err != nil {
		return nil, err
	}
	f := &File{Kind: Kind, Version: Version, Batch: r.Batch, Bound: *b, Proof: *proof, GreedyThroughputPerSecond: greedy,
		Network: Network{Model: name, DType: from.DType.String(), Grain: string(cmp.Or(from.Grain, grain.Given)),
			Dims: []Dimension{}, AllowUnknown: from.AllowUnknown,
			AttentionFused: form.AttentionFused, Slices: form.Slices,
			Fingerprint: schedulefile.GraphFingerprint(g)},
		ThroughputPerSecond: r.ThroughputPerSecond(), LatencySeconds: r.LatencySeconds(), CertifiedBoundSeconds: b.Seconds,
		Gap: b.Gap(r.LatencySeconds()),
		Schedule: *r.File(schedulefile.Origin{MadeBy: "dsasched", Model: name, DType: from.DType.String(),
			Grain: string(from.Grain)})}
	f.Hardware = f.Schedule.Hardware
	for n, size := range from.Dims {
		f.Network.Dims = append(f.Network.Dims, Dimension{n, size})
	}
	slices.SortFunc(f.Network.Dims, func(a, b Dimension) int { return cmp.Compare(a.Name, b.Name) })
	return f, nil
}

// GraphOf is the network as a schedule has it: as it is, or with each attention as one operator, and then with
// feed-forwards in slices or not. Of other graphs, of which parts were taken apart, no bound is known.
func GraphOf(net network.Network, r *scheduler.Result) (of network.Network, form Form, err error) {
	fused := network.FuseAttention(net)
	g, err := fused.Graph(r.Chunk)
	if err != nil {
		return net, form, err
	}
	forms := []Form{{}, {AttentionFused: true}}
	if parts := scheduler.SlicesOf(g, r.Spec); parts != nil {
		has, err := network.HasAttention(net)
		if err != nil {
			return net, form, err
		}
		forms = append(forms, Form{has, parts})
	}
	for _, form := range forms {
		of, same := form.of(net), true
		for s, size := range r.Sizes() {
			g, err := of.Graph(size)
			if err != nil {
				return of, form, err
			}
			same = same && schedulefile.GraphFingerprint(g) == schedulefile.GraphFingerprint(s.Graph)
		}
		if same {
			return of, form, nil
		}
	}
	return net, form, errors.New("running sums or group normalisations run in parts, or feed-forwards of chunks of " +
		"several sizes in slices, of which no bound is known")
}

// Bounds are the bound of a network and, where it has attention, that with each attention as one operator.
func Bounds(ctx context.Context, net network.Network, spec *hardware.Spec, batch int64) (given,
	fused *bound.Bound, err error) {
	if given, err = bound.Cold(ctx, net, spec, batch); err != nil {
		return nil, nil, err
	}
	has, err := network.HasAttention(net)
	if err == nil && has {
		fused, err = bound.Cold(ctx, network.FuseAttention(net), spec, batch)
	}
	return given, fused, err
}

// Write returns the file as text; the same certificate gives the same bytes.
func (f *File) Write() ([]byte, error) {
	data, err := schedulefile.Encode(f)
	if len(data) > maxBytes {
		return nil, fmt.Errorf("certificate: found %d bytes, expected at most %d: the network has too many operators",
			len(data), maxBytes)
	}
	return data, err
}

// Load reads a certificate. Errors in it are of type [*schedulefile.InputError].
func Load(path string) (*File, error) {
	data, err := safefile.ReadAtMost(path, maxBytes)
	if err != nil {
		return nil, err
	}
	return Read(path, data)
}

// Read is Load of the text of a file; path is for errors.
func Read(path string, data []byte) (*File, error) {
	// Of another kind or version, the other fields may be anything.
	head := struct {
		Kind    string
		Version int
	}{Kind, Version}
	if json.Unmarshal(data, &head) == nil {
		if err := cmp.Or(differs(path, "kind", head.Kind, Kind),
			differs(path, "version", head.Version, Version)); err != nil {
			return nil, err
		}
	}
	f := &File{}
	if err := schedulefile.Decode(path, data, f); err != nil {
		return nil, err
	}
	inner, err := f.Schedule.Write()
	if err != nil {
		return nil, err
	}
	_, err = schedulefile.Read(path+": schedule", inner)
	return f, err
}

// differs is an error if a field is not what it must be.
func differs[T comparable](path, field string, found, expected T) error {
	if found == expected {
		return nil
	}
	return &schedulefile.InputError{File: path, Field: field, Found: text(found), Expected: text(expected)}
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return strict.Quote(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

// A Verdict is the answer of a certificate's check, and of `dsasched certify`. All of it was computed anew.
type Verdict struct {
	File  string `json:"file"`
	Model string `json:"model"`
	// Type, grain and symbolic dimensions that the network was opened with.
	DType string      `json:"dtype"`
	Grain string      `json:"grain"`
	Dims  []Dimension `json:"dims"`
	Form
	NetworkFingerprint string `json:"network_fingerprint"`
	Hardware           string `json:"hardware"`
	HardwareFile       string `json:"hardware_file,omitempty"` // "": it is built in
	// HardwareFingerprint is of the description; see schedulefile.Fingerprint.
	HardwareFingerprint string `json:"hardware_fingerprint"`
	// Level is the memory that is filled with instances, Chunks the batch elements of each schedule.
	Level  string  `json:"level"`
	Chunks []int64 `json:"chunks"`
	// Scope says which schedules the bound is of.
	Scope string `json:"scope"`
	// Estimates are the figures of the machine that the bound has at their fast ends.
	Estimates []string `json:"estimates"`

	Batch                     int64    `json:"batch"`
	ThroughputPerSecond       float64  `json:"throughput_per_s"`
	LatencySeconds            float64  `json:"latency_s"`
	CertifiedBoundSeconds     float64  `json:"certified_lower_bound_s"`
	Gap                       float64  `json:"gap"`
	GreedyThroughputPerSecond *float64 `json:"greedy_throughput_per_s"`
	// Term and Resource say what bounds; LimitedBy, what the schedule itself waits for most.
	Term      string       `json:"term"`
	Resource  string       `json:"resource"`
	LimitedBy string       `json:"limited_by"`
	Parts     []bound.Part `json:"parts"` // of the bound
	Terms     []bound.Term `json:"terms"`
}

// Check judges a certificate that was read from path, on the accelerator of that name or file, or
// "" for the built-in one that it names, with the network of that name, or "" likewise.
func (f *File) Check(ctx context.Context, path, accelerator, name string) (*Verdict, error) {
	if accelerator == "" && !slices.Contains(hardware.Presets(), f.Hardware.Name) {
		return nil, &schedulefile.InputError{File: path, Field: "hardware.name", Found: text(f.Hardware.Name),
			Expected: "a built-in accelerator, or --hardware with its file"}
	}
	spec, err := hardware.Load(cmp.Or(accelerator, f.Hardware.Name))
	if err != nil {
		return nil, fmt.Errorf("%s: hardware.name: %w", path, err)
	}
	if err := cmp.Or(differs(path, "hardware.fingerprint", f.Hardware.Fingerprint, schedulefile.Fingerprint(spec)),
		differs(path, "schedule.hardware", f.Schedule.Hardware, f.Hardware)); err != nil {
		return nil, err
	}
	given, err := f.Network.open(path, name)
	if err != nil {
		return nil, err
	}
	form := Form{f.Network.AttentionFused, f.Network.Slices}
	net := form.of(given)
	g, err := net.Graph(1)
	if err != nil {
		return nil, fmt.Errorf("%s: network.slices: %w", path, err)
	}
	if err := differs(path, "network.fingerprint", f.Network.Fingerprint, schedulefile.GraphFingerprint(g)); err != nil {
		return nil, err
	}
	machine, err := scheduler.MachineOf(&f.Schedule, spec)
	if err != nil {
		return nil, fmt.Errorf("%s: hardware.level: %w", path, err)
	}
	b, proof, err := Prove(ctx, net, machine, f.Batch)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := cmp.Or(sameBound(path, &f.Bound, b),
		differs(path, "certified_lower_bound_s", f.CertifiedBoundSeconds, b.Seconds),
		sameProof(path, &f.Proof, proof)); err != nil {
		return nil, err
	}
	r, err := f.simulate(ctx, path, spec, net)
	if err != nil {
		return nil, err
	}
	if err := b.Check(r.LatencySeconds()); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	v := &Verdict{File: path, Model: cmp.Or(name, f.Network.Model), DType: f.Network.DType, Grain: f.Network.Grain,
		Dims: f.Network.Dims, Form: form, NetworkFingerprint: f.Network.Fingerprint,
		Hardware: spec.Name, HardwareFingerprint: f.Hardware.Fingerprint, Level: f.Hardware.Level, Scope: b.Scope,
		Estimates: b.Estimates, Batch: f.Batch, ThroughputPerSecond: r.ThroughputPerSecond(),
		LatencySeconds: r.LatencySeconds(), CertifiedBoundSeconds: b.Seconds, Gap: b.Gap(r.LatencySeconds()),
		Term: b.Term, Resource: b.Resource, Terms: b.Terms, Parts: b.Parts, LimitedBy: r.LimitText()}
	if !slices.Contains(hardware.Presets(), accelerator) {
		v.HardwareFile = accelerator
	}
	for i := range f.Schedule.Schedules {
		v.Chunks = append(v.Chunks, f.Schedule.Schedules[i].Batch)
	}
	if err := cmp.Or(differs(path, "latency_s", f.LatencySeconds, v.LatencySeconds),
		differs(path, "throughput_per_s", f.ThroughputPerSecond, v.ThroughputPerSecond),
		differs(path, "gap", f.Gap, v.Gap)); err != nil {
		return nil, err
	}
	if f.GreedyThroughputPerSecond == nil {
		return v, nil
	}
	if v.GreedyThroughputPerSecond, err = greedy(ctx, given, spec, f.Batch); err != nil {
		return nil, err
	}
	return v, differs(path, "greedy_throughput_per_s", value(f.GreedyThroughputPerSecond),
		value(v.GreedyThroughputPerSecond))
}

// value is 0 for nothing.
func value(p *float64) float64 {
	if p == nil {
		return 0
	}
	return *p
}

func greedy(ctx context.Context, net network.Network, spec *hardware.Spec, batch int64) (*float64, error) {
	recipe, err := recipes.Lookup("cross-layer")
	if err != nil {
		return nil, err
	}
	r, err := scheduler.Run(ctx, net, spec, batch, recipe, scheduler.Options{})
	if err != nil {
		return nil, ctx.Err() // nothing to compare with, unless interrupted
	}
	t := r.ThroughputPerSecond()
	return &t, nil
}

// open finds the network, under another name if one is given.
func (n *Network) open(path, name string) (network.Network, error) {
	dtype, err := model.ParseDType(n.DType)
	if err != nil {
		return network.Network{}, fmt.Errorf("%s: network.dtype: %w", path, err)
	}
	parts, err := grain.Parse(n.Grain)
	if err != nil {
		return network.Network{}, fmt.Errorf("%s: network.grain: %w", path, err)
	}
	from := network.Options{DType: dtype, Grain: parts, AllowUnknown: n.AllowUnknown, Dims: map[string]int64{},
		Warn: func(string) {}}
	for _, d := range n.Dims {
		from.Dims[d.Name] = d.Size
	}
	net, err := network.Open(cmp.Or(name, n.Model), from)
	if err != nil {
		err = fmt.Errorf("%s: network.model: %w", path, err)
	}
	return net, err
}

// sameBound compares a bound with that computed anew.
func sameBound(path string, found, expected *bound.Bound) error {
	if err := differs(path, "bound.terms", len(found.Terms), len(expected.Terms)); err != nil {
		return err
	}
	for k, t := range found.Terms {
		if err := differs(path, fmt.Sprintf("bound.terms[%d]", k), t, expected.Terms[k]); err != nil {
			return err
		}
	}
	a, b := *found, *expected
	a.Terms, a.Shares, a.Estimates, b.Terms, b.Shares, b.Estimates = nil, nil, nil, nil, nil, nil // compared
	return cmp.Or(differs(path, "bound.shares", len(found.Shares), len(expected.Shares)),
		differs(path, "bound.estimates", fmt.Sprintf("%q", found.Estimates), fmt.Sprintf("%q", expected.Estimates)),
		differs(path, "bound.shares", fmt.Sprint(found.Shares), fmt.Sprint(expected.Shares)),
		differs(path, "bound", fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b)))
}

// sameProof compares what a bound is computed from, as text.
func sameProof(path string, found, expected *Proof) error {
	for _, x := range []struct {
		field           string
		found, expected any
	}{
		{"proof.witness", found.Witness, expected.Witness}, {"proof.machine", found.Machine, expected.Machine},
		{"proof.fast", found.Fast, expected.Fast},
		{"proof.fast_fingerprint", found.FastFingerprint, expected.FastFingerprint},
		{"proof.graphs", found.Graphs, expected.Graphs},
	} {
		a, err := schedulefile.Encode(x.found)
		if err != nil {
			return err
		}
		b, err := schedulefile.Encode(x.expected)
		if err != nil {
			return err
		}
		k := 0
		for k < min(len(a), len(b)) && a[k] == b[k] {
			k++
		}
		part := func(s []byte) string { return strings.TrimSpace(string(s[max(0, k-20):min(len(s), k+20)])) }
		if !bytes.Equal(a, b) {
			return differs(path, x.field, part(a), part(b))
		}
	}
	return nil
}

// simulate checks the schedule, that it is of the network, and simulates it.
func (f *File) simulate(ctx context.Context, path string, spec *hardware.Spec, net network.Network) (
	*scheduler.Result, error) {
	if err := differs(path, "schedule.batch", f.Schedule.Batch, f.Batch); err != nil {
		return nil, err
	}
	r, err := scheduler.Restore(ctx, &f.Schedule, spec)
	var bad *scheduler.ViolationsError
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("%s: the schedule breaks a rule: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: schedule: %w", path, err)
	}
	if err := Covers(r); err != nil {
		return nil, fmt.Errorf("%s: schedule: %w", path, err)
	}
	for i := range f.Schedule.Schedules {
		p := &f.Schedule.Schedules[i]
		g, err := net.Graph(p.Batch)
		if err != nil {
			return nil, err
		}
		if err := differs(path, fmt.Sprintf("schedule.schedules[%d].graph", i), p.Graph.Fingerprint(),
			schedulefile.GraphFingerprint(g)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// BoundOf is the bound that holds for a schedule of a network: given or, with each attention as one operator, fused;
// that of the graph in slices, or of any form if that is larger; or, of other layers or of a graph taken apart, that of
// any form; of uneven shares of the batch, that of any division.
func BoundOf(ctx context.Context, net network.Network, r *scheduler.Result, given, fused *bound.Bound) (
	b *bound.Bound, form Form, err error) {
	if uneven(r) != nil && wholeInputs(r) == nil {
		seconds, err := bound.AnyDivision(ctx, net, r.Spec, r.Batch)
		return &bound.Bound{Scope: "any division of the batch or the network over one chip's clusters, any fusion",
				Batch: r.Batch, Shares: r.Shares, Seconds: seconds, Term: "any division", Resource: "units or DDR bandwidth"},
			form, err
	}
	if err := sameEverywhere(r); err != nil {
		return nil, form, err
	}
	of, form, apart := GraphOf(net, r)
	switch {
	case cmp.Or(apart, lines(r)) != nil:
		b, err = bound.AnyForm(ctx, net, r.Spec, r.Batch)
	case form.Slices != nil:
		if b, err = bound.Cold(ctx, of, r.Spec, r.Batch); err != nil {
			break
		}
		// Slices load an operand each, so that the bound of their graph may be below that of any.
		var forms *bound.Bound
		if forms, err = bound.AnyForm(ctx, net, r.Spec, r.Batch); err == nil && forms.Seconds > b.Seconds {
			b = forms
		}
	case form.AttentionFused:
		b = fused
	default:
		b = given
	}
	return b, form, err
}

// Covers reports what a certificate's bound does not hold for: batches that are not divided evenly, clusters that do
// different things with as much of it, units that begin on parts of results, and layers other than a straight line of
// operators with a heavy one at most in front.
func Covers(r *scheduler.Result) error { return cmp.Or(sameEverywhere(r), lines(r)) }

// lines reports a layer of another form.
func lines(r *scheduler.Result) error {
	for _, plan := range r.Plans {
		for _, seg := range plan {
			if err := bound.Covers(seg.Schedule); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameEverywhere reports what no bound here holds for: uneven shares, clusters that differ, units on parts of results.
func sameEverywhere(r *scheduler.Result) error {
	if err := cmp.Or(uneven(r), wholeInputs(r)); err != nil {
		return err
	}
	for k, plan := range r.Plans {
		for i := range k {
			if r.Shares[i] == r.Shares[k] && !slices.Equal(r.Plans[i], plan) {
				return fmt.Errorf(
					"clusters: found different schedules for clusters %d and %d with %d batch elements each, expected the same, for which the bound holds", i, k, r.Shares[k])
			}
		}
	}
	return nil
}

// uneven reports a batch that is not divided evenly, for which only the bound of any division holds.
func uneven(r *scheduler.Result) error {
	even, shares := schedule.Shares(r.Batch, r.Spec.Clusters), slices.Clone(r.Shares)
	slices.SortFunc(shares, func(a, b int64) int { return cmp.Compare(b, a) })
	if slices.Equal(shares, even) {
		return nil
	}
	return fmt.Errorf("clusters: found shares %v, expected %v, for which the bound holds", r.Shares, even)
}

// wholeInputs reports units on parts of results.
func wholeInputs(r *scheduler.Result) error {
	if !r.Lower.CrossUnits {
		return nil
	}
	return errors.New("issue: found cross-unit, expected a layer's work to wait for all of its inputs, for which the bound holds")
}
