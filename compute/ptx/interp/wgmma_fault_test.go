package interp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// warpgroupPrelude gives each thread its part of the matrices in shared memory: A has 2048 bytes at 0, B 256 bytes at
// 4096. %r1 is the thread, %s1 the thread's 32 bytes, %s2 its two bytes of B, %a and %b the descriptors, %f0 to %f3 are
// D, %x0 to %x3 are A.
const warpgroupPrelude = `.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x) {
.reg .pred %p<4>; .reg .b32 %r<16>, %x<4>, %s<4>; .reg .b64 %d<8>, %a, %b; .reg .f32 %f<8>; .reg .b16 %h<4>; .shared .align 1024 .b8 tile[8192];
ld.param.u64 %d1, [x]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 5; mov.u32 %s1, tile; add.u32 %s1, %s1, %r2; shl.b32 %r2, %r1, 1; mov.u32 %s2, tile; add.u32 %s2, %s2, %r2;
mov.b32 %r0, 0; mov.b64 %a, 0x0000001000080000; mov.b64 %b, 0x0000001000080100; mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;
mov.b32 %x0, 0; mov.b32 %x1, 0; mov.b32 %x2, 0; mov.b32 %x3, 0; mov.b16 %h0, 0; cvt.u64.u32 %d2, %r1; shl.b64 %d2, %d2, 4; add.u64 %d2, %d2, %d1;
`

// Parts of kernels. Each is one line.
const (
	storeA     = "st.shared.v4.u32 [%s1], {%r0, %r0, %r0, %r0}; st.shared.v4.u32 [%s1+16], {%r0, %r0, %r0, %r0};\n"
	storeB     = "st.shared.u16 [%s2+4096], %h0;\n"
	proxyFence = "fence.proxy.async;\n"
	barrier    = "bar.sync 0;\n"
	fenced     = "wgmma.fence.sync.aligned;\n"
	multiply   = "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0, %f1, %f2, %f3}, %a, %b, 1, 1, 1;\n"
	multiplyX  = "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%f0, %f1, %f2, %f3}, {%x0, %x1, %x2, %x3}, %b, 1, 1, 1;\n"
	commit     = "wgmma.commit_group.sync.aligned;\n"
	wait0      = "wgmma.wait_group.sync.aligned 0;\n"
	wait1      = "wgmma.wait_group.sync.aligned 1;\n"
	stored     = storeA + storeB + proxyFence + barrier // four lines
	begun      = stored + fenced + multiply             // six
	done       = "ret;\n}\n"
)

// runWarpgroup executes a kernel with so many threads, and returns its fault.
func runWarpgroup(t *testing.T, threads uint32, body string, ignored ...interp.Kind) *interp.Fault {
	t.Helper()
	l := launch(2, threads, interp.Bytes{0x10000: make([]byte, 8192)}, uint64(0x10000))
	l.Ignore = ignored
	err := compile(t, warpgroupPrelude+body+done).Run(l)
	kept(t, err, threads, ignored, body)
	if err == nil {
		return nil
	}
	var f *interp.Fault
	require.ErrorAs(t, err, &f)
	return f
}

