// Package store keeps compiled kernels in a folder, so that a later process loads code for the device in less than 0.1 ms and
// does not compile the text again, which takes some 5 ms.
//
// # Use
//
//	kept := store.Open(store.Config{})
//	kernels, err := kernel.NewCompiler(c, kernel.WithStore(kept.On(c.Info()))) // c is a *cuda.Context
//
// # Words
//
// A Store is a folder of entries. An entry is one file: the image that the driver's linker made, and the Key that it was made
// of. On gives a View: the store as a compiler of one device sees it. A hit is a Get that finds an image, a miss one that does
// not.
//
// # Folder
//
// The folder is Config.Folder, else vram/kernels in os.UserCacheDir. The environment variable VRAM_KERNEL_STORE names another
// one, before both, or has the value "off": nothing is kept and nothing is found then. Importing the package and Open touch no
// file; the folder is made by the first Put, for its user alone. A program or a user that can write to the folder chooses the
// code that runs on the GPU: keep it as private as the program. A folder that others than its owner may write to, or that
// belongs to another user than root, is not used: Get finds nothing, and Put keeps nothing.
//
// # Key
//
// The name of a file is the SHA-256 of its key: the text, the emitter and the options, the compute capability of the device,
// and the driver with its version. Another driver thus compiles again. The driver's version is the CUDA version that it
// reports, such as 13.0: two builds of one version share entries. The key stands in the file in readable form, and Get compares
// it.
//
// # Safety
//
// A file has its length and the SHA-256 of its contents in its second line. A file that fails the check is a miss; it is
// counted and removed. So is a file that is longer than Config.LimitBytes, of which nothing is read. Put writes a file under
// another name and renames it: processes that share a folder see a whole file or none, and take no lock. Nothing is flushed to
// the disk: a crash of the machine may leave damaged files, which the check finds.
//
// A store never fails its caller. A folder that cannot be made, or in which no file can be made, disables Put for the life of
// the Store; Stats.Disabled is the reason, and the logger gets it once. A file that cannot be written completely, as on a full
// disk, loses that image alone; the first loss is logged, all are counted. A folder that can only be read serves Get.
//
// # Bound
//
// Entries have Config.LimitBytes together. Where a Put exceeds the bound, the least recently used entries are removed, until
// seven eighths of it are left. Time of use is the time of change of the file, which Get renews when it is older than a day.
// The folder is counted again when this process has written a sixteenth of the bound: of several processes, each may exceed the
// bound by that much.
//
// # Concurrency properties
//
// All functions are safe for concurrent use, in any number of processes. Get takes no lock; Put locks the count of bytes of
// its Store alone.
package store
