// Package structure finds the layers, blocks and stages of a network, and what memory and work each takes. GraphTurbo
// (OSDI'23, §1 and Figure 2) rests on these words, but only shows them on ResNet-50; here they come from the structure
// of any simplified graph, and never from names.
//
// # Layers and cuts
//
// A layer is one of schedule.Layers: nodes in a straight line, at most one of them
// heavy. Layers stand in execution order.
//
// The data flow begins where an operator brings a network input together with learned parameters, or multiplies two
// inputs as matrices, and goes on to all that depends on that. Constants do not belong to it, nor do inputs themselves
// and what is made of them otherwise: an attention mask is read everywhere and would hide all structure.
//
// A cut is a place between two layers over which exactly one tensor of the data flow is carried, and behind which no
// data flow begins: all paths go through that tensor. A region is what stands between one cut and the next. Its entry
// is the tensor carried into it, its exit the one carried out.
//
// # Types
//
// Two runs of layers have the same type if they are isomorphic: same kinds and attributes, wired alike, on tensors
// whose extents stand in the same ratio to those of the entry. So the identity blocks of all stages of ResNet-50 have
// one type, though their channels differ. A hash of what is upstream and downstream of each operator decides this; it
// may call two runs alike that only differ in how equal branches cross, which no network is known to do.
//
// # Blocks
//
// A block is a layer or a component of several layers that is used repeatedly.
// Every region begins as a block; then, in this order:
//
//  1. A region of one layer without a matrix operator that keeps the tensor's shape
//     (a normalisation, a softmax) is an auxiliary of the block before, if all blocks
//     of that type are followed by the same. So it goes on until none is left.
//  2. A sequence of two or more different blocks that stands twice or more in a row
//     and leaves the shape of its tensor as it was is one block, repeated. This makes
//     12 encoder layers of BERT's 24 halves.
//  3. Blocks in a row whose layers are, one for one, of the sorts of some other
//     block's layers form such a block without its bypass. This makes an inverted
//     residual of the three layers where a stride or new channels forbid the bypass.
//     The sort of a layer is its heavy operator's kind, whether a kernel is larger
//     than one element, and how it groups. One sort alone makes no pattern.
//
// Blocks with at least two matrix operators are composite. A network without cuts is one block.
//
// # Stages
//
// A stage is a longest run of blocks whose results have the same size: the spatial extents of an image, whose channels
// a conv block may change within a stage; for anything else all extents but the batch. What changes the size belongs
// to the stage that it begins, as a conv block does. A run without a matrix operator (a pooling) does not make a stage
// and joins the next.
//
// The stem is all blocks up to the last that changes the size before the first composite one, where the very first
// counts as changing it; the head begins at the first that does so after the last composite one. A network without
// composite blocks has no stem, and its head is what follows the last image. The body between has the numbered stages.
//
// # Memory
//
// Live bytes of a layer are those of all activations that exist while it runs: what it reads and writes, and what
// later layers or the caller will read. Network inputs live from the start. Tensors within a layer are never whole in
// memory and count nothing; reshapes count as copies. Sizes are in bytes, for the batch of the graph.
package structure