// Each mistake with the products of a warpgroup is found, with its kind, its line and the line of the other instruction.
func TestFaultsOfWarpgroups(t *testing.T) {
	t.Parallel()
	first := strings.Count(warpgroupPrelude, "\n") + 1
	const read, write = "add.f32 %f4, %f2, %f3;\n", "mov.f32 %f1, 0f00000000;\n"
	for name, c := range map[string]struct {
		body        string
		kind        interp.Kind
		line, other int    // after the prelude, from 0; other -1: none
		thread      uint32 // of its warp: the warp that arrives last at a barrier continues first
		detail      string
	}{
		"a result is read before the wait":            {begun + commit + read + wait0, interp.WgmmaInFlight, 7, 5, 0, "register %f2"},
		"a result is written before the wait":         {begun + commit + write + wait0, interp.WgmmaInFlight, 7, 5, 0, "register %f1"},
		"some threads write a result":                 {begun + "and.b32 %r3, %r1, 31; setp.gt.u32 %p1, %r3, 5;\n@%p1 " + write + commit + wait0, interp.WgmmaInFlight, 7, 5, 6, "register %f1"},
		"a wait that leaves the last group":           {begun + commit + wait1 + read + wait0, interp.WgmmaInFlight, 8, 5, 0, "register %f2"},
		"a wait without a commit":                     {begun + wait0 + read, interp.WgmmaInFlight, 7, 5, 0, "register %f2"},
		"a shuffle of a result":                       {begun + "shfl.sync.idx.b32 %f4, %f0, 0, 31, -1;\n", interp.WgmmaInFlight, 6, 5, 0, "register %f0"},
		"a shuffle into a result":                     {begun + "shfl.sync.idx.b32 %f0, %r1, 0, 31, -1;\n", interp.WgmmaInFlight, 6, 5, 0, "register %f0"},
		"A is written before the wait":                {stored + fenced + multiplyX + "mov.b32 %x3, 1;\n", interp.WgmmaInFlight, 6, 5, 0, "register %x3"},
		"A is read before the wait":                   {stored + fenced + multiplyX + "add.u32 %r3, %x2, 1;\n", interp.WgmmaInFlight, 6, 5, 0, "register %x2"},
		"a result on its way is A":                    {stored + fenced + strings.Replace(multiply, "%f0, %f1, %f2, %f3", "%x0, %x1, %x2, %x3", 1) + multiplyX, interp.WgmmaInFlight, 6, 5, 0, "register %x0"},
		"A on its way is a result":                    {strings.Replace(stored+fenced+multiplyX+multiply, "{%f0, %f1, %f2, %f3}, %a", "{%x0, %x1, %x2, %x3}, %a", 1), interp.WgmmaInFlight, 6, 5, 0, "register %x0"},
		"a result of another shape":                   {begun + "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0, %f1, %f2, %f3}, %a, %b, 1, 1, 1, 0, 0;\n", interp.WgmmaInFlight, 6, 5, 0, "register %f0"},
		"results in another order":                    {begun + strings.Replace(multiply, "%f0, %f1", "%f1, %f0", 1), interp.WgmmaInFlight, 6, 5, 0, "register %f1"},
		"no wgmma.fence":                              {stored + multiply, interp.WgmmaFence, 4, -1, 0, "no wgmma.fence"},
		"a register is written behind wgmma.fence":    {stored + fenced + "mov.f32 %f2, 0f3f800000;\n" + multiply, interp.WgmmaFence, 6, -1, 0, "register %f2"},
		"A is written behind wgmma.fence":             {stored + fenced + "and.b32 %r3, %r1, 31; setp.eq.u32 %p1, %r3, 3;\n@%p1 mov.b32 %x1, 1;\n" + multiplyX, interp.WgmmaFence, 7, -1, 3, "register %x1"},
		"no proxy fence":                              {storeA + storeB + barrier + fenced + multiply, interp.ProxyFence, 4, 0, 0, "fence.proxy.async"},
		"the stores of B come behind the proxy fence": {storeA + proxyFence + storeB + barrier + fenced + multiply, interp.ProxyFence, 5, 2, 0, "fence.proxy.async"},
		"the proxy fence comes behind the barrier":    {storeA + storeB + barrier + proxyFence + fenced + multiply, interp.ProxyFence, 5, 0, 0, "fence.proxy.async"},
		"one warp makes the proxy fence behind the barrier": {"sub.u32 %r3, %r1, 96; shl.b32 %r4, %r3, 6; mov.u32 %r5, tile; add.u32 %r4, %r4, %r5; shl.b32 %r6, %r3, 3; add.u32 %r6, %r6, %r5;\n" +
			"setp.ge.u32 %p1, %r1, 96; @!%p1 bra loaded;\n" +
			"st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0}; st.shared.v4.u32 [%r4+16], {%r0, %r0, %r0, %r0}; st.shared.v4.u32 [%r4+32], {%r0, %r0, %r0, %r0}; st.shared.v4.u32 [%r4+48], {%r0, %r0, %r0, %r0}; st.shared.v2.u32 [%r6+4096], {%r0, %r0};\n" +
			"loaded:\n" + barrier + proxyFence + fenced + multiply, interp.ProxyFence, 7, 2, 0, "fence.proxy.async"},
		"other threads make the proxy fence": {
			storeA + storeB + "and.b32 %r3, %r1, 31; setp.lt.u32 %p1, %r3, 16;\n@%p1 " + proxyFence + barrier + fenced + multiply,
			interp.ProxyFence, 6, 0, 0, "fence.proxy.async",
		},
		"a proxy fence before the wait for copies": {"cp.async.cg.shared.global [%s1], [%d2], 16; cp.async.cg.shared.global [%s1+16], [%d2], 16; cp.async.commit_group;\n" +
			storeB + proxyFence + "cp.async.wait_group 0;\n" + barrier + fenced + multiply, interp.ProxyFence, 6, 0, 0, "fence.proxy.async"},
		"no wait for copies": {"cp.async.cg.shared.global [%s1], [%d2], 16; cp.async.cg.shared.global [%s1+16], [%d2], 16; cp.async.commit_group;\n" +
			storeB + proxyFence + barrier + fenced + multiply, interp.AsyncInFlight, 5, 0, 0, "has not arrived"},
		"no barrier":                           {storeA + storeB + proxyFence + fenced + multiply, interp.SharedRace, 4, 0, 0, "nothing orders"},
		"B is overwritten before the wait":     {begun + barrier + "st.shared.u16 [%s2+4096], %h0;\n", interp.SharedRace, 7, 5, 0, "may not have read"},
		"A is overwritten before the wait":     {begun + "st.shared.u32 [%s1], %r1;\n" + commit + wait0, interp.SharedRace, 6, 5, 0, "may not have read"},
		"a copy overwrites A before the wait":  {begun + commit + barrier + "cp.async.cg.shared.global [%s1], [%d2], 16;\n", interp.SharedRace, 8, 5, 0, "may not have read"},
		"B is overwritten without a barrier":   {begun + commit + wait0 + "mov.b16 %h1, 1;\nst.shared.u16 [%s2+4096], %h1;\n", interp.SharedRace, 5, 9, 0, ""},
		"shared memory that nobody wrote":      {storeA + proxyFence + barrier + fenced + multiply, interp.Uninitialised, 4, -1, 0, "not written"},
		"D that nobody wrote":                  {stored + fenced + strings.Replace(multiply, "%f0, %f1, %f2, %f3", "%f4, %f5, %f6, %f7", 1), interp.Uninitialised, 5, -1, 0, "register %f4"},
		"A that nobody wrote":                  {stored + fenced + strings.Replace(multiplyX, "%x0, %x1, %x2, %x3", "%r12, %r13, %r14, %r15", 1), interp.Uninitialised, 5, -1, 0, "register %r12"},
		"a matrix outside of shared memory":    {stored + fenced + "mov.b64 %b, 0x0000001000080200;\n" + multiply, interp.OutOfBounds, 6, -1, 0, "8192 bytes"},
		"a base offset":                        {stored + fenced + "mov.b64 %b, 0x0002001000080100;\n" + multiply, interp.Unsupported, 6, -1, 0, "base offset"},
		"bits without a meaning":               {stored + fenced + "mov.b64 %b, 0x0000001000084100;\n" + multiply, interp.Unsupported, 6, -1, 0, "no meaning"},
		"threads with different descriptors":   {stored + fenced + "cvt.u64.u32 %b, %r1;\n" + multiply, interp.DivergentWarp, 6, -1, 1, "different descriptors"},
		"threads that disagree about D":        {stored + fenced + "and.b32 %r3, %r1, 31; setp.gt.u32 %p1, %r3, 4;\n" + strings.Replace(multiply, "%b, 1", "%b, %p1", 1), interp.DivergentWarp, 6, -1, 5, "disagree"},
		"half of a warp":                       {stored + fenced + "and.b32 %r3, %r1, 31; setp.gt.u32 %p1, %r3, 15;\n@%p1 " + multiply + "ret;\n", interp.DivergentWarp, 6, -1, 16, "all 32 threads"},
		"warps with different descriptors":     {stored + fenced + "shr.u32 %r3, %r1, 6; cvt.u64.u32 %d3, %r3; add.u64 %a, %a, %d3;\n" + multiply, interp.DivergentWarp, 6, 6, 0, "different products"},
		"a warp that does not take part":       {stored + fenced + "setp.lt.u32 %p1, %r1, 96;\n@%p1 " + multiply, interp.BarrierDeadlock, 6, -1, 0, "warp 3"},
		"a wait in some threads of a warp":     {begun + commit + "and.b32 %r3, %r1, 31; setp.gt.u32 %p1, %r3, 15;\n@!%p1 ret;\n" + wait0, interp.DivergentWarp, 9, -1, 16, "all 32 threads"},
		"a result is written between products": {begun + commit + wait0 + "mov.f32 %f0, %f1;\n" + multiply, interp.WgmmaFence, 9, -1, 0, "register %f0"},
		"a result is read behind the next one": {begun + commit + fenced + multiply + commit + wait1 + read, interp.WgmmaInFlight, 11, 8, 0, "register %f2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := runWarpgroup(t, 128, c.body)
			require.NotNil(t, f, "nothing was found")
			assert.Equal(t, c.kind.String(), f.Kind.String(), f.Error())
			lines := []int{f.Line - first, -1}
			if f.Other != nil {
				lines[1] = f.Other.Line - first
			}
			assert.Equal(t, []int{c.line, c.other}, lines, f.Error())
			assert.Equal(t, c.thread, f.Thread.X%32, f.Error())
			assert.Contains(t, f.Detail, c.detail)
		})
	}
	f := runWarpgroup(t, 96, begun+commit+wait0)
	require.NotNil(t, f)
	assert.Equal(t, interp.DivergentWarp, f.Kind)
	assert.Contains(t, f.Detail, "a warpgroup")
}

