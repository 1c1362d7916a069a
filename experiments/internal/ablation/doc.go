// Package ablation asks what each idea of GraphTurbo is worth on the two networks of which
// the paper gives more than an average (§5.3, Fig. 15), and whether the mechanism that the
// paper describes comes out.
package ablation
