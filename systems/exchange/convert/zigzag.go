package convert

import (
	"fmt"
	"slices"
	"strings"
)

// A core is one of ZigZag's: its array, the buffers next to it, and the memory behind them.
type core struct {
	node
	name             string
	rows, cols, rate quantity
	macs             float64
	data, weights    *memory // the same, or nil
	offChip          *memory
	operators        []string
	unitEnergy       float64 // joules
}

type memory struct {
	node
	bytes    float64
	rate     float64 // bytes a cycle of all ports
	energy   float64 // joules a byte, of reads and writes in the mean
	latency  float64 // cycles
	operands []string
	served   []string
}

func (m *memory) holds(operand string) bool { return slices.Contains(m.operands, operand) }

var memoryFields = []string{"size", "r_cost", "w_cost", "area", "latency", "auto_cost_extraction", "mem_type",
	"double_buffering_support",
	"operands", "ports", "served_dimensions"}

// earlierFields are those of releases before each port had a bandwidth of its own.
var earlierFields = append([]string{"r_bw", "w_bw", "r_port", "w_port", "rw_port", "min_r_granularity", "min_w_granularity"},
	memoryFields...)

func (c *converter) memory(n node) *memory {
	earlier := n.has("r_bw")
	if earlier {
		n.keys(earlierFields...)
	} else {
		n.keys(memoryFields...)
	}
	m := &memory{node: n, bytes: n.at("size").number() / 8, operands: n.at("operands").words(),
		served: n.at("served_dimensions").words(), latency: n.at("latency").number()}
	for _, o := range m.operands {
		if !slices.Contains([]string{"I1", "I2", "O"}, o) {
			n.at("operands").fail(o, "I1, I2 or O")
		}
	}
	read, write := 0.0, 0.0 // bytes of an access
	if earlier {
		read, write = n.at("r_bw").number()/8, n.at("w_bw").number()/8
		m.rate = read*n.at("r_port").number() + write*n.at("w_port").number() + max(read, write)*n.at("rw_port").number()
		if min(read, write) == 0 || m.rate == 0 {
			n.at("r_bw").fail("a memory without reads, writes or ports", "bandwidths and a port")
		}
	} else {
		for _, p := range n.at("ports").items() {
			p.keys("name", "type", "bandwidth_min", "bandwidth_max", "allocation")
			w := p.at("bandwidth_max").number() / 8
			read = max(read, w)
			m.rate += w
		}
		write = read
	}
	if n.text("auto_cost_extraction") == "True" || n.text("auto_cost_extraction") == "true" {
		c.lose(n.at("auto_cost_extraction"), "energies come from CACTI and are not in the file")
	} else if read > 0 {
		m.energy = (n.at("r_cost").number()/read + n.at("w_cost").number()/write) / 2 * 1e-12
	}
	for _, k := range []string{"area", "double_buffering_support", "min_r_granularity", "min_w_granularity"} {
		if n.has(k) {
			c.lose(node{n.file, "memories.*." + k, n.Node}, "nothing here has it")
		}
	}
	return m
}

// core reads a core; alone says that its outermost memory is the one off the chip.
func (c *converter) core(n node, alone bool) *core {
	n.keys("name", "type", "memories", "operational_array", "operator_types", "operand_precision", "dataflows", "mapping")
	k := &core{node: n, name: n.text("name")}
	for _, f := range []string{"dataflows", "mapping"} {
		if n.has(f) {
			c.lose(n.at(f), "mappings are decisions of the scheduler")
		}
	}
	if n.has("operand_precision") {
		c.lose(n.at("operand_precision"), "the network says of which types its tensors are")
	}
	if n.has("operator_types") {
		k.operators = n.at("operator_types").words()
	}
	array := n.at("operational_array")
	array.keys("input_precision", "unit_energy", "unit_area", "dimensions", "sizes")
	c.lose(node{n.file, "operational_array.unit_area", array.Node}, "nothing here has it")
	k.unitEnergy = array.at("unit_energy").number() * 1e-12
	dims, sizes := array.at("dimensions").words(), array.at("sizes").items()
	if len(dims) != len(sizes) {
		array.at("sizes").fail(fmt.Sprintf("%d sizes", len(sizes)), fmt.Sprintf("one for each of %d dimensions", len(dims)))
	}
	var list []*memory
	mems := n.at("memories")
	for _, name := range mems.keys() {
		list = append(list, c.memory(mems.at(name)))
	}
	if len(list) == 0 {
		mems.fail("no memory", "at least one")
	}
	k.macs = 1
	wide := map[string]float64{}
	for i, s := range sizes {
		wide[dims[i]] = s.number()
		k.macs *= s.number()
	}
	if k.macs == 0 || (alone && len(list) > 1) {
		k.offChip = list[len(list)-1]
		list = list[:len(list)-1]
	}
	k.buffers(c, list, dims, wide)
	if k.macs > 0 {
		k.array(list, dims, wide)
	}
	return k
}

