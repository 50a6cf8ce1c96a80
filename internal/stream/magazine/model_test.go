package magazine

import "errors"

// The model: one magazine of two slots, its lists, its owner and up to three callers. A step of an actor
// is one atomic operation of the real code together with the plain code up to the next one; the words
// change by the functions of word.go. Callers have the magazine's address for ever, like one that looked
// it up and was stopped, so the pointers in the buckets, which only say where to look, are left out; so is
// the count of lost races.

const (
	modelSlots  = 2
	modelWhole  = 1<<modelSlots - 1
	mostHandles = 8 // of a slot: more than any search hands out
)

// rules are the transition functions that a search runs on: the package's, or with one mistake.
type rules struct {
	take        func(mask uint64) (next uint64, slot int, ok bool)
	free        func(word, handle uint64) (next uint64, ok bool)
	flag        func(word, handle uint64, f Flag) (next uint64, ok bool)
	move        func(word, handle uint64) (next uint64, ok bool)
	record      func(word, handle uint64, number int) (next uint64, noted, ok bool)
	refusal     func(word, handle uint64) error
	put         func(old uint64) home
	idle        func(mask, whole uint64, handed bool) (next uint64, ok bool)
	takeParked  func(mask uint64, most int) (next, taken uint64)
	broughtHome func(old uint64) uint64
	reopen      func(old uint64) uint64
	clear       func(word uint64) uint64 // the flags of a slot that the owner has
	announces   Flag                     // the flags of an announcement
	parkBlindly bool                     // Store in place of compare-and-swap
	idleBlindly bool                     // likewise
	takeBlindly bool                     // likewise
	flagFirst   bool                     // a use is noted after its flag was set
	entry       func(units, below uint32) uint64
	pop         func(top, entry uint64) uint64
	empty       func(top uint64) uint64
	backFlagged bool // a slot with flags may be taken back
}

func packageRules() rules {
	return rules{
		take: nextTake, free: nextFree, flag: nextFlag, move: nextMove, record: nextRecord, refusal: refusal, put: put, idle: nextIdle,
		takeParked:  nextTakeParked,
		broughtHome: broughtHome,
		reopen:      func(uint64) uint64 { return openMask },
		clear:       func(word uint64) uint64 { return word &^ flagMask },
		announces:   Announced,
		entry:       entry, pop: nextPop, empty: nextEmpty,
	}
}

// place is the true place of a slot, independent of the words.
type place uint8

const (
	atHome  place = iota // the owner's
	inWord               // free, to be taken from the mask
	live                 // a caller has a handle
	falling              // freed, and in the hands of the caller who freed it
	listed               // in the list of freed slots
	fetched              // the owner took the list and has not booked it yet
	kept                 // freed, and the owner waits for uses that were noted
)

// handing is where a parked magazine is on its way to the owner.
type handing uint8

const (
	notHanded handing = iota
	owed              // a caller was told to hand it over
	pushed            // it is in the list of parked magazines
	arrived           // the owner has it
)

// modelKind is the kind of the magazine.
type modelKind uint8

const (
	small modelKind = iota
	exact
	loose
)

type actor struct {
	at     step
	op     op
	slot   int8
	user   uint8 // the number of the caller's stream
	serial uint8 // of the handle, counted from 1 for each slot
	left   uint8 // operations that it may still begin
	flags  uint8
	head   int8    // of a list, as loaded
	second bool    // of the two lists
	full   [3]bool //nolint:unused // leaves no gap
	was    uint32  // the word of a handle that the owner announces on
	seen   uint64
	top    uint64 // of a list of freed slots, as loaded
}

// world is a state of the model. Slots in lists are named by their number plus one; 0 is nil. Neither it nor an actor has a gap
// between fields: so it is hashed in one piece.
type world struct {
	// State shared by callers and the owner.
	mask      uint64
	aside     [modelSlots]uint64
	freed     uint64
	used      uint64
	word      [modelSlots]uint32
	units     [modelSlots]uint32 // of the slot's block
	life      life
	flagsHome [modelSlots]uint8
	uses      [modelSlots]uint8 // in the note, by user
	parked    int8
	behind    int8 // the magazine's next

	// The owner's books.
	kind    modelKind
	open    bool
	over    bool // closed for good
	inReady bool
	homes   uint8

	// The truth, to judge by.
	place     [modelSlots]place
	handed    [modelSlots]uint8 // hand-outs so far
	known     [modelSlots]uint8 // of them, those whose handle has been read
	announced [modelSlots]uint8 // flags that were set on the live handle
	recorded  [modelSlots]uint8 // whose uses of the live handle were announced
	sharing   bool              // callers record uses and move, in place of announcing
	handing   handing
	woken     bool
	full      [4]bool                         //nolint:unused // leaves no gap
	handle    [modelSlots][mostHandles]uint32 // the words of known handles
	past      [modelSlots]uint32              // the handle that was moved last

	actors [4]actor // the owner first
}

// violation is a state that a search must not reach.
type violation string