// Whichever warp of a warpgroup never executes its product, the first one that does is told which.
func TestEachWarpThatTakesNoPart(t *testing.T) {
	t.Parallel()
	for missing := range 4 {
		f := runWarpgroup(t, 128, stored+fenced+fmt.Sprintf("shr.u32 %%r3, %%r1, 5; setp.ne.u32 %%p1, %%r3, %d;\n@%%p1 ", missing)+multiply)
		require.NotNil(t, f)
		assert.Equal(t, interp.BarrierDeadlock.String(), f.Kind.String())
		assert.Contains(t, f.Detail, fmt.Sprintf("warp %d of the block never", missing))
		assert.NotEqual(t, uint32(missing), f.Thread.X/32) //nolint:gosec // small
	}
}

// A product reads each element of its matrices until the wait: a store of another warp to any of them, without a barrier after that wait, races.
func TestAStoreToEachElementOfAMatrix(t *testing.T) {
	t.Parallel()
	for element := range 8 { // of a chunk
		f := runWarpgroup(t, 128, begun+commit+barrier+wait0+fmt.Sprintf(`mov.b16 %%h1, 1; setp.lt.u32 %%p1, %%r1, 32; mov.u32 %%r3, 0;
			again: add.u32 %%r3, %%r3, 1; setp.lt.and.u32 %%p2, %%r3, 20000, %%p1; @%%p2 bra again; // the others have waited
			setp.eq.u32 %%p1, %%r1, %d;
			@%%p1 st.shared.u16 [%%s2+4096], %%h1;
			`, element))
		require.NotNil(t, f, element)
		assert.Equal(t, interp.SharedRace.String(), f.Kind.String(), element)
		assert.Equal(t, "nothing orders the two accesses", f.Detail)
	}
}

