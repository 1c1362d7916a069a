// Package ordering states and solves the instance-ordering problem: in which order do
// the instances of a network's sub-graphs run on a cluster, and which outputs are
// moved out of its local buffer and back, so that the least is moved?
//
// # The rules
//
// A sub-graph k has n_k instances. Each runs once. While one runs, the outputs
// that it reads, its own output and its workspace are in the local buffer (LB),
// together with whatever else is kept there; the sum may not pass the capacity.
// An output is live from its instance's run until the last instance that reads
// it has run, and then leaves the LB at no cost; one that nothing reads leaves
// when its own instance ends. Between two runs a live output may be
//
//   - stored: it leaves the LB for the shared buffer (GB), at a cost per byte,
//     or for nothing if the GB has a copy already (outputs never change), or
//   - loaded: it comes back at a cost per byte; the copy stays.
//
// Stores come before loads. Whole outputs move. The GB is unbounded; network
// inputs and weights count only as far as they stand in the workspace.
//
// Objective [Traffic] is the least total cost; objective [Peak] the least
// capacity for which no output has to be moved, which ignores the problem's own
// capacity.
//
// # What is here
//
// [Problem] and [Result] are the two file formats; [Read] and [ReadResult] are
// strict about them. [Graph] is the problem instance by instance. [Check]
// recomputes a result from the rules, from the file's own words and without
// [Graph], so that it can judge everything that uses it. [Sequence] makes the
// moves that a fixed order needs. Instances have dense IDs, sub-graph by
// sub-graph; costs are counted in whole units of [Graph.Unit] so that sums are
// exact.
//
// [Methods] lists what solves it, and [Solve] runs one: greedy rules, a search over
// states, and an integer program. Each checks the others.
//
// A problem has no order exactly if some instance by itself is larger than the
// capacity: otherwise everything that the running instance does not touch can
// wait in the GB. [InfeasibleError] names that instance.
//
// # Greedy rules
//
// Each rule fixes the order; the moves are then made as needed, by [Sequence].
//
//   - bfs: breadth first. All instances of one level before the next, a level being
//     the longest distance from an instance that reads nothing.
//   - dfs: Algorithm 3 of GraphTurbo (J. Zhao et al., OSDI 2023): the instance that
//     became known last and can run, runs.
//   - heavy: heavier first, the priority that the same paper names as future work
//     and does not define. Read here as: of the instances that can run, the one
//     that leaves the least behind in the local buffer, that is the smallest
//     difference of its output and of what it is the last to read; among equals
//     the one that needs the most while it runs, then the lowest ID. Heavy
//     instances so run while little else waits, and what they free is free early.
//
// None proves anything: the bound is 0, or for the peak the largest single need.
//
// # Exact methods
//
// The sections below are the essay of [Search], of the bounds that it shares with the
// program, and of [CountingILP].
//
// # Parts
//
// Connected components of the instance graph are solved one by one. Restricted to
// the instances and outputs of a component, any order of the whole is an order of
// the component, in which the LB holds no more and every move is one of the
// whole's. So the sum of the optima is a bound (for the peak: the largest). To run
// the components one after the other meets it, since nothing stays live between
// them. Components that differ in names only are solved once.
//
// # Classes
//
// Outputs with several readers are shared; others are counted. Classes are the
// coarsest partition of the instances in which
//
//   - members agree in output, workspace, and whether anything reads the output,
//   - members agree in the class of their only reader, if they have one,
//   - members have the same readers, if they have several: they are twins, and whoever
//     reads one of them reads them all, and
//   - members read equally many outputs of each class.
//
// Claim: it is enough to know of a class how many have run, how many outputs wait in the GB, and of twins how many have
// a copy there besides. Take any play in which a run of class k consumes the right number of live outputs of each
// counted class, whichever they are. Name the runs from the readers to what they read: those of classes that nothing
// reads in any way; then, a run that has become instance i consumed as many outputs of class j as i reads, so their
// runs can be named after those that i reads. Every output of j is consumed once, by a run of the only class that reads
// j, and every member of j is read once by a member of that class; so each name is given once. Twins may have any
// names: each of their readers takes all of them, whichever they are. The result is an order by the rules with the same
// moves; replay makes it. Conversely, each order by the rules is such a play.
//
// Where each output has one reader, as in chains without halo, everything is
// counted and no symmetry is left. It is not enough to run the instances of a
// sub-graph in index order: see TestIndexOrderIsNotEnough.
//
// # States
//
// A state has for each class the runs and a place. The place of a counted class is
// the number of its live outputs in the GB; they have no copy in the LB, as an
// output is loaded only to be read and then dies. A shared output is in the LB
// (dirty), in the GB, or in both (clean); once loaded it may be dropped for
// nothing, so of twins a clean one leaves before a dirty one: to store that instead
// costs a store now, for which the dirty one can be stored later. The place of twins
// is how many are in the GB and how many are clean. An arc runs one instance: it
// stores some outputs, loads what the run misses, and pays for both.
//
// Arcs move as little and as late as they can, at no loss. To store later costs
// the same and keeps more in the LB, from where it can be stored still; so it is
// enough to store sets of which no part would free enough room. To load later
// leaves more room. A run takes counted outputs from the LB before it loads any: to
// load one instead costs its load now, and leaves in the LB what otherwise could be
// loaded later for as much.
//
// # Dominance
//
// Let states A and B have the same runs, at costs a and b. A can be played as B is,
// if it pays at most
//
//	distance(A, B) = sum over outputs of
//	    store, if A has it dirty and B in the GB or in both places,
//	    load,  if A has it in the GB only and B in the LB,
//	    0      otherwise
//
// where those of one class are paired so that this is least: the dirty ones of A with
// those of B, as far as there are, and those in the GB likewise.
//
// Outputs that only B has in the LB are loaded at once, after dropping those that
// only A has there: those in the GB as well for nothing, dirty ones for a store,
// which gives A what B has. Then A's LB holds what B's holds. What A has dirty and B
// in both places is stored when B drops it. So if a + distance(A, B) <= b, nothing
// below B is cheaper than the best below A, and B is dropped. Every arc adds a run,
// so states that drop each other can only have the same runs, and the first one
// stays.
//
// # Running at once
//
// Let i be ready with all that it reads in the LB, and fit without a store. Let F
// be what its run frees, E any part of F with less than the size of i's output left
// in F without E. If F is as large as the output, and to store (unless clean) and
// load such E always costs as much as to store and load i's output, then some best
// way on runs i first: take a best way and move i to the front. Until i's old
// place, the LB holds i's output instead of those of F that it held. While those
// are at least as large, it fits. Let it be too little at some time: the old way
// had such an E in the GB, so it stored it (unless clean) and loaded it again
// before i ran; the new way stores i's output then and loads it at i's old place,
// and pays no more. What i reads and others read later is loaded when the old way
// loads it. The code asks for a little more: each of F costs no less than the
// output. An instance whose output nothing reads satisfies it always.
//
// For the peak, where nothing moves, it is enough that F is as large as the output
// and that the run stays within the peak so far.
//
// # Bound
//
// Every live output that is in the GB only is loaded once more. Further, let the
// cone of an instance be itself and what it needs, transitively, by counted outputs
// only, with the shared outputs it reads as part of the workspace. The cones of a
// class are disjoint trees. Restricted to an untouched cone (nothing in it has run),
// what follows is an order of the cone alone, so its moves cost the cone's optimum
// at least. They move outputs of the cone only, other than those in the GB now. Let
// V(k) be at most the optimum of a cone of class k, and at least the sum of V over
// the cones of what an instance of k reads; the gain of k is the difference. Then
//
//	sum over k of gain(k) * (cones of class k that are untouched)
//
// is at most what the largest untouched cones cost, as the sum telescopes. Each
// live output below k, and each run of k, touches at most one of k's cones, which
// counts the untouched ones from below. V is found by the same search, small cones
// first. This bound is used to drop states and as the bound at the root; it does not
// rank them, since it falls by more than is paid when work on a cone begins.
//
// # Search
//
// First a beam: depth by depth, only the states with the least estimate are kept;
// this gives a good order soon. Then A*: the state of least estimate first, the
// deepest among equals, states that cannot beat the order at hand dropped.
//
//	open := {root}
//	while open is not empty and no limit is reached
//	    take s of least estimate from open
//	    if all have run: optimal
//	    for each arc of s, or the one that runs at once
//	        drop the child if its bound is not below the order's cost
//	        drop the child if a state with the same runs dominates it
//	        drop such states that it dominates; add it to open
//	optimal if open is empty, else the least estimate in open is the bound
//
// The estimate (cost, and loads of what is in the GB only) never falls along an arc.
// For the peak, cost is the largest need so far, and the rest is the same.
//
// Runs and places are packed into words, with one hash table over the runs whose
// chains are the states to compare. Memory is counted, and the search stops with
// its bound at defaultMaxBytes or the caller's limit. Everything is in order of numbers; there
// is no randomness.
//
// # Integer program
//
// Sets: classes k in K, in topological order; C the counted ones that are read, p(k)
// the class that reads k, m(k) outputs per run; S the shared ones, J(k) the classes
// that read k; steps t = 1..T, one per instance. [CountingILP] takes the classes above,
// with every shared output by itself.
//
// Data: n(k) members, b(k) bytes of output, w(k) of workspace, f(k) and g(k) the
// costs to store and to load an output, M the capacity.
//
// Variables (at step 0 all are 0):
//
//	x[k,t] in {0,1}            step t runs an instance of class k
//	R[k,t], G[k,t] >= 0        k in C: live outputs in the LB, in the GB after step t
//	s[k,t], l[k,t] integer     k in C: stored, loaded before step t
//	a[k,t] in {0,1}            k in S: the output is in the LB during step t
//	c[k,t] in {0,1}            k in S: the GB has had a copy by step t
//	d[k,t] in {0,1}            k in S: the output is loaded before step t
//
// Minimise
//
//	sum k in C, t: (f(k) + g(k)) l[k,t]  +  sum k in S: f(k) c[k,T] + sum t: g(k) d[k,t]
//
// (what is stored of a counted class is loaded, so its store is charged with the load)
//
// subject to
//
//	 (1) sum k: x[k,t] = 1                                               for all t
//	 (2) sum t: x[k,t] = n(k)                                            for all k
//	 (3) R[k,t] = R[k,t-1] - s[k,t] + l[k,t] + x[k,t] - m(k) x[p(k),t]   for all k in C, t
//	 (4) G[k,t] = G[k,t-1] + s[k,t] - l[k,t]                             for all k in C, t
//	 (5) R[k,t] >= x[k,t]                                                for all k in C, t
//	 (6) a[k,t] >= x[k,t]                                                for all k in S, t
//	 (7) a[k,t] >= x[j,t]                                                for all k in S, j in J(k), t
//	 (8) a[k,t] <= a[k,t-1] + x[k,t] + d[k,t]                            for all k in S, t
//	 (9) d[k,t] <= c[k,t-1]                                              for all k in S, t
//	(10) c[k,t-1] <= c[k,t] <= c[k,t-1] + a[k,t-1]                       for all k in S, t
//	(11) sum k in C: b(k) (R[k,t-1] - s[k,t] + l[k,t]) + sum k in S: b(k) a[k,t]
//	     + sum k: w(k) x[k,t] + sum k not in S: b(k) x[k,t] <= M         for all t
//
// and, each of which can be left out,
//
//	(12) x[k,t] = 0  unless  before(k) < t <= T - after(k)               for all k, t
//	(13) sum u<=t: x[j,u] <= n(j) sum u<t: x[k,u]                        for all k in S, j in J(k), t
//	(14) l[k,t] <= m(k) x[p(k),t],  d[k,t] <= sum j in J(k): x[j,t]
//	(15) sum k in C: b(k) (R[k,t-1] - s[k,t] + l[k,t]) + sum k in S: b(k) a[k,t]
//	     <= sum k: q floor((M - w(k) - [k not in S] b(k)) / q) x[k,t]      for all t
//	(16) sum j below k, t: (f(j) + g(j)) l[j,t] >= n(k) V(k)               for all k with a cone
//
// with before(k) and after(k) the instances that must run before and after one of k. (5) says that what a run reads is
// in the LB: R[k,t] counts the new output as well. An output that is no longer held though something will read it was
// stored, which (9) and (10) charge for; a copy stays, so it is charged once. (14) holds as loads may wait for their
// reader. In (15), q is the greatest common divisor of the outputs that are kept: as one instance runs, they fill at
// most a multiple of q of what it leaves. In (16), V(k) is the bound on the cone of class k that the same program has
// proven, small cones first. Siblings are members of one class with the same reader, or without any, that are stated
// one by one: see below. For the peak, s, l, G, c, d, (15) and (16) are left out, M is a variable Z >= the largest
// single need, and the objective is Z.
//
// Bytes and costs are divided by their greatest common divisor, so that every cost
// is a whole number and the solver's bound can be rounded up.
//
// The program is exact for every problem, and small where few outputs are shared. A
// solution is decoded into an order with its moves, by [replay], and checked.
package ordering