const (
	lawful              violation = ""
	twoOwners           violation = "a slot was handed out that was not free"
	flagsKept           violation = "a slot is free or home with the flags of a handle of before"
	freedTwice          violation = "a free of a handle that is not live succeeded"
	refusedLive         violation = "a free of a live handle was refused"
	misnamed            violation = "a refused free was called by the wrong name"
	flagsLost           violation = "a free went home without the flags that were announced, or with others"
	useLost             violation = "a block came home without a use that was announced"
	movedOther          violation = "a handle was moved that is not live"
	flaggedOther        violation = "a flag was set on a handle that is not live"
	handedTwice         violation = "a magazine was handed over twice"
	handedInUse         violation = "a magazine was handed over that is in use"
	readyEmpty          violation = "a magazine that is ready has no free slot"
	listedTwice         violation = "a slot is in a list twice"
	lostSlot            violation = "a slot is neither live, nor free, nor home, nor in a list"
	lostMagazine        violation = "a parked magazine has a free slot and nobody was told"
	servedClosed        violation = "a closed magazine has slots to give out"
	wrongBooks          violation = "the owner's books name other slots home than are home"
	wrongCount          violation = "the owner counts other slots as live than are live"
	nobodyWoken         violation = "a block came home to a draining cache and nobody woke the owner"
	wrongLength         violation = "a block was taken back for another length"
	takenFlagged        violation = "a block was taken back that the owner must see"
	closedWhileBorrowed violation = "a magazine was closed as idle with a slot in use"
)

// judge checks the invariants of every state.
func (w *world) judge() violation {
	closed := w.mask >= closedBit
	for s := range w.place {
		bit := uint64(1) << s
		isFree := w.place[s] == inWord
		switch {
		case isFree && closed:
			return lostSlot
		case isFree != (!closed && w.mask&bit != 0):
			if isFree {
				return lostSlot
			}
			return twoOwners
		case isFree && w.word[s]&uint32(Announced|Watched) != 0, w.place[s] == atHome && w.word[s]&flagMask != 0:
			return flagsKept
		case (w.homes>>s&1 != 0) != (w.place[s] == atHome):
			return wrongBooks
		}
	}
	if w.open && !closed && w.mask&parkedBit != 0 && w.mask&slotBits != 0 && w.handing == notHanded {
		return lostMagazine
	}
	return lawful
}

// judgeQuiet checks the invariants of a state without an operation in progress.
func (w *world) judgeQuiet() violation {
	var inList [modelSlots]bool
	for _, top := range []uint64{w.freed, w.used} {
		for s := uint32(top); s != noSlot; s = uint32(w.aside[s-1]) {
			if inList[s-1] {
				return listedTwice
			}
			inList[s-1] = true
		}
	}
	var liveSlots, listedSlots uint64
	for s, p := range w.place {
		if p == falling || p == fetched || (p == listed) != inList[s] {
			return lostSlot
		}
		if p == live {
			liveSlots |= 1 << s
		}
		if p == listed {
			listedSlots |= 1 << s
		}
	}
	if (uint32(w.freed) != noSlot || w.used != 0) && w.life == draining && !w.woken {
		return nobodyWoken
	}
	if w.kind != loose && !w.over && w.handing == owed {
		return lostMagazine
	}
	counted := modelWhole &^ uint64(w.homes)
	if w.mask < closedBit {
		counted &^= w.mask
	}
	for s, p := range w.place {
		if p == kept {
			counted &^= 1 << s
		}
	}
	if counted&^listedSlots != liveSlots {
		return wrongCount
	}
	return lawful
}

// handOut gives a slot to a caller, whose handle is still to be read.
func (w *world) handOut(slot int8, from place) violation {
	if w.place[slot] != from {
		return twoOwners
	}
	w.place[slot] = live
	w.announced[slot] = uint8(w.word[slot] & flagMask)
	w.recorded[slot] = 0
	w.handed[slot]++
	return lawful
}

// readHandle is the load of the word that makes a handle.
func (w *world) readHandle(slot int8) {
	w.handle[slot][w.known[slot]] = w.word[slot] &^ flagMask
	w.known[slot]++
}

// isLive reports whether the handle is the one that the slot's owner has.
func (w *world) isLive(slot int8, serial uint8) bool {
	return w.place[slot] == live && w.handed[slot] == serial
}

// moved stands for the number of the handle that was moved last.
const moved = 0

// handleOf is the word of a handle.
func (w *world) handleOf(slot int8, serial uint8) uint64 {
	if serial == moved {
		return uint64(w.past[slot])
	}
	return uint64(w.handle[slot][serial-1])
}

// won books a free whose compare-and-swap succeeded.
func (w *world) won(slot int8, serial, flags uint8) violation {
	switch {
	case !w.isLive(slot, serial):
		return freedTwice
	case flags != w.announced[slot]:
		return flagsLost
	}
	w.place[slot] = falling
	return lawful
}

// refused judges a free whose load said that the handle is not live.
func (w *world) refused(slot int8, serial uint8, err error) violation {
	if serial == moved {
		if same := uint64(w.word[slot])>>generationShift == uint64(w.past[slot])>>generationShift; same != errors.Is(err, ErrTransferred) {
			return misnamed
		}
		return lawful
	}
	frees := w.handed[slot] + 1 - serial // of this handle and of later ones
	if w.place[slot] == live {
		frees--
	}
	switch {
	case frees == 0:
		return refusedLive
	case frees == 1 && !errors.Is(err, ErrDoubleFree), frees > 1 && !errors.Is(err, ErrStale):
		return misnamed
	default:
		return lawful
	}
}
