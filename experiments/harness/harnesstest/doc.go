// Package harnesstest has what the tests of several experiments need: golden files,
// tables compiled by LaTeX, and the published figures' own files.
package harnesstest