// buffers finds those that all of the array shares, and counts registers as a weight buffer where there is no other.
func (k *core) buffers(c *converter, list []*memory, dims []string, wide map[string]float64) {
	var inner []string
	for i := len(list) - 1; i >= 0; i-- {
		m := list[i]
		copies := 1.0
		for _, d := range dims {
			if !slices.Contains(m.served, d) {
				copies *= max(wide[d], 1)
			}
		}
		data, weights := m.holds("I1") || m.holds("O"), m.holds("I2")
		used := false
		if copies == 1 && data && k.data == nil {
			k.data, used = m, true
		}
		if weights && k.weights == nil && (copies == 1 || k.offChip != nil) {
			all := *m
			all.bytes, all.rate = m.bytes*copies, m.rate*copies
			k.weights, used = &all, true
			if m == k.data {
				k.weights = k.data
			}
		}
		if !used {
			inner = append(inner, m.path[strings.LastIndex(m.path, ".")+1:])
		}
	}
	if len(inner) > 0 {
		slices.Reverse(inner)
		c.lose(node{k.file, k.path, k.Node},
			fmt.Sprintf("%s, between the L1 and the array: what moves there takes no time here", strings.Join(inner, ", ")))
	}
}

// array gives the array's dimensions to rows, columns and pixels.
func (k *core) array(list []*memory, dims []string, wide map[string]float64) {
	innermost := func(operand string) []string {
		for _, m := range list {
			if m.holds(operand) {
				return m.served
			}
		}
		return nil
	}
	weights, results := innermost("I2"), innermost("O")
	if len(weights) == len(dims) && len(results) == len(dims) { // no registers: nothing is known
		weights, results = nil, nil
	}
	k.rows, k.cols, k.rate = quantity{1, "no dimension"}, quantity{1, "no dimension"},
		quantity{1, "no dimension that shares weights"}
	give := func(q *quantity, d, why string) {
		if q.value == 1 {
			q.origin = "operational_array.sizes, " + d
		} else {
			q.origin += " x " + d
		}
		q.value *= wide[d]
		q.origin += why
	}
	var others []string
	for _, d := range dims {
		switch {
		case slices.Contains(weights, d) && !slices.Contains(results, d):
			give(&k.rate, d, ", which shares weights")
		case slices.Contains(results, d):
			give(&k.rows, d, ", which shares results")
		default:
			others = append(others, d)
		}
	}
	for i, d := range others {
		if i == 0 && len(others) > 1 && k.rows.value == 1 {
			give(&k.rows, d, " (ASSUMED: the reduction)")
		} else {
			give(&k.cols, d, "")
		}
	}
}

const nanosecond = 1e9 // cycles a second

func (m *memory) store() *store {
	return &store{size: quantity{m.bytes, m.path + ".size"},
		rate:    quantity{m.rate * nanosecond, m.path + ".ports, all together"},
		latency: quantity{0, m.path + ".latency, which moves hide there"},
		energy:  quantity{m.energy, m.path + ", mean of r_cost and w_cost of a port's width"}}
}

// l1 is the core's buffers.
func (k *core) l1() *store {
	if k.data == nil {
		k.fail("no memory that all of the array shares", "one that holds I1 or O")
	}
	l := k.data.store()
	if k.weights != nil && k.weights != k.data {
		l.weights = quantity{k.weights.bytes, k.weights.path + ".size, all copies"}
		l.rate.value += k.weights.rate * nanosecond
		l.rate.origin += ", and " + k.weights.path
	}
	return l
}

// place makes the core's buffers the L1, and a core type of its array.
func (k *core) place(a *accelerator, count quantity) {
	a.lb = k.l1()
	a.types = []coreType{{name: "core", count: count, rows: k.rows, cols: k.cols, rate: k.rate}}
	a.clock = quantity{nanosecond, "ASSUMED: none there; a cycle is a nanosecond"}
	a.mac = quantity{k.unitEnergy, "operational_array.unit_energy"}
	a.staticW = quantity{0, "ASSUMED: none there"}
}

// lanes are those of a vector unit that the array is.
func (k *core) lanes(origin string) quantity { return quantity{min(k.macs, 65536), origin} }

