// Package sim runs an isa.Program: a deterministic discrete-event simulation with integer time. It sees commands,
// durations and bytes, and nothing of the network, the schedule or the hardware description behind them, so that it is
// a referee that can't share a scheduler's mistake.
//
// # Model
//
// Each queue issues its commands in program order, one at a time: a command starts at the first moment at which the
// previous command of its queue and all its dependencies have ended. There is no lookahead within a queue: a command
// that waits blocks all behind it.
//
// A launch, barrier or compute command ends DurationPs after its start. A move first waits DurationPs (its latency; it
// holds its queue meanwhile but no bandwidth) and then flows until its bytes have passed. A move whose uses are all of
// zero bytes takes its latency alone. Payload (Command.Bytes) is only counted; time comes from Command.Uses.
//
// # Sharing
//
// Let w be the largest number of bytes that a move takes of any one resource (uses of the same resource are added up):
// its own bytes. While the move flows at a rate of r own bytes per second, it takes r·a(k) of resource k, where a(k) =
// uses(k)/w is at most 1. So a broadcast that reads 1 MB of a buffer and writes 8 MB to the cores' local memories is a
// flow of 8 MB that takes all its rate of the local memories' bandwidth and an eighth of it of the buffer's.
//
// The flows share the resources by max-min fairness, found by progressive filling: the rates of all flows rise
// together; when a resource has no more to give, the flows that use it stay as they are, and the others rise on. Hence
// each flow has a bottleneck: a saturated resource on which no other flow is faster (Bertsekas and Gallager, Data
// Networks, 2nd ed., §6.5.2). The rates are found anew whenever a flow begins or ends, for those flows that are
// connected with it through shared resources; all others keep theirs by definition.
//
// # Numbers
//
// Time is in int64 picoseconds, rates in units of 2^-12 byte per second, what remains of a flow in units of 2^-20 byte,
// a(k) in units of 2^-44. Products have 128 bits. Coefficients are rounded up, rates and progress down, completions up:
// a simulated program is never faster than its exact solution, and each time is late by about a picosecond per command
// at most on a path to it. The limits that follow (about 106 days, 8 TB per move, 2 PB/s per resource) are checked.
//
// The same program gives the same result, byte for byte. Events at the same time are handled in the order of command
// indexes; only the order of calls to Options.OnCommand depends on it.
//
// # What the result says
//
// Start and End of each command; from these, busy times, bytes, utilisations, where each cluster's time went, and how
// full each memory was. See Result. Result.Bound holds lower bounds that no execution of the program can beat, computed
// without the event loop. CheckBuffers reports whether two buffers were ever in use at the same time and place, and
// whether anything was read before it was written.
//
// # Known gaps
//
//   - Bandwidth is a fluid: no bursts, packets, row misses, bank conflicts or
//     read-write turnaround; a resource is as good at many small moves as at one
//     large move. What these cost must be in the rates.
//   - Sharing is fair and free: no arbitration overhead, no priorities.
//   - The cores of a cluster run in lockstep, so the jitter between cores is not
//     seen; the duration of a command is that of the busiest core.
//   - Compute commands hold no bandwidth: the traffic between a compute unit and
//     its own local buffer is taken to be part of the command's duration.
//   - Latency is paid once per move and is the same on a loaded and on an idle
//     system. A move's engine is busy during it: engines with several moves in
//     flight are several queues.
//   - Queues are of unlimited depth, and issuing a command takes no time.
//   - A buffer is in use as a whole, from the start of its first command to the
//     end of its last; tails that free up earlier are not modelled.
package sim
