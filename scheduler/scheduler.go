// Package scheduler is the engine and the library's front door: a network, a machine
// and a recipe in, a checked and simulated schedule out.
//
//	net, err := scheduler.OpenNetwork("resnet50")
//	chip, err := scheduler.OpenMachine("stcp920")
//	recipe, err := scheduler.Lookup(scheduler.Default)
//	r, err := scheduler.Run(ctx, net, chip, 32, recipe, scheduler.Options{})
//
// # The parts
//
//	Stage     a decision of the pipeline, a row of Stages, with its strategies and a check
//	Strategy  a way to make one decision; a caller's own has the same form
//	Recipe    a strategy for every stage: GraphTurbo's steps, TVM, AStitch, exact ones
//	Options   what does not belong to a recipe: chunk, limits, solver, operator costs
//	Result    the schedule of a chunk, the program of all clusters, and what the
//	          simulator says of it
//
// [Run] takes a network through all stages. [Schedule] stops before lowering, [Continue]
// makes anew what comes after a stage, [Compare] puts the strategies of each stage beside
// each other with objectives and bounds, [Bind] and [Split] make one decision by one
// method, and [Restore] simulates a schedule from a file.
//
// After each stage its naive check of package model/schedule runs, and each simulated
// program is judged by sim.CheckBuffers: a result that breaks a rule is an error.
//
// # Adding a strategy
//
// Write it into a file as a Strategy and put it into its row of [Stages]: flags,
// completion, sweeps, comparisons and documents find it there. From outside, give it to
// [Recipe.With]; docs/extend-scheduler.md shows how.
package scheduler

import (
	"context"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/internal/answers"
	"github.com/dsasched/dsasched/internal/pipeline"
	"github.com/dsasched/dsasched/internal/schedulefile"
	"github.com/dsasched/dsasched/internal/search"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/model/schedule"
)

// AloneOptions are the settings of [Bind] and [Split].
type AloneOptions = answers.AloneOptions

// AloneBinding is the answer of [Bind].
type AloneBinding = answers.AloneBinding

// AloneSplit is the answer of [Split].
type AloneSplit = answers.AloneSplit

// Bind chooses core bindings and scopes for the groups, factors and order of the greedy
// schedule by a method of binding.Methods. When ctx or the time limit ends, the answer
// is the best choice so far.
func Bind(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, method string,
	opt AloneOptions) (*AloneBinding, error) {
	return answers.Bind(ctx, net, machine, batch, method, opt)
}

// Split chooses sub-graphs and split factors by a method of split.Methods; order,
// bindings and memory plan are those that the greedy methods make for them. When ctx
// or the time limit ends, the answer is the best choice so far.
func Split(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, method string,
	opt AloneOptions) (*AloneSplit, error) {
	return answers.Split(ctx, net, machine, batch, method, opt)
}

// BestOptions are the settings of [Best]. The zero value is the default. Of Options,
// Chunk 0 stands for every divisor of a cluster's share, and InPlace is not looked at:
// both are tried.
type BestOptions = search.BestOptions

// Found is the answer of [Best].
type Found = search.Found

// Best looks for the schedule of least simulated latency. It searches from the greedy recipe at all chunks, with
// operators in place and not, and runs all other recipes as well, so that it is never worse than any of them, but for
// those that make an operator of each attention: their schedules are another graph's, which neither its decisions nor
// its bound are of. If ctx or the time limit ends, it returns the best so far, if there is one.
func Best(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, opt BestOptions) (*Found,
	error) {
	return search.Best(ctx, net, machine, batch, opt)
}

// A Division says what the clusters divide between them.
type Division = pipeline.Division

const OverBatch = pipeline.OverBatch

const Pipelined = pipeline.Pipelined

const OverLayer = pipeline.OverLayer

const OverKinds = pipeline.OverKinds

// A Compared is the result of one method for one decision, the others being greedy.
type Compared = answers.Compared

// CompareOptions are the settings of [Compare]. Of Options, Chunk 0 is the chunk at which
// the greedy recipe is fastest, and a TimeLimit is the only limit.
type CompareOptions = answers.CompareOptions

