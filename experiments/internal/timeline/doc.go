// Package timeline records schedules for the viewer of the report page: each command of a
// cluster with its operator and time, and each buffer with its address, size and time.
package timeline