func (c *converter) zigzag(n node, a *accelerator) {
	k := c.core(n, true)
	if k.offChip == nil {
		n.at("memories").fail("one memory", "buffers, and behind them the memory off the chip")
	}
	a.name, a.description = k.name, "A core of ZigZag: "+k.name
	k.place(a, quantity{1, "one core"})
	a.types[0].lanes, a.types[0].shared = k.lanes("operational_array.sizes: the array does all operators"), true
	a.vector = a.mac
	a.ddr = k.offChip.store()
	a.coreLink = quantity{k.data.rate * nanosecond, k.data.path + ".ports: one core has no other to talk to"}
	a.ddrLink.origin = "none there"
}

// A kind is the cores of a system whose files say the same.
type kind struct {
	*core
	file string
	ids  []string
}

var (
	products = []string{"MatMul", "Gemm", "Conv", "Einsum"}
	moves    = []string{"Concat", "Expand", "Gather", "Pad", "Reshape", "Slice", "Split", "Transpose"}
)

// multiplies says whether a kind's array has two dimensions or more, for products.
func (k *kind) multiplies() bool {
	if !slices.Contains(k.runs(), "matrix") {
		return false
	}
	longest := max(k.rows.value, k.cols.value, k.rate.value)
	return k.macs > longest && longest > 1
}

// runs are the classes of operators that the cores run. All cores move data.
func (k *kind) runs() []string {
	var list []string
	for _, class := range []string{"matrix", "reduction", "element-wise"} {
		if len(k.operators) == 0 || slices.ContainsFunc(k.operators, func(o string) bool { return classOf(o) == class }) {
			list = append(list, class)
		}
	}
	return append(list, "injective")
}

func classOf(operator string) string {
	switch {
	case slices.Contains(products, operator):
		return "matrix"
	case slices.Contains(moves, operator):
		return "injective"
	case strings.HasPrefix(operator, "Reduce"), strings.HasSuffix(operator, "Pool"),
		strings.HasSuffix(operator, "Softmax"), strings.HasSuffix(operator, "Normalization"):
		return "reduction"
	}
	return "element-wise"
}

// kinds reads the files of cores; outside is the memory off the chip.
func (c *converter) kinds(n node, off string) (list []*kind, outside *memory) {
	if len(n.keys()) > 1024 {
		n.fail("more than 1024 cores", "fewer")
	}
	of := map[string]*kind{}
	for _, id := range n.keys() {
		at := n.at(id)
		data, err := c.read(at.Value)
		if err != nil {
			at.fail(at.Value+", which can't be read: "+err.Error(), "the file of a core")
		}
		if k := of[string(data)]; k != nil && id != off {
			k.ids = append(k.ids, id)
			continue
		}
		k := &kind{c.core(parse(at.Value, data), false), at.Value, []string{id}}
		switch {
		case id == off:
			outside = k.offChip
		case k.macs == 0:
			at.fail(at.Value+", whose array has no size", "one such core, the one off the chip")
		default:
			of[string(data)] = k
			list = append(list, k)
		}
	}
	return list, outside
}

func (c *converter) stream(n node, a *accelerator) {
	n.keys("name", "cores", "offchip_core_id", "unit_energy_cost", "core_connectivity", "core_memory_sharing",
		"core_coordinates", "technology_node")
	a.name, a.description = n.text("name"), "A system of Stream: "+n.text("name")
	ids := n.at("cores")
	off := n.at("offchip_core_id").Value
	list, outside := c.kinds(ids, off)
	if outside == nil {
		n.at("offchip_core_id").fail(off, "the id of a core whose array has no size")
	}
	var compute, helpers []*kind
	for _, k := range list {
		if k.multiplies() {
			compute = append(compute, k)
		} else {
			helpers = append(helpers, k)
		}
	}
	if len(compute) == 0 {
		ids.fail("no core for products", "at least one, with an array of two dimensions")
	}
	main := compute[0]
	main.place(a, quantity{float64(len(main.ids)), "cores " + strings.Join(main.ids, ", ")})
	var pairs []node
	if n.has("core_memory_sharing") {
		pairs = n.at("core_memory_sharing").items()
	}
	if len(compute) > 1 {
		c.mixed(ids, a, append(compute, helpers...))
		for _, p := range pairs {
			p.fail(p.Value, "no shared memories where the cores that multiply differ")
		}
	} else {
		c.alike(ids, a, main, helpers, pairs)
	}
	a.ddr = outside.store()
	for _, f := range []struct{ name, why string }{{"unit_energy_cost", "links take no energy here"},
		{"core_coordinates", "cores have no places here"}, {"technology_node", "nothing here has it"}} {
		if n.has(f.name) {
			c.lose(n.at(f.name), f.why)
		}
	}
	a.coreLink = quantity{main.data.rate * nanosecond, main.data.path + ".ports: no links between cores"}
	a.ddrLink.origin = "none there"
	const bytes = nanosecond / 8
	between := false
	for _, l := range n.at("core_connectivity").items() {
		l.keys("type", "cores", "bandwidth", "unit_energy_cost")
		ends, rate := l.at("cores").words(), l.at("bandwidth").number()*bytes
		switch {
		case slices.Contains(ends, off):
			if !(a.ddrLink.value > rate) {
				a.ddrLink = quantity{rate, l.path + ", " + l.text("type") + " to the memory off the chip"}
			}
		case !between || rate < a.coreLink.value:
			between, a.coreLink = true, quantity{rate, l.path + ": the slowest of the links between cores"}
		}
	}
	c.lose(n.at("core_connectivity"), "which cores are linked: here any two are")
}

