package main

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/go-vram/vram/cudadrv"
)

// function is an exported function.
type function struct {
	name string
	call any
}

// tryFunctions calls each function, and the methods of what it returns for mistakes alone: of other results they are called anyway.
func tryFunctions() {
	for _, f := range functions() {
		w := newWorld()
		v := reflect.ValueOf(f.call)
		w.each(v.Type(), nil, func(in []reflect.Value, text string, open bool) {
			guarded(f.name+text, func() {
				for _, result := range callWith(v, in) {
					if !open {
						w.tryMethods(f.name+text, result)
					}
				}
			})
		})
		w.close()
	}
}

// tryMethods calls the methods of a result.
func (w *world) tryMethods(name string, result reflect.Value) {
	if result.Kind() == reflect.Interface {
		result = result.Elem()
	}
	if !result.IsValid() || result.Kind() == reflect.Pointer && result.IsNil() || !ours(result.Type()) || isDriver(result.Type()) {
		return
	}
	for m := range result.Type().Methods() {
		w.each(m.Type, []reflect.Value{result}, func(in []reflect.Value, text string, _ bool) {
			guarded(name+"."+m.Name+text, func() { callWith(m.Func, in) })
		})
	}
}

// tryOpen calls the methods of open values, each in a world of its own.
func tryOpen() {
	first := newWorld()
	first.close()
	for i, v := range first.values {
		if t := reflect.TypeOf(v); !isDriver(t) {
			for m := range t.Methods() {
				w := newWorld()
				w.each(m.Type, []reflect.Value{reflect.ValueOf(w.values[i])}, func(in []reflect.Value, text string, _ bool) {
					guarded(fmt.Sprintf("%s%s of an open %v", m.Name, text, t), func() { callResults(callWith(m.Func, in)) })
				})
				w.close()
			}
		}
	}
}

// isDriver reports whether a type is the other side of an interface.
func isDriver(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[cudadrv.Driver]()) || t.Implements(reflect.TypeFor[cudadrv.Device]())
}

// ours reports whether the module has the type.
func ours(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return strings.HasPrefix(t.PkgPath(), "github.com/go-vram/vram")
}

// callWith calls a function whose last argument may be the list of a variadic one.
func callWith(f reflect.Value, in []reflect.Value) []reflect.Value {
	if f.Type().IsVariadic() {
		return f.CallSlice(in)
	}
	return f.Call(in)
}

// choice is an argument, and its name in a report.
type choice struct {
	value reflect.Value
	name  string
}

const openName = "open"

// each calls visit with the first choice of each argument, with each other choice of one of them, and with others of all. open reports
// whether an open value is among them.
func (w *world) each(f reflect.Type, receiver []reflect.Value, visit func(in []reflect.Value, text string, open bool)) {
	var all [][]choice
	most := 0
	for i := len(receiver); i < f.NumIn(); i++ {
		choices := w.choices(f.In(i), 2)
		all = append(all, choices)
		most = max(most, len(choices))
	}
	with := func(number func(i int) int) {
		in, names := receiver[:len(receiver):len(receiver)], []string{}
		for i, choices := range all {
			c := choices[min(number(i), len(choices)-1)]
			in, names = append(in, c.value), append(names, c.name)
		}
		text := "(" + strings.Join(names, ", ") + ")"
		visit(in, text, strings.Contains(text, openName))
	}
	with(func(int) int { return 0 })
	for varied, choices := range all {
		for n := 1; n < len(choices); n++ {
			with(func(i int) int {
				if i == varied {
					return n
				}
				return 0
			})
		}
	}
	for n := 1; n < most && len(all) > 1; n++ {
		with(func(int) int { return n })
	}
}

// choices are the arguments of a type: an open value first, if the world has one, then nil and zero. Structs have one field that is not
// zero, and lists one element; depth bounds how deep.
func (w *world) choices(t reflect.Type, depth int) (all []choice) {
	if depth == 0 {
		return []choice{{reflect.Zero(t), "0"}}
	}
	if open := w.open(t); open.IsValid() {
		all = append(all, choice{open, openName})
	}
	switch {
	case t.Kind() == reflect.Slice:
		all = append(all, choice{reflect.Zero(t), "nil"})
		for _, c := range w.choices(t.Elem(), depth) {
			list := reflect.MakeSlice(t, 1, 1)
			list.Index(0).Set(c.value)
			all = append(all, choice{list, "{" + c.name + "}"})
		}
	case t.Kind() == reflect.Func && t.Name() == "Option":
		all = append(w.options(t), choice{reflect.Zero(t), "nil"})
	case t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && ours(t):
		all = append(all, choice{reflect.Zero(t), "nil"}, choice{reflect.New(t.Elem()), "&zero"})
	case t.Kind() == reflect.Struct && ours(t):
		all = append(all, choice{reflect.Zero(t), "zero"})
		for i := range t.NumField() {
			field := t.Field(i)
			if !field.IsExported() || field.Type.Kind() == reflect.Func || field.Type.Kind() == reflect.Interface {
				continue
			}
			for _, c := range w.choices(field.Type, depth-1) {
				if !c.value.IsZero() {
					v := reflect.New(t).Elem()
					v.Field(i).Set(c.value)
					all = append(all, choice{v, "{" + field.Name + ": " + c.name + "}"})
				}
			}
		}
	case len(all) == 0:
		all = append(all, choice{argument(t), t.String()})
	case t.Kind() == reflect.Interface:
		all = append(all, choice{reflect.Zero(t), "nil"})
	}
	return all
}

// options are those that functions make of their arguments.
func (w *world) options(t reflect.Type) (all []choice) {
	for _, f := range functions() {
		if v := reflect.ValueOf(f.call); v.Type().NumOut() == 1 && v.Type().Out(0) == t {
			w.each(v.Type(), nil, func(in []reflect.Value, text string, _ bool) {
				all = append(all, choice{callWith(v, in)[0], f.name + text})
			})
		}
	}
	return all
}
