package scheduler

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dsasched/dsasched/model/schedule"
)

// Dump writes a stage's decision for a chunk as text, one line for each item.
func (r *Result) Dump(stage string) (string, error) {
	st, err := r.Recipe.stage(stage)
	if err != nil {
		return "", err
	}
	by := r.By()
	d := &Draft{Schedule: r.Schedule, Recipe: by, Outputs: r.Outputs, Lower: r.Lower, values: r.values[r.Schedule]}
	b := &strings.Builder{}
	fmt.Fprintf(b, "# %s by %s: %s; chunk of %d\n", st.Name, by.choice(st).Name, st.Description, r.Chunk)
	switch head := b.Len(); {
	case st.text != nil:
		if st.text(b, d); b.Len() == head {
			b.WriteString("none\n")
		}
	case st.take != nil:
		data, err := json.Marshal(st.take(d, true))
		if err != nil {
			return "", fmt.Errorf("stage %s can't be written: %w", stage, err)
		}
		b.Write(append(data, '\n'))
	}
	return b.String(), nil
}

func groupText(b *strings.Builder, d *Draft) {
	for _, sg := range d.Grouping.Groups {
		fmt.Fprintf(b, "%s: %s\n", sg.Name, d.names(sg.Ops))
	}
}

func splitText(b *strings.Builder, d *Draft) {
	for _, x := range d.Schedule.GroupCuts(d.Grouping) {
		if x.Factor > 1 {
			fmt.Fprintf(b, "%s: %s in %d\n", x.Group, x.Dimension, x.Factor)
		} else {
			fmt.Fprintf(b, "%s: whole\n", x.Group)
		}
	}
}

func layersText(b *strings.Builder, d *Draft) {
	for k, layers := range d.Layers {
		for i := range layers {
			fmt.Fprintf(b, "%s layer %d: %s\n", d.Grouping.Groups[k].Name, i, d.names(layers[i].Ops))
		}
	}
}

func instancesText(b *strings.Builder, d *Draft) {
	for i := range d.Instances.Instances {
		fmt.Fprintf(b, "%s", d.instance(i))
		for _, dep := range d.Instances.Instances[i].Deps {
			fmt.Fprintf(b, " reads %d bytes of %s of %s;", dep.Bytes, d.Graph.Tensor(dep.Tensor).Name, d.instance(dep.From))
		}
		b.WriteByte('\n')
	}
}

func outputsText(b *strings.Builder, d *Draft) {
	b.WriteString(d.Outputs.String())
	if between := slices.Min(d.Scopes); between > d.Outputs && between == slices.Max(d.Scopes) {
		fmt.Fprintf(b, " inside a kernel, %s between kernels", between.String())
	}
	if d.KeepOutputs {
		b.WriteString(", network outputs that layers read as well as in the DDR")
	}
	b.WriteByte('\n')
}

func orderText(b *strings.Builder, d *Draft) {
	for _, i := range d.Order {
		fmt.Fprintln(b, d.instance(i))
	}
}

func bindText(b *strings.Builder, d *Draft) {
	for i := range d.Instances.Instances {
		sg := d.Grouping.Groups[d.Instances.Instances[i].Group]
		text := d.Bindings[i].Text(d.Graph.Tensor(sg.Outputs[0]))
		fmt.Fprintf(b, "%s: %s, results meant for the %s\n", d.instance(i), text, d.Scopes[i].String())
	}
	for k, layers := range d.LayerBindings {
		for l, own := range layers {
			if own != nil {
				x := &d.Layers[k][l]
				fmt.Fprintf(b, "%s layer %d: %s\n", d.Grouping.Groups[k].Name, l, own.Text(d.Graph.Tensor(x.Outputs[0])))
			}
		}
	}
}

func joinText(b *strings.Builder, d *Draft) {
	for _, j := range d.Joins {
		fmt.Fprintf(b, "%s of %s for %s: %d bytes\n", j.Kind, d.Graph.Tensor(j.Tensor).Name, d.instance(j.Consumer), j.Bytes)
	}
}

func spillText(b *strings.Builder, d *Draft) {
	for i := range d.Values {
		if v := &d.Values[i]; v.Instance >= 0 {
			fmt.Fprintf(b, "%s: %s, wanted %s\n", d.valueText(v), v.Level.String(), v.Wanted.String())
		}
	}
}

func bufferText(b *strings.Builder, d *Draft) {
	r := d.WeightRoom
	fmt.Fprintf(b, "%s: %d bytes of a core for values, %d for weights that stay, %d for those that pass\n",
		buffer.choice(r), r.DataBytes(d.Spec), r.HomeBytes(d.Spec), r.BufferBytes(d.Spec)-r.HomeBytes(d.Spec))
}

func addressText(b *strings.Builder, d *Draft) {
	for i := range d.Values {
		if v := &d.Values[i]; v.Instance >= 0 && v.Level == schedule.L1 {
			fmt.Fprintf(b, "%s: %d, %d bytes, steps %d to %d\n", d.valueText(v), v.Address, v.CoreBytes, v.Def, v.Last)
		}
	}
	for i := range d.Steps {
		if st := &d.Steps[i]; st.StageBytes > 0 {
			fmt.Fprintf(b, "stage of step %d: %d, %d bytes, tiles %d\n", i, st.StageAddress, st.StageBytes, st.Tiles)
		}
	}
}

// generatorText writes settings of the kernel generator.
func generatorText(fields ...string) func(b *strings.Builder, d *Draft) {
	return func(b *strings.Builder, d *Draft) {
		for _, name := range fields {
			fmt.Fprintf(b, "%s: %v\n", name, reflect.ValueOf(d.Lower.Generator).FieldByName(name))
		}
	}
}

func nestText(b *strings.Builder, d *Draft) {
	for i := range d.Steps {
		st := &d.Steps[i]
		fmt.Fprintf(b, "%s layer %d: ", d.instance(st.Instance), st.Layer)
		if st.Nest == nil {
			b.WriteString("by the rules\n")
			continue
		}
		b.WriteString("\n" + st.Nest.Text(d.Graph.Tensor(st.Output)))
	}
}
