// Package readings asks which reading of the GraphTurbo paper its published numbers support. Where the text is silent
// or at odds with itself, each answer is a choice that can be switched; the experiment holds every published number
// against the readings in force, against each one flipped alone, and against all flipped together.
//
// A reading is in force for what the text says, else for what other published facts
// say, else because it was there first: never for a number that it moves.
package readings
