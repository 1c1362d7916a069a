package cli

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsasched/dsasched/experiments/harness"
	"github.com/dsasched/dsasched/formulation/milp"
	"github.com/dsasched/dsasched/formulation/solve"
	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/hardware/chips"
	"github.com/dsasched/dsasched/internal/safefile"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/zoo"
	"github.com/dsasched/dsasched/systems/llm"
	"github.com/dsasched/dsasched/systems/llm/serving"
)

func init() {
	addOfSystem("", newServe)
	addOfSystem("export", newExportTrace)
}

// serveJSON is the answer of 'dsasched serve'.
type serveJSON struct {
	Trace       string           `json:"trace"`
	Model       string           `json:"model"`
	Hardware    string           `json:"hardware"`
	Chips       int64            `json:"chips"`
	CacheTokens int64            `json:"cache_tokens"` // that there is room for
	Limits      serving.Limits   `json:"limits"`
	Policies    []serving.Result `json:"policies"`
	// Bound is on the mean time from arrival to last token of every plan.
	Bound float64   `json:"latency_mean_bound_s"`
	Best  *planJSON `json:"best,omitempty"`
}

type planJSON struct {
	Status  milp.Status    `json:"status"`
	Stop    milp.Stop      `json:"stop"`
	Latency float64        `json:"latency_mean_s"`
	Bound   float64        `json:"bound_s"`
	Policy  string         `json:"best_policy"`
	States  int64          `json:"states"`
	Steps   []planStepJSON `json:"plan"`
}

type planStepJSON struct {
	Start float64        `json:"start_s"`
	Parts []serving.Part `json:"serves"`
}

// maxTrace is of a trace of serving.MaxRequests.
const maxTrace = serving.MaxRequests * 32

