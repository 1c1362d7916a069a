// Package lower is the kernel generator (paper §4): it turns a schedule into a program of commands.
//
// # What becomes what
//
//	instance  one kernel: a Launch, then its layers. A cluster runs one kernel at
//	          a time, so a kernel starts when the one before it has ended.
//	layer     a fused loop nest around its anchor (§4.1): for each tile of weights
//	          the rows of the core's slice pass through the matrix unit, and the
//	          element-wise operators behind it follow tile by tile.
//	value     outputs stay at the level that the memory plan gives (§4.2): a reader
//	          on the same core reads the L1; what another core holds arrives by an
//	          Exchange, what the LLB or DDR holds by loads in tiles.
//	weights   promoted DDR -> LLB -> L1 into the fixed weight buffer, tile by tile
//	          (§4.4), by broadcast where all cores need the same; constants whose rows
//	          pass through the matrix unit likewise, in turn with the rows.
//
// # Overlap
//
// Queues are in order, and each holds its commands in the order of the layers. What differs is where a queue must wait
// for all others. With Options.CrossLayer that is at a kernel's launch only: weights of later layers are promoted while
// earlier ones compute, as far as the buffers have room, and units work on different layers at a time. Without it, it
// is at every layer. A layer waits for all of what it reads or, with Options.CrossUnits, for the parts that its tile
// needs: the matrix unit begins the next layer while vector work on the last tiles is under way.
//
// With Options.Exposed, and without CrossLayer, the promotion of weights into the L1 waits until nothing computes, and
// so does what brings them from the DDR unless it runs ahead.
//
// With Options.Prefetch, loads of weights and network inputs from the DDR to the LLB do not wait for the launch of
// their kernel: they depend on no computation, and the DMA engine works on while kernels change. The first launch they
// wait for, unless Options.BeforeFirst is set.
//
// # Weights in the LLB
//
// The part of the LLB that values leave free holds weight tiles in pages. With
// Options.KeepWeights a tile stays if the next use of it comes sooner than that of
// the tiles that stay already (Belady's rule on the known sequence), within half of
// the free pages or as much as Options.KeepQuarters says. The rest is first in, first out and lets loads run ahead.
//
// Where there is no LLB, most of each core's weight buffer is a home for weights: the tiles used first stay, others
// pass through the rest. What a blocked nest uses last leaves with it. With broadcast the cores share the home;
// without, each has its own copy.
//
// # Three forms of loops
//
// A layer runs in tiles of rows, a product in tiles of rows, columns and reduction with sums that stay, an attention in
// tiles of queries and keys (attention.go). One walk (step.go) lowers the first two: they differ in how operands come.
// Those of a tile of rows are found by number, those of a product by what a slot holds (blocked.go). What a walk asks
// for is made in one way for all: schedule.Staged gives the room of each operand, transfer brings it to the L1s from
// where it is, gatherIn lets it gather in the LLB, onVectorUnits and store follow.
//
// # Attention
//
// A layer whose anchor is an attention (model kind Attention) has loops over tiles of queries
// and, inside, of keys; see attention.go. What passes through its stage are tiles of queries,
// keys, values and masks, two at a time; scores, sums and maxima stay there.
//
// # Long loops
//
// A layer whose loops have more iterations than the limits in tiles.go is issued in fewer commands, each standing for
// several iterations: the same work and bytes, with coarser overlap.
//
// # Safety
//
// Every write to an address waits for all readers of what was there before; the
// simulator checks the result (sim.CheckBuffers).
package lower
