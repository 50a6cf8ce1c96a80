package cuda

import (
	"fmt"
	"reflect"
	"sync"
)

// valueType is a type of arguments by value that is no number.
type valueType struct {
	name    string
	kind    kind        // noKind: a launch refuses the type
	refused *ValueError // nil where the size is the reason
	long    *byte       // of an argument of more than inlineBytes, which has its own copy of the type: its memory
}

// ValueError refuses an argument by value of a type that means nothing to a kernel: it has a pointer inside, as a slice has, or
// a number whose size depends on the machine; or an argument of Struct that is no struct.
type ValueError struct {
	Type   string `json:"type"`   // of the argument
	Inside string `json:"inside"` // the type in it that is refused; "": Type is no struct
}

// Error names both types.
func (e *ValueError) Error() string {
	switch e.Inside {
	case "":
		return fmt.Sprintf("cuda: Struct takes no %s, which is no struct: Value takes numbers and arrays", e.Type)
	case e.Type:
		return fmt.Sprintf("cuda: a kernel takes no %s by value: it takes numbers of a fixed size, and structs and arrays of them", e.Type)
	}
	return fmt.Sprintf("cuda: a kernel takes no %s by value: it has a %s inside", e.Type, e.Inside)
}

// valueTypes caches the results of typeOf: *valueType by reflect.Type.
var valueTypes sync.Map //nolint:gochecknoglobals // made on first use: facts about types, which do not change; read without a lock

// typeOf describes a type that is no number.
func typeOf(t reflect.Type) *valueType {
	if known, ok := valueTypes.Load(t); ok {
		return known.(*valueType) //nolint:forcetypeassert // nothing else is in the map
	}
	v := &valueType{name: t.String()}
	switch inside := refusedInside(t); {
	case inside != nil:
		v.refused = &ValueError{v.name, inside.String()}
	case t.Size() > 0 && t.Size() <= maxParamBytes:
		v.kind = bytesKind(t.Align())
	}
	valueTypes.Store(t, v)
	return v
}

// notStruct describes a type that Struct refuses.
func notStruct(t reflect.Type) *valueType {
	return &valueType{name: t.String(), refused: &ValueError{Type: t.String()}}
}

// refusedInside returns the first type within t that a kernel does not take, nil if there is none.
func refusedInside(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return nil
	case reflect.Array:
		return refusedInside(t.Elem())
	case reflect.Struct:
		for field := range t.Fields() {
			if inside := refusedInside(field.Type); inside != nil {
				return inside
			}
		}
		return nil
	case reflect.Invalid, reflect.Int, reflect.Uint, reflect.Uintptr, reflect.Chan, reflect.Func, reflect.Interface, reflect.Map, reflect.Pointer,
		reflect.Slice, reflect.String, reflect.UnsafePointer:
	}
	return t
}
