// Package reference has the meaning of views for tests, by the list of their places: slow, and too simple to
// be wrong. The rules of package layout are held against it, and random programs of tensors.
package reference

import "slices"

// View is a shape and the place of each element, in row-major order.
type View struct {
	Shape  []int
	Places []int
}

// Whole returns the view of a new storage.
func Whole(shape ...int) View {
	next := -1
	return build(shape, func([]int) int { next++; return next })
}

// build has the place of each index of a shape.
func build(shape []int, place func(index []int) int) View {
	v := View{Shape: slices.Clone(shape)}
	index := make([]int, len(shape))
	var walk func(dim int)
	walk = func(dim int) {
		if dim == len(shape) {
			v.Places = append(v.Places, place(index))
			return
		}
		for index[dim] = 0; index[dim] < shape[dim]; index[dim]++ {
			walk(dim + 1)
		}
	}
	walk(0)
	return v
}

// At returns the place of the element at an index.
func (v View) At(index []int) int {
	at := 0
	for i, n := range v.Shape {
		at = at*n + index[i]
	}
	return v.Places[at]
}

// Slice has some indices of a dimension, in that order.
func (v View) Slice(dim int, indices []int) View {
	shape := slices.Clone(v.Shape)
	shape[dim] = len(indices)
	return build(shape, func(index []int) int {
		from := slices.Clone(index)
		from[dim] = indices[index[dim]]
		return v.At(from)
	})
}

// Index has one index of a dimension.
func (v View) Index(dim, at int) View {
	shape := slices.Delete(slices.Clone(v.Shape), dim, dim+1)
	return build(shape, func(index []int) int { return v.At(slices.Insert(slices.Clone(index), dim, at)) })
}

// Permute orders the dimensions.
func (v View) Permute(dims []int) View {
	shape := make([]int, len(dims))
	for i, d := range dims {
		shape[i] = v.Shape[d]
	}
	return build(shape, func(index []int) int {
		from := make([]int, len(dims))
		for i, d := range dims {
			from[d] = index[i]
		}
		return v.At(from)
	})
}

// Broadcast repeats dimensions of length 1.
func (v View) Broadcast(shape []int) View {
	lead := len(shape) - len(v.Shape)
	return build(shape, func(index []int) int {
		from := slices.Clone(index[lead:])
		for i, n := range v.Shape {
			if n == 1 {
				from[i] = 0
			}
		}
		return v.At(from)
	})
}

// Reshape has another shape for the same elements.
func (v View) Reshape(shape []int) View { return View{slices.Clone(shape), v.Places} }
