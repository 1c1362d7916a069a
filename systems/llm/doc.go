// Package llm prices what serves a large language model by simulations of its parts: steps of a decoder, for requests
// ([ServingTimes]).
package llm
