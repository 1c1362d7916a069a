// Package network finds a network by zoo name or file (ONNX, and what is registered) and gives it at any
// batch size, simplified and ready for scheduling.
//
// Open is for scheduling: it gives a Network. Raw is for looking: the graph as it
// stands in the file or in the zoo, before simplification. A name that ends in .onnx or a registered ending or
// has a path separator in it is a file, any other one of the zoo.
package network

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/grain"
	"github.com/dsasched/dsasched/model/onnx"
	"github.com/dsasched/dsasched/model/simplify"
	"github.com/dsasched/dsasched/model/zoo"
)

// Network is a simplified network that can be built at any batch size.
type Network struct {
	// Name ends in the grain where operators were taken apart: bert-128@framework.
	Name string
	// Assumed states the assumptions about values at run time; empty without any.
	Assumed string
	Graph   func(batch int64) (*model.Graph, error)
}

// A Reader reads the network of a file at a batch size; 0 keeps the file's own.
type Reader func(path string, batch int64, opt Options) (*model.Graph, error)

// readers maps the extension of a file that is not ONNX to its reader.
var readers = map[string]Reader{}

// Register sets the reader of files with an extension, such as .mlir. Package systems calls it when it is imported; it
// must not run concurrently with other calls.
func Register(extension string, r Reader) { readers[extension] = r }

// IsFile reports whether a name is the path of a file: it ends in a known extension or has a path separator.
func IsFile(name string) bool {
	return strings.HasSuffix(strings.ToLower(name), ".onnx") || readerOf(name) != nil ||
		strings.ContainsRune(name, filepath.Separator)
}

// readerOf is the registered reader of a file of this name, nil if there is none.
func readerOf(name string) Reader {
	extension := strings.ToLower(filepath.Ext(name))
	for begins, r := range readers {
		if strings.HasPrefix(extension, begins) {
			return r
		}
	}
	return nil
}

// Options say how a network is read. The zero value is the default.
type Options struct {
	// DType is the type of all floating-point tensors; the zero value is F16. I8
	// gives the network as it would be after quantisation.
	DType model.DType
	// Grain says how far operators are taken apart; "" is grain.Given.
	Grain grain.Grain
	// The rest concerns files; see onnx.Options.
	Dims         map[string]int64
	AllowUnknown bool
	Warn         func(string)
}

// Raw returns the graph before simplification. Batch 0 keeps a file's own batch size and is 1 for the zoo.
func Raw(name string, batch int64, opt Options) (*model.Graph, error) {
	g, err := read(name, batch, opt)
	if err != nil {
		return nil, err
	}
	r, err := grain.To(g, opt.Grain)
	return r.Graph, err
}

// read returns the network with the operators that it is given with.
func read(name string, batch int64, opt Options) (*model.Graph, error) {
	if batch < 0 {
		return nil, fmt.Errorf("batch is %d, expected at least 1", batch)
	}
	if r := readerOf(name); r != nil {
		return r(name, batch, opt)
	}
	if ext := strings.ToLower(filepath.Ext(name)); ext == ".yaml" || ext == ".yml" {
		return nil, fmt.Errorf("found %s, which describes an accelerator (--hardware), expected a network", name)
	}
	if IsFile(name) {
		return onnx.Import(name, onnx.Options{Batch: batch, Float: &opt.DType, Dims: opt.Dims, AllowUnknown: opt.AllowUnknown,
			Warn: opt.Warn})
	}
	if len(opt.Dims) > 0 {
		return nil, fmt.Errorf("%s is a built-in network, which has no symbolic dimension but its batch", name)
	}
	g, err := zoo.Build(name, zoo.Options{Batch: max(1, batch), DType: opt.DType})
	if err != nil {
		if _, known := zoo.Describe(name); known {
			return nil, err
		}
		if _, statErr := os.Stat(name); statErr == nil {
			return nil, fmt.Errorf("%w (to read a file of this name, write ./%s)", err, name)
		}
		return nil, fmt.Errorf("%w; the path of a file ends in %s", err,
			strings.Join(append([]string{".onnx"}, slices.Sorted(maps.Keys(readers))...), " or "))
	}
	return g, nil
}