func newServe() *cobra.Command {
	cmd := command("serve")
	cmd.Args = oneArg("TRACE.csv", "give the path of a trace, such as 'dsasched export trace' writes")
	cmd.ValidArgsFunction = completeFile("csv")
	quiet, tables := addQuiet(cmd), addTables(cmd)
	decoder := &choice{value: zoo.Decoders()[0], kind: "DECODER", words: zoo.Decoders()}
	addChoice(cmd, decoder, "model", "decoder: "+strings.Join(decoder.words, ", "))
	dtype := addNumbers(cmd)
	machine := cmd.Flags().String("hardware", "stcp920", "built-in accelerator, machine of several chips, or YAML `file`")
	completeFlag(cmd, "hardware", cobra.FixedCompletions(append(hardware.Presets(), chips.Presets()...),
		cobra.ShellCompDirectiveDefault))
	flags := chipFlags{machine, addScheduler(cmd, "the parts")}
	policy := &choice{kind: "POLICY", words: harness.Each(serving.Policies(), func(p serving.Policy) cobra.Completion {
		return cobra.CompletionWithDesc(p.Name, p.Description)
	})}
	addChoice(cmd, policy, "policy", "policy: "+strings.Join(plain(policy.words), ", ")+" (default: each)")
	batch := addNumber(cmd, "batch", 32, 1, "requests at a time")
	tokens := addNumber(cmd, "step-tokens", 2048, 1, "tokens of a step, unless it has one prompt only")
	chunk := addNumber(cmd, "chunk", 512, 1, "tokens of a step under the policy chunked")
	grain := addNumber(cmd, "grain", 64, 1, "pieces of prompts are multiples of so many tokens")
	exact := cmd.Flags().Bool("exact", false, fmt.Sprintf("search for the best plan; of a trace of at most %d requests",
		serving.MaxExact))
	limit := addLimit(cmd, time.Minute, "time for the best plan, such as 10s; 0: no limit")
	limit.orNever = true
	read := cmd.Flags().String("times", "", "`file` of -o with the times of steps; nothing is simulated")
	out := addFile(cmd, "o out", "`file` to write the times of steps to")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *read != "" {
			for _, name := range []string{"model", "dtype", "hardware", "variant", "out"} {
				if cmd.Flags().Changed(name) {
					return usagef("--times and --%s exclude each other: the times are those of the file", name)
				}
			}
		}
		data := try(safefile.ReadAtMost(args[0], maxTrace))
		p := &serving.Problem{Limits: serving.Limits{Batch: batch.value, Tokens: tokens.value, Chunk: chunk.value,
			Grain: grain.value}}
		p.Requests = try(serving.ReadTrace(args[0], data))
		if *exact && len(p.Requests) > serving.MaxExact {
			return usagef("--exact takes traces of at most %d requests, %s has %d", serving.MaxExact, args[0], len(p.Requests))
		}
		if err := p.Limits.Check(); err != nil {
			return usageError{err}
		}
		show := newStatus(cmd, *quiet)
		defer show.end()
		if *read != "" {
			data := try(safefile.Read(*read))
			p.Times = try(serving.ReadTimes(*read, data))
		} else {
			spec, recipe := try2(flags.open())
			t := try(model.ParseDType(dtype.value))
			var err error
			if p.Times, err = llm.ServingTimes(cmd.Context(), decoder.value, t, spec, recipe, p.Requests, p.Limits,
				show.parts()); err != nil {
				return ofTrace(args[0], err)
			}
		}
		if err := p.Check(); err != nil {
			if bad := new(serving.RequestError); *read != "" && !errors.As(err, &bad) {
				return fmt.Errorf("%s: %w", *read, err)
			}
			return ofTrace(args[0], err)
		}
		a := &serveJSON{Trace: args[0], Model: p.Times.Model, Hardware: p.Times.Hardware, Chips: p.Times.Chips,
			CacheTokens: p.Times.CacheTokens, Limits: p.Limits}
		for _, one := range serving.Policies() {
			if policy.value != "" && one.Name != policy.value {
				continue
			}
			r := try(serving.Simulate(cmd.Context(), p, one))
			a.Policies = append(a.Policies, *r)
		}
		a.Bound = try(serving.Bound(p))
		if *exact {
			plan := try(serving.Best(cmd.Context(), p, solve.Options[[]serving.Step]{TimeLimit: limit.value}))
			a.Best = &planJSON{plan.Status, plan.Stop, plan.Objective, plan.Bound, plan.Policy, plan.States, []planStepJSON{}}
			for _, s := range plan.Steps {
				a.Best.Steps = append(a.Best.Steps, planStepJSON{float64(s.Start) * 1e-12, s.Parts})
			}
		}
		show.end()
		unwritten := out.writeJSON(p.Times, " ")
		align, header, rows := a.table()
		unwritten = errors.Join(unwritten, tables.write(tableOf("serve", a.heading(), align, header, rows,
			[]string{"TTFT: time to the first token; TPOT: time per further token; latency: from arrival to the last token; " +
				"medians, and 99 % of the requests; batch: mean requests of a step; cache: most of the room in use", a.bound()}),
			cmd.Name()))
		return finish(cmd, a, a.write, unwritten)
	}
	return cmd
}

// ofTrace names the trace in errors that are about its requests.
func ofTrace(trace string, err error) error {
	if bad := new(serving.RequestError); errors.As(err, &bad) {
		return fmt.Errorf("%s: %w", trace, err)
	}
	return err
}

// parts shows how many parts of steps are simulated.
func (s *status) parts() func(done, of int) {
	if s == nil {
		return nil
	}
	return func(done, of int) {
		s.show(func(time.Duration) string { return fmt.Sprintf("%d of %d sizes simulated", done, of) })
	}
}

func (a *serveJSON) heading() string {
	return fmt.Sprintf("%s on %s of %s: %s of %s", a.Model, plural(int(a.Chips), "chip"), a.Hardware,
		plural(int(a.Policies[0].Requests), "request"), a.Trace)
}

func (a *serveJSON) bound() string {
	least := a.Bound
	if a.Best != nil {
		least = max(least, a.Best.Bound)
	}
	return fmt.Sprintf("no plan has a mean latency of less than %s", duration(least))
}

func (a *serveJSON) table() (align string, header []string, rows [][]string) {
	header = []string{"policy", "TTFT", "99 %", "TPOT", "99 %", "latency", "99 %", "mean", "tokens", "tokens/J", "busy",
		"batch", "cache"}
	for _, r := range a.Policies {
		rows = append(rows, []string{r.Policy, duration(r.FirstMedian), duration(r.First99), duration(r.EachMedian),
			duration(r.Each99), duration(r.LatencyMedian),
			duration(r.Latency99), duration(r.LatencyMean), perSecond(r.TokensPerS),
			known(r.TokensPerJoule, significant), percent(r.Busy),
			fmt.Sprintf("%.1f", r.MeanBatch()), percent(r.PeakCache)})
	}
	return "lrrrrrrrrrrrr", header, rows
}

