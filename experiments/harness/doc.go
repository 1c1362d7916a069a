// Package harness is what the experiments share: what an experiment consists of, how it
// is run and kept, and the forms in which its results are written.
//
//   - [Experiment], [Plan], [Cell] and [Report]: an experiment is a list of cells, each the
//     smallest piece that is worth keeping, and a report made of all of them.
//   - [Run] computes cells in parallel, keeps each under a fingerprint of all that it
//     depends on, and writes the files of the report and of its origin.
//   - [Row] is the result of one network on one accelerator at one batch size with one
//     variant; [RowCell] and [Measure] compute one.
//   - [Table] is written as text, Markdown, LaTeX and CSV; [Line] is a published number
//     beside ours; [Document] and [Comparison] collect a report part by part.
package harness
