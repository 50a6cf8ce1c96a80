package heap

// Tree finds the range with the highest key up to a given one, in logarithmic time. It is a treap over the keys whose
// nodes are linked by the ranges' indexes.
//
// A range's priority is a hash of its index: the same history gives the same tree, without a source of random
// numbers. The zero value must be Reset before use.
type Tree struct {
	branches []branch // by index of the range
	root     int32
	count    int
}

// branch is the node of one range in a Tree.
type branch struct {
	key                 uint32
	left, right, parent int32
}

// Reset empties the tree and keeps its memory.
func (t *Tree) Reset() {
	t.root, t.count = None, 0
}

// Count returns the number of ranges in the tree.
func (t *Tree) Count() int { return t.count }

// priority hashes with the finalizer of MurmurHash3: one bit of the index changes half of its bits.
func priority(i int32) uint32 {
	x := uint32(i) + 1
	x = (x ^ x>>16) * 0x85ebca6b
	x = (x ^ x>>13) * 0xc2b2ae35
	return x ^ x>>16
}

// Insert adds range i with that key. Precondition: i is not in the tree, nor is the key.
func (t *Tree) Insert(i int32, key uint32) {
	for int32(len(t.branches)) <= i {
		t.branches = append(t.branches, branch{})
	}
	parent := None
	for at := t.root; at != None; {
		b := &t.branches[at]
		parent = at
		if key < b.key {
			at = b.left
		} else {
			at = b.right
		}
	}
	t.branches[i] = branch{key: key, left: None, right: None, parent: parent}
	switch {
	case parent == None:
		t.root = i
	case key < t.branches[parent].key:
		t.branches[parent].left = i
	default:
		t.branches[parent].right = i
	}
	for p := t.branches[i].parent; p != None && priority(i) > priority(p); p = t.branches[i].parent {
		t.lift(i)
	}
	t.count++
}

// Remove removes range i. Precondition: it is in the tree.
func (t *Tree) Remove(i int32) {
	for {
		left, right := t.branches[i].left, t.branches[i].right
		if left == None || right == None {
			child := left
			if child == None {
				child = right
			}
			t.replace(i, child)
			break
		}
		if priority(left) > priority(right) {
			t.lift(left)
		} else {
			t.lift(right)
		}
	}
	t.count--
}

// lift rotates a branch above its parent.
func (t *Tree) lift(i int32) {
	p := t.branches[i].parent
	t.replace(p, i)
	if t.branches[p].left == i {
		t.hang(p, &t.branches[p].left, t.branches[i].right)
		t.hang(i, &t.branches[i].right, p)
	} else {
		t.hang(p, &t.branches[p].right, t.branches[i].left)
		t.hang(i, &t.branches[i].left, p)
	}
}

// hang attaches a branch to its new parent.
func (t *Tree) hang(parent int32, place *int32, child int32) {
	*place = child
	if child != None {
		t.branches[child].parent = parent
	}
}

// replace puts with, which may be None, at the position of i; i keeps its own links.
func (t *Tree) replace(i, with int32) {
	parent := t.branches[i].parent
	if with != None {
		t.branches[with].parent = parent
	}
	switch {
	case parent == None:
		t.root = with
	case t.branches[parent].left == i:
		t.branches[parent].left = with
	default:
		t.branches[parent].right = with
	}
}

// Below returns the range with the highest key up to that one, or None.
func (t *Tree) Below(key uint32) int32 {
	found := None
	for i := t.root; i != None; {
		if b := &t.branches[i]; b.key <= key {
			found, i = i, b.right
		} else {
			i = b.left
		}
	}
	return found
}
