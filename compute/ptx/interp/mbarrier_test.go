package interp_test

import (
	"encoding/binary"
	mathbits "math/bits"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// atMbarriers runs a kernel of 64 threads that begins with one mbarrier for so many arrivals, and returns 64 words and
// the fault.
func atMbarriers(t *testing.T, arrivals, statements string) ([]byte, error) {
	t.Helper()
	out, in := make([]byte, 256), make([]byte, 256)
	for n := range in {
		in[n] = byte(n)
	}
	k := compile(t, `.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out)
{
	.reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;
	.shared .align 8 .b64 bar[2]; .shared .align 16 .b32 data[64];
	ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
	mov.u32 %r0, %tid.x; mul.wide.u32 %rd3, %r0, 4; add.u64 %rd1, %rd1, %rd3; add.u64 %rd2, %rd2, %rd3;
	mov.u32 %r1, data; shl.b32 %r2, %r0, 2; add.u32 %r2, %r1, %r2;
	xor.b32 %r3, %r0, 63; shl.b32 %r3, %r3, 2; add.u32 %r3, %r1, %r3;
	setp.ne.u32 %p1, %r0, 0;
	@%p1 bra $READY;
	mbarrier.init.shared.b64 [bar], `+arrivals+`;
$READY:
	bar.sync 0;
`+statements+"\n\tret;\n}\n")
	err := k.Run(interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 64, Y: 1, Z: 1}, MaxInstructions: 200_000,
		Params: params(uint64(0x10000), uint64(0x20000)), Memory: interp.Bytes{0x10000: in, 0x20000: out},
	})
	return out, err
}

// reversed are the words 63, 62, … 0, from a number on.
func reversed(from uint32) []byte {
	var all []uint32
	for n := range uint32(64) {
		all = append(all, from+63-n)
	}
	return words(all...)
}

// Threads hand data over at an mbarrier: by the state that the arrival gave, by the parity of the phase, and phase after phase.
func TestMbarriersHandOver(t *testing.T) {
	for name, statements := range map[string]string{
		"state": `st.shared.u32 [%r2], %r0;
	mbarrier.arrive.shared.b64 %rd4, [bar];
$WAIT:
	mbarrier.test_wait.shared.b64 %p2, [bar], %rd4;
	@!%p2 bra $WAIT;
	ld.shared.u32 %r4, [%r3];
	st.global.u32 [%rd2], %r4;`,
		"parity": `st.shared.u32 [%r2], %r0;
	mbarrier.arrive.release.cta.shared::cta.b64 _, [bar];
$WAIT:
	mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [bar], 0, 1000;
	@!%p2 bra $WAIT;
	ld.shared.u32 %r4, [%r3];
	st.global.u32 [%rd2], %r4;`,
		"phases": `mov.u32 %r5, 0;
$AGAIN:
	add.u32 %r6, %r0, %r5; st.shared.u32 [%r2], %r6;
	mbarrier.arrive.shared.b64 _, [bar];
	and.b32 %r7, %r5, 1;
	shl.b32 %r7, %r7, 1;
	mov.u32 %r8, 0;
$FIRST:
	mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
	@!%p2 bra $FIRST;
	ld.shared.u32 %r4, [%r3];
	mbarrier.arrive.shared.b64 _, [bar];
$SECOND:
	mbarrier.test_wait.parity.shared.b64 %p2, [bar], 1;
	@!%p2 bra $SECOND;
	add.u32 %r5, %r5, 1; setp.lt.u32 %p3, %r5, 5; @%p3 bra $AGAIN;
	sub.u32 %r4, %r4, 4;
	st.global.u32 [%rd2], %r4;`,
		"bytes": `setp.ne.u32 %p4, %r0, 0;
	@%p4 bra $OTHERS;
	st.shared.u32 [%r2], %r0;
	mbarrier.arrive.expect_tx.shared.b64 _, [bar], 252;
$OTHERS:
	@!%p4 bra $WAIT;
	st.shared.u32 [%r2], %r0;
	mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 4;
$WAIT:
	mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
	@!%p2 bra $WAIT;
	ld.shared.u32 %r4, [%r3];
	st.global.u32 [%rd2], %r4;`,
	} {
		t.Run(name, func(t *testing.T) {
			arrivals := "64"
			if name == "bytes" { // one thread arrives, and the phase waits for the bytes of the others
				arrivals = "1"
			}
			out, err := atMbarriers(t, arrivals, statements)
			require.NoError(t, err)
			assert.Equal(t, reversed(0), out)
		})
	}
}

