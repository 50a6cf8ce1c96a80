package drivertest

// PTX has the kernels that the suite launches, for every GPU from compute capability 7.0 on:
//
//	vram_fill32(p uint64, value, count uint32)    writes a word count times
//	vram_add32(to, from uint64, count uint32)     adds count words to others
//	vram_nothing()
//
// Each thread of a grid in one direction has a word. There is a variable, vram_word, of four bytes.
const PTX = head + `
.visible .global .align 4 .u32 vram_word;
` + fill + sum + `
.visible .entry vram_nothing() { ret; }
`

// variables has variables with initial values, and an array of zeros.
const variables = head + `
.visible .const .align 4 .u32 vram_table[4] = {1, 0x20, 3};
.visible .global .align 4 .f32 vram_scale = 0f3FC00000;
.visible .global .align 2 .s16 vram_short[2] = {-2, 5};
.visible .global .align 8 .b8 vram_room[20];
`

const head = `.version 7.0
.target sm_70
.address_size 64
`

// index is the begin of kernels: %r1 is the number of the thread, and threads from the count, %r2, on return.
const index = `
	.reg .pred %p<2>;
	.reg .b32 %r<8>;
	.reg .b64 %d<6>;
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mad.lo.s32 %r1, %r3, %r4, %r5;
	ld.param.u32 %r2, [count];
	setp.ge.u32 %p1, %r1, %r2;
	@%p1 bra DONE;
	mul.wide.u32 %d1, %r1, 4;
`

const fill = `
.visible .entry vram_fill32(.param .u64 p, .param .u32 value, .param .u32 count) {` + index + `
	ld.param.u64 %d2, [p];
	ld.param.u32 %r6, [value];
	add.u64 %d2, %d2, %d1;
	st.global.u32 [%d2], %r6;
DONE:
	ret;
}
`

const sum = `
.visible .entry vram_add32(.param .u64 to, .param .u64 from, .param .u32 count) {` + index + `
	ld.param.u64 %d2, [to];
	ld.param.u64 %d3, [from];
	add.u64 %d2, %d2, %d1;
	add.u64 %d3, %d3, %d1;
	ld.global.u32 %r6, [%d2];
	ld.global.u32 %r7, [%d3];
	add.u32 %r6, %r6, %r7;
	st.global.u32 [%d2], %r6;
DONE:
	ret;
}
`

// mistaken has an instruction that no GPU has, whose name the compiler's log gives.
const mistaken = head + `
.visible .entry vram_mistaken() {
	nonsense.u32 %r1;
	ret;
}
`
