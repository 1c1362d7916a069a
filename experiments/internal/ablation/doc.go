// Package ablation asks what each idea of GraphTurbo is worth on the two networks of which
// the paper gives more than an average (§5.3, Fig. 15), and whether the mechanism that the
// paper describes comes out. It records the variants for the viewer of the report page, too. Published numbers stand
// beside ours in the experiments of their figures and tables.
package ablation
