// Package llm prices what serves a large language model by simulations of its parts: steps of a decoder, for requests
// ([ServingTimes]), and a layer's experts on chips under many routings ([PlaceExperts]).
package llm
