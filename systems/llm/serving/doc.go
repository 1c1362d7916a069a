// Package serving chooses the requests that take part in each step of a decoder, by policies and exactly, and simulates
// the result by events. A request has an arrival, a prompt and an answer, in tokens. Times are in picoseconds.
//
// # The problem
//
// The machine runs one step after the other. A step serves a set of requests that have arrived: each
// passes a piece of its prompt, or writes the next token of its answer (decodes). The step with the last
// piece of a prompt writes the answer's first token. A token is there when its step ends.
//
// At most [Limits].Batch requests have begun and are not finished, and their prompts and answers have
// together at most as many tokens as the memory has room for ([Times].CacheTokens): room is reserved for
// all of a request when it begins. A step has at most [Limits].Tokens tokens, unless it has one prompt
// only. What a step takes is interpolated ([Times]).
//
// # Policies
//
// Each is a function that says who takes part in the next step: [Policies]. Requests begin in the order in
// which they arrive. [Simulate] is driven by events: as long as nobody comes and nobody finishes, all steps
// are decodes of the same requests, whose contexts grow by one each, and the sum of their times is that of
// arithmetic series.
//
// # The best plan
//
// [Best] knows the trace beforehand. It minimises the sum of the requests' times from arrival to last
// token over all plans whose pieces are multiples of [Limits].Grain tokens or the rest of a prompt. Any set
// may take part, in any order: the policies' plans are among them (static batches with steps that are no
// shorter). It is a best-first search. A state is what each request has had; of two that have had the same,
// the one that is later and costs no less is dropped, as the other can wait. To wait is of use only until the next
// arrival.
//
// [Bound] holds for every plan. Let e + f n be at most Tokens(n), h n at most Scores(n), a n + b c at
// most Decode for n sequences of c keys together, and g n at most what n tokens of a prompt take for their
// attention, with
// a term for the tokens before them. Each step takes at least the sum of its participants' shares: e over the largest
// batch, f of each token, h of each token that is written, a and b c of each decode, g of each token of a prompt. So
//
//   - a plan is no better than the best one of a machine that works on one request at a time, may
//     interrupt it, and needs for each the sum of its shares. There, the shortest remaining work first has the
//     least sum of ends (Schrage, 1968);
//   - no request takes less than its steps alone, of which each takes at least Tokens(1).
//
// Of e and f, which are those of a line below the curve, the best are taken.
package serving