func (a *serveJSON) write(b *bytes.Buffer) {
	row(b, "server", "%s", printable(a.heading()))
	row(b, "memory", "keys and values of %d tokens", a.CacheTokens)
	b.WriteByte('\n')
	align, header, rows := a.table()
	const times = 8 // columns; the others stand below
	var left, right [][]string
	for _, r := range rows {
		left, right = append(left, r[:times]), append(right, append(r[:1:1], r[times:]...))
	}
	writeTable(b, align[:times], header[:times], left)
	b.WriteByte('\n')
	writeTable(b, align[:1]+align[times:], append(header[:1:1], header[times:]...), right)
	b.WriteByte('\n')
	row(b, "bound", "%s", a.bound())
	if p := a.Best; p != nil {
		row(b, "best plan", "mean latency %s, %s; it began with that of %s", duration(p.Latency), p.Status, p.Policy)
	}
}

type traceJSON struct {
	File     string  `json:"file"`
	Mix      string  `json:"mix"`
	Source   string  `json:"source"`
	Requests int64   `json:"requests"`
	Seconds  float64 `json:"span_s"`
	Prompt   int64   `json:"prompt_tokens"`
	Answer   int64   `json:"answer_tokens"`
	Seed     uint64  `json:"seed"`
}

func newExportTrace() *cobra.Command {
	cmd := command("export trace")
	cmd.Args = noArgs
	requests := addNumber(cmd, "requests", 100, 1, "how many")
	rate := cmd.Flags().Float64("rate", 1, "requests per second")
	mixes := serving.Mixes()
	mix := &choice{value: mixes[0].Name, kind: "MIX"}
	for _, m := range mixes {
		mix.words = append(mix.words, cobra.CompletionWithDesc(m.Name,
			fmt.Sprintf("prompts of %g tokens (90 %%: up to %g), answers of %g (%g); %s", m.Prompt.Median, m.Prompt.P90,
				m.Answer.Median, m.Answer.P90, m.Source)))
	}
	addChoice(cmd, mix, "mix", "lengths: "+strings.Join(plain(mix.words), ", "))
	limit := addNumber(cmd, "limit", 8192, 2, "tokens of a prompt and its answer: what is longer is cut")
	seed := cmd.Flags().Uint64("seed", 1, "of all that is random")
	out := addFile(cmd, "o out", "`file` to write")
	out.stdout = true
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if requests.value > serving.MaxRequests || limit.value > serving.MaxTokens {
			return usagef("--requests and --limit are %d and %d, expected at most %d and %d", requests.value, limit.value,
				serving.MaxRequests, serving.MaxTokens)
		}
		m := mixes[slices.IndexFunc(mixes, func(m serving.Mix) bool { return m.Name == mix.value })]
		a := traceJSON{File: out.name, Mix: m.Name, Source: m.Source, Requests: requests.value, Seed: *seed}
		list, err := serving.Generate(int(requests.value), *rate, m, int32(limit.value), *seed)
		if err != nil {
			return usageError{err}
		}
		for _, r := range list {
			a.Prompt, a.Answer, a.Seconds = a.Prompt+int64(r.Prompt), a.Answer+int64(r.Answer), float64(r.Arrival)*1e-12
		}
		return out.writeText(cmd, "the trace itself goes", serving.WriteTrace(list), a, func(b *bytes.Buffer) {
			fmt.Fprintf(b, "%s: %s in %s, %d tokens of prompts, %d of answers\n", printable(a.File), plural(int(a.Requests),
				"request"), duration(a.Seconds), a.Prompt, a.Answer)
		})
	}
	return cmd
}

// addNumbers adds --dtype of a built-in model.
func addNumbers(cmd *cobra.Command) *choice {
	c := &choice{value: model.F16.String(), kind: "TYPE", words: floatTypes()}
	addChoice(cmd, c, "dtype", "type of its numbers: "+strings.Join(c.words, ", "))
	return c
}
