package cuda

import "math"

// coverThreads is the number of threads of a block of Cover, Cover2D and Cover3D. Not fewer: a multiprocessor runs at most 32
// blocks at once, and 256 threads each fill it. Not more: a kernel with many registers has no larger blocks.
const coverThreads = 256

// Cover returns the geometry of a kernel with a thread for each of n elements, in blocks of blockThreads threads, 256 if it is
// left out: at least one block. The last block has threads past n, for which the kernel needs a guard. The driver refuses
// grids of more than 2^31-1 blocks.
func Cover(n int, blockThreads ...int) Geometry {
	threads := coverThreads
	if len(blockThreads) > 0 {
		threads = blockThreads[0]
	}
	return cover([3]int{n, 1, 1}, [3]int{threads, 1, 1})
}

// Cover2D returns the geometry of a kernel with a thread for each of x by y elements, in blocks of 32 by 8 threads: see Cover.
// The driver refuses grids of more than 65,535 blocks in y.
func Cover2D(x, y int) Geometry {
	const width = 32 // neighbours in x are a warp, whose accesses are together
	return cover([3]int{x, y, 1}, [3]int{width, coverThreads / width, 1})
}

// Cover3D returns the geometry of a kernel with a thread for each of x by y by z elements, in blocks of 32 by 4 by 2 threads:
// see Cover. The driver refuses grids of more than 65,535 blocks in y, and in z.
func Cover3D(x, y, z int) Geometry {
	const width, height = 32, 4
	return cover([3]int{x, y, z}, [3]int{width, height, coverThreads / width / height})
}

// cover returns the geometry with a thread for each element in each direction.
func cover(elements, threads [3]int) Geometry {
	var grid, block [3]uint32
	for i, n := range elements {
		t := max(threads[i], 1)
		blocks := 1
		if n > t {
			blocks = (n-1)/t + 1
		}
		grid[i], block[i] = dimension(blocks), dimension(t)
	}
	return Geometry{Grid: Dim3{X: grid[0], Y: grid[1], Z: grid[2]}, Block: Dim3{X: block[0], Y: block[1], Z: block[2]}}
}

// dimension returns a number of blocks or threads; one that is too large stays so, and the driver refuses it.
func dimension(n int) uint32 { return uint32(min(uint64(n), math.MaxUint32)) } //nolint:gosec // at least 1