// alike makes core types of cores that multiply, all of one kind, and of the helper that is the vector unit.
func (c *converter) alike(ids node, a *accelerator, main *kind, helpers []*kind, pairs []node) {
	core := &a.types[0]
	var vector *kind
	for _, k := range helpers {
		if vector == nil && (len(k.operators) == 0 || slices.Contains(k.operators, "Add")) {
			vector = k
			continue
		}
		c.lose(ids.at(k.ids[0]), k.file+": its operators run on the vector unit, of which there is one kind")
	}
	if vector == nil {
		core.lanes, core.shared = main.lanes("ASSUMED: the array does all operators"), true
		a.vector = a.mac
		return
	}
	a.vector = quantity{vector.unitEnergy, vector.file + ", unit_energy"}
	lanes, apart := vector.lanes("sizes of "+vector.file), true
	for _, p := range pairs {
		pair := strings.ReplaceAll(p.Value, " ", "")
		one, other := main.ids[0], vector.ids[0]
		if p.Value == "" || len(main.ids)+len(vector.ids) > 2 || pair != one+","+other && pair != other+","+one {
			p.fail(p.Value, "the one core that multiplies and the vector core: other memories are not shared here")
		}
		apart = false // one core with two units
	}
	if !apart {
		core.lanes = lanes
		return
	}
	c.lose(ids.at(vector.ids[0]), vector.file+": its memory is as large as that of the others here")
	a.types = append(a.types, coreType{name: "vector", lanes: lanes,
		count: quantity{float64(len(vector.ids)), "core " + strings.Join(vector.ids, ", ")}})
}

// mixed makes a core type of each kind, the first of which has its place.
func (c *converter) mixed(ids node, a *accelerator, kinds []*kind) {
	names := map[string]bool{}
	a.types = nil
	for i, k := range kinds {
		at := ids.at(k.ids[0])
		t := coreType{name: plainName(k.name, "core"), runs: k.runs(), lanes: k.lanes("sizes of " + k.file),
			count: quantity{float64(len(k.ids)), "cores " + strings.Join(k.ids, ", ")}}
		if names[t.name] {
			t.name = fmt.Sprintf("core-%d", i)
		}
		names[t.name] = true
		switch {
		case k.multiplies():
			t.rows, t.cols, t.rate, t.shared = k.rows, k.cols, k.rate, true
			c.least(at, a.lb, k)
			if k.unitEnergy != kinds[0].unitEnergy {
				c.lose(at, k.file+": its unit_energy, of which there is one here")
				a.mac = quantity{0, "not the same in all cores"}
			}
		default:
			c.lose(at, k.file+": its memory is as large as that of the others here")
			if a.vector.origin == "" {
				a.vector = quantity{k.unitEnergy, k.file + ", unit_energy"}
			}
		}
		a.types = append(a.types, t)
	}
	if a.vector.origin == "" {
		a.vector = a.mac
	}
}

// least makes an L1 that no core's is smaller or slower than.
func (c *converter) least(at node, all *store, k *kind) {
	own, differ := k.l1(), false
	if (own.weights.value > 0) != (all.weights.value > 0) {
		at.fail(k.file, "a memory of weights alone in all cores that multiply, or in none")
	}
	for _, q := range []struct{ all, own *quantity }{{&all.size, &own.size}, {&all.weights, &own.weights},
		{&all.rate, &own.rate}, {&all.energy, &own.energy}} {
		differ = differ || q.own.value != q.all.value
		if q.own.value < q.all.value {
			*q.all = quantity{q.own.value, q.own.origin + " in " + k.file + ", the least of all cores"}
		}
	}
	if differ {
		c.lose(at, k.file+": its L1, all being alike here: the least of each figure counts")
	}
}
