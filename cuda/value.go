package cuda

import (
	"fmt"
	"reflect"
	"sync"
)

// longValue is an argument by value of another size than a scalar's, or a refused one.
type longValue struct {
	bytes   []byte
	refused *ValueError
}

// ValueError refuses an argument by value of a type that means nothing to a kernel: it has a pointer inside, as a slice has, or
// a number whose size depends on the machine.
type ValueError struct {
	Type   string `json:"type"`   // of the argument
	Inside string `json:"inside"` // the type in it that is refused
}

// Error names both types.
func (e *ValueError) Error() string {
	if e.Type == e.Inside {
		return fmt.Sprintf("cuda: a kernel takes no %s by value: it takes numbers of a fixed size, and structs and arrays of them", e.Type)
	}
	return fmt.Sprintf("cuda: a kernel takes no %s by value: it has a %s inside", e.Type, e.Inside)
}

// valueTypes caches the results of refusedValue: *ValueError by reflect.Type, nil for valid types.
var valueTypes sync.Map //nolint:gochecknoglobals // made on first use: facts about types, which do not change; read without a lock

// refusedValue returns the error of a type that a kernel does not take by value, nil if it does.
func refusedValue(t reflect.Type) *ValueError {
	if known, ok := valueTypes.Load(t); ok {
		return known.(*ValueError) //nolint:forcetypeassert // nothing else is in the map
	}
	var refused *ValueError
	if inside := refusedInside(t); inside != nil {
		refused = &ValueError{t.String(), inside.String()}
	}
	valueTypes.Store(t, refused)
	return refused
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
