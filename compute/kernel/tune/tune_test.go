package tune_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/tune"
)

func row(variant string, median, spread time.Duration) tune.Row {
	return tune.Row{Variant: variant, Code: "c0de", Median: median, Spread: spread, Rounds: 9}
}

func reference(median, spread time.Duration) tune.Row {
	r := row("reference", median, spread)
	r.Reference = true
	return r
}

func names(rows []tune.Row) (all []string) {
	for _, r := range rows {
		all = append(all, r.Variant)
	}
	return all
}

func TestRank(t *testing.T) {
	wrong := row("wrong", 1, 0)
	wrong.State = tune.Wrong
	failed := row("failed", 1, 0)
	failed.State = tune.Failed
	untimed := row("untimed", 0, 0)
	untimed.Rounds = 0
	for _, c := range []struct {
		name string
		rows []tune.Row
		want []string
	}{
		{"the fastest is first", []tune.Row{row("b", 800, 10), reference(1000, 10), row("a", 700, 10)}, []string{"a", "b"}},
		{"a tie keeps the reference", []tune.Row{reference(1000, 0), row("a", 1000, 0)}, nil},
		{"two percent are noise", []tune.Row{reference(1000, 0), row("a", 980, 0)}, nil},
		{"more is a gain", []tune.Row{reference(1000, 0), row("a", 979, 0)}, []string{"a"}},
		{"a gain within the spread is none", []tune.Row{reference(1000, 200), row("a", 800, 200)}, nil},
		{"of equal ones the name counts", []tune.Row{reference(1000, 0), row("b", 500, 0), row("a", 500, 0)}, []string{"a", "b"}},
		{"wrong, failed and untimed ones are out", []tune.Row{wrong, failed, untimed, reference(1000, 0), row("a", 900, 0)}, []string{"a"}},
		{"nothing is held against nothing", []tune.Row{row("a", 1, 0)}, nil},
		{"no rows", nil, nil},
	} {
		assert.Equal(t, c.want, names(tune.Rank(c.rows)), c.name)
	}
}

// All variants are timed in turns, in another order each round; slow ones are dropped after the third.
func TestContest(t *testing.T) {
	wrong := tune.Row{Variant: "wrong", State: tune.Wrong}
	c := tune.NewContest([]tune.Row{{Variant: "reference", Reference: true}, {Variant: "fast"}, wrong, {Variant: "slow"}, {Variant: "near"}}, 5)
	times := []time.Duration{300, 100, 0, 151, 150}
	var order []int
	for n := 0; ; n++ {
		v, ok := c.Next()
		if !ok {
			break
		}
		order = append(order, v)
		c.Add(times[v] + time.Duration(n%3)) // some noise
	}
	assert.Equal(t, []int{0, 1, 3, 4, 1, 3, 4, 0, 3, 4, 0, 1, 4, 0, 1, 4, 0, 1}, order)
	rows := c.Rows()
	assert.Equal(t, []int{5, 5, 0, 3, 5}, []int{rows[0].Rounds, rows[1].Rounds, rows[2].Rounds, rows[3].Rounds, rows[4].Rounds})
	assert.Equal(t, []string{"fast", "near", "slow"}, names(tune.Rank(rows)))
	assert.Equal(t, 5, c.Rounds())
	c.Disqualify(1, tune.Wrong, "it differs")
	assert.Equal(t, []string{"near", "slow"}, names(tune.Rank(c.Rows())))
	assert.Equal(t, "it differs", c.Rows()[1].Why)
	c.Add(7)
	assert.Equal(t, 5, c.Rows()[0].Rounds, "nothing is wanted any more")
}

func TestSizeClass(t *testing.T) {
	assert.Equal(t, []int{0, 0, 1, 2, 2, 3, 20, 21}, []int{
		tune.SizeClass(-1), tune.SizeClass(0), tune.SizeClass(1), tune.SizeClass(2), tune.SizeClass(3), tune.SizeClass(4),
		tune.SizeClass(1<<20 - 1), tune.SizeClass(1 << 20),
	})
}

// sample is a table with everything in it.
func sample() *tune.Table {
	t := &tune.Table{}
	h200, other := tune.Device{Name: "NVIDIA H200", Major: 9}, tune.Device{Name: "a \"device\"\nwith lines", Major: 8, Minor: 6}
	wrong := tune.Row{Variant: "v=2", Code: "ab", State: tune.Wrong, Why: "output 0 differs\nat byte 16"}
	failed := tune.Row{Variant: "v=1", Code: "ab", State: tune.Failed, Why: "no"}
	key := tune.Key{Kernel: "float32 = neg(float32[0])", Layouts: "outer=0", Rows: 1, Cols: 20}
	t.Set(h200, key, []tune.Row{wrong, reference(1000, 7), failed})
	key.Cols++
	t.Set(h200, key, []tune.Row{reference(2000, 7)})
	t.Set(other, key, []tune.Row{row("v=1", 3, 1)})
	return t
}

