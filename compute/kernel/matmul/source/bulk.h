// What kernels that copy in bulk need of the machine, which is of compute capability 9.0. The host does not emulate it: the interpreter of PTX runs them.
#pragma once
#include "finish.h"

#define UNROLL_2 _Pragma("unroll 2")

// Copies by the engine of a multiprocessor, whose barriers count arrivals and bytes: compute capability 9.0 and later.
struct alignas(64) tensor_map { char x[128]; };  // where a matrix lies, as the driver encodes it
#define TEXT(x) TEXT_OF(x)
#define TEXT_OF(x) #x
// The address of a kernel's parameter, which must not be copied to other memory: parameter n of kernel x is x_param_n to the compiler.
#define PARAMETER_ADDRESS(kernel, n) ({ u64 to; asm("mov.b64 %0, " TEXT(kernel) "_param_" #n ";\ncvta.param.u64 %0, %0;" : "=l"(to)); to; })
DEVICE void barrier_init(u32 at, u32 arrivals) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(arrivals) : "memory"); }
DEVICE void barrier_expect(u32 at, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at), "r"(bytes) : "memory");
}
DEVICE bool barrier_ended(u32 at, u32 parity) {
    u32 is;
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(is) : "r"(at), "r"(parity) : "memory");
    return is;
}
// Waits until the phase with that parity has ended.
DEVICE void barrier_wait(u32 at, u32 parity) {
    NO_UNROLL while (!barrier_ended(at, parity)) {}
}
DEVICE void barrier_arrive(u32 at) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at) : "memory"); }
// Begins to copy a box of a matrix of a batch, whose bytes the barrier counts. x is the place in a row.
DEVICE void bulk_copy(u32 to, u64 map, u32 x, u32 y, u32 z, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
                 ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier) : "memory");
}
// The same number, for what is computed once more instead of kept in a register.
DEVICE u32 again(u32 x) {
    asm volatile("" : "+r"(x));
    return x;
}
// The thread's number, read once more instead of kept in a register.
DEVICE u32 thread_again() {
    u32 x;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    return x;
}
// A warpgroup gives away registers, or takes them: how many each thread has.
template <int COUNT> DEVICE void registers_down() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT)); }
template <int COUNT> DEVICE void registers_up() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT)); }
DEVICE void store_pair(u32 *to, float a, float b) { *(pair *)to = pair{{__builtin_bit_cast(u32, a), __builtin_bit_cast(u32, b)}}; }
// Two numbers of 16 bits, the first one in the lower half.
DEVICE u32 narrow_pair(u32 type, float low, float high) {
    u32 r;
    if (type == 1) asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(low), "f"(high));
    else asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(r) : "f"(low), "f"(high));
    return r;
}
// The descriptor of a matrix in shared memory: rows of 128 bytes, eight of which are 1,024 bytes, and begin at a multiple of them. The number of a chunk
// of 16 bytes is xored with the row's, modulo 8. leading: the bytes between parts of as many rows or columns, where these lie side by side, as a line has.
DEVICE u64 group_matrix_at(u32 at, u32 leading) { return (u64)(64u | 1u << 30) << 32 | (u64)(leading >> 4) << 16 | at >> 4; }
#define SUMS_8(x, i) "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3]), "+f"(x[i + 4]), "+f"(x[i + 5]), "+f"(x[i + 6]), "+f"(x[i + 7])
#define SUMS_32(x, i) SUMS_8(x, i), SUMS_8(x, i + 8), SUMS_8(x, i + 16), SUMS_8(x, i + 24)
#define SUMS_64(x, i) SUMS_32(x, i), SUMS_32(x, i + 32)
// Begins to add the product of 64 rows of 16 numbers of A and 16 of B. ACROSS_A, ACROSS_B: the rows, the columns lie side by side.
#define GROUP_MULTIPLY_16(type, columns, count, sums, places, a, b, p, sa, sb) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %" p ", 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." type "." type " {" places "}, %" a ", %" b ", p, 1, 1, %" sa ", %" sb ";\n}" \
                 : sums() : "l"(left), "l"(right), "r"((u32)adds), "n"(ACROSS_A), "n"(ACROSS_B) : "memory")
#define PLACES_128 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111," \
    "%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127"
#define PLACES_96 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79," \
    "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define PLACES_64 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47," \
    "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define PLACES_32 \
    "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15," \
    "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define S128() SUMS_64(d, 0), SUMS_64(d, 64)
