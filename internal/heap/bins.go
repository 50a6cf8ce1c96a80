package heap

import "math/bits"

// None is the index of no range.
const None int32 = -1

const (
	// subBits: 16 bins a doubling, at most 6 % between the lengths of a bin. Not more: a range whose length
	// changes leaves its bin more often, and the heads take L1 cache from the rest (32 cost 4 to 8 percent of
	// an allocation that the ranges serve). Not fewer: searches visit more and gain nothing.
	subBits  = 4
	subCount = 1 << subBits // lengths below it have a bin of their own
	binCount = subCount + (32-subBits)*subCount
	binWords = (binCount + 63) / 64

	// scanLimit bounds the visits in one bin. Not smaller: the bin of the wanted length also holds shorter
	// blocks, and skipping it splits a longer one. Not larger: a visit is a cache miss.
	scanLimit = 8
	// nextLimit is the same for the next bin, where every block fits. Not smaller: the bin may be far away,
	// and one block would be the newest, not a short one. Not larger: they differ by 6 %.
	nextLimit = 4
	// VisitLimit is the maximum number of ranges that Fit visits if a bin above the wanted length's has one.
	VisitLimit = scanLimit + nextLimit
)

// Link is the node of one free range in a Bins. Its owner keeps an array of them, indexed like its ranges.
type Link struct {
	prev, next int32
	length     uint32
	bin        uint32 // its bin
}

// Bins finds ranges by length. Its zero value must be Reset before use.
type Bins struct {
	bins    [binCount]bin
	words   [binWords]uint64
	summary uint64 // bit w: words[w] is not zero
	count   int
}

// bin holds the ranges of similar length.
type bin struct {
	head  int32
	bound uint32 // no range in it is longer; 0 if there is none
}

// Reset empties the bins without touching the links.
func (b *Bins) Reset() {
	for i := range b.bins {
		b.bins[i] = bin{head: None}
	}
	b.words = [binWords]uint64{}
	b.summary = 0
	b.count = 0
}

// Count returns the number of ranges in the bins.
func (b *Bins) Count() int { return b.count }

// binOf returns the bin of a length. It is monotone: a longer range never has a lower bin.
func binOf(length uint32) int {
	if length < subCount {
		return int(length)
	}
	shift := bits.Len32(length) - 1 - subBits
	return subCount + shift<<subBits + int(length>>shift)&(subCount-1)
}

// Insert adds range i with that length. Precondition: length > 0 and i is in no bin.
func (b *Bins) Insert(links []Link, i int32, length uint32) {
	b.put(links, i, length, binOf(length))
}

// put is Insert for a known bin.
func (b *Bins) put(links []Link, i int32, length uint32, at int) {
	bin := &b.bins[at]
	l := &links[i]
	l.prev, l.next, l.length, l.bin = None, bin.head, length, uint32(at) //nolint:gosec // there are fewer
	if bin.head != None {
		links[bin.head].prev = i
	} else {
		b.words[at>>6] |= 1 << (at & 63)
		b.summary |= 1 << (at >> 6)
	}
	bin.head, bin.bound = i, max(bin.bound, length)
	b.count++
}

// Remove removes range i. Precondition: it is in these bins.
func (b *Bins) Remove(links []Link, i int32) {
	l := &links[i]
	if l.next != None {
		links[l.next].prev = l.prev
	}
	if l.prev != None {
		links[l.prev].next = l.next
	} else {
		at := l.bin
		b.bins[at].head = l.next
		if l.next == None {
			b.empty(at)
		}
	}
	b.count--
}

// Move changes the length of range i. Within the same bin the range keeps its position. Precondition: length
// > 0 and i is in these bins.
func (b *Bins) Move(links []Link, i int32, length uint32) {
	at := uint32(binOf(length)) //nolint:gosec // there are fewer
	to := &b.bins[at]
	l := &links[i]
	l.length = length
	from := l.bin
	if from == at {
		to.bound = max(to.bound, length)
		return
	}
	// Remove and put, inlined.
	next := l.next
	if next != None {
		links[next].prev = l.prev
	}
	if l.prev != None {
		links[l.prev].next = next
	} else {
		b.bins[from].head = next
		if next == None {
			b.empty(from)
		}
	}
	l.prev, l.next, l.bin = None, to.head, at
	if to.head != None {
		links[to.head].prev = i
	} else {
		b.words[at>>6] |= 1 << (at & 63)
		b.summary |= 1 << (at >> 6)
	}
	to.head, to.bound = i, max(to.bound, length)
}

