package expr_test

import (
	"flag"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/internal/kept"
)

var update = flag.Bool("update", false, "write testdata/expressions.txt again")

// operands are one of each kind of type, of those that promotion treats apart, and numbers that a type has or not.
func operands() (all []expr.Expr) {
	for _, of := range []tensor.Type{
		tensor.Bool, tensor.Uint8, tensor.Int8, tensor.Int32, tensor.Int64, tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64,
	} {
		all = append(all, expr.Input(len(all), of))
	}
	return append(all, expr.Number(0.3), expr.Number(300))
}

// Each method makes the expression, of the type or with the mistake, that testdata has for it, of all operands.
func TestExpressions(t *testing.T) {
	const file = "testdata/expressions.txt"
	var text strings.Builder
	is, types := reflect.TypeFor[expr.Expr](), reflect.TypeFor[tensor.Type]()
	var write func(m reflect.Method, args []reflect.Value)
	write = func(m reflect.Method, args []reflect.Value) {
		if len(args) == m.Type.NumIn() {
			fmt.Fprintf(&text, "%s", m.Name)
			for _, a := range args {
				fmt.Fprintf(&text, " %v", a.Interface())
			}
			for _, r := range m.Func.Call(args) {
				if e, ok := r.Interface().(expr.Expr); ok {
					fmt.Fprintf(&text, " = %v, %v, depth %d, row %t", e, typeOf(e), e.Depth(), e.Row())
				}
			}
			text.WriteByte('\n')
			return
		}
		switch in := m.Type.In(len(args)); in {
		case is:
			for _, e := range operands() {
				write(m, append(args[:len(args):len(args)], reflect.ValueOf(e)))
			}
		case types:
			for _, of := range append(tensor.Types(), 0) {
				write(m, append(args[:len(args):len(args)], reflect.ValueOf(of)))
			}
		default:
			number := reflect.New(in).Elem()
			if in.Kind() == reflect.Float64 {
				number.SetFloat(0.5)
			}
			write(m, append(args[:len(args):len(args)], number))
		}
	}
	for m := range is.Methods() {
		if m.Type.NumOut() > 0 && m.Type.Out(0) == is && !m.Type.IsVariadic() {
			write(m, nil)
		}
	}
	kept.Text(t, *update, file, text.String())
}

// typeOf is the type of an expression that may be wrong.
func typeOf(e expr.Expr) tensor.Type {
	if e.Node == nil {
		return 0
	}
	return e.Type
}
