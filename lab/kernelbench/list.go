package kernelbench

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The clocks of a row.
const (
	clockWall  = "wall"
	clockEvent = "event"
)

// The operations.
const (
	opLaunch     = "launch"
	opStart      = "start"
	opAdd        = "add"
	opFused      = "fused"
	opGelu       = "gelu"
	opBias       = "bias"
	opSum        = "sum"
	opSoftmax    = "softmax"
	opLayerNorm  = "layernorm"
	opRowSums    = "rowsums"
	opColumnSums = "columnsums"
	opVariance   = "variance"
	opArgMax     = "argmax"
	opTranspose  = "transpose"
	opMatmul     = "matmul"

	opAttention            = "attention"
	opTrainedAttention     = "attention+gradients"
	opPagedAttention       = "attention+pages"
	opCrossEntropy         = "crossentropy"
	opResidualNorm         = "residualnorm"
	opResidualNormBackward = "residualnormbackward"
	opEmbeddingBackward    = "embeddingbackward"
	opGradNorm             = "gradnorm"
	opAdamW                = "adamw"
	opPlainNorm            = "norm"
	opPlainNormBackward    = "normbackward"

	opLinear        = "linear"
	opLinearGelu    = "lineargelu"
	opLinearInputs  = "linearinputs"
	opLinearWeights = "linearweights"
	opLinearBlock   = "linearblock"
)

// multiplies reports whether the operation is a product, or several, which the library has.
func (w workload) multiplies() bool {
	switch w.Op {
	case opMatmul, opLinear, opLinearGelu, opLinearInputs, opLinearWeights, opLinearBlock:
		return true
	}
	return false
}

//go:embed rows.json
var rowsJSON []byte

// workload is a row of the list. The shape of a product is rows, columns and the length of the sums; of attention sequences,
// heads, queries, keys and elements of a head; of a linear layer rows, outputs and inputs, and of all linear layers of a block
// rows and width; of a start kernels and threads; of an embedding tokens, rows of the table and their length; of an optimizer
// tensors and elements of each.
type workload struct {
	Row       string             `json:"row"`
	Op        string             `json:"op"`
	Shape     []int              `json:"shape"` // of the elements, or as above
	Small     []int              `json:"small"` // on the simulated device
	Clock     string             `json:"clock"`
	Precision string             `json:"precision"`    // of a product
	Sets      int                `json:"sets"`         // of operands, taken in turn; 0: one
	Stored    bool               `json:"stored"`       // a start with kernels that an earlier process has stored
	Targets   map[string]float64 `json:"target_us"`    // by path, without the "own" and "library" of products
	Ratio     float64            `json:"target_ratio"` // of a launch to the driver's call; 0: none
	Source    string             `json:"source"`       // line of the table of ratios; as the next two, for lab/peers
	Compile   bool               `json:"compile"`
	Peer      string             `json:"peer"`
}

// list is rows.json.
type list struct {
	Sources map[string]float64 `json:"sources"`
	Rows    []workload         `json:"rows"`
}

// readList reads the list. It is part of the program: an error is a mistake in it.
func readList() (list, error) {
	var l list
	d := json.NewDecoder(bytes.NewReader(rowsJSON))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return l, fmt.Errorf("kernelbench: rows.json: %w", err)
	}
	return l, nil
}

// chosen returns the rows whose names begin with one of some texts, or all.
func chosen(all []workload, begins []string) ([]workload, error) {
	if len(begins) == 0 {
		return all, nil
	}
	for _, b := range begins {
		if !slices.ContainsFunc(all, func(w workload) bool { return strings.HasPrefix(w.Row, b) }) {
			return nil, fmt.Errorf("no row of the kernels begins with %q", b)
		}
	}
	var some []workload
	for _, w := range all {
		if slices.ContainsFunc(begins, func(b string) bool { return strings.HasPrefix(w.Row, b) }) {
			some = append(some, w)
		}
	}
	return some, nil
}

// elements returns the product of lengths.
func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// bytesMoved are those that an operation must read and write, flops the additions and multiplications of a product.
func (w workload) bytesMoved(shape []int) (moved int64) {
	n := int64(elements(shape))
	rows := int64(1)
	if len(shape) == 2 {
		rows = int64(shape[0])
	}
	switch w.Op {
	case opAdd, opFused:
		return 12 * n
	case opGelu, opSoftmax, opTranspose:
		return 8 * n
	case opBias:
		return 8*n + 4*n/rows
	case opLayerNorm:
		return 8*n + 8*n/rows
	case opSum:
		return 4*n + 4
	case opRowSums, opVariance:
		return 4*n + 4*rows
	case opColumnSums:
		return 4*n + 4*n/rows
	case opArgMax:
		return 4*n + 8*rows
	case opAttention, opPagedAttention:
		if shape[2] == 1 { // keys and values
			return 4 * n
		}
	case opCrossEntropy, opPlainNorm, opPlainNormBackward, opResidualNorm, opResidualNormBackward, opEmbeddingBackward, opGradNorm, opAdamW:
		return w.trainingBytes(shape)
	}
	return 0
}

// flops returns the additions and multiplications of products.
func (w workload) flops(shape []int) int64 {
	all := int64(elements(shape))
	switch w.Op {
	case opMatmul, opLinear, opLinearGelu, opLinearInputs, opLinearWeights:
		return 2 * all
	case opLinearBlock:
		n := int64(0)
		for _, layer := range linearLayers {
			n += 3 * 2 * all * int64(shape[1]*layer[0]*layer[1]) // three products, each an addition and a multiplication
		}
		return n
	case opAttention, opTrainedAttention, opPagedAttention:
		n := 4 * all
		if shape[2] == shape[3] {
			n /= 2 // half of the keys of a query, on average
		}
		if w.Op == opTrainedAttention {
			n = n * 7 / 2 // five products more than two
		}
		return n
	}
	return 0
}
