package vram

import (
	"os"
	"slices"
	"strings"
)

const (
	// variablePrefix begins the names of all variables that this module reads.
	variablePrefix = "VRAM_"
	// longName is from how many letters behind the prefix on two of a name may be wrong. Not fewer: other programs have short names of
	// their own, and VRAM_STEPS is not VRAM_STATS.
	longName = 7
	// leastAbbreviation is how many letters of a word stand for it: MEM is MEMORY.
	leastAbbreviation = 3
)

// variablesElsewhere are those that other packages of this module read: kernel/store and cuda/cublaslt.
func variablesElsewhere() []string { return []string{"VRAM_KERNEL_STORE", "VRAM_CUBLASLT"} }

// checkNames refuses a variable of the environment whose name resembles one that is read, and logs others that begin as those do: they may
// be another program's.
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

// nearest is the known name that a name is most like, "" where it resembles none.
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

// isPart reports whether a name has nothing but words of another one, or their first letters: LIMIT and MEM_LIMIT of MEMORY_LIMIT.
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

// misspelled is how many letters must be added, left out, changed, or exchanged with their neighbour to make one word of the other.
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
