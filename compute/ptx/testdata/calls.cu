// Device functions that are called, local memory, and a switch.
#define KERNEL extern "C" __attribute__((global)) void
#define DEVICE extern "C" __attribute__((device, noinline))

DEVICE int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

struct Pair { float a; double b; };
DEVICE Pair swap(Pair p, float scale) { return Pair{(float)p.b * scale, (double)p.a}; }
DEVICE void store(int *out, int value) { *out = value; }

KERNEL call(int *out, double *pairs, int n) {
  int t = __nvvm_read_ptx_sreg_tid_x();
  int stack[16];
  for (int i = 0; i < 16; i++) stack[(i * n) & 15] = i + t;
  Pair p = swap(Pair{1.0f + t, pairs[t]}, 2.0f);
  pairs[t] = p.a + p.b;
  store(out + t, factorial(stack[t & 15]));
}
