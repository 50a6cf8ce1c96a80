package vram

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// ErrUnknownVariable is within the *EnvError for an environment variable whose name resembles one that is read.
var ErrUnknownVariable = errors.New("vram: unknown environment variable")

// EnvError refuses an environment variable: its value, or its name.
type EnvError struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Want  string `json:"want"` // the values that it may have; with ErrUnknownVariable the name that is meant
	// ErrUnknownVariable, or why an allowed value does not work on this machine; nil where the value is not allowed
	Err error `json:"err"`
}

// Error names the variable, its value and the valid ones, or why the value does not work; of an unknown one the name that is
// meant.
func (e *EnvError) Error() string {
	if errors.Is(e.Err, ErrUnknownVariable) {
		return fmt.Sprintf("vram: there is no variable %s, want %s", e.Name, e.Want)
	}
	if e.Err != nil {
		return fmt.Sprintf("vram: %s is %q: %s", e.Name, e.Value, withoutPrefix(e.Err))
	}
	return fmt.Sprintf("vram: %s is %q, want %s", e.Name, e.Value, e.Want)
}

// Unwrap returns Err.
func (e *EnvError) Unwrap() error { return e.Err }

// variable reads one environment variable into a Config.
type variable struct {
	name string
	want string
	set  func(c *Config, value string) error
}

// field has a function read a field's value.
func field[T any](of func(*Config) *T, read func(string) (T, error)) func(*Config, string) error {
	return func(c *Config, value string) (err error) {
		*of(c), err = read(value)
		return err
	}
}

// variables are read in this order.
func variables() []variable {
	bytes := func(field func(*Config) *int64) func(*Config, string) error {
		return func(c *Config, value string) (err error) {
			*field(c), err = ParseBytes(value)
			if err == nil && *field(c) == 0 { // 0 may be meant as none, and the field would mean all
				err = strconv.ErrRange
			}
			return err
		}
	}
	const size = `a size over 0 as "2GB", "512MiB" or "4096"`
	return []variable{
		{"VRAM_DRIVER", driverNames(), field(func(c *Config) *cudadrv.Driver { return &c.Driver }, DriverNamed)},
		{"VRAM_DEVICE", "the device's number, from 0", field(func(c *Config) *int { return &c.Ordinal }, strconv.Atoi)},
		{"VRAM_SEGMENT_SIZE", size, bytes(func(c *Config) *int64 { return &c.Tuning.SegmentBytes })},
		{"VRAM_CACHE_SIZE", size, bytes(func(c *Config) *int64 { return &c.StreamCacheBytes })},
		{"VRAM_CACHE_BLOCKS", "a number of blocks, 1 or more", func(c *Config, value string) (err error) {
			c.Tuning.StreamCacheBlocks, err = strconv.Atoi(value)
			if err == nil && c.Tuning.StreamCacheBlocks == 0 { // as with sizes
				err = strconv.ErrRange
			}
			return err
		}},
		{"VRAM_MEMORY_FRACTION", "a number over 0 and at most 1", func(c *Config, value string) (err error) {
			c.MemoryFraction, err = strconv.ParseFloat(value, 64)
			if err == nil && (c.MemoryFraction <= 0 || c.MemoryFraction > 1) {
				err = strconv.ErrRange
			}
			c.LimitBytes = 0 // of the base; VRAM_MEMORY_LIMIT comes later
			return err
		}},
		{"VRAM_MEMORY_LIMIT", size + "; a share of the device's memory is VRAM_MEMORY_FRACTION", bytes(func(c *Config) *int64 { return &c.LimitBytes })},
		{"VRAM_WARMUP", `sizes and counts as "4KiB:50,64KiB:20"`, field(func(c *Config) *[]Demand { return &c.Warm }, ParseDemands)},
		{"VRAM_RELEASE_AFTER", `a time as "30s", or "never"`, func(c *Config, value string) (err error) {
			if value == "never" {
				c.ReleaseAfter = -1
				return nil
			}
			c.ReleaseAfter, err = time.ParseDuration(value)
			if err == nil && c.ReleaseAfter <= 0 { // as with sizes
				err = strconv.ErrRange
			}
			return err
		}},
		{"VRAM_FOOTPRINT", "balanced, lean or fast", field(func(c *Config) *Footprint { return &c.Footprint }, ParseFootprint)},
		{"VRAM_WAITS", "avoid-growth, never or always", field(func(c *Config) *Waits { return &c.Waits }, ParseWaits)},
		{"VRAM_SAMPLE_SIZE", size, bytes(func(c *Config) *int64 { return &c.SampleBytes })},
		{"VRAM_STATS", "on, off or exact", field(func(c *Config) *StatsLevel { return &c.Stats }, ParseStatsLevel)},
		{"VRAM_FAULT_PLACES", "off, on or blocking", field(func(c *Config) *FaultPlaces { return &c.FaultPlaces }, ParseFaultPlaces)},
		{"VRAM_DEBUG", "true or false, or 1 or 0", field(func(c *Config) *bool { return &c.Debug }, strconv.ParseBool)},
	}
}

