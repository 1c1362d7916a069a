package convert

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// level is a memory of AccelForge and how many of it there are.
type level struct {
	node
	store
	copies float64
}

func (c *converter) accelforge(n node, a *accelerator) {
	n.keys("arch")
	arch := n.at("arch")
	arch.keys("nodes")
	var levels []*level
	copies := 1.0 // of what comes next, but for the array
	array := false
	core := coreType{name: "core", rows: quantity{1, "no such fanout"}, cols: quantity{1, "no such fanout"},
		rate: quantity{1, "no fanout that reuses weights"}}
	a.name = strings.TrimSuffix(lastPart(n.file), ".yaml")
	a.description = "A hierarchy of AccelForge: " + a.name
	var scalar, mac node
	for _, v := range arch.at("nodes").items() {
		if name := v.text("name"); name != "" {
			v.path = name
		}
		for _, f := range []string{"area", "component_class", "extra_attributes_for_component_model"} {
			if v.has(f) {
				c.lose(v.at(f), "nothing here has it")
			}
		}
		switch v.Tag {
		case "!Memory":
			v.keys("name", "component_class", "size", "total_latency", "leak_power", "area", "actions", "tensors", "spatial",
				"extra_attributes_for_component_model")
			if array { // registers of the array
				c.lose(v, "a register of the array: what moves there takes no time here")
				continue
			}
			copies *= c.fanout(v, nil)
			levels = append(levels, c.level(v, copies, a))
		case "!Container":
			v.keys("name", "spatial")
			array = true
			c.fanout(v, &core)
		case "!Compute":
			v.keys("name", "component_class", "total_latency", "leak_power", "area", "actions", "enabled",
				"extra_attributes_for_component_model")
			if strings.ReplaceAll(v.text("enabled"), " ", "") == "len(All)==2" {
				scalar = v
			} else {
				mac = v
			}
			c.leak(v, a, copies)
		default:
			v.fail(v.Tag, "!Memory, !Container or !Compute")
		}
	}
	if mac.Node == nil {
		arch.at("nodes").fail("no !Compute for products", "one")
	}
	if len(levels) < 2 || len(levels) > 3 {
		arch.at("nodes").fail("another number of memories outside the array", "two or three: DDR, LLB if there is one, L1")
	}
	a.clock = quantity{c.action(mac, "compute", "throughput"), mac.path + ".actions[compute].throughput"}
	a.mac = quantity{c.action(mac, "compute", "energy"), mac.path + ".actions[compute].energy"}
	if a.clock.value < 1e6 { // a tool's example without time: one operation a second
		c.lose(mac, "a throughput of less than one million a second: taken as 1 GHz, with all rates in the same ratio")
		scale := 1e9 / a.clock.value
		a.clock.value = 1e9
		for _, l := range levels {
			l.rate.value = min(l.rate.value*scale, fastest)
		}
	}
	core.count = quantity{copies, "fanouts of the memories"}
	if copies == 1 {
		core.count.origin = "no memory has a fanout"
	}
	if scalar.Node != nil {
		rate := c.action(scalar, "compute", "throughput")
		core.lanes = quantity{max(1, math.Round(rate/a.clock.value)), scalar.path + ".actions[compute].throughput / clock"}
		a.vector = quantity{max(c.action(scalar, "compute", "energy"), least),
			scalar.path + ".actions[compute].energy, at least 2e-6 pJ"}
	} else {
		core.lanes = quantity{min(core.rows.value*core.cols.value*core.rate.value, 65536), "the array does all operators"}
		core.shared, a.vector = true, a.mac
	}
	a.types = []coreType{core}
	a.ddr = &levels[0].store
	a.lb = &levels[len(levels)-1].store
	a.coreLink = quantity{a.lb.rate.value, levels[len(levels)-1].path + ": no other core to talk to"}
	if len(levels) == 3 {
		if levels[1].copies > 1 {
			levels[1].fail("several", "one memory between the DDR and the cores")
		}
		a.gb = &levels[1].store
		a.coreLink = quantity{a.gb.rate.value, levels[1].path + ": ASSUMED, as fast as the memory"}
	}
	a.ddrLink.origin = "none there"
	a.staticW.origin = cmp.Or(a.staticW.origin, "ASSUMED: none there")
}

func lastPart(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }

// fanout multiplies the extents of a spatial; those of an array become its rows, columns and pixels.
func (c *converter) fanout(v node, array *coreType) float64 {
	if !v.has("spatial") {
		return 1
	}
	product := 1.0
	for _, s := range v.at("spatial").items() {
		s.keys("name", "fanout", "reuse", "may_reuse", "min_usage")
		n := s.at("fanout").number()
		product *= n
		if array == nil {
			continue
		}
		q := map[string]*quantity{"input": &array.cols, "output": &array.rows, "weight": &array.rate}[s.text("reuse")]
		if q == nil {
			s.fail(s.text("reuse"), "reuse: input, output or weight")
		}
		q.value *= n
		q.origin = s.path + ".fanout"
	}
	return product
}

func (c *converter) level(v node, copies float64, a *accelerator) *level {
	l := &level{node: v, copies: copies}
	l.size = quantity{v.at("size").number() / 8, v.path + ".size"}
	if math.IsInf(l.size.value, 1) {
		l.size = quantity{largest, v.path + ".size, inf: the most that a file may have"}
	} else {
		l.size.value = math.Floor(l.size.value)
	}
	read, write := c.action(v, "read", "throughput")/8, c.action(v, "write", "throughput")/8
	l.rate = quantity{read, v.path + ".actions, throughput: reads and writes in turn"}
	if latency := v.text("total_latency"); strings.HasPrefix(latency, "max(") {
		l.rate = quantity{read + write, v.path + ".actions: throughputs of separate ports, added"}
	} else if latency != "" {
		v.at("total_latency").fail(latency, "max(a.n_calls / a.throughput for a in actions), or nothing")
	} else if read != write {
		l.rate = quantity{2 / (1/read + 1/write), v.path + ".actions: as many reads as writes in turn"}
	}
	l.rate.value = min(l.rate.value, fastest)
	if l.rate.value == fastest {
		l.rate.origin += ", inf: the most that a file may have"
	}
	l.latency = quantity{0, "ASSUMED: none there"}
	l.energy = quantity{(c.action(v, "read", "energy") + c.action(v, "write", "energy")) / 2 * 8,
		v.path + ".actions: mean energy of read and write"}
	c.leak(v, a, copies)
	if v.has("tensors") {
		c.lose(node{v.file, "tensors", v.Node}, "which tensors a memory keeps is the scheduler's decision")
	}
	return l
}

func (c *converter) leak(v node, a *accelerator, copies float64) {
	if v.has("leak_power") {
		a.staticW.value += v.at("leak_power").number() * copies
		a.staticW.origin = "leak_power, all together"
	}
}

// action is a figure of an action. Without it, a component model that is not in the file has it.
func (c *converter) action(v node, name, figure string) float64 {
	if v.has("actions") {
		for _, act := range v.at("actions").items() {
			act.keys("name", "energy", "throughput", "bits_per_action", "latency")
			if act.text("name") != name || !act.has(figure) {
				continue
			}
			n := act.at(figure).number()
			if act.has("bits_per_action") {
				act.fail("bits_per_action", "figures of a bit")
			}
			return n
		}
	}
	v.fail("no "+figure+" of "+name+": a component model outside of the file has it",
		strings.Join(slices.Compact([]string{"actions", "with " + figure}), " "))
	return 0
}
