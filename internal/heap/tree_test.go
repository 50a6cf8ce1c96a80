package heap

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTreeFindsTheKeyBelow compares the tree with a table of keys that is scanned from the key down.
func TestTreeFindsTheKeyBelow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const keys = 64
		var there [keys]bool // by key
		var tree Tree
		tree.Reset()
		index := func(key int) int32 { return int32(key * 7 % keys) } // the order of indexes says nothing
		count := 0
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Equal(t, count, tree.Count())
				require.NoError(t, tree.Check(func(i int32, key uint32) error {
					require.Equal(t, index(int(key)), i)
					return nil
				}))
				expected := None
				for key := range keys {
					if there[key] {
						expected = index(key)
					}
					require.Equal(t, expected, tree.Below(uint32(key)), "below %d in %v", key, there)
				}
			},
			"turn": func(t *rapid.T) {
				key := rapid.IntRange(0, keys-1).Draw(t, "key")
				if there[key] {
					tree.Remove(index(key))
					count--
				} else {
					tree.Insert(index(key), uint32(key))
					count++
				}
				there[key] = !there[key]
			},
		})
	})
}

// TestTreeCheckSeesDamage breaks each part of the tree once.
func TestTreeCheckSeesDamage(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *Tree){
		"key":          func(t *Tree) { t.branches[2].key += 100 },
		"parent":       func(t *Tree) { t.branches[2].parent = 2 },
		"count":        func(t *Tree) { t.count++ },
		"priority":     func(t *Tree) { r := t.branches[t.root]; t.lift(max(r.left, r.right)) },
		"circle":       func(t *Tree) { t.branches[2].left = t.root },
		"swapped ends": func(t *Tree) { r := &t.branches[t.root]; r.left, r.right = r.right, r.left },
	} {
		var tree Tree
		tree.Reset()
		for i := range int32(5) {
			tree.Insert(i, uint32(10*i))
		}
		visit := func(int32, uint32) error { return nil }
		require.NoError(t, tree.Check(visit))
		damage(&tree)
		assert.Error(t, tree.Check(visit), name)
	}
}

// Check compares the tree with its invariants: keys rise from left to right, priorities fall downwards, and
// every branch knows its parent. It calls visit for each range, which may return an error.
func (t *Tree) Check(visit func(i int32, key uint32) error) error {
	count, last := 0, int64(-1)
	var walk func(i, parent int32) error
	walk = func(i, parent int32) error {
		if i == None {
			return nil
		}
		b := t.branches[i]
		if b.parent != parent {
			return fmt.Errorf("heap: branch %d is under %d and says %d", i, parent, b.parent)
		}
		if err := walk(b.left, i); err != nil {
			return err
		}
		switch {
		case int64(b.key) <= last:
			return fmt.Errorf("heap: branch %d with key %d follows key %d", i, b.key, last)
		case parent != None && priority(i) > priority(parent):
			return fmt.Errorf("heap: branch %d is under %d, which has less priority", i, parent)
		}
		last = int64(b.key)
		if count++; count > t.count {
			return fmt.Errorf("heap: more than %d ranges are in the tree", t.count)
		}
		if err := visit(i, b.key); err != nil {
			return err
		}
		return walk(b.right, i)
	}
	if err := walk(t.root, None); err != nil {
		return err
	}
	if count != t.count {
		return fmt.Errorf("heap: %d ranges are in the tree, it counted %d", count, t.count)
	}
	return nil
}

// Priorities are the hashes of MurmurHash3 of nothing: its published values for these seeds.
func TestPrioritiesAreHashes(t *testing.T) {
	t.Parallel()
	for i, want := range map[int32]uint32{-1: 0, 0: 0x514e28b7, -2: 0x81f16f39} {
		assert.Equal(t, want, priority(i))
	}
}
