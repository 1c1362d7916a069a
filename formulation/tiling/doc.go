// Package tiling chooses how products and convolutions are cut into tiles, by rule ([Rule]) and provably best
// ([Exact]); and finds the best tiling of a kernel that is measured, by branch and bound ([Search]).
//
// # Products: the space
//
// A [Product] is so many products of [M x K] and [K x N]; a convolution is one, whose rows are positions of its
// output and whose reduction is channels x window. A tiling ([Blocks]) says
//
//   - over how many cores products, rows and columns are divided, by any factors; the busiest core has the parts
//     rounded up; and over how many the reduction, by a divisor of its extent, where the second operand is weights;
//   - into how many tiles a core's rows are cut, and how long tiles of columns and of the reduction are, multiples
//     of the matrix unit's sides (of the reduction of a convolution: of whole windows as well);
//   - whether tiles of rows or of columns change first; the reduction is innermost, its sums stay in the L1;
//   - how many tiles of each operand and of sums the L1 has room for: two, or a panel along all of the reduction,
//     that stays while the other operand passes, or of one of rows as many of its last tiles as have room beside two
//     for the others; weights stay in their ring where they fit. Where weights share the L1 with data
//     (Machine.Shared), the ring is as large as these need, or as what they leave;
//   - how many tiles of the reduction one load brings from the DDR into the LLB, and whether all of an operand
//     gathers there once; of rows by weights, where there is no room for all, as many loads of each tile as there is.
//
// Of several numbers of parts with the same largest part, the least stands for all.
//
//	for each tile of rows, for each tile of columns:      (or the other way round)
//	    for each tile of the reduction:
//	        load rows x reduction, unless there; load reduction x columns, unless there
//	        multiply, add to the sums
//	    gather the sums of cores that share the reduction, and add them
//	    vector work on the sums; store the results
//
// # Products: the formula
//
// [Problem.Time] is the closed form of what the kernel generator emits: queues in order, each command with its
// latency or its pipeline's filling. A pass is one tile of rows and one of columns. Let u be its time on the
// matrix unit (each command: blocks x the longer of the rows' passage and the block's load, and the fill), i that
// of its loads into the L1 (each: latency and the longer of the core's bytes over its link and all cores' bytes
// over the LLB, of which other moves take their share), v of its vector work and o of its store, with the
// exchange of sums if several cores share the reduction (two latencies, a barrier, the bytes). A matrix unit with
// commands in flight takes [cost.Array]'s time for a block, and lines of a convolution count. Where Machine.Request is
// set, rows of operands and results pass the DDR in whole requests. With room for two tiles of sums a pass lasts
//
//	max(i, u, v, o, (max(i, u) + v + o) / 2)
//
// and with one max(i, u) + v + o, less what the loads run ahead meanwhile; v + o of the last pass count once, behind
// all. Passes differ in which operands they load: those that load both, rows alone, columns alone, or none are
// counted, and their times added up. Where the last tiles of a panel stay, i and u count for these and for the
// others apart: loads run but two tiles ahead. The DDR stands in front of the cores, and begins Machine.Head before
// them: a kernel's launch, where loads run ahead. At three points, the end of the first pass, of the first round of
// the outer loop and of all, what the DDR has brought and what the cores have left to do add up; the longest sum
// counts, and with it the first loads and the last results. Weights that are used again come again as far as half of
// the LLB's pages do not hold them; without an LLB they stay in the L1, or come from other cores. Rows that lie in
// other cores' L1s (Product.Exchanged) come beside the loads, each tile after a barrier of all cores.
//
// Of the experiment's 420 products by rule, the closed form is within -6 % and +5 % of the simulated time, launches
// included, for eight of ten. At the ends are +23 %, and -92 % where loads wait for room in the LLB: who measures takes
// smaller loads then ([Problem.SmallerLoads]).
//
// # Products: the lower bounds
//
// [Exact] is [Search] over three choices: the division over cores; the extents of rows and columns; that of the
// reduction. Behind these it looks through all ways to run the tiles. What no completion is below:
//
//  1. A division over cores: all blocks of the busiest core's product on the unit, and each operand and result
//     once over the links, the LLB and the DDR. Of a convolution, all of a core's rows at a time have the fewest
//     halos: tiles' overlap adds to them.
//  2. Extents of rows and columns: an operand passes once if its panel, or all of it, has room where it stays,
//     else as often as the other has tiles, in the better of the two orders. So m x n results of a core cost
//     m·n·k·(1/tm + 1/tn) words where nothing stays, with tm·tn at most what the L1 holds as sums: at tm = tn = √S
//     this is the 2mnk/√S of Hong and Kung ("I/O complexity: the red-blue pebble game", STOC 1981), whose constant
//     Smith et al. ("A tight I/O lower bound for matrix multiplication", 2019) have proven. The reduction's tile
//     is at most what two of them leave room for, which gives the least number of commands, each with its fill,
//     and of loads, each with its latency.
//  3. The reduction's tile: the same with that number.
//
// Each is at most [Problem.Time] of all tilings behind it: tests enumerate these. Package bound has other kernels'.
//
// [Rule] looks at the divisions over cores in the order of bound 1 and a part of what does not limit, first those that
// leave the reduction whole and then those that do not; at the tiles of the least bounds 2 for each, on a lattice of
// extents a quarter apart, at the longest reduction that fits and one of a third; and goes from the three best to the
// best neighbour as long as there is a better one. Where the ring can be moved it does so with the machine's and then
// without; and each first with panels that stay whole and three eighths of the LLB for what gathers, then with parts of
// panels and up to five. It takes one or two milliseconds; ties go to the smaller choices. [Rules] are the few best.
//
// # Products: what is left out
//
// Of extents that cut columns or the reduction into as many tiles, the shortest stands for all, also where a longer one
// would fill requests, and tiles of rows are equal. A longer one leaves a shorter last tile, which was 2 % faster in
// one of 2495 random problems: what [Exact] proves is the best of equal tiles. Sums are never taken out of the L1
// half-way but to be added by another core, and one core adds those of all that share a reduction. All cores have what
// the busiest has. Tiles of a convolution's rows are whole lines where they are longer than one, and halos are read
// again by each tile. What cores bring from other cores' L1s costs nothing. Rows of several dimensions pass as boxes.
package tiling
