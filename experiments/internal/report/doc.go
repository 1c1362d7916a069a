// Package report gathers the results in a folder, the published numbers beside ours, and writes them as report.md and
// as one HTML page (package page). It depends on the files in the folder alone.
package report