// Open returns a network of the zoo or of a file for scheduling. It builds the graph once, so that a wrong name or file
// is reported here.
func Open(name string, opt Options) (Network, error) {
	if warn := opt.Warn; warn != nil {
		// Once, however often the file is read.
		told := map[string]bool{}
		var mu sync.Mutex
		opt.Warn = func(s string) {
			mu.Lock()
			defer mu.Unlock()
			if !told[s] {
				told[s] = true
				warn(s)
			}
		}
	}
	net, err := Of(name, func(batch int64) (*model.Graph, error) { return Raw(name, batch, opt) })
	if err != nil {
		return Network{}, err
	}
	if IsFile(name) {
		net.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	}
	net.Name += suffix(opt.Grain)
	info, _ := zoo.Describe(name)
	_, net.Assumed, _ = strings.Cut(info.Description, "; assumed: ")
	return net, nil
}

// Of makes a network from a function that builds its graph for a batch of so many elements (model.NewBuilder); the
// batch is the first dimension of inputs and outputs. Of calls it once for one element, so that mistakes are reported
// here. Graphs are simplified as those of files are.
func Of(name string, build func(batch int64) (*model.Graph, error)) (Network, error) {
	g, err := Simplified(build, 1)
	if err != nil {
		return Network{}, err
	}
	if len(g.Ops) == 0 {
		return Network{}, errors.New(name + ": the network has no operators")
	}
	var first atomic.Pointer[model.Graph] // is not built again
	first.Store(g)
	return Network{Name: name, Graph: func(batch int64) (*model.Graph, error) {
		if batch == 1 {
			if g := first.Swap(nil); g != nil {
				return g, nil
			}
		}
		return Simplified(build, batch)
	}}, nil
}

// Simplified builds a graph and simplifies it for scheduling, with parts of inputs as inputs.
func Simplified(build func(batch int64) (*model.Graph, error), batch int64) (*model.Graph, error) {
	g, err := build(batch)
	if err != nil {
		return nil, err
	}
	if g, _, err = simplify.Run(g); err == nil {
		g, err = simplify.ReadParts(g)
	}
	if err == nil {
		g.Remember()
	}
	return g, err
}

// FuseAttention returns a network with each attention as one operator; see simplify.FuseAttention.
func FuseAttention(n Network) Network {
	return n.changed(func(g *model.Graph) (*model.Graph, error) {
		g, _, err := simplify.FuseAttention(g)
		return g, err
	})
}

// BiasApart returns a network with the biases of convolutions as operators of their own; see simplify.BiasApart.
func BiasApart(n Network) Network { return n.changed(simplify.BiasApart) }

// changed is a network with another graph in the place of each.
func (n Network) changed(to func(*model.Graph) (*model.Graph, error)) Network {
	of := n.Graph
	n.Graph = func(batch int64) (*model.Graph, error) {
		g, err := of(batch)
		if err != nil {
			return nil, err
		}
		if g, err = to(g); err == nil {
			g.Remember()
		}
		return g, err
	}
	return n
}

// Slice returns a network with each feed-forward in a number of slices; see simplify.Slice. Without numbers it returns
// n.
func Slice(n Network, parts []int64) Network {
	if len(parts) == 0 {
		return n
	}
	return n.changed(func(g *model.Graph) (*model.Graph, error) { return simplify.Slice(g, parts) })
}

// HasAttention reports whether FuseAttention changes a network.
func HasAttention(n Network) (bool, error) {
	g, err := n.Graph(1)
	if err != nil {
		return false, err
	}
	_, found, err := simplify.FuseAttention(g)
	return found > 0, err
}

// suffix is the part of a network's name that states its grain, such as @framework.
func suffix(g grain.Grain) string {
	if g == "" || g == grain.Given {
		return ""
	}
	return "@" + string(g)
}

// At cuts the suffix of a grain off a name.
func At(name string) (string, grain.Grain) {
	for _, g := range grain.Grains() {
		if short, ok := strings.CutSuffix(name, "@"+string(g)); ok {
			return short, g
		}
	}
	return name, ""
}