// Compare puts the answers of all strategies beside the greedy ones of GraphTurbo's full
// schedule, decision by decision: objective, bound, and the throughput when only that
// decision is replaced. If ctx ends first, it returns the rows so far and its error.
func Compare(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64,
	opt CompareOptions) ([]Compared, error) {
	return answers.Compare(ctx, net, machine, batch, opt)
}

// A Setting declares a decision that is one value: one of some choices, or what Change makes of them. [Setting.Stage]
// makes the row. All of it but the name may be left out.
type Setting[T any] = pipeline.Setting[T]

// A Choice is a named value of a setting, which becomes a strategy of its row.
type Choice[T any] = pipeline.Choice[T]

// Objective is the quantity that [Best] minimises.
type Objective = search.Objective

const ByLatency = search.ByLatency

const ByEnergy = search.ByEnergy

const ByEDP = search.ByEDP

// OpenNetwork finds a network by the name of the zoo or the path of an ONNX file, with
// the default options of package network.
func OpenNetwork(name string) (network.Network, error) {
	return network.Open(name, network.Options{})
}

// OpenMachine finds an accelerator, or a machine of several, by the name of a preset or the
// path of a YAML file.
func OpenMachine(name string) (*hardware.Spec, error) {
	return pipeline.OpenMachine(name)
}

// A Recipe names a strategy for every stage.
type Recipe = pipeline.Recipe

// A Pick is a strategy for a stage, by their names.
type Pick = pipeline.Pick

// Table lists the recipes in the order of the paper's Fig. 15: each row changes one
// idea of the row before.
func Table() []Recipe {
	return pipeline.Table()
}

// Baselines lists the other published systems beside the table's TVM, and other readings
// of that: Table 1 has TVM on a par where "the LLB holds all batches" (§5.1), and TVM's own
// pass fuses by rules of its own.
func Baselines() []Recipe {
	return pipeline.Baselines()
}

// Exact lists the recipes that replace greedy decisions of the table's last one by
// exact ones.
func Exact() []Recipe {
	return pipeline.Exact()
}

// Known lists all recipes, the searched ones last.
func Known() []Recipe {
	return pipeline.Known()
}

// Lookup finds a recipe by name.
func Lookup(name string) (Recipe, error) {
	return pipeline.Lookup(name)
}

// ErrNoSolver says that a strategy needs Options.Solver, which is not set.
var ErrNoSolver = pipeline.ErrNoSolver

// Replace returns a recipe with some of its decisions made by other strategies. Its name
// says which: "cross-layer+order=search". A combination that has no meaning is an
// error.
func Replace(r Recipe, opt Options, picks ...Pick) (Recipe, error) {
	return pipeline.Replace(r, opt, picks...)
}

// Report is a simulated schedule in numbers: the groups, the order, what moved and
// where the time went. Its JSON is the answer of `dsasched schedule`. Times are in
// seconds; levels of memory are called l1 (a core's buffer), llb (a cluster's) and ddr.
type Report = answers.Report

// NewReport puts a simulated schedule into numbers. origin says what the schedule does not know of itself.
func NewReport(r *Result, origin schedulefile.Origin) *Report { return answers.NewReport(r, origin) }

// File puts a result into the words of the schedule file. origin is kept but for what
// the result knows better.
func File(r *Result, origin schedulefile.Origin) *schedulefile.File {
	return pipeline.File(r, origin)
}

// ViolationsError lists which rules a schedule file breaks.
type ViolationsError = pipeline.ViolationsError

// Restore simulates the schedule of a file on a machine, after it was checked. A
// schedule that breaks rules is a [*ViolationsError]. What [File] has written gives
// the same result as the run that it was written of, if that had no operator cost of its own.
func Restore(ctx context.Context, f *schedulefile.File, described *hardware.Spec) (*Result, error) {
	return pipeline.Restore(ctx, f, described)
}

// Options are the settings of a run beside the recipe. The zero value is the default.
type Options = pipeline.Options

