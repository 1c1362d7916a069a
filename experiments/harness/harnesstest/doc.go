// Package harnesstest has what the tests of several experiments need: golden files,
// the comparison of folders of results, and the published figures' own files.
package harnesstest
