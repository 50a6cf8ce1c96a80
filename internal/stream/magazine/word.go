package magazine

// The word of a slot.
const (
	flagBits = 8
	flagMask = 1<<flagBits - 1
	// moveBits: not fewer, since a pipeline may hand one buffer through many streams; not more, since the
	// generation has the remaining bits, and must not wrap while a caller keeps a stale handle: 2^48 frees of
	// one slot take a month.
	moveBits        = 8
	moveStep        = 1 << flagBits
	mostMoves       = 1<<moveBits - 1
	generationShift = flagBits + moveBits
	generationStep  = 1 << generationShift
	moveMask        = mostMoves << flagBits
)

// Flag sends the next free of a slot down the slow path.
type Flag uint64

// The flags of a slot's word.
const (
	// Announced says that streams other than the slot's own use the block, or that it was moved. The note
	// says which.
	Announced Flag = 1 << iota
	// Detached says that the block must not stay in its magazine.
	Detached
	// Watched says that the free is reported to the watcher or to the payer of the block. The free then
	// continues as usual.
	Watched
)

// The number of a stream in the flags, plus one; 0: none.
const (
	userShift = 3
	userMask  = flagMask &^ (1<<userShift - 1)
	// userCount is how many streams, from number 0 on, fit into the word.
	userCount = userMask >> userShift
)

// nextFree returns the word after the free of a handle; ok is false if the handle is not live. The goroutine
// that frees gets the flags.
func nextFree(word, handle uint64) (next uint64, ok bool) {
	if !matches(word, handle) {
		return word, false
	}
	return freed(word &^ (moveMask | flagMask)), true
}

// nextRecord returns the word after the announcement of a stream on a live handle. noted says that the word
// has no room and the slot's note must record it.
func nextRecord(word, handle uint64, number int) (next uint64, noted, ok bool) {
	user := uint64(number+1) << userShift
	switch at := word & userMask; {
	case !matches(word, handle):
		return word, false, false
	case number >= userCount || at != 0 && at != user:
		return word, true, true
	default:
		return word | user | uint64(Announced), false, true
	}
}

// matches reports whether a handle with that word is live.
func matches(word, handle uint64) bool { return word>>flagBits == handle>>flagBits }

// freed returns the word of a slot that was never moved, or of its handle, after its free.
func freed(word uint64) uint64 { return word + generationStep }

// nextMove returns the word after the block of a handle was moved; the new handle has this word without its
// flags. ok is false if the handle is not live or was moved too often.
func nextMove(word, handle uint64) (next uint64, ok bool) {
	if !matches(word, handle) || word&moveMask == moveMask {
		return word, false
	}
	return word + moveStep | uint64(Announced), true
}

// refusal returns why a handle is not live: its block was moved, or its slot was freed once since (and
// perhaps handed out), or more than once.
func refusal(word, handle uint64) error {
	switch word>>generationShift - handle>>generationShift {
	case 0:
		return ErrTransferred
	case 1:
		return ErrDoubleFree
	default:
		return ErrStale
	}
}

// nextFlag returns the word with a flag set; ok is false if the handle is not live.
func nextFlag(word, handle uint64, f Flag) (next uint64, ok bool) {
	if !matches(word, handle) {
		return word, false
	}
	return word | uint64(f), true
}
