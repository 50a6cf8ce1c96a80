// Package tape learns the sequence of a stream's large requests and, where it repeats, has a place ready for each of
// them: training steps repeat, and so do the phases of a program that serves. It decides and performs nothing: lengths
// and places go in and out, in units, and what lies there is its owner's.
//
// # Words
//
// A request is an allocation that took the stream's turn and is too long for a class; the tape sees nothing else. Time
// is counted in requests. A life is the number of requests after which the memory of one is free again. A gram is six
// sizes in a row, a phrase sixteen. The lag is how many requests ago the same happened. A step is a sequence that came twice, one lag
// apart, behind which as much lives as before it: an inner loop that piles something up is none, one that accumulates
// gradients is. A place is where the plan has a request: units of the ground, which is the memory that the plan lies on.
// The calm is where in the step least lives.
//
// # States
//
//	watching --a phrase came again--> learning --the step came again whole--> packing
//	packing --at the calm, with ranges that are or will be free; in the background--> ready --at the calm--> playing
//	playing --too many wrong sizes--> lost --a gram of the plan--> playing (resynchronised)
//	playing, lost --the owner needs the ground--> ready
//	lost for some steps, or a longer step was found that explains more, or lives have changed: watching, or packing
//
// Requests that the plan does not expect, or whose place is taken, are served the ordinary way, in every state. A plan
// begins with what of its ground is free; the rest comes as the blocks that lie there are freed. Before a step that did
// not come exactly as before is packed, it is followed for some rounds, so that the longest lives are heard.
//
// A plan costs where it does not hold: what it does not expect needs memory besides its ground, and a plan that yields in the
// middle of a step leaves what lives there in places that suit nobody else. So a sequence is a step only if no more than one
// request in 64 differs; a plan that yields, most of all within a step, or
// leaves more than an eighth without their places, some times in a row is dropped, and the tape rests, longer each time; and
// a sequence of a quarter of a million requests of which no plan was made is left alone for sixteen times as many.
//
// With one allocation in fifty left out, resized or moved, another one each time (vram replay -jitter 2%), a plan placed four of five
// requests, those of a transformer's training found one place in six taken, and its stream held three percent more.
//
// # Why no two requests ever share a unit
//
// Each unit of the ground has one token. Round it the places that lie on it form a circle, in the order of their
// requests. A place is taken with the tokens of all its units; when its memory is free again they go to the next place
// on each unit. A request that the step leaves out passes its tokens on as soon as it has them. So who has a token is
// alone on its unit, whatever comes in which order: a sequence that is not the plan's costs places, never a promise.
// Tokens that go from one place to the same next one are counted as one, so a place is taken by one comparison and
// freed by one addition for each place that follows on some of its units: 1.5 to 1.8 on real traces.
//
// # Packing
//
// With lives known, first fit in the order of falling sizes comes within half a percent of the peak on seven of eight
// real traces that were packed as a whole, and on the five streams of a pipeline within 0 to 5 percent of each one's peak; the
// online heap needs 1 to 18 percent more. Packing costs 15 to 900 ms for 5,000 to 29,000 requests, in slices.
//
// The road not taken: places that are free some requests before they are wanted would let callers take several at once
// without the turn. They cost 6 percent of the peak for one request ahead on a transformer's trace and 18 for two.
//
// # Concurrency properties
//
//   - A Tape is plain memory for one goroutine at a time: whoever runs the stream's turn.
//   - A Packer is plain memory, too, and shares nothing with its Tape: it may run on any goroutine, one at a time.
//   - Nothing here waits, and a request that is placed allocates nothing on the Go heap.
package tape
