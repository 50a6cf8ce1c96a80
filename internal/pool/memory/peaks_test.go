package memory

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A scope has the peaks since it began, whatever was before. Once it has ended the books keep nothing of it.
func TestScopesHavePeaksOfTheirOwn(t *testing.T) {
	t.Parallel()
	m := mapped(t, 2, 5)
	m.NoteFree()
	page := m.PageBytes()
	m.Lend(0, Run{First: 0, Pages: 2}, 1)
	m.BeginScope(7)
	assert.Equal(t, Peaks{ReservedBytes: 7 * page, FreeBytes: 5 * page}, m.EndScope(7), "at its beginning")
	m.BeginScope(8)
	m.Free(Run{First: 0, Pages: 1}, Tag{})
	m.NoteFree()
	m.Lend(0, Run{First: 0, Pages: 1}, 1)
	assert.Equal(t, Peaks{ReservedBytes: 7 * page, FreeBytes: 6 * page}, m.EndScope(8), "a step inside it")
	m.ResetPeak()
	want := Peaks{ReservedBytes: 7 * page, FreeBytes: 5 * page}
	assert.Equal(t, want, m.Peaks())
	assert.Equal(t, want, m.EndScope(8), "an unknown scope has the peaks since the reset")
}

// Memory outside the arena counts in the peak of reserved bytes.
func TestThePeakHasTheMemoryOutside(t *testing.T) {
	t.Parallel()
	m := mapped(t, 2, 5)
	m.Outside(3)
	m.Outside(-2)
	assert.EqualValues(t, 1, m.OutsideBytes())
	assert.Equal(t, 7*m.PageBytes()+3, m.Peaks().ReservedBytes)
	m.ResetPeak()
	assert.Equal(t, 7*m.PageBytes()+1, m.Peaks().ReservedBytes)
	m.BeginScope(1)
	assert.Equal(t, 7*m.PageBytes()+1, m.EndScope(1).ReservedBytes)
}