// Copies from global memory arrive before their thread does.
func TestMbarriersOfCopies(t *testing.T) {
	out, err := atMbarriers(t, "64", `cp.async.ca.shared.global [%r2], [%rd1], 4;
	cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
$WAIT:
	mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
	@!%p2 bra $WAIT;
	ld.shared.u32 %r4, [%r3];
	st.global.u32 [%rd2], %r4;`)
	require.NoError(t, err)
	assert.Equal(t, []byte{252, 253, 254, 255}, out[:4])
}

// A copy of no bytes reads nothing, wherever its source is, and clears its destination.
func TestACopyOfNoBytes(t *testing.T) {
	out, err := atMbarriers(t, "64", `mov.u64 %rd4, 0;
	mov.u32 %r4, 0;
	cp.async.ca.shared.global [%r2], [%rd4], 4, %r4;
	cp.async.wait_all;
	ld.shared.u32 %r4, [%r2];
	st.global.u32 [%rd2], %r4;`)
	require.NoError(t, err)
	assert.Equal(t, make([]byte, 256), out)
}

// Threads that drop out arrive in their phase, and later phases do not wait for them.
func TestThreadsDropOut(t *testing.T) {
	out, err := atMbarriers(t, "64", `setp.lt.u32 %p3, %r0, 24;
	st.shared.u32 [%r2], %r0;
	@%p3 mbarrier.arrive_drop.shared.b64 %rd4, [bar];
	@!%p3 mbarrier.arrive.shared.b64 %rd4, [bar];
$FIRST:
	mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
	@!%p2 bra $FIRST;
	@%p3 bra $SECOND;
	mbarrier.arrive.shared.b64 %rd4, [bar];
$SECOND:
	mbarrier.try_wait.parity.shared.b64 %p2, [bar], 1;
	@!%p2 bra $SECOND;
	ld.shared.u32 %r4, [%r3];
	st.global.u32 [%rd2], %r4;`)
	require.NoError(t, err)
	assert.Equal(t, reversed(0), out)
}

// As many bytes as an mbarrier counts may be expected, and may have come before; one more is a mistake.
func TestBytesOfAnMbarrier(t *testing.T) {
	for _, statement := range []string{"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], ", "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], "} {
		_, err := atMbarriers(t, "64", "@!%p1 "+statement+"1048575;")
		require.NoError(t, err, statement)
		_, err = atMbarriers(t, "64", "@!%p1 "+statement+"1048576;")
		require.ErrorIs(t, err, interp.DivergentBarrier, statement)
		require.ErrorContains(t, err, "more than 1048575 bytes are on their way")
	}
}

// Mistakes at mbarriers are faults: data that nobody waited for, arrivals that are too many, phases that nothing ends.
func TestMbarrierFaults(t *testing.T) {
	for name, c := range map[string]struct {
		arrivals, statements string
		kind                 interp.Kind
	}{
		"no wait": {"64", `st.shared.u32 [%r2], %r0;
	mbarrier.arrive.shared.b64 _, [bar];
	ld.shared.u32 %r4, [%r3];
	st.global.u32 [%rd2], %r4;`, interp.SharedRace},
		"too many":         {"1", "mbarrier.arrive.shared.b64 _, [bar], 2;", interp.DivergentBarrier},
		"no end":           {"65", "mbarrier.arrive.shared.b64 _, [bar];\n$WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra $WAIT;", interp.InstructionLimit},
		"noComplete":       {"64", "mbarrier.arrive.noComplete.shared.b64 _, [bar], 1;", interp.DivergentBarrier},
		"noComplete, last": {"1", "@!%p1 mbarrier.arrive.noComplete.shared.b64 _, [bar], 1;", interp.DivergentBarrier},
		"none":             {"0", "", interp.DivergentBarrier},
		"not begun":        {"1", "mbarrier.test_wait.parity.shared.b64 %p2, [bar+8], 0;", interp.Uninitialised},
		"in global memory": {"1", "and.b64 %rd1, %rd1, -8; mbarrier.arrive.b64 _, [%rd1];", interp.OutOfBounds},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := atMbarriers(t, c.arrivals, c.statements)
			require.ErrorIs(t, err, c.kind)
		})
	}
}