// A matrix that warps have read, each once or twice, is stored to by one of them after a barrier with the others, but one of the two that read it last:
// the fourth warp is the first to continue after the barrier before.
func TestAStoreAfterAllReadersButOne(t *testing.T) {
	t.Parallel()
	for _, products := range []string{multiply, multiply + multiply} {
		for _, missing := range []int{1, 2} {
			body := begun[:len(begun)-len(multiply)] + products + commit + wait0 + fmt.Sprintf("mov.b16 %%h1, 1; shr.u32 %%r3, %%r1, 5; setp.eq.u32 %%p1, %%r3, %d;\n", missing) +
				"@%p1 bra out;\nbar.sync 1, 96;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 st.shared.u16 [%s2+4096], %h1;\nout:\n"
			f := runWarpgroup(t, 128, body)
			require.NotNil(t, f, missing)
			assert.Equal(t, interp.SharedRace.String(), f.Kind.String(), f.Error())
			assert.Equal(t, []uint32{0, uint32(missing)}, []uint32{f.Thread.X / 32, f.Other.Thread.X / 32}, f.Error()) //nolint:gosec // small
		}
		if f := runWarpgroup(t, 128, begun[:len(begun)-len(multiply)]+products+commit+wait0+"mov.b16 %h1, 1; setp.eq.u32 %p1, %r1, 0;\n"+barrier+"@%p1 st.shared.u16 [%s2+4096], %h1;\n"); f != nil {
			assert.Fail(t, f.Error())
		}
	}
}

