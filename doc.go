// Package dsasched is the root of a research toolkit that schedules the computational graphs of neural networks on
// domain-specific accelerators. It implements GraphTurbo (Zhao et al., "Effectively Scheduling Computational Graphs of
// Deep Neural Networks toward Their Domain-Specific Accelerators", OSDI 2023), puts exact answers with proven bounds
// beside its greedy ones, and runs both on a simulated chip. The root holds no code; these packages are where to begin:
//
//   - model/network opens a built-in network or an ONNX file,
//   - hardware loads a preset or a YAML file of an accelerator,
//   - scheduler takes the network through all decisions to a simulated result,
//   - model/schedule is what comes out: groups, instances, order, bindings, memory plan.
//
// # What can be replaced
//
//   - An accelerator: a YAML file, or a hardware.Spec.
//   - A decision: scheduler.Strategy.
//   - What operators cost: cost.Custom.
//   - An experiment: experiments.Definition.
//
// Each has a page in docs/ and a program under examples/. The decisions themselves are libraries of their own that need
// nothing of this pipeline: formulation/ordering, formulation/allocate and formulation/binding each state a problem and
// solve it, by rules, by search and by integer program.
//
// # Conventions
//
// Times are in seconds, cycles or picoseconds and sizes in bytes, as names and types say. The same input gives the same
// output, byte for byte. Errors are for input, for what does not fit and for limits; a panic means that the caller
// broke the rules of a function.
package dsasched