const sampleText = `vram tuning table 1
device compute=8.6 name="a \"device\"\nwith lines"
key rows=1 cols=21 layouts="outer=0" kernel="float32 = neg(float32[0])"
row ns=3 spread=1 rounds=9 code=c0de state=verified variant="v=1"
device compute=9.0 name="NVIDIA H200"
key rows=1 cols=20 layouts="outer=0" kernel="float32 = neg(float32[0])"
row ns=1000 spread=7 rounds=9 code=c0de state=verified variant="reference" reference
row ns=0 spread=0 rounds=0 code=ab state=failed variant="v=1" why="no"
row ns=0 spread=0 rounds=0 code=ab state=wrong variant="v=2" why="output 0 differs\nat byte 16"
key rows=1 cols=21 layouts="outer=0" kernel="float32 = neg(float32[0])"
row ns=2000 spread=7 rounds=9 code=c0de state=verified variant="reference" reference
`

func TestATableIsText(t *testing.T) {
	assert.Equal(t, sampleText, sample().String())
	read, err := tune.Parse("vram tuning table 1\r\n# a comment\n\n" + sampleText[len("vram tuning table 1\n"):])
	require.NoError(t, err)
	assert.Equal(t, sample(), read)
	var none *tune.Table
	assert.Equal(t, "vram tuning table 1\n", none.String())
	assert.Nil(t, none.Rows(tune.Device{}, tune.Key{}))
	other := &tune.Table{}
	other.Merge(sample())
	other.Merge(none)
	assert.Equal(t, sampleText, other.String())
}

// Rows of a device are found by its name and its compute capability.
func TestRowsAreOfOneDevice(t *testing.T) {
	key := tune.Key{Kernel: "float32 = neg(float32[0])", Layouts: "outer=0", Rows: 1, Cols: 21}
	assert.Len(t, sample().Rows(tune.Device{Name: "NVIDIA H200", Major: 9}, key), 1)
	assert.Empty(t, sample().Rows(tune.Device{Name: "NVIDIA H200", Major: 10}, key))
	assert.Empty(t, sample().Rows(tune.Device{Name: "NVIDIA H100", Major: 9}, key))
}

func TestTextsThatAreNoTables(t *testing.T) {
	for _, text := range []string{"", "vram tuning table 2\n", "table"} {
		_, err := tune.Parse(text)
		require.ErrorIs(t, err, tune.ErrVersion, text)
	}
	device := "device compute=9.0 name=\"x\"\n"
	key := device + "key rows=1 cols=2 layouts=\"l\" kernel=\"k\"\n"
	for text, line := range map[string]int{
		"nonsense": 2, "key rows=1 cols=2 layouts=\"l\" kernel=\"k\"": 2, "row ns=1": 2, "device compute=9 name=\"x\"": 2,
		"device compute=9.0 name=x": 2, "device compute=9.0 name=\"x\" more": 2, device + "row ns=1": 3,
		device + "key rows=-1 cols=2 layouts=\"l\" kernel=\"k\"": 3, key + key[len(device):]: 4,
		key + "row ns=1 spread=0 rounds=01 code=a state=verified variant=\"v\"":                                                                                    4,
		key + "row ns=1 spread=0 rounds=1 code=a state=good variant=\"v\"":                                                                                         4,
		key + "row ns=1 spread=0 rounds=1 code= state=verified variant=\"v\"":                                                                                      4,
		key + "row ns=9999999999 spread=0 rounds=1 code=a state=verified variant=\"v\"":                                                                            4,
		key + "row ns=1 spread=0 rounds=1 code=a state=wrong variant=\"v\" why=\"\"":                                                                               4,
		key + "row ns=1 spread=0 rounds=1 code=a state=verified variant=\"v\"\nrow ns=1 spread=0 rounds=1 code=a state=verified variant=\"v\"":                     5,
		key + "row ns=1 spread=0 rounds=1 code=a state=verified variant=\"v\" reference\nrow ns=1 spread=0 rounds=1 code=a state=verified variant=\"w\" reference": 5,
	} {
		_, err := tune.Parse("vram tuning table 1\n" + text)
		var wrong *tune.SyntaxError
		require.ErrorAs(t, err, &wrong, text)
		assert.Equal(t, line, wrong.Line, text)
		assert.Contains(t, err.Error(), wrong.Why)
	}
}

// A table that Parse has read is written as one text, which Parse takes again.
func FuzzParse(f *testing.F) {
	f.Add(sampleText)
	f.Add("vram tuning table 1\ndevice compute=9.0 name=\"\"\nkey rows=0 cols=0 layouts=\"\" kernel=\"\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := tune.Parse(text)
		if err != nil {
			return
		}
		x, err := tune.NewIndex(text)
		require.NoError(t, err)
		for _, on := range table.Devices() {
			for _, of := range table.Keys(on) {
				rows, err := x.Rows(on, of)
				require.NoError(t, err)
				require.Equal(t, table.Rows(on, of), rows)
			}
		}
		again, err := tune.Parse(table.String())
		require.NoError(t, err)
		require.Equal(t, table.String(), again.String())
	})
}
