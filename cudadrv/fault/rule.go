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

// ErrBadRule says that a rule or a script cannot be.
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
	// Result is what the calls fail with.
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
	if !(r.Probability >= 0 && r.Probability <= 1) { // also refuses what is no number
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

// chance is a number from 0 up to 1 that looks random: splitmix64's output for the number-th step
// from the seed. Unlike a generator with a state it needs no lock and gives call n the same answer
// whichever goroutine makes it.
func chance(seed, number uint64) float64 {
	z := seed + number*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}

// Parse reads a script of rules; the package comment has the form. Its error wraps ErrBadRule.
func Parse(script string) ([]Rule, error) {
	var rules []Rule
	for _, text := range strings.FieldsFunc(script, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' || r == '\t' }) {
		r, err := parseRule(text)
		if err != nil {
			return nil, err
		}
		if _, err := r.complete(); err != nil {
			return nil, fmt.Errorf("%w, in %q", err, text)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// parseRule reads one rule and leaves to complete what numbers mean together.
func parseRule(text string) (Rule, error) {
	which, name, ok := strings.Cut(text, "=")
	if !ok {
		return Rule{}, fmt.Errorf("%w: %q has no =RESULT", ErrBadRule, text)
	}
	result, ok := cudadrv.ParseResult(name)
	if !ok {
		return Rule{}, fmt.Errorf("%w: no result %q, in %q", ErrBadRule, name, text)
	}
	r := Rule{Result: result}
	which, chances, random := strings.Cut(which, "~")
	if random {
		if err := r.parseChance(chances, text); err != nil {
			return Rule{}, err
		}
	}
	parts := strings.Split(which, ":")
	if r.Func = parts[0]; r.Func == "" || len(parts) > 3 {
		return Rule{}, fmt.Errorf("%w: %q, want FUNCTION[:FIRST[:COUNT]][~PROBABILITY[@SEED]]=RESULT", ErrBadRule, text)
	}
	for i, number := range parts[1:] {
		n, err := strconv.ParseUint(number, 10, 64)
		if i == 1 && number == every {
			n, err = Forever, nil
		}
		if err != nil || n == 0 {
			return Rule{}, fmt.Errorf("%w: %q is no number from 1 on, in %q", ErrBadRule, number, text)
		}
		if i == 0 {
			r.First = n
		} else {
			r.Count = n
		}
	}
	return r, nil
}

// parseChance reads PROBABILITY[@SEED].
func (r *Rule) parseChance(chances, text string) error {
	probability, seed, seeded := strings.Cut(chances, "@")
	var err error
	if r.Probability, err = strconv.ParseFloat(probability, 64); err != nil || r.Probability == 0 {
		return fmt.Errorf("%w: %q is no probability above 0, in %q", ErrBadRule, probability, text)
	}
	if !seeded {
		return nil
	}
	if r.Seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
		return fmt.Errorf("%w: %q is no seed, in %q", ErrBadRule, seed, text)
	}
	return nil
}

// String is the rule as Parse reads it.
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
