package zoo

import (
	"fmt"

	"github.com/dsasched/dsasched/model"
)

// recommender is a configuration of the DLRM family (Naumov et al., 2019).
type recommender struct {
	Dense  int64   // dense features
	Rows   []int64 // of each sparse feature's table
	Bottom []int64 // widths of the layers; the last is also that of a table's row
	Top    []int64 // widths of the layers after the interaction; the last gives the result
}

// criteoTerabyte are the rows of the 26 tables for Criteo's Terabyte click logs with indices taken modulo ten million
// and negatives sampled at 0.875: the options --max-ind-range=10000000 --data-sub-sample-rate=0.875 of the DLRM
// repository, whose bench/dlrm_s_criteo_terabyte.sh has that cap. MLPerf's inference repository lists the numbers in
// recommendation/dlrm/pytorch/python/main.py. MLPerf measures with a cap of forty million, 187,767,399 rows in all,
// which at 128 features takes 48 GB in FP16.
var criteoTerabyte = []int64{
	9980333, 36084, 17217, 7378, 20134, 3, 7112, 1442, 61, 9758201, 1333352, 313829, 10,
	2208, 11156, 122, 4, 970, 14, 9994222, 7267859, 9946608, 415421, 12420, 101, 36,
}

// criteoKaggle are the rows for Criteo's Kaggle display advertising challenge,
// as the DLRM repository's preprocessing counts them.
var criteoKaggle = []int64{
	1460, 583, 10131227, 2202608, 305, 24, 12517, 633, 3, 93145, 5683, 8351593, 3194,
	27, 14992, 5461306, 10, 5652, 2173, 4, 7046547, 18, 15, 286181, 105, 142572,
}

// build makes the network of a configuration: the dense features through the bottom layers, one row of each table, the
// products of each pair of these vectors, and the top layers on the dense vector and the products. This is the order
// of the PyTorch reference.
//
// A query has one index per sparse feature, so there is nothing to sum up behind a
// lookup; the reference has an EmbeddingBag there, which the variant says.
func (c recommender) build(name string, opt Options) (*model.Graph, error) {
	b := &sequences{model.NewBuilder(name), opt.DType}
	if len(c.Bottom) == 0 || len(c.Top) == 0 || len(c.Rows) == 0 {
		b.Fail(fmt.Errorf("%d bottom layers, %d top layers and %d tables, expected at least one each", len(c.Bottom),
			len(c.Top), len(c.Rows)))
		return b.Build()
	}
	dense := b.Input("dense", opt.DType, opt.Batch, c.Dense)
	var indices []model.TensorID
	for i := range c.Rows {
		indices = append(indices, b.Input(fmt.Sprintf("sparse%d", i), model.I32, opt.Batch))
	}

	features, vectors := c.Bottom[len(c.Bottom)-1], int64(len(c.Rows)+1)
	dense = b.perceptron("bottom", dense, c.Bottom, "Relu")
	all := []model.TensorID{dense}
	for i, rows := range c.Rows {
		table := fmt.Sprintf("table%d", i)
		all = append(all, b.Op("Gather", table, model.Attr{Variant: "bag=sum"},
			b.Param(table+".weight", opt.DType, rows, features), indices[i]))
	}

	x := b.Op("Concat", "interaction.concat", model.Attr{Axis: 1}, all...)
	x = b.Op("Reshape", "interaction.vectors", model.Attr{Shape: []int64{opt.Batch, vectors, features}}, x)
	t := b.Op("Transpose", "interaction.transpose", model.Attr{Perm: []int64{0, 2, 1}}, x)
	x = b.Op("MatMul", "interaction.products", model.Attr{}, x, t)
	x = b.Op("Reshape", "interaction.flatten", model.Attr{Shape: []int64{opt.Batch, vectors * vectors}}, x)
	// The products are symmetric: what lies below the diagonal is all of them.
	x = b.Op("Gather", "interaction.triangle", model.Attr{Axis: 1}, x,
		b.Const("interaction.below", model.I32, nil, vectors*(vectors-1)/2))
	x = b.Op("Concat", "interaction.result", model.Attr{Axis: 1}, dense, x)

	b.Output(b.perceptron("top", x, c.Top, "Sigmoid"))
	return b.Build()
}

// perceptron is a chain of linear layers with ReLU between; last is the activation after the final one.
func (b *sequences) perceptron(name string, x model.TensorID, widths []int64, last model.Kind) model.TensorID {
	for i, w := range widths {
		layer := fmt.Sprintf("%s.fc%d", name, i)
		x = b.images().linear(layer, x, w)
		if i < len(widths)-1 {
			x = b.Op("Relu", layer+".relu", model.Attr{}, x)
		} else {
			x = b.Op(last, name+".result", model.Attr{}, x)
		}
	}
	return x
}