// An arrival that leaves its phase open may say so, also if it leaves one arrival.
func TestAnArrivalThatLeavesThePhaseOpen(t *testing.T) {
	for _, arrivals := range []string{"2", "3"} {
		_, err := atMbarriers(t, arrivals, "@!%p1 mbarrier.arrive.noComplete.shared.b64 _, [bar], 1;")
		require.NoError(t, err, arrivals)
	}
}

// Each thread of a warp tests for itself whether a phase has ended: of two mbarriers, and of both parities.
func TestThreadsTestDifferentPhases(t *testing.T) {
	out, err := atMbarriers(t, "1", `@!%p1 mbarrier.init.shared.b64 [bar+8], 1;
	@!%p1 mbarrier.arrive.shared.b64 _, [bar];
	bar.sync 0;
	mov.u32 %r4, bar; and.b32 %r5, %r0, 8; add.u32 %r4, %r4, %r5;
	popc.b32 %r5, %r0; and.b32 %r5, %r5, 1;
	mbarrier.test_wait.parity.shared.b64 %p2, [%r4], %r5;
	selp.u32 %r6, 1, 0, %p2; st.global.u32 [%rd2], %r6;`)
	require.NoError(t, err)
	for n := range 64 {
		first := n&8 == 0 // its first phase has ended; of the other one the phase before that has
		assert.Equal(t, uint32(btoi(first == (mathbits.OnesCount(uint(n))%2 == 0))), wordAt(out, n), "thread %d", n)
	}
}

// An mbarrier that is initialised again keeps nothing of the order of the former one: a thread that waits for it does not see
// writes before arrivals at that. Here the former one has the bits of a new one, so that the initialisation itself is no race; a word that
// orders nothing says when its work is done.
func TestAnMbarrierThatIsInitialisedAgainKeepsNoOrder(t *testing.T) {
	const again = "mbarrier.init.shared.b64 [bar], 1;"
	for name, former := range map[string]string{
		"bytes that came": `mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 16;
	mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 16;`,
		"eight phases": strings.Repeat("\n\tmbarrier.arrive.shared.b64 _, [bar];", 8),
	} {
		for _, second := range []string{"", again} {
			_, err := atMbarriers(t, "1", `@!%p1 st.shared.u32 [data+4], 0;
	bar.sync 0;
	setp.ge.u32 %p4, %r0, 32;
	setp.ne.u32 %p5, %r0, 32;
	@%p4 bra $SECOND;
	@%p1 bra $END;
	st.shared.u32 [data], %r0;
	`+former+`
	atom.shared.exch.b32 %r4, [data+4], 1;
	bra $END;
$SECOND:
	@%p5 bra $END;
	atom.shared.add.u32 %r4, [data+4], 0;
	setp.eq.u32 %p2, %r4, 0;
	@%p2 bra $SECOND;
	`+second+`
	mbarrier.arrive.shared.b64 _, [bar];
$WAIT:
	mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
	@!%p2 bra $WAIT;
	ld.shared.u32 %r4, [data];
$END:`)
			if second == "" {
				require.NoError(t, err, name)
				continue
			}
			var fault *interp.Fault
			require.ErrorAs(t, err, &fault, name)
			assert.ErrorIs(t, err, interp.SharedRace, name)
			assert.Equal(t, uint64(16), fault.Address, "%s: of the data, not of the mbarrier", name)
		}
	}
}

// A warp that waits gives up its turn: it tests a few times while another one takes long to arrive.
func TestAWarpThatWaitsGivesUpItsTurn(t *testing.T) {
	out, err := atMbarriers(t, "32", `setp.lt.u32 %p4, %r0, 32;
	mov.u32 %r4, 0;
	@%p4 bra $WAIT;
$LONG:
	add.u32 %r4, %r4, 1;
	setp.lt.u32 %p5, %r4, 60000;
	@%p5 bra $LONG;
	mbarrier.arrive.shared.b64 _, [bar];
	bra $END;
$WAIT:
	add.u32 %r4, %r4, 1;
	mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
	@!%p2 bra $WAIT;
$END:
	st.global.u32 [%rd2], %r4;`)
	require.NoError(t, err)
	assert.Less(t, binary.LittleEndian.Uint32(out), uint32(5000), "whole turns would make it 40,000")
	assert.Equal(t, uint32(60000), binary.LittleEndian.Uint32(out[128:]))
}

