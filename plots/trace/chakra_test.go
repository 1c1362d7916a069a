package trace

import (
	"context"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/dsasched/dsasched/hardware"
	"github.com/dsasched/dsasched/model/network"
	"github.com/dsasched/dsasched/recipes"
	"github.com/dsasched/dsasched/scheduler"
)

// schema is what of Chakra's et_def.proto (github.com/mlcommons/chakra) these traces have, as its numbers and types
// say.
func schema(t *testing.T) protoreflect.MessageDescriptors {
	t.Helper()
	type f = descriptorpb.FieldDescriptorProto
	field := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type, repeated bool, of string) *f {
		label := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL
		if repeated {
			label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED
		}
		d := &f{Name: proto.String(name), Number: proto.Int32(number), Type: kind.Enum(), Label: label.Enum()}
		if of != "" {
			d.TypeName = proto.String(".ChakraProtoMsg." + of)
		}
		return d
	}
	const (
		word    = descriptorpb.FieldDescriptorProto_TYPE_STRING
		u64     = descriptorpb.FieldDescriptorProto_TYPE_UINT64
		i64     = descriptorpb.FieldDescriptorProto_TYPE_INT64
		i32     = descriptorpb.FieldDescriptorProto_TYPE_INT32 // the enumeration of node types, on the wire
		boolean = descriptorpb.FieldDescriptorProto_TYPE_BOOL
		message = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
	)
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{Name: proto.String("et_def.proto"),
		Package: proto.String("ChakraProtoMsg"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			{Name: proto.String("AttributeProto"), Field: []*f{field("name", 1, word, false, ""),
				field("int64_val", 9, i64, false, ""), field("uint64_val", 13, u64, false, ""),
				field("bool_val", 27, boolean, false, "")}},
			{Name: proto.String("GlobalMetadata"),
				Field: []*f{field("version", 1, word, false, ""), field("attr", 2, message, true, "AttributeProto")}},
			{Name: proto.String("Node"), Field: []*f{field("id", 1, u64, false, ""), field("name", 2, word, false, ""),
				field("type", 3, i32, false, ""), field("ctrl_deps", 4, u64, true, ""),
				field("data_deps", 5, u64, true, ""), field("start_time_micros", 6, u64, false, ""),
				field("duration_micros", 7, u64, false, ""), field("attr", 10, message, true, "AttributeProto")}},
		}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages()
}

// TestChakra decodes the traces of a network with the public schema by another decoder: ids count up, each node is
// behind what it needs, nothing is unknown, and the picoseconds, arithmetic and bytes are those of the simulation.
func TestChakra(t *testing.T) {
	net, err := network.Open("toy-fig5", network.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec, err := hardware.Load("stcp920")
	if err != nil {
		t.Fatal(err)
	}
	recipe, err := recipes.Lookup("tvm")
	if err != nil {
		t.Fatal(err)
	}
	made, err := scheduler.Run(context.Background(), net, spec, 8, recipe, scheduler.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ranks, err := Chakra(context.Background(), made.Program)
	if err != nil {
		t.Fatal(err)
	}
	if len(ranks) != spec.Clusters {
		t.Fatalf("%d ranks for %d clusters", len(ranks), spec.Clusters)
	}
	messages := schema(t)
	var macs, end int64
	for _, data := range ranks {
		for i := -1; len(data) > 0; i++ {
			body, n := protowire.ConsumeBytes(data)
			if n < 0 {
				t.Fatal(protowire.ParseError(n))
			}
			data = data[n:]
			kind := protoreflect.Name("Node")
			if i < 0 {
				kind = "GlobalMetadata"
			}
			m := dynamicpb.NewMessage(messages.ByName(kind))
			if err := proto.Unmarshal(body, m); err != nil {
				t.Fatal(err)
			}
			get := func(m protoreflect.Message, field protoreflect.Name) protoreflect.Value {
				return m.Get(m.Descriptor().Fields().ByName(field))
			}
			if len(m.GetUnknown()) > 0 {
				t.Errorf("node %d has what the schema has not: %x", i, m.GetUnknown())
			}
			if i < 0 {
				if v := get(m, "version").String(); v != ChakraVersion {
					t.Errorf("version %q", v)
				}
				continue
			}
			if get(m, "id").Uint() != uint64(i) || get(m, "type").Int() != chakraCompute || get(m, "name").String() == "" {
				t.Errorf("node %d: %v", i, m)
			}
			for _, deps := range []protoreflect.Name{"ctrl_deps", "data_deps"} {
				for l, k := get(m, deps).List(), 0; k < l.Len(); k++ {
					if l.Get(k).Uint() >= uint64(i) {
						t.Errorf("node %d: %s %d", i, deps, l.Get(k).Uint())
					}
				}
			}
			exact := map[string]int64{}
			for l, k := get(m, "attr").List(), 0; k < l.Len(); k++ {
				a := l.Get(k).Message()
				exact[get(a, "name").String()] = get(a, "int64_val").Int()
			}
			macs += exact["num_ops"]
			end = max(end, exact["start_ps"]+exact["duration_ps"])
			if us := get(m, "start_time_micros").Uint() +
				get(m, "duration_micros").Uint(); us != micros(exact["start_ps"]+exact["duration_ps"]) {
				t.Errorf("node %d ends after %d us, exactly %d ps", i, us, exact["start_ps"]+exact["duration_ps"])
			}
		}
	}
	want := int64(0)
	for _, c := range made.Program.Unfolded().Commands {
		want += 2*c.MACs + c.VectorOps
	}
	if macs != want {
		t.Errorf("%d operations, the program has %d", macs, want)
	}
	if got := float64(end) * 1e-12; got < made.LatencySeconds()*0.999999 || got > made.LatencySeconds()*1.000001 {
		t.Errorf("ends after %g s, the simulation after %g s", got, made.LatencySeconds())
	}
}