// ConfigFromEnv returns base with the fields that environment variables set:
//
//	VRAM_DRIVER           Driver, by a name that DriverNamed knows
//	VRAM_DEVICE           Ordinal
//	VRAM_MEMORY_LIMIT     LimitBytes
//	VRAM_MEMORY_FRACTION  MemoryFraction, and LimitBytes is 0 unless VRAM_MEMORY_LIMIT is set, too
//	VRAM_CACHE_SIZE       StreamCacheBytes
//	VRAM_CACHE_BLOCKS     Tuning.StreamCacheBlocks
//	VRAM_SEGMENT_SIZE     Tuning.SegmentBytes
//	VRAM_WARMUP           Warm, as ParseDemands reads it
//	VRAM_RELEASE_AFTER    ReleaseAfter, as time.ParseDuration reads it, or "never"
//	VRAM_FOOTPRINT        Footprint
//	VRAM_WAITS            Waits
//	VRAM_SAMPLE_SIZE      SampleBytes
//	VRAM_STATS            Stats
//	VRAM_FAULT_PLACES     FaultPlaces
//	VRAM_DEBUG            Debug
//
// Sizes are read by ParseBytes. A variable that is not set, or empty, changes nothing. A size or a
// number of blocks of 0 is refused: leave the variable unset for no bound. Errors: an *EnvError
// that names the variable, its value and the valid ones; a *ConfigError where base itself is
// invalid. With an error the result is base.
//
// A name that is misspelled is an error, too: of a variable that begins with VRAM_ and resembles one
// of this list, VRAM_KERNEL_STORE, VRAM_CUBLASLT or VRAM_NVRTC the *EnvError has ErrUnknownVariable and
// the name that is meant. Other names that begin so may be another program's: base.Logger is warned of each.
func ConfigFromEnv(base Config) (Config, error) {
	if err := base.check(); err != nil {
		return base, err
	}
	if err := checkNames(loggerOf(base.Logger)); err != nil {
		return base, err
	}
	given := base
	for _, v := range variables() {
		value := strings.TrimSpace(os.Getenv(v.name))
		if value == "" {
			continue
		}
		changed := base
		if err := v.set(&changed, value); err != nil || changed.check() != nil {
			return given, &EnvError{v.name, value, v.want, driverFailure(err)}
		}
		base = changed
	}
	return base, nil
}

// driverFailure is an error of the search for a driver; other errors are about values.
func driverFailure(err error) error {
	if errors.Is(err, ErrNoDriver) || errors.Is(err, ErrNoDevice) {
		return err
	}
	return nil
}

// ParseDemands reads sizes and counts, as "4KiB:50,64KiB:20". The error is a *ConfigError.
func ParseDemands(s string) ([]Demand, error) {
	var demands []Demand
	for item := range strings.SplitSeq(s, ",") {
		size, count, ok := strings.Cut(strings.TrimSpace(item), ":")
		bytes, sizeErr := ParseBytes(size)
		n, countErr := strconv.Atoi(strings.TrimSpace(count))
		if !ok || sizeErr != nil || countErr != nil || bytes <= 0 || n < 0 {
			return nil, badArgument("ParseDemands", "item", item, `a size and a count as "4KiB:50"`)
		}
		demands = append(demands, Demand{bytes, n})
	}
	return demands, nil
}

const (
	// variablePrefix begins the names of all variables that this module reads.
	variablePrefix = "VRAM_"
	// longName is the length after the prefix from which two letters of a name may be wrong. Not shorter: other programs have
	// short names of their own, and VRAM_STEPS is not VRAM_STATS.
	longName = 7
	// leastAbbreviation is how many letters of a word stand for it: MEM is MEMORY.
	leastAbbreviation = 3
)

// variablesElsewhere are the variables of other packages of this module: compute/kernel/store and cuda/cublaslt.
func variablesElsewhere() []string {
	return []string{"VRAM_KERNEL_STORE", "VRAM_CUBLASLT", "VRAM_NVRTC"}
}

// checkNames refuses a variable of the environment whose name resembles one that is read, and logs others that begin as those
// do: they may be another program's.
func checkNames(log Logger) error {
	known := variablesElsewhere()
	for _, v := range variables() {
		known = append(known, v.name)
	}
	environment := os.Environ()
	slices.Sort(environment)
	for _, variable := range environment {
		name, value, _ := strings.Cut(variable, "=")
		upper := strings.ToUpper(name)
		if !strings.HasPrefix(upper, variablePrefix) || slices.Contains(known, name) || strings.TrimSpace(value) == "" {
			continue
		}
		if meant := nearest(upper, known); meant != "" {
			return &EnvError{Name: name, Value: value, Want: meant, Err: ErrUnknownVariable}
		}
		if log != nil {
			log.Warn("vram: unknown environment variable", "name", name, "known", strings.Join(known, " "))
		}
	}
	return nil
}

// nearest returns the known name that a name resembles most, "" if none.
func nearest(name string, known []string) (meant string) {
	best := len(name)
	for _, candidate := range known {
		a, b := strings.TrimPrefix(name, variablePrefix), strings.TrimPrefix(candidate, variablePrefix)
		wrong, most := misspelled(a, b), 1
		if min(len(a), len(b)) >= longName {
			most = 2
		}
		if (wrong <= most || isPart(a, b)) && wrong < best {
			meant, best = candidate, wrong
		}
	}
	return meant
}

// isPart reports whether a name has nothing but words of another one, or their first letters: LIMIT and MEM_LIMIT of
// MEMORY_LIMIT.
func isPart(name, of string) bool {
	words := strings.Split(of, "_")
	for word := range strings.SplitSeq(name, "_") {
		begins := func(whole string) bool { return strings.HasPrefix(whole, word) }
		if len(word) < leastAbbreviation || !slices.ContainsFunc(words, begins) {
			return false
		}
	}
	return true
}

// misspelled returns the number of letters to add, remove, change or exchange with a neighbour to turn one word into the other.
func misspelled(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			changed := last[j-1]
			if a[i-1] != b[j-1] {
				changed++
			}
			row[j] = min(changed, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