// empty records that a bin has no range.
func (b *Bins) empty(at uint32) {
	b.bins[at].bound = 0
	b.words[at>>6] &^= 1 << (at & 63)
	if b.words[at>>6] == 0 {
		b.summary &^= 1 << (at >> 6)
	}
}

// Fit finds a range of at least that length, and returns how many ranges it visited. It returns None if there
// is none, and never misses one.
//
//   - In the wanted length's bin it visits the newest scanLimit and takes the shortest that fits.
//   - Otherwise it takes the shortest of the newest nextLimit of the next bin that is not empty.
//   - Only without such a bin it visits the rest of its own bin and takes the first that fits. If none
//     fits, the bin records that, and searches skip it until a range that is long enough is inserted.
//     So a failed search is long once, and the next ones visit nothing.
func (b *Bins) Fit(links []Link, length uint32) (i int32, visits int) {
	at := binOf(length)
	own := &b.bins[at]
	rest := None // ranges of the own bin beyond the limit
	if own.bound >= length {
		if i, rest, visits = scan(links, own.head, length); i != None {
			return i, visits
		}
		if rest == None {
			own.bound = length - 1
		}
	}
	if at = b.nextBin(at + 1); at >= 0 {
		i = b.bins[at].head
		n := 1
		for j := links[i].next; j != None && n < nextLimit; j = links[j].next {
			n++
			if links[j].length < links[i].length {
				i = j
			}
		}
		return i, visits + n
	}
	if rest == None {
		return None, visits
	}
	for i = rest; i != None; i = links[i].next {
		visits++
		if links[i].length >= length {
			return i, visits
		}
	}
	own.bound = length - 1
	return None, visits
}

// scan visits up to scanLimit ranges of a bin, and returns the shortest that is long enough, immediately if
// the length is exact. rest is where it stopped.
func scan(links []Link, head int32, length uint32) (best, rest int32, visits int) {
	best = None
	for rest = head; rest != None && visits < scanLimit; rest = links[rest].next {
		visits++
		l := links[rest].length
		if l == length {
			return rest, rest, visits
		}
		if l > length && (best == None || l < links[best].length) {
			best = rest
		}
	}
	return best, rest, visits
}

// nextBin returns the first bin from that one on which is not empty, or -1.
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

// Each visits the ranges of at least that length, in rising order of their bins, until visit returns false.
// visit may remove its range, and insert shorter ones, which are not visited, also in a longer array of
// links; it may insert others only if it then returns false.
func (b *Bins) Each(links []Link, length uint32, visit func(i int32) bool) {
	for bin := b.nextBin(binOf(length)); bin >= 0; bin = b.nextBin(bin + 1) {
		for i := b.bins[bin].head; i != None; {
			next := links[i].next
			if links[i].length >= length && !visit(i) {
				return
			}
			i = next
		}
	}
}

// EachLongest visits the ranges of at least that length, from the bin with the longest down, until the
// visitor returns false. It changes nothing.
func (b *Bins) EachLongest(links []Link, length uint32, visit func(i int32) bool) {
	for w := len(b.words) - 1; w >= binOf(length)>>6; w-- {
		for m := b.words[w]; m != 0; {
			bit := bits.Len64(m) - 1
			m &^= 1 << bit
			for i := b.bins[w<<6+bit].head; i != None; i = links[i].next {
				if links[i].length >= length && !visit(i) {
					return
				}
			}
		}
	}
}

// LongestBound returns an upper bound of the ranges' lengths, from the bin with the longest; 0 if there is
// none.
func (b *Bins) LongestBound() uint32 {
	if b.summary == 0 {
		return 0
	}
	w := bits.Len64(b.summary) - 1
	return b.bins[w<<6+bits.Len64(b.words[w])-1].bound
}

// Largest returns the length of the longest range, 0 if there is none. It visits all of the highest bin.
func (b *Bins) Largest(links []Link) uint32 {
	if b.summary == 0 {
		return 0
	}
	w := bits.Len64(b.summary) - 1
	var longest uint32
	for i := b.bins[w<<6+bits.Len64(b.words[w])-1].head; i != None; i = links[i].next {
		longest = max(longest, links[i].length)
	}
	return longest
}
