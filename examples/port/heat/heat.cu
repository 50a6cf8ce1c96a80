// Heat in a plate of nx by ny cells: one step is rate, madd2 and hold. Units are cells and steps.

// rate = conductivity of the cell's material * (sum of the differences to the neighbors) + source * scale.
// No heat crosses the border. A plate without sources has a NULL pointer, and scale for each cell.
extern "C" __global__ void rate(float *__restrict__ dst, const float *__restrict__ u, const float *__restrict__ conductivity,
                                const unsigned char *__restrict__ material, const float *__restrict__ source, float scale, int nx, int ny) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    int i = y * nx + x;
    float here = u[i];
    float left = x > 0 ? u[i - 1] : here, right = x < nx - 1 ? u[i + 1] : here;
    float up = y > 0 ? u[i - nx] : here, down = y < ny - 1 ? u[i + nx] : here;
    float heat = source == 0 ? scale : scale * source[i];
    dst[i] = conductivity[material[i]] * (left + right + up + down - 4 * here) + heat;
}

// dst = a*fa + b*fb
extern "C" __global__ void madd2(float *dst, const float *a, float fa, const float *b, float fb, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) dst[i] = a[i] * fa + b[i] * fb;
}

// The cells of a material keep a temperature.
extern "C" __global__ void hold(float *u, const unsigned char *material, unsigned char held, float temperature, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && material[i] == held) u[i] = temperature;
}

// *most = max(*most, |a-b|); *most is at least 0 before.
extern "C" __global__ void maxdiff(float *most, const float *a, const float *b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicMax((int *)most, __float_as_int(fabsf(a[i] - b[i])));
}

// *total += sum of a
extern "C" __global__ void sum(float *total, const float *a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, a[i]);
}
