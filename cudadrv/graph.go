package cudadrv

import "fmt"

// Graph names captured work (CUgraph as a number). Zero names none.
type Graph uint64

// GraphNode names a piece of a graph's work.
type GraphNode uint64

// GraphExec names a graph that can be launched (CUgraphExec as a number). Zero names none.
type GraphExec uint64

// CaptureMode says which calls may be made while a stream is being captured; numbers are CUDA's.
type CaptureMode uint32

// The modes of a capture. Potentially unsafe calls are those that may wait for the device or free memory, such as cuMemAlloc; a
// Device makes them in every mode.
const (
	CaptureGlobal      CaptureMode = 0 // no thread may make potentially unsafe calls, but those in relaxed mode
	CaptureThreadLocal CaptureMode = 1 // the capturing thread may not
	CaptureRelaxed     CaptureMode = 2 // all may
)

var captureModeNames = [...]string{"global", "thread-local", "relaxed"} //nolint:gochecknoglobals // constant table, by number

// String returns the name.
func (m CaptureMode) String() string {
	if int(m) < len(captureModeNames) {
		return captureModeNames[m]
	}
	return fmt.Sprintf("CaptureMode(%d)", uint32(m))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (m CaptureMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// NodeKind is the kind of a graph's node; numbers are CUDA's (CUgraphNodeType).
type NodeKind uint32

// The kinds of nodes. Captures make no child graphs: a launch on a captured stream is refused.
const (
	KernelNode      NodeKind = 0
	MemcpyNode      NodeKind = 1
	MemsetNode      NodeKind = 2
	HostNode        NodeKind = 3
	ChildGraphNode  NodeKind = 4
	EmptyNode       NodeKind = 5
	WaitEventNode   NodeKind = 6
	EventRecordNode NodeKind = 7
)

var nodeKindNames = [...]string{"kernel", "memcpy", "memset", "host", "child graph", "empty", "wait event", "event record"} //nolint:gochecknoglobals // constant table, by number

// String returns the name.
func (k NodeKind) String() string {
	if int(k) < len(nodeKindNames) {
		return nodeKindNames[k]
	}
	return fmt.Sprintf("NodeKind(%d)", uint32(k))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (k NodeKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Graphs is implemented by devices that capture work into graphs; it works where Info has the capability
// GraphLaunches, and fails with CUDA_ERROR_NOT_SUPPORTED elsewhere.
type Graphs interface {
	// StreamBeginCapture begins a capture: later work of s becomes part of a graph instead of running. In modes but
	// CaptureRelaxed the capture belongs to the calling thread, which the caller has locked (runtime.LockOSThread) and which
	// alone ends it.
	StreamBeginCapture(s Stream, mode CaptureMode) error
	// StreamEndCapture ends the capture that began with s. After an error, too, the capture has ended, without a graph, also on
	// the wrong thread; except for CUDA_ERROR_STREAM_CAPTURE_UNMATCHED.
	StreamEndCapture(s Stream) (Graph, error)
	// ThreadExchangeStreamCaptureMode sets the mode of the calling thread, which the caller has locked, and returns the
	// one before. In relaxed mode captures of others do not forbid calls of this thread.
	ThreadExchangeStreamCaptureMode(mode CaptureMode) (CaptureMode, error)
	// StreamGetCaptureInfo is StreamIsCapturing with the number of the capture, 0 for none: streams in one capture have the same.
	StreamGetCaptureInfo(s Stream) (CaptureStatus, uint64, error)

	// GraphGetNodes are the nodes of a graph, in the order in which they were made.
	GraphGetNodes(g Graph) ([]GraphNode, error)
	// GraphNodeGetType is the kind of a node.
	GraphNodeGetType(n GraphNode) (NodeKind, error)
	// GraphDestroy ends the name. Graphs that were instantiated from it stay.
	GraphDestroy(g Graph) error

	// GraphInstantiate makes a graph that can be launched.
	GraphInstantiate(g Graph) (GraphExec, error)
	// GraphExecUpdate replaces the parameters of an executable graph with the ones of a graph with the same topology. Launches
	// in progress keep theirs. CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE: the graphs differ in more.
	GraphExecUpdate(x GraphExec, g Graph) error
	// GraphExecKernelNodeSetParams gives a kernel node other parameters, for launches to come. The node is the graph's of
	// which x was made; params is as in LaunchKernel.
	GraphExecKernelNodeSetParams(x GraphExec, n GraphNode, f Function, g Geometry, params []byte) error
	// GraphUpload does on s the part of the first launch that later ones save.
	GraphUpload(x GraphExec, s Stream) error
	// GraphLaunch queues the graph's work on s. Launches of one graph run one after the other. On a captured stream, in any
	// mode, it is CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED and breaks that capture, as GraphUpload does.
	GraphLaunch(x GraphExec, s Stream) error
	// GraphExecDestroy destroys the handle. Launches in progress finish.
	GraphExecDestroy(x GraphExec) error
}
