package scheduler

import (
	"slices"
	"sync"

	"github.com/dsasched/dsasched/model/schedule"
)

// Stages lists the pipeline in the order in which decisions are made: flags, completion,
// sweeps, JSON and documents are made from it.
func Stages() []Stage { return slices.Clone(stageTable()) }

// tableOnce is filled when it is asked for, since strategies ask for it.
var tableOnce struct {
	once sync.Once
	list []Stage
}

// stageTable is Stages for those that change nothing in it.
func stageTable() []Stage {
	tableOnce.once.Do(func() { tableOnce.list = filled(makeStages()) })
	return tableOnce.list
}

// filled gives rows the strategies and moves that the table has for them.
func filled(list []Stage) []Stage {
	for i := range list {
		st := &list[i]
		st.Strategies = append(st.Strategies, table.Strategies[st.Name]...)
		for k, m := range st.moves {
			if m.Make != nil {
				continue
			}
			if at := slices.IndexFunc(table.Moves, func(x Move) bool { return x.Name == m.Name }); at >= 0 {
				st.moves[k] = table.Moves[at]
			}
		}
		st.moves = slices.DeleteFunc(st.moves, func(m Move) bool { return m.Make == nil })
	}
	return list
}

func makeStages() []Stage {
	return []Stage{
		rewriteStage(),
		{Name: "group", Description: "which operators become one kernel",
			Writes: "`Grouping`, and `Layers` where `schedule.Layers` does not give them; it may split the groups too",
			keep:   keepGroups,
			check:  by(checkGroups), take: takeGroups, text: groupText},
		{Name: "split", Description: "how a group is cut into instances",
			Writes: "the `Split` of each group, or other groups; layers and instances follow",
			keep:   func(_, _ *schedule.Schedule) {}, // the groups have it
			check:  by(checkGroups), limit: limitInstances, heldBy: "group", text: splitText},
		{Name: "layers", Description: "where the layers of a kernel begin, and in which order they run",
			Strategies: []Strategy{derivedLayers},
			keep:       func(to, _ *schedule.Schedule) { deriveLayers(to) }, // the groups have them
			check:      by(schedule.CheckLayers), take: takeLayers, moves: layerMoves, text: layersText},
		{Name: "instances", Description: "the instances of each group, and their dependencies",
			Strategies: []Strategy{instances},
			keep:       func(to, from *schedule.Schedule) { to.Instances = from.Instances },
			check:      by(checkInstances), text: instancesText},
		{Name: "outputs", Description: "the memory preferred for a layer's output",
			Writes: "`Outputs`, `Between`, `KeepOutputs`",
			Strategies: []Strategy{outputsDDR, outputsLLB, outputsL1, outputsInside, outputsLLBKept,
				outputsL1Kept},
			check: checkOutputs, take: takeOutputs, text: outputsText},
		{Name: "kinds", Description: "the kind of core that runs a layer, if a cluster has several",
			Writes: "`LayerKinds`",
			keep:   func(to, from *schedule.Schedule) { to.LayerKinds = from.LayerKinds },
			check:  by(schedule.CheckKinds), take: takeKinds, moves: kindMoves, unlessNil: true, text: kindsText},
		{Name: "order", Description: "the order of the instances",
			Writes: "`Order`, producers before consumers, `OrderName`, and `Costs` to compare it with others",
			keep: func(to, from *schedule.Schedule) {
				to.Order, to.OrderName, to.Costs = slices.Clone(from.Order), from.OrderName, slices.Clone(from.Costs)
				to.Place, to.Cluster = from.Place, from.Cluster
			},
			check: by(schedule.CheckOrder), judged: true, take: takeOrder, moves: orderMoves, text: orderText},
		{Name: "bind", Description: "over which cores an output is spread, and its scope",
			Writes: "`Bindings`, `Scopes`, `LayerBindings` if any: over how many cores each dimension of a result is spread, " +
				"and the level where it lives; joins, steps and values follow",
			keep: func(to, from *schedule.Schedule) {
				to.Bindings, to.Scopes, to.LayerBindings = slices.Clone(from.Bindings), slices.Clone(from.Scopes),
					from.LayerBindings
			},
			check: by(checkBindings), judged: true, take: takeBindings, moves: slices.Clone(bindMoves), text: bindText},
		{Name: "join", Description: "concats, copies and redistributions between instances, and the steps of the kernels",
			Strategies: []Strategy{joins},
			check:      by(schedule.CheckSteps), text: joinText},
		bufferStage(),
		reserve.Stage(),
		{Name: "spill", Description: "which value is spilled first from a full memory",
			Writes: "levels and addresses of the `Values`, tiles of the `Steps`, `Spills`",
			check:  by(schedule.CheckPlan), judged: true, take: takePlacement, moves: placementMoves,
			settings: placementSettings(), text: spillText},
		addresses.Stage(),
		{Name: "issue", Description: "which earlier commands a kernel's commands may overtake",
			Writes:     "`Lower`: what the kernel generator may do",
			Strategies: []Strategy{inOrder, exposed, crossLayer, crossUnit}, take: takeGenerator, settings: generatorSettings,
			text: generatorText("CrossLayer", "CrossUnits", "Exposed", "Pieces", "WeightTiles", "LoadTiles", "WeightsFirst",
				"StorePieces")},
		{Name: "prefetch", Description: "when loads from the DDR may start", Writes: "`Lower`",
			Strategies: []Strategy{loadsWait, loadsAhead, loadsAtStart}, heldBy: "issue",
			text: generatorText("Prefetch", "BeforeFirst")},
		{Name: "weights", Description: "what stays in the LLB between kernels", Writes: "`Lower`",
			Strategies: []Strategy{reloadWeights, keepWeights, keepInputs}, heldBy: "issue",
			text: generatorText("KeepWeights", "KeepInputs", "KeepQuarters")},
		{Name: "nest", Description: "the loop nest of a layer on the cores",
			Writes: "the `Nest` of the `Steps`, which `schedule.Schedule.Follow` sets",
			check:  by(schedule.CheckPlan), hopeless: slowInTiles, take: takeLoops, moves: slices.Clone(nestMoves),
			settings: nestSettings, text: nestText},
	}
}

// Choices lists the stages that have more than one strategy.
func Choices() []Stage { return choices(stageTable()) }

// LookupStage finds a stage by name.
func LookupStage(name string) (Stage, error) { return lookupStage(stageTable(), name) }
