package tune_test

import (
	"math"
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

// Slow variants are dropped once: half slower is not more than half slower, and a variant that becomes slow later has all its times.
// Rows are the caller's own.
func TestWhenAContestDrops(t *testing.T) {
	for took, rounds := range map[time.Duration]int{150: 9, 151: tune.EarlyRounds} {
		c := tune.NewContest([]tune.Row{{Variant: "fast"}, {Variant: "slow"}, {Variant: "late"}}, 9)
		for v, ok := c.Next(); ok; v, ok = c.Next() {
			late := time.Duration(100)
			if c.Rounds() >= tune.EarlyRounds {
				late = 1000
			}
			c.Add([]time.Duration{100, took, late}[v])
		}
		rows := c.Rows()
		assert.Equal(t, []int{9, rounds, 9}, []int{rows[0].Rounds, rows[1].Rounds, rows[2].Rounds}, "%v", took)
		rows[0] = tune.Row{State: tune.Wrong}
		assert.Equal(t, tune.Row{Variant: "fast", Median: 100, Rounds: 9}, c.Rows()[0])
	}
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

	newer := &tune.Table{}
	on, of := sample().Devices()[1], sample().Keys(sample().Devices()[1])
	newer.Set(on, of[0], []tune.Row{row("new", time.Hour, time.Hour)})
	other.Merge(newer)
	assert.Equal(t, []string{"new"}, names(other.Rows(on, of[0])), "Merge replaces the rows of a key")
	assert.Equal(t, sample().Rows(on, of[1]), other.Rows(on, of[1]), "and of no other key")
	read, err = tune.Parse(other.String())
	require.NoError(t, err, "times that are too long are in the text as the longest")
	assert.Equal(t, time.Duration(math.MaxInt32), read.Rows(on, of[0])[0].Median)
	assert.Equal(t, time.Duration(math.MaxInt32), read.Rows(on, of[0])[0].Spread)
}

// A name with any byte at its beginning, in its middle and at its end, also before a quotation mark, is read as it was written.
func TestNamesOfAnyBytes(t *testing.T) {
	for b := range 256 {
		one := string([]byte{byte(b)})
		for _, name := range []string{one, one + "x", "x" + one, "x" + one + "x", one + one, one + `"`, `"` + one, one + `\`, `\` + one} {
			table := &tune.Table{}
			on := tune.Device{Name: name, Major: 9}
			table.Set(on, tune.Key{Kernel: name, Layouts: name}, []tune.Row{{Variant: name, Code: "c0de", Rounds: 1, Why: name}})
			read, err := tune.Parse(table.String())
			require.NoError(t, err, "%q", name)
			require.Equal(t, table, read, "%q", name)
		}
	}
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

// A mistake is named, with the line.
func TestMistakesAreNamed(t *testing.T) {
	device := "device compute=9.0 name=\"x\"\n"
	key := device + "key rows=1 cols=2 layouts=\"l\" kernel=\"k\"\n"
	row := func(rest string) string {
		return key + "row ns=1 spread=0 rounds=1 code=a state=verified variant=" + rest
	}
	for text, why := range map[string]string{
		"nonsense": "it is neither a device nor a key nor a row",
		"key rows=1 cols=2 layouts=\"l\" kernel=\"k\"": "there is no device before it",
		device + "row ns=1":                            "there is no key before it",
		"device name=\"x\"":                            "compute is missing",
		"device computer=9.0 name=\"x\"":               "compute is missing",
		"device compute=9.0":                           "name is missing",
		"device compute= name=\"x\"":                   "compute is empty",
		"device compute=9.x name=\"x\"":                `"x" is no number`,
		"device compute=9.2147483648 name=\"x\"":       `"2147483648" is no number`,
		"device compute=00.1 name=\"x\"":               `"00" is no number`,
		"device compute=9.0 name=x":                    "name is not quoted",
		"device compute=9.0 name=\"\\x61\"":            "name is not quoted as Go does",
		"device compute=9.0 name=`x`":                  "name is not quoted as Go does",
		"device compute=9.0 name=\"x\" more":           "more text follows it",
		key + key[len(device):]:                        "the key is there twice",
		row("\"v\" why=\"\""):                          "why is empty",
		row("\"v\" why=\"w\" reference more"):          "more text follows it",
		row("\"v\"\n") + row("\"v\"")[len(key):]:       "the variant is there twice",
		row("\"v\" reference\nrow ns=1 spread=0 rounds=1 code=a state=verified variant=\"w\" reference"): "there are two references",
		key + "row ns=1 spread=0 rounds=1 code=a state=good variant=\"v\"":                               `there is no state "good"`,
	} {
		_, err := tune.Parse("vram tuning table 1\n" + text)
		var wrong *tune.SyntaxError
		require.ErrorAs(t, err, &wrong, text)
		assert.Equal(t, why, wrong.Why, text)
	}
	_, err := tune.Parse("vram tuning table 1\n\nbad\r\n")
	require.EqualError(t, err, `tune: line 3: it is neither a device nor a key nor a row: "bad"`)
	table, err := tune.Parse("vram tuning table 1\ndevice compute=2147483647.0 name=\"x\"\n" + key[len(device):])
	require.NoError(t, err)
	assert.Equal(t, []tune.Device{{Name: "x", Major: 2147483647}}, table.Devices())
}

// Devices and keys are in order, field by field.
func TestTablesAreInOrder(t *testing.T) {
	table := &tune.Table{}
	devices := []tune.Device{{"b", 8, 0}, {"a", 8, 6}, {"b", 8, 6}, {"a", 9, 0}}
	keys := []tune.Key{{"a", "b", 2, 2}, {"b", "a", 2, 2}, {"b", "b", 1, 2}, {"b", "b", 2, 1}, {"b", "b", 2, 2}}
	for i := range devices {
		for k := range keys {
			table.Set(devices[len(devices)-1-i], keys[len(keys)-1-k], nil)
		}
	}
	assert.Equal(t, devices, table.Devices())
	for _, on := range devices {
		assert.Equal(t, keys, table.Keys(on))
	}
	rows := []tune.Row{row("b", 1, 0), row("a", 1, 0)}
	table.Set(devices[0], keys[0], rows)
	rows[0].Variant = "changed"
	assert.Equal(t, []string{"a", "b"}, names(table.Rows(devices[0], keys[0])), "the rows are the table's own, in order")
	(*tune.Table)(nil).Set(devices[0], keys[0], rows)
	assert.Empty(t, (*tune.Table)(nil).Devices())
	assert.Empty(t, (*tune.Table)(nil).Keys(devices[0]))
}

// A gain has to be more than the mean of both spreads, and more than the margin.
func TestABoundaryOfNoise(t *testing.T) {
	for median, want := range map[time.Duration][]string{850: nil, 849: {"a"}} {
		assert.Equal(t, want, names(tune.Rank([]tune.Row{reference(1000, 100), row("a", median, 200)})), "%d", median)
	}
	never := reference(1000, 0)
	never.Rounds = 0
	assert.Empty(t, tune.Rank([]tune.Row{never, row("a", 1, 0)}), "a reference that was not timed")
}

// Times have a median, and a range of their middle half.
func TestTimesOfAContest(t *testing.T) {
	rows := []tune.Row{{Variant: "a"}}
	c := tune.NewContest(rows, 9)
	rows[0].State = tune.Failed // the caller's own
	for _, took := range []time.Duration{90, 10, 80, 20, 70, 30, 60, 40, 50} {
		v, ok := c.Next()
		require.True(t, ok)
		assert.Zero(t, v)
		c.Add(took)
	}
	_, ok := c.Next()
	assert.False(t, ok)
	assert.Equal(t, tune.Row{Variant: "a", Median: 50, Spread: 40, Rounds: 9}, c.Rows()[0])
	for _, variant := range []int{-1, 1} {
		c.Disqualify(variant, tune.Wrong, "none")
	}
	assert.Equal(t, tune.Verified, c.Rows()[0].State)
	c.Disqualify(0, tune.Failed, "late")
	assert.Equal(t, tune.Row{Variant: "a", State: tune.Failed, Why: "late"}, c.Rows()[0], "its times are gone")

	one := tune.NewContest([]tune.Row{{Variant: "a"}}, 0)
	one.Add(5)
	_, ok = one.Next()
	assert.False(t, ok, "one round at least")
	assert.Equal(t, 1, one.Rounds())

	var none *tune.Contest
	_, ok = none.Next()
	assert.False(t, ok)
	none.Add(1)
	none.Disqualify(0, tune.Wrong, "")
	assert.Nil(t, none.Rows())
	assert.Zero(t, none.Rounds())
}

// States have words, also as text.
func TestStatesHaveWords(t *testing.T) {
	for s, want := range []string{"verified", "wrong", "failed", "State(3)"} {
		text, err := tune.State(s).MarshalText() //nolint:gosec // few
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}
