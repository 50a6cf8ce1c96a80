package cuda

import (
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// Kernel is a launch in a graph.
type Kernel struct {
	Function *Function
	Geometry Geometry
}

// node is a kernel of a graph. SetArg and SetArgs replace its arguments, all fields at once.
type node struct {
	Kernel
	name     cudadrv.GraphNode
	packed   []byte           // its parameters; in the heap
	args     []nodeArg        // by parameter, as far as the parameters are known
	declared []cudadrv.Access // of the buffers of LaunchPacked
}

// nodeArg is an argument of a node.
type nodeArg struct {
	at       int // its offset in packed
	size     int32
	accesses []cudadrv.Access
	uses     uses           // of a buffer from outside that SetArg or SetArgs gave it
	lease    *streams.Lease // keeps that buffer's memory, or arguments of the same call; nil for none
}

// newNode makes a node of a launch, whose arguments are in place, or are the buffers of packed parameters.
func newNode(f *Function, g Geometry, p *params, args []Arg, packed bool) *node {
	k := &node{Kernel: Kernel{Function: f, Geometry: g}, packed: slices.Clone(p.bytes[:p.size])}
	if packed {
		k.declared = accessesOf(args)
		k.args = make([]nodeArg, len(f.params))
	} else {
		k.args = make([]nodeArg, len(args))
	}
	end := 0
	for i := range k.args {
		to := &k.args[i]
		if f.known {
			to.at, to.size = f.params[i].offset, int32(f.params[i].bytes) //nolint:gosec // a parameter's size
		} else {
			to.at, to.size = alignUp(end, int(args[i].align)), args[i].size
			end = to.at + int(to.size)
		}
		if !packed {
			to.accesses = args[i].accesses()
		}
	}
	return k
}

// accesses returns the memory that the kernel may access.
func (k *node) accesses() []cudadrv.Access {
	all := slices.Clone(k.declared)
	for i := range k.args {
		all = append(all, k.args[i].accesses...)
	}
	return all
}

// leases returns the leases of the arguments, each once.
func (k *node) leases() (all []*streams.Lease) {
	for i := range k.args {
		if l := k.args[i].lease; l != nil && !slices.Contains(all, l) {
			all = append(all, l)
		}
	}
	return all
}
