// Package experiments runs what the papers measured and writes the results as
// tables and figures beside the published numbers.
//
// # Experiments and cells
//
// An Experiment is an entry of a registry (Names, Lookup). It is planned as a list of cells, each the smallest piece
// that is worth keeping: one network on one accelerator at one batch size with one variant and one choice of the
// batches per cluster. Run computes the cells in parallel and then makes the report from all of them. A report is a
// function of the cells' results alone, so the files are the same, byte for byte, for any number of workers and for a
// run that was interrupted and went on. Wall times are the one thing that differs from run to run; they have a file of
// their own, timing.csv.
//
// # What is on disk
//
//	OUT/NAME/cells/KEY.json  one finished cell, its inputs hashed into the name, with the
//	                         fingerprint of all that it depends on: the program, the accelerator, the variant,
//	                         the options
//	OUT/NAME/timing.csv      how long each cell took
//	OUT/NAME/origin.json     what made the report: program, commit, modules,
//	                         accelerators, seeds
//	OUT/NAME/*               the report
//	OUT/report.md, .html     all experiments, from the files above; see Page
//
// Each file is written under another name and renamed, so that none is ever half there. A cell whose fingerprint is
// another one, of a program built from other sources for instance, is computed anew; so is one that is damaged.
//
// # Units
//
// Times are in seconds and sizes in bytes unless a name says otherwise; the name of a column or JSON key ends in its
// unit (_s, _per_s, _bytes). Shares and utilisations are between 0 and 1. Numbers have nine significant digits: what
// is behind them may differ between processors that fuse a multiplication with an addition and those that do not.
//
// # Recorded schedules
//
// The experiment timeline writes viewer.json: for some configurations and variants, each command of cluster 0 with its
// operator, time and bytes or operations, and each buffer of the L1 and the LLB with its operator, address, size and
// time. The viewer of the report page reads it; package recording describes it.
//
// # What tensor writes count
//
// "Static" counts are of the stores in the program of one cluster, where a loop over the batch counts once and the
// instances of a sub-graph stand one by one, as the paper's Table 3 evidently counts. "Dynamic" counts are of the
// stores that all clusters execute.
//
// # Own experiments
//
// New makes an Experiment of a Definition of the caller's, with Measure as a cell for
// one network, accelerator and variant; docs/extend-experiment.md shows how.
//
// # Folders
//
// A folder has the experiments of one paper or question: paperfigs, ablation, optimality. Package harness
// runs them, literature holds the published figures, and report makes one page of all results. A new experiment is a
// file in such a folder and a row in the registry.
package experiments
