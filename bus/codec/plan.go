package codec

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/messages"
)

// structPlan translates one struct type to the message of the same meaning, and
// back. It is immutable once its planner is done, and shared by everything that
// has the struct as a field.
type structPlan struct {
	name protoreflect.Name
	// writes is in the order in which the fields are written: by number, but those of
	// a oneof last. That is the order of the generated code, so tests can
	// compare bytes.
	writes []writePlan
	// reads has the fields at their number on the wire, and nil where the
	// message has none.
	reads []*readPlan
}

// place is where a field stands.
type place struct {
	// index is the path of the field in the struct, through those that it
	// embeds.
	index []int
	// name is the field's in the message; none where any of a union is written.
	name protoreflect.Name
	// oneof has the bit of the oneof that the field is in, counted in its
	// message; 0 outside of any. In messages that were read or written, each
	// bit may come once.
	oneof uint64
}

// writePlan describes how one field of a struct is written.
type writePlan struct {
	writer
	place
	num protowire.Number // the smallest that it may write
}

// readPlan describes how one field of a message is read. A sealed interface has one for each
// of its types, all with the same index and oneof.
type readPlan struct {
	reader
	place
}

// planner remembers the plans that it made, one for each struct type. They are
// entered before their fields are planned, so that a type may contain itself.
type planner map[reflect.Type]*structPlan

// structOf returns the plan between a struct and a message. It fails where the
// two differ: a field that one of them has not, a type without a rule, or a
// struct that is used for two messages.
func (p planner) structOf(t reflect.Type, md protoreflect.MessageDescriptor) (made *structPlan, err error) {
	if known := p[t]; known != nil {
		if known.name != md.Name() {
			return nil, fmt.Errorf("%s is both %s and %s", t, known.name, md.Name())
		}
		return known, nil
	}
	plan := &structPlan{name: md.Name()}
	p[t] = plan
	defer func() {
		if err != nil { // half a plan is none
			delete(p, t)
		}
	}()
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous {
			continue // its fields follow
		}
		if f.Type.Kind() == reflect.Interface {
			if err := p.union(plan, f, md); err != nil {
				return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
			}
			continue
		}
		fd := md.Fields().ByName(protoreflect.Name(snake(f.Name)))
		if fd == nil {
			return nil, fmt.Errorf("%s.%s: message %s has no field %s", t, f.Name, md.Name(), snake(f.Name))
		}
		conv, err := p.field(f.Type, fd)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, f.Name, err)
		}
		at := place{index: f.Index, name: fd.Name()}
		if o := fd.ContainingOneof(); o != nil {
			at.oneof = 1 << o.Index()
		}
		plan.add(fd.Number(), conv, at)
	}
	slices.SortFunc(plan.writes, func(a, b writePlan) int {
		return cmp.Or(cmp.Compare(min(a.oneof, 1), min(b.oneof, 1)), cmp.Compare(a.num, b.num))
	})
	reads := slices.DeleteFunc(slices.Clone(plan.reads), func(f *readPlan) bool { return f == nil })
	if n := md.Fields().Len(); n != len(reads) {
		return nil, fmt.Errorf("%s has %d fields, message %s has %d", t, len(reads), md.Name(), n)
	}
	return plan, nil
}

// union plans a field whose type is a sealed interface. The message must have a
// oneof of the field's name, with a message of the same name for each type
// behind the interface.
func (p planner) union(plan *structPlan, f reflect.StructField, md protoreflect.MessageDescriptor) error {
	oneof := md.Oneofs().ByName(protoreflect.Name(snake(f.Name)))
	if oneof == nil {
		return fmt.Errorf("message %s has no oneof %s", md.Name(), snake(f.Name))
	}
	byMessage := map[protoreflect.Name]protoreflect.FieldDescriptor{}
	for i := range oneof.Fields().Len() {
		fd := oneof.Fields().Get(i)
		if fd.Message() != nil {
			byMessage[fd.Message().Name()] = fd
		}
	}
	types := unions[f.Type]
	if len(types) == 0 {
		return fmt.Errorf("%s is no sealed interface that the codec knows", f.Type)
	}
	at := place{index: f.Index, oneof: 1 << oneof.Index()}
	byType := unionWriter{}
	for _, t := range types {
		fd := byMessage[protoreflect.Name(t.Elem().Name())]
		if fd == nil {
			return fmt.Errorf("oneof %s has no field of message %s", oneof.Name(), t.Elem().Name())
		}
		elem, err := p.structOf(t.Elem(), fd.Message())
		if err != nil {
			return err
		}
		plan.reading(fd.Number(), &readPlan{unionReader{t.Elem(), structValue{elem}}, place{at.index, fd.Name(), at.oneof}})
		byType[t] = member{pointerField{fd.Number(), structValue{elem}}, fd.Name()}
	}
	plan.writes = append(plan.writes, writePlan{byType, at, oneof.Fields().Get(0).Number()})
	return nil
}