// Kernels of warpgroups that look like mistakes and have none.
func TestNoFaultsOfWarpgroups(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"products in order":                 begun + multiply + commit + multiply + commit + wait0 + "add.f32 %f4, %f2, %f3;\n",
		"A in registers, twice":             stored + fenced + multiplyX + multiplyX + commit + wait0 + "add.u32 %r3, %x2, 1;\n",
		"D that nobody wrote is not added":  stored + fenced + strings.Replace(strings.Replace(multiply, "%f0, %f1, %f2, %f3", "%f4, %f5, %f6, %f7", 1), "%b, 1", "%b, 0", 1) + commit + wait0 + "add.f32 %f0, %f4, %f7;\n",
		"the matrices are read meanwhile":   begun + "ld.shared.u32 %r3, [%s1];\n" + commit + wait0,
		"own rows are stored to afterwards": begun + commit + wait0 + "shl.b32 %r3, %r1, 4; mov.u32 %r4, tile; add.u32 %r3, %r3, %r4;\nst.shared.u32 [%r3], %r3;\n",
		"others are stored to in between":   begun + "st.shared.u16 [%s2+6144], %h0;\n" + commit + wait0,
		"the kernel ends before the wait":   begun + commit,
		"the second block has no product":   stored + fenced + "mov.u32 %r3, %ctaid.x; setp.eq.u32 %p1, %r3, 1;\n@%p1 bra none;\n" + multiply + multiply + "none:\n" + commit + wait0,
		"the second block has two products": stored + fenced + multiply + "mov.u32 %r3, %ctaid.x; setp.eq.u32 %p1, %r3, 0;\n@%p1 bra one;\n" + multiply + "one:\n" + commit + wait0,
		"the second block has another one":  stored + fenced + "mov.u32 %r3, %ctaid.x; setp.eq.u32 %p1, %r3, 0;\n@%p1 bra first;\n" + multiply + "first:\n" + multiplyX + commit + wait0,
		"a loop": stored + "mov.u32 %r3, 0;\nagain:\n" + fenced + multiply + multiply + commit + wait1 +
			"add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 5; @%p2 bra again;\n" + wait0 + "add.f32 %f4, %f2, %f3;\n",
		"two stages of copies": `mov.u32 %r3, 0; mov.u32 %r4, 0; mov.u32 %s3, %s1;
			again:
			cp.async.cg.shared.global [%s3], [%d2], 16; cp.async.cg.shared.global [%s3+16], [%d2], 16; cp.async.commit_group;
			add.u32 %r5, %s2, 4096; st.shared.u16 [%r5], %h0;
			cp.async.wait_group 0;
			fence.proxy.async.shared::cta;
			bar.sync 0;
			` + fenced + multiply + commit + wait0 + barrier + `
			add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 4; @%p2 bra again;
			add.f32 %f4, %f2, %f3;
			`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if f := runWarpgroup(t, 128, body); f != nil {
				assert.Fail(t, f.Error())
			}
		})
	}
}

// Two warpgroups read the same matrices: after the wait of one of them the other one may still read.
func TestTwoWarpgroups(t *testing.T) {
	t.Parallel()
	const both = "setp.lt.u32 %p1, %r1, 128;\n@!%p1 bra second;\n" + storeA + storeB + "second:\n" + proxyFence + barrier + fenced + multiply + commit
	if f := runWarpgroup(t, 256, both+wait0+barrier+"@%p1 st.shared.u16 [%s2+4096], %h0;\n"); f != nil {
		assert.Fail(t, f.Error())
	}
	f := runWarpgroup(t, 256, both+"@!%p1 bra late;\n"+wait0+"late:\n"+barrier+"@%p1 st.shared.u16 [%s2+4096], %h0;\n"+wait0)
	require.NotNil(t, f)
	assert.Equal(t, interp.SharedRace, f.Kind)
	assert.GreaterOrEqual(t, f.Other.Thread.X, uint32(128), "the second warpgroup has not waited")
}

// Mistakes that a launch ignores are not looked for.
func TestIgnoredFaultsOfWarpgroups(t *testing.T) {
	t.Parallel()
	for kind, body := range map[interp.Kind]string{
		interp.WgmmaInFlight: begun + commit + "add.f32 %f4, %f2, %f3; mov.f32 %f1, %f4;\n",
		interp.WgmmaFence:    stored + multiply + commit + wait0 + "mov.f32 %f1, %f4;\n" + multiply,
		interp.ProxyFence:    storeA + storeB + barrier + fenced + multiply,
		interp.SharedRace:    begun + "st.shared.u32 [%s1], %r1;\n" + commit + wait0,
	} {
		require.NotNil(t, runWarpgroup(t, 128, body), kind)
		f := runWarpgroup(t, 128, body, kind, interp.Uninitialised)
		if f != nil {
			assert.Fail(t, f.Error())
		}
	}
}