// Memory that is written while others test an mbarrier there is a race at the next test, also if it has the same bits as before and the mbarrier
// is tested in between.
func TestAWriteBetweenTestsOfAnMbarrier(t *testing.T) {
	const (
		store  = "st.shared.b64 [bar], %rd5;"
		tested = "mbarrier.test_wait.parity.shared.b64 %p6, [bar], 0;"
	)
	for name, row := range map[string]struct{ write, from string }{
		"init":                                {"mbarrier.init.shared.b64 [bar], 1;", "32"},
		"store":                               {store, "32"},
		"store and test":                      {store + tested, "32"},
		"store of a half":                     {"st.shared.b32 [bar+4], %r7;", "32"},
		"store of a byte":                     {"st.shared.b8 [bar+7], %r8;", "32"},
		"store of the warp":                   {store, "1"},
		"store and test of the warp":          {store + tested, "1"},
		"store of the warp and the same test": {store + "atom.shared.exch.b32 %r4, [data+8], 1; bra $WAIT;", "1"},
		"nothing":                             {"", "32"},
		"test":                                {tested, "32"},
		"another's memory":                    {"st.shared.b64 [bar+8], %rd5;", "32"},
		"nothing, one warp":                   {"", "1"},
	} {
		_, err := atMbarriers(t, "1", `@!%p1 st.shared.u32 [data+4], 0;
	@!%p1 st.shared.u32 [data+8], 0;
	ld.shared.b64 %rd5, [bar];
	ld.shared.b32 %r7, [bar+4];
	mov.u32 %r8, 0;
	mov.u32 %r5, 0;
	bar.sync 0;
	setp.eq.u32 %p4, %r0, `+row.from+`;
	@%p4 bra $SECOND;
	@%p1 bra $END;
$WAIT:
	mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
	@%p2 bra $END;
	atom.shared.add.u32 %r4, [data+4], 1;
	atom.shared.add.u32 %r4, [data+8], 0;
	add.u32 %r5, %r5, %r4;
	setp.lt.u32 %p3, %r5, 3;
	@%p3 bra $WAIT;
	bra $END;
$SECOND:
	atom.shared.add.u32 %r4, [data+4], 0;
	setp.eq.u32 %p2, %r4, 0;
	@%p2 bra $SECOND;
	`+row.write+`
	atom.shared.exch.b32 %r4, [data+8], 1;
$END:`)
		if row.write == "" || row.write == tested || strings.Contains(row.write, "bar+8") {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, interp.SharedRace, name)
	}
}

// Each thread of a warp has an order of its own: one that tests an mbarrier without a wait for its initialisation races with that, also after
// another thread that did wait.
func TestEachThreadIsOrderedBeforeItTests(t *testing.T) {
	for _, waits := range []bool{true, false} {
		wait := "$ALSO: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra $ALSO;"
		if !waits {
			wait = ""
		}
		_, err := atMbarriers(t, "1", `@!%p1 st.shared.u32 [data+4], 0;
	bar.sync 0;
	setp.eq.u32 %p3, %r0, 2;
	@%p3 bra $THIRD;
	setp.eq.u32 %p4, %r0, 1;
	@%p4 bra $SECOND;
	@%p1 bra $END;
$WAIT:
	mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
	@!%p2 bra $WAIT;
	mbarrier.test_wait.parity.shared.b64 %p5, [bar+8], 0;
	atom.shared.exch.b32 %r4, [data+4], 1;
	bra $END;
$SECOND:
	atom.shared.add.u32 %r4, [data+4], 0;
	setp.eq.u32 %p5, %r4, 0;
	@%p5 bra $SECOND;
	`+wait+`
	mbarrier.test_wait.parity.shared.b64 %p5, [bar+8], 0;
	bra $END;
$THIRD:
	mbarrier.init.shared.b64 [bar+8], 1;
	mbarrier.arrive.shared.b64 _, [bar];
$END:`)
		if waits {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, interp.SharedRace)
		}
	}
}