// LevelAuto is the GB where hardware.Spec.NeedsRaise says so, else the LB.
const LevelAuto = pipeline.LevelAuto

const LevelLB = pipeline.LevelLB

const LevelGB = pipeline.LevelGB

// Result is a simulated schedule.
type Result = pipeline.Result

// Default is the name of the recipe of who names none.
const Default = pipeline.Default

// Run schedules and simulates a network by a recipe. It divides the batch over the
// clusters, tries every divisor of a cluster's share as chunk unless Options.Chunk says
// one, and keeps the fastest. If ctx ends first, it returns its error. Recipes that it falls
// back to run side by side: Options.Cost and Options.Solver may be called by two at a time.
func Run(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe,
	options Options) (*Result, error) {
	return search.Run(ctx, net, machine, batch, r, options)
}

// Prepare makes all decisions of [Run] for a given chunk, by the recipe itself and not by
// what it falls back to, and simulates nothing: Program and Sim are nil, until
// [Result.On] gives them.
func Prepare(ctx context.Context, net network.Network, machine *hardware.Spec, batch int64, r Recipe,
	opt Options) (*Result, error) {
	return search.Prepare(ctx, net, machine, batch, r, opt)
}

// A Stage is a decision of the pipeline, with the strategies that can make it.
type Stage = pipeline.Stage

// A Strategy is a way to make one decision. A caller's own has the form of the
// built-in ones; [Recipe.With] puts it into a recipe.
type Strategy = pipeline.Strategy

// A Draft is a schedule in the making, of one chunk on one cluster. A stage writes:
//
//	group    Grouping, and Layers where schedule.Layers does not give them
//	split    the Split of each group, or other groups; Layers and Instances follow
//	outputs  Outputs, Between
//	order    Order, OrderName, and Costs to compare it with others
//	bind     Bindings, Scopes, LayerBindings if any; Joins, Steps and Values follow
//	spill    levels and addresses of the Values, tiles of the Steps, Spills
//	address  addresses of the Values and stages in the LB
//	issue    Lower
//	prefetch Lower
//	weights  Lower
//	nest     the Nest of Steps, which [schedule.Schedule.Follow] sets
type Draft = pipeline.Draft

// Stages lists the pipeline in the order in which decisions are made. It is the only
// place that knows them: flags, completion, sweeps, comparisons, JSON and documents
// are made from it.
func Stages() []Stage {
	return pipeline.Stages()
}

// Schedule makes all decisions for one chunk.
func Schedule(ctx context.Context, g *model.Graph, spec *hardware.Spec, r Recipe, opt Options) (*schedule.Schedule,
	error) {
	return pipeline.Schedule(ctx, g, spec, r, opt)
}

// Continue keeps the groups, instances, order and bindings of a schedule up to and with
// those of the stage after, and makes all else anew, as the recipe says. Groups come with
// their factors, which alg1 leaves as they are. Layers that are nil follow from the
// groups. The schedule that it starts from is not changed; what it lacks is an error.
func Continue(ctx context.Context, from *schedule.Schedule, after string, r Recipe, opt Options) (*schedule.Schedule,
	error) {
	return pipeline.Continue(ctx, from, after, r, opt)
}

// Tuned is the result of [Tune]: a nest for each layer of each kernel.
type Tuned = pipeline.Tuned

// TuneSettings are the settings of a tuning beside the search's.
type TuneSettings = answers.TuneSettings

// Tune searches for the loops of all kernels of networks. If ctx ends first, the answer is
// what was found, and the error ctx's.
func Tune(ctx context.Context, nets []network.Network, machine *hardware.Spec, batch int64, r Recipe, opt Options,
	set TuneSettings) (*Tuned, error) {
	return answers.Tune(ctx, nets, machine, batch, r, opt, set)
}

// ReadTuned reads what [Tune] has found, as JSON. Nests are looked at when they are used.
func ReadTuned(data []byte) (*Tuned, error) {
	return pipeline.ReadTuned(data)
}
