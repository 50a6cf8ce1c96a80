package fault

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// ErrBadRule says that a rule cannot be.
var ErrBadRule = errors.New("fault: bad rule")

// Forever as a Rule's Count makes it fail all calls from First on.
const Forever = 1<<64 - 1

// every is the function name of rules for all calls.
const every = "*"

// Rule makes calls fail. The zero Rule is not valid: it has no Result.
type Rule struct {
	// Func is CUDA's name of the function, "cuMemCreate". "" or "*": every function. The Driver's own calls
	// are cuDeviceGetCount (DeviceCount) and cuDevicePrimaryCtxRetain (Open).
	Func string
	// First is the first call to fail, from 1 on, counted since the rule was added. 0: 1.
	First uint64
	// Count is how many calls may fail from First on. 0: Forever where First is 0, else 1.
	Count uint64
	// Probability is the chance of each of those calls to fail. 0: 1.
	Probability float64
	// Seed decides, with the number of the call, which calls a Probability hits: the same seed hits the
	// same numbers.
	Seed uint64
	// Result is the error of the calls.
	Result cudadrv.Result
}

// live is a rule in use.
type live struct {
	rule     Rule
	function call.Call // meaningless where all is set
	all      bool
	calls    atomic.Uint64
}

// complete checks the rule and fills in the defaults.
func (r Rule) complete() (*live, error) {
	l := &live{all: r.Func == "" || r.Func == every}
	if !l.all {
		function, ok := call.Named(r.Func)
		if !ok {
			return nil, fmt.Errorf("%w: no function %q", ErrBadRule, r.Func)
		}
		l.function = function
	}
	if r.Result == cudadrv.Success {
		return nil, fmt.Errorf("%w: %s has no result to fail with", ErrBadRule, r.Func)
	}
	if !(r.Probability >= 0 && r.Probability <= 1) { // also refuses NaN
		return nil, fmt.Errorf("%w: probability %v is not between 0 and 1", ErrBadRule, r.Probability)
	}
	if r.Probability == 0 {
		r.Probability = 1
	}
	if r.Count == 0 {
		r.Count = 1
		if r.First == 0 {
			r.Count = Forever
		}
	}
	r.First = max(r.First, 1)
	l.rule = r
	return l, nil
}

// hits counts a call and says whether it is to fail.
func (l *live) hits(c call.Call) (number uint64, hit bool) {
	if !l.all && l.function != c {
		return 0, false
	}
	number = l.calls.Add(1)
	r := &l.rule
	if number < r.First || number-r.First >= r.Count {
		return number, false
	}
	return number, r.Probability == 1 || chance(r.Seed, number) < r.Probability
}

// chance returns a number from 0 up to 1 that looks random: splitmix64's output for the number-th step
// from the seed. Unlike a generator with a state it needs no lock and gives call n the same answer
// whichever goroutine makes it.
func chance(seed, number uint64) float64 {
	z := seed + number*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}

// String returns the rule in one word: FUNCTION[:FIRST[:COUNT]][~PROBABILITY[@SEED]]=RESULT.
func (r Rule) String() string {
	var b strings.Builder
	b.WriteString(r.Func)
	if r.Func == "" {
		b.WriteString(every)
	}
	if r.First != 0 || r.Count != 0 {
		fmt.Fprintf(&b, ":%d", max(r.First, 1))
	}
	switch r.Count {
	case 0:
	case Forever:
		b.WriteString(":" + every)
	default:
		fmt.Fprintf(&b, ":%d", r.Count)
	}
	if r.Probability != 0 {
		b.WriteString("~" + strconv.FormatFloat(r.Probability, 'g', -1, 64))
		if r.Seed != 0 {
			fmt.Fprintf(&b, "@%d", r.Seed)
		}
	}
	return b.String() + "=" + r.Result.String()
}