#define S96() SUMS_64(d, 0), SUMS_32(d, 64)
#define S64() SUMS_64(d, 0)
#define S32() SUMS_32(d, 0)
template <int KIND_OF, int ACROSS_A, int ACROSS_B> DEVICE void group_multiply_16(float (&d)[128], u64 left, u64 right, bool adds) {
    if (KIND_OF == 1) GROUP_MULTIPLY_16("f16", "256", 128, S128, PLACES_128, "128", "129", "130", "131", "132");
    else GROUP_MULTIPLY_16("bf16", "256", 128, S128, PLACES_128, "128", "129", "130", "131", "132");
}
template <int KIND_OF, int ACROSS_A, int ACROSS_B> DEVICE void group_multiply_16(float (&d)[96], u64 left, u64 right, bool adds) {
    if (KIND_OF == 1) GROUP_MULTIPLY_16("f16", "192", 96, S96, PLACES_96, "96", "97", "98", "99", "100");
    else GROUP_MULTIPLY_16("bf16", "192", 96, S96, PLACES_96, "96", "97", "98", "99", "100");
}
template <int KIND_OF, int ACROSS_A, int ACROSS_B> DEVICE void group_multiply_16(float (&d)[64], u64 left, u64 right, bool adds) {
    if (KIND_OF == 1) GROUP_MULTIPLY_16("f16", "128", 64, S64, PLACES_64, "64", "65", "66", "67", "68");
    else GROUP_MULTIPLY_16("bf16", "128", 64, S64, PLACES_64, "64", "65", "66", "67", "68");
}
template <int KIND_OF, int ACROSS_A, int ACROSS_B> DEVICE void group_multiply_16(float (&d)[32], u64 left, u64 right, bool adds) {
    if (KIND_OF == 1) GROUP_MULTIPLY_16("f16", "64", 32, S32, PLACES_32, "32", "33", "34", "35", "36");
    else GROUP_MULTIPLY_16("bf16", "64", 32, S32, PLACES_32, "32", "33", "34", "35", "36");
}
// The same for TF32: of 8 numbers each. The left one is in shared memory, or in registers: four numbers of 16 rows for each warp.
#define GROUP_MULTIPLY_8(columns, sums, places, a, b, p) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %" p ", 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n" columns "k8.f32.tf32.tf32 {" places "}, %" a ", %" b ", p, 1, 1;\n}" \
                 : sums() : "l"(left), "l"(right), "r"((u32)adds) : "memory")
#define GROUP_MULTIPLY_REGISTERS(columns, sums, places, a, b, c, d, e, p) \
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %" p ", 0;\n" \
                 "wgmma.mma_async.sync.aligned.m64n" columns "k8.f32.tf32.tf32 {" places "}, {%" a ", %" b ", %" c ", %" d "}, %" e ", p, 1, 1;\n}" \
                 : sums() : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "l"(right), "r"((u32)adds) : "memory")
DEVICE void group_multiply_8(float (&d)[128], u64 left, u64 right, bool adds) { GROUP_MULTIPLY_8("256", S128, PLACES_128, "128", "129", "130"); }
DEVICE void group_multiply_8(float (&d)[96], u64 left, u64 right, bool adds) { GROUP_MULTIPLY_8("192", S96, PLACES_96, "96", "97", "98"); }
DEVICE void group_multiply_8(float (&d)[64], u64 left, u64 right, bool adds) { GROUP_MULTIPLY_8("128", S64, PLACES_64, "64", "65", "66"); }
DEVICE void group_multiply_8(float (&d)[32], u64 left, u64 right, bool adds) { GROUP_MULTIPLY_8("64", S32, PLACES_32, "32", "33", "34"); }
DEVICE void group_multiply_8(float (&d)[128], const u32 (&left)[4], u64 right, bool adds) {
    GROUP_MULTIPLY_REGISTERS("256", S128, PLACES_128, "128", "129", "130", "131", "132", "133");
}
DEVICE void group_multiply_8(float (&d)[96], const u32 (&left)[4], u64 right, bool adds) {
    GROUP_MULTIPLY_REGISTERS("192", S96, PLACES_96, "96", "97", "98", "99", "100", "101");
}
DEVICE void group_multiply_8(float (&d)[64], const u32 (&left)[4], u64 right, bool adds) {
    GROUP_MULTIPLY_REGISTERS("128", S64, PLACES_64, "64", "65", "66", "67", "68", "69");
}
DEVICE void group_multiply_8(float (&d)[32], const u32 (&left)[4], u64 right, bool adds) {
    GROUP_MULTIPLY_REGISTERS("64", S32, PLACES_32, "32", "33", "34", "35", "36", "37");
}
#undef S128
#undef S96
#undef S64
#undef S32
#undef SUMS_64
#undef GROUP_MULTIPLY_16
#undef GROUP_MULTIPLY_8
#undef GROUP_MULTIPLY_REGISTERS
#undef SUMS_8
#undef SUMS_32
