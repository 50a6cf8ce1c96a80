package heap

import "math/bits"

// None is the index that names nothing.
const None int32 = -1

const (
	subBits  = 5            // 32 bins a doubling: at most 3 % between the lengths of a bin
	subCount = 1 << subBits // lengths below it have a bin of their own
	binCount = subCount + (32-subBits)*subCount
	binWords = (binCount + 63) / 64

	// scanLimit bounds the blocks looked at in one bin. Not smaller: the bin of the wanted length also
	// holds shorter blocks, and passing over it opens a longer one. Not larger: a visit is a cache miss.
	scanLimit = 8
)

// Link is the place of one free range in a Bins. Its owner keeps an array of them, index by index
// beside its ranges.
type Link struct {
	prev, next int32
	length     uint32
}

// Bins finds ranges by length. Its zero value must be Reset before use.
type Bins struct {
	head    [binCount]int32
	words   [binWords]uint64
	summary uint64 // bit w: words[w] is not zero
	count   int
}

// Reset empties the bins without touching the links.
func (b *Bins) Reset() {
	for i := range b.head {
		b.head[i] = None
	}
	b.words = [binWords]uint64{}
	b.summary = 0
	b.count = 0
}

// Count is the number of ranges in the bins.
func (b *Bins) Count() int { return b.count }

// binOf is monotone: a longer range never has a lower bin.
func binOf(length uint32) int {
	if length < subCount {
		return int(length)
	}
	shift := bits.Len32(length) - 1 - subBits
	return subCount + shift<<subBits + int(length>>shift)&(subCount-1)
}

// Insert adds range i with that length. Precondition: length > 0 and i is in no bin.
func (b *Bins) Insert(links []Link, i int32, length uint32) {
	bin := binOf(length)
	head := b.head[bin]
	links[i] = Link{prev: None, next: head, length: length}
	if head != None {
		links[head].prev = i
	} else {
		b.words[bin>>6] |= 1 << (bin & 63)
		b.summary |= 1 << (bin >> 6)
	}
	b.head[bin] = i
	b.count++
}

// Remove takes range i out. Precondition: it is in these bins.
func (b *Bins) Remove(links []Link, i int32) {
	l := links[i]
	if l.next != None {
		links[l.next].prev = l.prev
	}
	if l.prev != None {
		links[l.prev].next = l.next
	} else {
		bin := binOf(l.length)
		b.head[bin] = l.next
		if l.next == None {
			b.words[bin>>6] &^= 1 << (bin & 63)
			if b.words[bin>>6] == 0 {
				b.summary &^= 1 << (bin >> 6)
			}
		}
	}
	b.count--
}

// Fit finds a range of at least that length, the shortest of those it looks at, and says how many it
// looked at. It returns None if there is none, and never misses one that is there.
func (b *Bins) Fit(links []Link, length uint32) (i int32, visits int) {
	bin := binOf(length)
	best := None
	for i = b.head[bin]; i != None && visits < scanLimit; i = links[i].next {
		visits++
		l := links[i].length
		if l == length {
			return i, visits
		}
		if l > length && (best == None || l < links[best].length) {
			best = i
		}
	}
	if best != None {
		return best, visits
	}
	rest := i // what the bin holds beyond the limit
	if bin = b.nextBin(bin + 1); bin < 0 {
		for i = rest; i != None; i = links[i].next {
			visits++
			if links[i].length >= length {
				return i, visits
			}
		}
		return None, visits
	}
	best = b.head[bin]
	for i, n := best, 0; i != None && n < scanLimit/2; i, n = links[i].next, n+1 {
		visits++
		if links[i].length < links[best].length {
			best = i
		}
	}
	return best, visits
}

// nextBin is the first bin from that one on which is not empty, or -1.
func (b *Bins) nextBin(from int) int {
	if from >= binCount {
		return -1
	}
	w := from >> 6
	if m := b.words[w] >> (from & 63); m != 0 {
		return from + bits.TrailingZeros64(m)
	}
	if m := b.summary >> (w + 1); m != 0 {
		w += 1 + bits.TrailingZeros64(m)
		return w<<6 + bits.TrailingZeros64(b.words[w])
	}
	return -1
}

// Each visits the ranges of at least that length, in rising order of their bins, until visit says
// false. visit may remove the range that it is given and insert others of less than that length.
func (b *Bins) Each(links []Link, length uint32, visit func(i int32) bool) {
	for bin := b.nextBin(binOf(length)); bin >= 0; bin = b.nextBin(bin + 1) {
		for i := b.head[bin]; i != None; {
			next := links[i].next
			if links[i].length >= length && !visit(i) {
				return
			}
			i = next
		}
	}
}

// Largest is the length of the longest range, 0 if there is none. It looks at all of the highest bin.
func (b *Bins) Largest(links []Link) uint32 {
	if b.summary == 0 {
		return 0
	}
	w := bits.Len64(b.summary) - 1
	var longest uint32
	for i := b.head[w<<6+bits.Len64(b.words[w])-1]; i != None; i = links[i].next {
		longest = max(longest, links[i].length)
	}
	return longest
}
