package pressure_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/pressure"
)

// The table of the package comment, with a mark for which its columns begin at whole numbers.
func TestTheTable(t *testing.T) {
	const mark, limit = pressure.Mark(0.85), 1000
	for before, row := range map[pressure.Level][5]pressure.Level{
		pressure.Normal:   {pressure.Normal, pressure.Normal, pressure.High, pressure.High, pressure.Critical},
		pressure.High:     {pressure.Normal, pressure.High, pressure.High, pressure.High, pressure.Critical},
		pressure.Critical: {pressure.Normal, pressure.High, pressure.High, pressure.Critical, pressure.Critical},
	} {
		for column, ends := range [][2]int64{{0, 749}, {751, 849}, {850, 899}, {901, 949}, {951, 1200}} {
			for _, used := range ends {
				assert.Equal(t, row[column], mark.Next(before, used, limit), "%v, %d used", before, used)
			}
		}
	}
}

// Each column of the table begins with its bound: this mark and its gap of a quarter are exact numbers.
func TestTheBoundsOfTheTable(t *testing.T) {
	const mark, limit = pressure.Mark(0.625), 800
	for _, bound := range []struct {
		usedBytes int64
		before    pressure.Level
		below, at pressure.Level
	}{
		{700, pressure.Normal, pressure.High, pressure.Critical},
		{700, pressure.High, pressure.High, pressure.Critical},
		{600, pressure.Critical, pressure.High, pressure.Critical},
		{500, pressure.Normal, pressure.Normal, pressure.High},
		{300, pressure.High, pressure.Normal, pressure.High},
		{300, pressure.Critical, pressure.Normal, pressure.High},
	} {
		assert.Equal(t, bound.below, mark.Next(bound.before, bound.usedBytes-1, limit), bound)
		assert.Equal(t, bound.at, mark.Next(bound.before, bound.usedBytes, limit), bound)
	}
}

// Higher usage never lowers the level, equal usage keeps it, and a level that has just been reached is left
// only when usage falls by half a gap or more.
func TestLevelsFollowTheUse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mark := pressure.Mark(rapid.Float64Range(0.01, 0.99).Draw(t, "mark"))
		limit := rapid.Int64Range(1, 1<<46).Draw(t, "limit")
		before := pressure.Level(rapid.IntRange(0, pressure.LevelCount-1).Draw(t, "before"))
		used := rapid.Int64Range(0, limit+limit/8).Draw(t, "used")
		more := rapid.Int64Range(used, limit+limit/8).Draw(t, "more")

		at := mark.Next(before, used, limit)
		require.LessOrEqual(t, at, mark.Next(before, more, limit), "more is used")
		require.Equal(t, at, mark.Next(at, used, limit), "the same is used")
		for other := range pressure.Level(pressure.LevelCount) {
			if other >= before {
				require.LessOrEqual(t, at, mark.Next(other, used, limit), "it was higher before")
			}
		}
		if then := mark.Next(at, more, limit); then > at {
			gap := float64(1-mark) * 2 / 3
			require.Equal(t, then, mark.Next(then, more-int64(float64(limit)*gap/2.1), limit), "less than half a gap less is used")
		}
	})
}

// Without a limit, or with a mark at the limit, the level is Normal.
func TestNothingPresses(t *testing.T) {
	assert.Equal(t, pressure.Normal, pressure.Mark(1).Next(pressure.Critical, 100, 100))
	assert.Equal(t, pressure.Normal, pressure.Mark(0.5).Next(pressure.Critical, 100, 0))
	assert.Equal(t, pressure.Critical, pressure.Mark(pressure.DefaultMark).Next(pressure.Normal, 100, 100))
	assert.Equal(t, pressure.Critical, pressure.Mark(0.5).Next(pressure.Normal, 1, 1))
	assert.Equal(t, "normal high critical PressureLevel(3)", pressure.Normal.String()+" "+pressure.High.String()+" "+pressure.Critical.String()+" "+pressure.Level(3).String())
}

// A level is parsed as it is written, in text and in JSON; other input leaves it unchanged.
func TestTheTextOfALevel(t *testing.T) {
	for level := range pressure.Level(pressure.LevelCount) {
		text, err := json.Marshal(level)
		require.NoError(t, err)
		var read pressure.Level
		require.NoError(t, json.Unmarshal(text, &read))
		assert.Equal(t, level, read)
	}
	read := pressure.High
	require.ErrorContains(t, read.UnmarshalText([]byte("higher")), `"higher"`)
	assert.Equal(t, pressure.High, read)
}