// pairPlan returns the plan between a struct of two fields and a message that has them
// as 1 and 2.
func pairPlan(name, first protoreflect.Name, a value, second protoreflect.Name, b value) *structPlan {
	plan := &structPlan{name: name}
	plan.add(1, plainField{1, a}, place{index: []int{0}, name: first})
	plan.add(2, plainField{2, b}, place{index: []int{1}, name: second})
	return plan
}

// unions lists the types behind each sealed interface, as pointers to structs.
// They are those of the registries in package forge, so a new message needs
// nothing here.
var unions = map[reflect.Type][]reflect.Type{
	reflect.TypeFor[forge.Message](): messageTypes(),
	reflect.TypeFor[forge.Output]():  typesOf(forge.Outputs()),
	reflect.TypeFor[forge.Input]():   typesOf(forge.Inputs()),
}

// messageTypes returns the types of all messages.
func messageTypes() []reflect.Type {
	var list []forge.Message
	for _, spec := range messages.All() {
		list = append(list, spec.Message)
	}
	return typesOf(list)
}

// typesOf returns the type of each value.
func typesOf[T any](values []T) []reflect.Type {
	types := make([]reflect.Type, len(values))
	for i, v := range values {
		types[i] = reflect.TypeOf(v)
	}
	return types
}

// add enters a field for reading and for writing, after those that are there.
func (p *structPlan) add(num protowire.Number, f field, at place) {
	p.writes = append(p.writes, writePlan{f, at, num})
	p.reading(num, &readPlan{f, at})
}

// reading enters a field for reading at its number, and makes room for it.
func (p *structPlan) reading(num protowire.Number, f *readPlan) {
	for len(p.reads) <= int(num) {
		p.reads = append(p.reads, nil)
	}
	p.reads[num] = f
}

// field chooses the translation of a field by its Go type and its descriptor:
// map, list, pointer or plain.
func (p planner) field(t reflect.Type, fd protoreflect.FieldDescriptor) (field, error) {
	num := fd.Number()
	switch {
	case fd.IsMap():
		if t != reflect.TypeFor[map[string]string]() || fd.MapKey().Kind() != protoreflect.StringKind ||
			fd.MapValue().Kind() != protoreflect.StringKind {
			return nil, fmt.Errorf("only maps from strings to strings are known, not %s", t)
		}
		return mapField{num}, nil
	case fd.IsList():
		if t.Kind() != reflect.Slice {
			return nil, fmt.Errorf("%s is not repeated", t)
		}
		elem, err := p.value(t.Elem(), fd)
		if fd.IsPacked() {
			return packedField{num, elem}, err
		}
		return listField{num, elem}, err
	case t.Kind() == reflect.Pointer:
		elem, err := p.value(t.Elem(), fd)
		return pointerField{num, elem}, err
	}
	elem, err := p.value(t, fd)
	return plainField{num, elem}, err
}

// value chooses the translation of a single value: an element of a list, the
// target of a pointer, or a plain field. Times and durations are
// google.protobuf's, not structs.
func (p planner) value(t reflect.Type, fd protoreflect.FieldDescriptor) (value, error) {
	type pair struct {
		goKind reflect.Kind
		kind   protoreflect.Kind
	}
	switch t {
	case reflect.TypeFor[time.Duration]():
		return durationValue{}, wants(fd, "google.protobuf.Duration")
	case reflect.TypeFor[time.Time]():
		return timeValue{}, wants(fd, "google.protobuf.Timestamp")
	}
	switch (pair{t.Kind(), fd.Kind()}) {
	case pair{reflect.Struct, protoreflect.MessageKind}:
		plan, err := p.structOf(t, fd.Message())
		return structValue{plan}, err
	case pair{reflect.String, protoreflect.EnumKind}:
		return newEnum(fd.Enum())
	case pair{reflect.String, protoreflect.StringKind}:
		return stringValue{}, nil
	case pair{reflect.Bool, protoreflect.BoolKind}:
		return boolValue{}, nil
	case pair{reflect.Int, protoreflect.Int32Kind}:
		return intValue{bits: 32}, nil
	case pair{reflect.Int64, protoreflect.Int64Kind}:
		return intValue{bits: 64}, nil
	case pair{reflect.Float64, protoreflect.DoubleKind}:
		return floatValue{}, nil
	}
	return nil, fmt.Errorf("there is no rule for %s as %s", t, fd.Kind())
}

// wants returns an error unless the field is a message of this full name.
func wants(fd protoreflect.FieldDescriptor, name protoreflect.FullName) error {
	if m := fd.Message(); m == nil || m.FullName() != name {
		return fmt.Errorf("must be a %s", name)
	}
	return nil
}

// snake returns the name that a Go field has in its message: relevant_files for
// RelevantFiles, budget_usd for BudgetUSD. A run of capitals is one word.
func snake(name string) string {
	var b strings.Builder
	rs := []rune(name)
	for i, r := range rs {
		if unicode.IsUpper(r) && i > 0 {
			afterLower := !unicode.IsUpper(rs[i-1])
			beforeLower := i+1 < len(rs) && unicode.IsLower(rs[i+1])
			if afterLower || beforeLower {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
